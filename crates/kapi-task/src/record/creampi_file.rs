//! `.pi/oh-my-creampi.jsonc`: the settings that oh-my-creampi reads, with where each stands.
//!
//! Comments and trailing commas are welcome; what is unknown or out of range is an error with its
//! place. Says what the file holds, not what wins against other settings.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use kapi_settings::fault::SettingsFault;
use kapi_settings::setting::Setting;
use kapi_sys::disk::{Disk, DiskError};

mod directory;
mod read;

/// The file below a project.
pub const FILE: &str = ".pi/oh-my-creampi.jsonc";
/// The file that is read when the other is nowhere.
pub const PLAIN_FILE: &str = ".pi/oh-my-creampi.json";
/// The longest file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Which model a backend asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Who serves it.
    pub provider: String,
    /// Its name.
    pub model: String,
}

/// What the file says. A key that is not there is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreampiConfig {
    /// The file.
    pub file: PathBuf,
    /// The project: the directory that holds `.pi`.
    pub root: PathBuf,
    /// `defaultAgent`.
    pub default_agent: Option<Setting<String>>,
    /// `defaultBackend`.
    pub default_backend: Option<Setting<String>>,
    /// `defaultModel`.
    pub default_model: Option<Setting<String>>,
    /// `maxConcurrency`, 1 to 32.
    pub max_concurrency: Option<Setting<u32>>,
    /// `defaultTimeoutSec`, 0 to 86400; 0 is no limit.
    pub default_timeout_s: Option<Setting<u32>>,
    /// `guardrailsDir`, inside the project.
    pub guardrails_dir: Option<Setting<PathBuf>>,
    /// `idempotencyDir`, inside the project.
    pub idempotency_dir: Option<Setting<PathBuf>>,
    /// `idempotencyTtlSec`, 1 to 86400.
    pub idempotency_ttl_s: Option<Setting<u32>>,
    /// `checkpointsDir`, inside the project.
    pub checkpoints_dir: Option<Setting<PathBuf>>,
    /// `backends`, by their names.
    pub backends: BTreeMap<String, Setting<Backend>>,
}

/// A file that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CreampiError {
    /// It does not say what it should.
    #[error("read {}", listed(faults))]
    Invalid {
        /// What is wrong, in the order of the file; at least one.
        faults: Vec<SettingsFault>,
    },
    /// It is larger than any that is read.
    #[error("read {}: it is larger than {FILE_BYTES_MAX} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// It is no text.
    #[error("read {}: it is not UTF-8", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
    },
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

fn listed(faults: &[SettingsFault]) -> String {
    let faults: Vec<String> = faults
        .iter()
        .map(SettingsFault::location_and_what)
        .collect();
    faults.join("; ")
}

/// Returns the file that holds for a directory: the nearest `.jsonc` at or above it, else the
/// nearest `.json`.
///
/// # Errors
/// When the disk refuses, or something that is no file has its name.
pub fn find(disk: &dyn Disk, directory: &Path) -> Result<Option<PathBuf>, DiskError> {
    for name in [FILE, PLAIN_FILE] {
        for above in directory.ancestors() {
            let file = above.join(name);
            if is_there(disk, &file)? {
                return Ok(Some(file));
            }
        }
    }
    Ok(None)
}

fn is_there(disk: &dyn Disk, file: &Path) -> Result<bool, DiskError> {
    match disk.len(file) {
        Ok(length) => Ok(length.is_some()),
        // `.pi` is a file of something else.
        Err(error) if error.source.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads a file that [`find`] found; `None` when it is gone.
///
/// # Errors
/// When it is too large, no text, or says what it should not, or the disk refuses.
pub fn load(disk: &dyn Disk, file: &Path) -> Result<Option<CreampiConfig>, CreampiError> {
    let Some(text) = load_text(disk, file)? else {
        return Ok(None);
    };
    parse(&text, file).map(Some)
}

/// Reads what a file says; the project is the directory that holds its `.pi`.
///
/// # Errors
/// When there is anything in it that is unknown, out of range or not JSON.
pub fn parse(text: &str, file: &Path) -> Result<CreampiConfig, CreampiError> {
    read::read(text, file).map_err(|faults| CreampiError::Invalid { faults })
}

fn load_text(disk: &dyn Disk, file: &Path) -> Result<Option<String>, CreampiError> {
    if disk.len(file)?.unwrap_or_default() > FILE_BYTES_MAX {
        let file = file.to_path_buf();
        return Err(CreampiError::TooLarge { file });
    }
    let Some(bytes) = disk.read(file, 0)? else {
        return Ok(None);
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(CreampiError::NotText {
            file: file.to_path_buf(),
        }),
    }
}

/// Returns the project a file belongs to.
fn root_of(file: &Path) -> PathBuf {
    let root = file.parent().and_then(Path::parent);
    root.unwrap_or(Path::new("/")).to_path_buf()
}

#[cfg(test)]
mod tests;
