//! Keys that lie in files, for services, cron and CI, whose environment holds none: one file a variable,
//! in systemd's credentials directory and in `keys` beside the person's configuration.
//!
//! What the environment says counts before a file. A file that others can read is refused. Does not know
//! what a key is for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::exit_code::Exit;

/// Names the directory of a service's credentials (systemd: `LoadCredential=`).
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// The directory of keys, beside the person's configuration.
const KEYS: &str = "keys";
/// The largest key.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// Files of one directory that are looked at.
const FILES_MAX: usize = 100;
/// The rights of anybody but the owner.
const OTHERS: u32 = 0o077;

/// Adds what key files say to an environment.
///
/// # Errors
/// When a file can be read by others, or not by us.
pub(crate) fn add(
    env: &mut BTreeMap<OsString, OsString>,
    configuration: Option<&Path>,
) -> Result<(), Error> {
    let credentials = env.get(OsStr::new(CREDENTIALS)).map(PathBuf::from);
    let own = configuration.map(|dir| dir.join(KEYS));
    for dir in credentials.into_iter().chain(own) {
        for path in files(&dir)? {
            let Some(name) = path.file_name().filter(|name| is_variable(name)) else {
                continue;
            };
            if !env.contains_key(name) {
                env.insert(name.to_owned(), read(&path)?);
            }
        }
    }
    Ok(())
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    match fs::read_dir(dir) {
        Ok(entries) => {
            let paths = entries.flatten().map(|entry| entry.path());
            let mut paths: Vec<PathBuf> = paths.take(FILES_MAX).collect();
            paths.sort();
            Ok(paths)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed("list", dir, &error)),
    }
}

/// Tells whether a file is named as variables of keys are: `ANTHROPIC_API_KEY`.
fn is_variable(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(is_part)
}

fn read(path: &Path) -> Result<OsString, Error> {
    let found = fs::metadata(path).map_err(|error| failed("read", path, &error))?;
    if found.mode() & OTHERS != 0 {
        let text = format!("others can read the key in {}", path.display());
        return Err(
            Error::new(Exit::Usage, text).with_hint(format!("run `chmod 600 {}`.", path.display()))
        );
    }
    if found.len() > KEY_BYTES_MAX {
        return Err(Error::usage(format!(
            "{} is too large for a key",
            path.display()
        )));
    }
    let text = fs::read_to_string(path).map_err(|error| failed("read", path, &error))?;
    Ok(text.trim_end().into())
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let text = format!("failed to {what} {}: {error}", path.display());
    Error::new(Exit::Failed, text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;

    use super::add;

    fn key(dir: &Path, name: &str, text: &str) {
        fs::create_dir_all(dir).unwrap();
        let path = dir.join(name);
        RealDisk.write(&path, text.as_bytes()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn keys_come_from_the_environment_then_credentials_then_files() {
        let root = tempfile::tempdir().unwrap();
        let (own, service) = (root.path().join("kapi"), root.path().join("credentials"));
        key(&own.join("keys"), "A_KEY", "own");
        key(&own.join("keys"), "B_KEY", "own\n");
        key(&own.join("keys"), "C_KEY", "own");
        key(&own.join("keys"), "notes.txt", "no key");
        key(&service, "A_KEY", "service");
        key(&service, "C_KEY", "service");
        let said = [
            ("CREDENTIALS_DIRECTORY", service.to_str().unwrap()),
            ("C_KEY", "said"),
        ];
        let said = said.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let mut env = BTreeMap::from(said);
        add(&mut env, Some(&own)).unwrap();
        let value = |name: &str| env.get(&OsString::from(name)).unwrap().to_str().unwrap();
        assert_eq!(
            (value("A_KEY"), value("B_KEY"), value("C_KEY")),
            ("service", "own", "said")
        );
        assert_eq!(env.len(), 4);
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        key(&root.path().join("keys"), "A_KEY", "x");
        let path = root.path().join("keys/A_KEY");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = add(&mut BTreeMap::new(), Some(root.path())).unwrap_err();
        assert!(error.message.contains("others can read"), "{error}");
        add(&mut BTreeMap::new(), None).unwrap();
    }
}
