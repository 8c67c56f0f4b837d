//! `[kernel] store` and what belongs to it: where the tasks of a person's projects are kept, and who
//! asks there.
//!
//! Only the person's own file, environment and flags say so: a project must not point a machine
//! elsewhere. Connects to nobody.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kapi_fleet::address::{Address, Authentication};

use crate::config::source::{At, Source, Text, at};
use crate::config::{Variables, grant};
use crate::error::Error;

/// The variable that says what `--store` says.
pub(crate) const STORE: &str = "KAPI_STORE";
/// The word for the project's own files.
const FILES: &str = "files";
/// The most servers that keep everything.
const REPLICAS_MAX: u8 = 5;
/// The servers of a cluster that may lose one.
const REPLICAS: u8 = 3;

/// What belongs to `[kernel] store`.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreTable {
    /// Where tasks are kept: `files`, or the address of a cluster.
    pub(crate) store: Option<String>,
    /// What the project is called on the cluster.
    pub(crate) store_project: Option<String>,
    /// The file that proves who asks.
    pub(crate) store_credentials: Option<PathBuf>,
    /// Certificates of authorities to believe besides the system's.
    pub(crate) store_authorities: Option<PathBuf>,
    /// On how many servers everything is kept.
    pub(crate) store_replicas: Option<u8>,
}

/// Where tasks are kept, in a person's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In the project's own files.
    Files,
    /// On a cluster.
    Cluster(Address),
}

/// What the person's file and environment say of the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreSaid {
    /// Where.
    pub(crate) kept: Option<At<Kept>>,
    /// What the project is called there.
    pub(crate) project: Option<At<String>>,
    /// The file that proves who asks.
    pub(crate) credentials: Option<PathBuf>,
    /// Certificates of authorities.
    pub(crate) authorities: Option<PathBuf>,
    /// On how many servers everything is kept, where it is not the usual.
    pub(crate) replicas: Option<u8>,
}

impl StoreSaid {
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
        self.kept = Some(At::new(kept, Source::Variable(STORE)));
        Ok(())
    }
}

/// Takes what the person's file says.
pub(crate) fn person(file: &Text<'_>, table: StoreTable, home: &Path) -> Result<StoreSaid, Error> {
    let place = |key: &str| file.at(&format!("kernel.{key}"));
    let source = |key: &str| {
        let line = file.lines.get(&format!("kernel.{key}")).copied();
        at(file.path, line.unwrap_or(1))
    };
    let kept = table.store.map(|text| {
        let kept = parse(&text).map_err(|why| wrong(&place("store"), &why));
        Ok::<_, Error>(At::new(kept?, source("store")))
    });
    let shown = |key: &str, path: Option<PathBuf>| {
        let path = path.map(|path| grant::visible(&place(key), &path, home));
        path.transpose()
    };
    let replicas = table.store_replicas;
    if replicas.is_some_and(|n| !(1..=REPLICAS_MAX).contains(&n)) {
        let text = format!("it must be between 1 and {REPLICAS_MAX}");
        return Err(wrong(&place("store_replicas"), &text));
    }
    Ok(StoreSaid {
        kept: kept.transpose()?,
        project: table
            .store_project
            .map(|name| At::new(name, source("store_project"))),
        credentials: shown("store_credentials", table.store_credentials)?,
        authorities: shown("store_authorities", table.store_authorities)?,
        replicas,
    })
}

/// Refuses a project's file that says where tasks are kept.
pub(crate) fn refuse(file: &Text<'_>) -> Result<(), Error> {
    let mut keys = file.lines.keys();
    let Some(key) = keys.find(|key| key.starts_with("kernel.store")) else {
        return Ok(());
    };
    let text = format!(
        "{}: `{key}`: a project may not say where tasks are kept",
        file.at(key)
    );
    Err(Error::usage(text).with_hint(
        "put it into your own config.toml, or say `--store` or KAPI_STORE for one command.",
    ))
}

/// Reads a flag.
pub(crate) fn flag(text: &str) -> Result<At<Kept>, Error> {
    let kept = parse(text).map_err(|why| wrong("`--store`", &why))?;
    Ok(At::new(kept, Source::Flag("--store")))
}

/// Returns the proof that a file stands for, where the address has none of its own.
pub(crate) fn with_credentials(mut address: Address, credentials: Option<&Path>) -> Address {
    if let (Authentication::None, Some(path)) = (&address.proof, credentials) {
        address.proof = Authentication::File(path.to_path_buf());
    }
    address
}

/// Says what is wrong without repeating it: it may hold a password.
fn parse(text: &str) -> Result<Kept, String> {
    if text == FILES {
        return Ok(Kept::Files);
    }
    let address = Address::parse(text).map_err(|error| format!("failed to {error}"))?;
    Ok(Kept::Cluster(address))
}

fn wrong(place: &str, why: &str) -> Error {
    Error::usage(format!("{place}: {why}")).with_hint(
        "write `files`, or `nats://host:port` with the servers of one cluster between commas.",
    )
}

#[cfg(test)]
mod tests {
    use super::{Kept, flag};

    #[test]
    fn a_store_is_files_or_a_cluster_and_an_error_repeats_no_password() {
        assert_eq!(flag("files").unwrap().value, Kept::Files);
        let Kept::Cluster(address) = flag("nats://one:1,two").unwrap().value else {
            panic!("it is a cluster");
        };
        assert_eq!(address.to_string(), "nats://one:1,two:4222");
        let error = flag("nats://kim:s3cret@").unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
        assert!(error.starts_with("`--store`: failed to read"), "{error}");
    }
}
