//! `[kernel] store` and what belongs to it: where the tasks of a person's projects are kept, and who
//! asks there.
//!
//! Only the person's own file, environment and flags say so: a project must not point a machine
//! elsewhere. Connects to nobody.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kapi_fleet::address::{Address, Authentication};
use kapi_settings::setting::Setting;

use crate::config::source::{SettingsText, SourcedValue, ValueSource};
use crate::config::{Variables, grant};
use crate::error::Error;

/// The variable that says what `--store` says.
pub(crate) const STORE: &str = "KAPI_STORE";
/// The word for the project's own files.
const FILES: &str = "files";
/// The most servers that keep everything.
pub(crate) const REPLICAS_MAX: u32 = 5;
/// The servers of a cluster that may lose one.
const REPLICAS: u8 = 3;

/// What belongs to `[kernel] store`.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreTable {
    /// Where tasks are kept: `files`, or the address of a cluster.
    pub(crate) store: Option<Setting<String>>,
    /// What the project is called on the cluster.
    pub(crate) store_project: Option<Setting<String>>,
    /// The file that proves who asks.
    pub(crate) store_credentials: Option<Setting<PathBuf>>,
    /// Certificates of authorities to believe besides the system's.
    pub(crate) store_authorities: Option<Setting<PathBuf>>,
    /// On how many servers everything is kept.
    pub(crate) store_replicas: Option<u32>,
}

/// Where tasks are kept, in a person's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskStoreLabel {
    /// In the project's own files.
    Files,
    /// On a cluster.
    Cluster(Address),
}

/// What the person's file and environment say of the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreSettings {
    /// Where.
    pub(crate) kept: Option<SourcedValue<TaskStoreLabel>>,
    /// What the project is called there.
    pub(crate) project: Option<SourcedValue<String>>,
    /// The file that proves who asks.
    pub(crate) credentials: Option<PathBuf>,
    /// Certificates of authorities.
    pub(crate) authorities: Option<PathBuf>,
    /// On how many servers everything is kept, where it is not the usual.
    pub(crate) replicas: Option<u8>,
}

impl StoreSettings {
    /// Returns on how many servers everything is kept of a cluster at an address.
    pub(crate) fn replicas(&self, address: &Address) -> u8 {
        let usual = if address.servers.len() < usize::from(REPLICAS) {
            1
        } else {
            REPLICAS
        };
        self.replicas.unwrap_or(usual)
    }

    /// Takes what the environment says.
    pub(crate) fn hear(&mut self, variables: &Variables) -> Result<(), Error> {
        let said = variables.get(OsStr::new(STORE));
        let Some(said) = said.filter(|said| !said.is_empty()) else {
            return Ok(());
        };
        let text = said.to_str();
        let text =
            text.ok_or_else(|| Error::usage(format!("the variable {STORE} is not UTF-8")))?;
        let kept = parse(text).map_err(|why| wrong(&format!("the variable {STORE}"), &why))?;
        self.kept = Some(SourcedValue::new(kept, ValueSource::Variable(STORE)));
        Ok(())
    }
}

/// Takes what the person's file says.
pub(crate) fn person(file: &mut SettingsText<'_>, table: StoreTable, home: &Path) -> StoreSettings {
    let kept = table.store.and_then(|said| match parse(&said.value) {
        Ok(kept) => Some(file.at(said.with(kept))),
        Err(why) => {
            file.faults.at(&said, why, REMEDY);
            None
        }
    });
    let faults = &mut file.faults;
    let mut shown = |path: Option<Setting<PathBuf>>| grant::visible(&path?, home, faults);
    let (credentials, authorities) = (
        shown(table.store_credentials),
        shown(table.store_authorities),
    );
    StoreSettings {
        kept,
        project: table.store_project.map(|name| file.at(name)),
        credentials,
        authorities,
        replicas: table
            .store_replicas
            .and_then(|count| u8::try_from(count).ok()),
    }
}

/// Reads a flag.
pub(crate) fn flag(text: &str) -> Result<SourcedValue<TaskStoreLabel>, Error> {
    let kept = parse(text).map_err(|why| wrong("`--store`", &why))?;
    Ok(SourcedValue::new(kept, ValueSource::Flag("--store")))
}

/// Returns the proof that a file stands for, where the address has none of its own.
pub(crate) fn with_credentials(mut address: Address, credentials: Option<&Path>) -> Address {
    if let (Authentication::None, Some(path)) = (&address.proof, credentials) {
        address.proof = Authentication::File(path.to_path_buf());
    }
    address
}

/// Says what is wrong without repeating it: it may hold a password.
fn parse(text: &str) -> Result<TaskStoreLabel, String> {
    if text == FILES {
        return Ok(TaskStoreLabel::Files);
    }
    let address = Address::parse(text).map_err(|error| format!("failed to {error}"))?;
    Ok(TaskStoreLabel::Cluster(address))
}

fn wrong(location: &str, why: &str) -> Error {
    Error::usage(format!("{location}: {why}")).with_hint(format!("{REMEDY}."))
}

const REMEDY: &str = "write `files`, or the servers of one cluster as `nats://host:port,…`";

#[cfg(test)]
mod tests {
    use super::{TaskStoreLabel, flag};

    #[test]
    fn a_store_is_files_or_a_cluster_and_an_error_repeats_no_password() {
        assert_eq!(flag("files").unwrap().value, TaskStoreLabel::Files);
        let TaskStoreLabel::Cluster(address) = flag("nats://one:1,two").unwrap().value else {
            panic!("it is a cluster");
        };
        assert_eq!(address.to_string(), "nats://one:1,two:4222");
        let error = flag("nats://kim:s3cret@").unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
        assert!(error.starts_with("`--store`: failed to read"), "{error}");
    }
}
