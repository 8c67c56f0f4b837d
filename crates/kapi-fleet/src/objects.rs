//! What travels between machines: named bytes with a few lines that say what they are.
//!
//! A worker elsewhere gets the commit that a task begins from, and gives back the one it made.
//! Knows neither git nor tasks: a name, the names it builds on, bytes, a size and a hash.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::blob::{self, BlobLocation};
use crate::client::FleetClient;
use crate::error::FleetError;
use crate::jetstream::{ExpectedPosition, JetStream, PublishOutcome};
use crate::names::SubjectNames;

/// The most bytes of one object.
pub const OBJECT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The longest name in bytes.
const NAME_BYTES_MAX: usize = 128;
/// The most objects that one may build on.
const BASIS_MAX: usize = 256;
/// The layout of what is said of an object.
const HEAD_VERSION: u32 = 1;

/// The objects of one project.
#[derive(Clone)]
pub struct FleetObjects {
    client: Arc<FleetClient>,
    names: SubjectNames,
}

/// What is known of an object without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectHead {
    /// Its name: letters, digits, dash and underscore. A commit's own id.
    pub name: String,
    /// The names that whoever takes it must have already.
    pub parents: Vec<String>,
    /// Its size.
    pub bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectRecord {
    v: u32,
    #[serde(rename = "basis")]
    parents: Vec<String>,
    #[serde(rename = "place")]
    location: BlobLocation,
}

impl FleetObjects {
    pub(crate) const fn of(client: Arc<FleetClient>, names: SubjectNames) -> Self {
        Self { client, names }
    }

    /// Offers bytes under a name. What is there already under it stays: a name says what the bytes
    /// mean, so whoever was first will do.
    ///
    /// # Errors
    /// When the name or the size is not allowed, or the cluster does not answer or refuses.
    pub fn put(&self, name: &str, parents: &[String], bytes: &[u8]) -> Result<(), FleetError> {
        for name in parents.iter().map(String::as_str).chain([name]) {
            check_name(name)?;
        }
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > OBJECT_BYTES_MAX {
            return Err(FleetError::ObjectTooLarge {
                name: name.to_owned(),
                bytes: size,
                bytes_max: OBJECT_BYTES_MAX,
            });
        }
        if bytes.is_empty() || parents.len() > BASIS_MAX {
            return Err(bad(name, "it is empty, or depends on too much"));
        }
        let stream = self.stream();
        if self.written(name)?.is_some() {
            return Ok(());
        }
        let above = self.names.file(&format!("object.{name}"));
        let location = blob::send(&stream, &above, bytes)?;
        let json = stream.encode(&ObjectRecord {
            v: HEAD_VERSION,
            parents: parents.to_vec(),
            location: location.clone(),
        })?;
        let subject = self.head_subject(name);
        match stream.publish(&subject, &json, &location.subject, ExpectedPosition::First)? {
            PublishOutcome::At(_) => Ok(()),
            PublishOutcome::Taken => stream.purge_but(&format!("{}.>", location.subject), 0),
        }
    }

    /// Returns what is known of an object.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn head(&self, name: &str) -> Result<Option<ObjectHead>, FleetError> {
        let written = self.written(name)?;
        Ok(written.map(|written| ObjectHead {
            name: name.to_owned(),
            parents: written.parents,
            bytes: written.location.bytes,
        }))
    }

    /// Returns an object's bytes, which are those that were put.
    ///
    /// # Errors
    /// When the cluster does not answer, or has other bytes.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, FleetError> {
        match self.written(name)? {
            None => Ok(None),
            Some(written) => blob::fetch(&self.stream(), &written.location),
        }
    }

    /// Returns the names of all objects.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn names(&self) -> Result<Vec<String>, FleetError> {
        let above = self.names.file("head.");
        let subjects = self.stream().subjects(&self.names.file("head.*"))?;
        let names = subjects
            .iter()
            .filter_map(|subject| subject.strip_prefix(&above));
        Ok(names.map(str::to_owned).collect())
    }

    /// Removes an object that nobody needs any more.
    ///
    /// # Errors
    /// When the cluster does not answer or refuses.
    pub fn remove(&self, name: &str) -> Result<(), FleetError> {
        check_name(name)?;
        let stream = self.stream();
        stream.purge_but(&self.head_subject(name), 0)?;
        stream.purge_but(&self.names.file(&format!("object.{name}.>")), 0)
    }

    fn written(&self, name: &str) -> Result<Option<ObjectRecord>, FleetError> {
        check_name(name)?;
        let stream = self.stream();
        let Some(kept) = stream.last(&self.head_subject(name))? else {
            return Ok(None);
        };
        let written: ObjectRecord = stream.parse("read an object", &kept.payload)?;
        if written.v != HEAD_VERSION {
            return Err(bad(name, "a newer version of Kapi wrote it"));
        }
        if written.location.bytes > OBJECT_BYTES_MAX || written.parents.len() > BASIS_MAX {
            return Err(bad(name, "it is larger than the maximum"));
        }
        for name in &written.parents {
            check_name(name)?;
        }
        Ok(Some(written))
    }

    fn head_subject(&self, name: &str) -> String {
        self.names.file(&format!("head.{name}"))
    }

    fn stream(&self) -> JetStream<'_> {
        JetStream {
            client: &self.client,
            name: self.names.file_stream(),
        }
    }
}

fn check_name(name: &str) -> Result<(), FleetError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err(bad(name, "its name contains invalid characters"));
    }
    Ok(())
}

fn bad(name: &str, what: &'static str) -> FleetError {
    FleetError::Object {
        name: name.to_owned(),
        what,
    }
}
