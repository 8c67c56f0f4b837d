//! Setting one key of the file: that value changes, and every other byte stays as it was.
//!
//! Comments, spaces and line ends are the person's.

use std::path::{Path, PathBuf};

use kapi_settings::fault::SettingsFault;
use kapi_settings::jsonc::edit;
use kapi_sys::disk::{Disk, create_dir_durably};
use serde_json::{Value, json};

use crate::record::creampi_file::{CreampiError, load_text, parse, root_of};
use crate::record::guardrails::replace::{ReplaceOutcome, replace_unless_changed};

/// How long a change waits for another process to finish its own, in milliseconds.
const LOCK_WAIT_MS: u64 = 10_000;
/// How often a change is tried again because a person was saving the file.
const TRIES_MAX: usize = 16;
/// What a new file begins as.
const EMPTY: &str = "{\n}\n";

/// A value to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewValue<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Number(u32),
    /// A backend's model; for a key such as `backends.pi`.
    Backend {
        /// Who serves it.
        provider: &'a str,
        /// Its name.
        model: &'a str,
    },
}

/// A file to change.
#[derive(Clone)]
pub struct Editing<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The file; its project's directory is there.
    pub file: PathBuf,
    /// The lock that other processes of ours take, too.
    pub lock: PathBuf,
    /// What they are told about who holds it ("kapi config").
    pub owner: String,
}

/// Sets a key in the file, which is made when it is missing. Durable when it returns.
///
/// # Errors
/// When the file would not say what it should (nothing is written then), it keeps being changed
/// by somebody else, or the disk refuses.
pub fn set_in_file(
    editing: &Editing<'_>,
    key: &str,
    value: &NewValue<'_>,
) -> Result<(), CreampiError> {
    let file = &editing.file;
    let _held = editing
        .disk
        .lock(&editing.lock, &editing.owner, LOCK_WAIT_MS)?;
    if file.is_symlink() {
        let file = file.clone();
        return Err(CreampiError::IsLink { file });
    }
    for _ in 0..TRIES_MAX {
        let before = load_text(editing.disk, file)?;
        let after = set(before.as_deref().unwrap_or(EMPTY), file, key, value)?;
        if before.as_deref() == Some(after.as_str()) {
            return Ok(());
        }
        if let (None, Some(directory)) = (&before, file.parent()) {
            create_dir_durably(editing.disk, &root_of(file), directory)?;
        }
        let before = before.as_ref().map(String::as_bytes);
        match replace_unless_changed(editing.disk, file, before, after.as_bytes())? {
            ReplaceOutcome::Yes => return Ok(()),
            ReplaceOutcome::NoItChanged => {}
        }
    }
    let file = file.clone();
    Err(CreampiError::KeepsChanging { file })
}

/// Returns the text with a key set: `maxConcurrency`, or `backends.pi` and below it
/// `backends.pi.model`.
///
/// # Errors
/// When the text, before or after, does not say what it should: an unknown key, a value out of
/// range, or no JSON.
pub fn set(
    text: &str,
    file: &Path,
    key: &str,
    value: &NewValue<'_>,
) -> Result<String, CreampiError> {
    // Only a text without problems is edited: its places are then what they seem.
    parse(text, file)?;
    let path: Vec<&str> = key.splitn(3, '.').collect();
    let put = |text: &str, path: &[&str], value: &Value| {
        edit::set(text, path, value).map_err(|error| {
            let remedy = "name a key that stands in a table";
            let fault =
                SettingsFault::of_file(file.display().to_string(), error.to_string(), remedy);
            CreampiError::Invalid {
                faults: vec![fault],
            }
        })
    };
    let after = match value {
        NewValue::Text(value) => put(text, &path, &json!(value))?,
        NewValue::Number(value) => put(text, &path, &json!(value))?,
        NewValue::Backend { provider, model } => {
            // An entry that is there keeps its comments: only the two values change.
            let is_there = parse(text, file)?
                .backends
                .contains_key(path.get(1).copied().unwrap_or_default());
            if path.len() == 2 && is_there {
                let below = |name| [path.as_slice(), &[name]].concat();
                let text = put(text, &below("provider"), &json!(provider))?;
                put(&text, &below("model"), &json!(model))?
            } else {
                let whole = json!({ "provider": provider, "model": model });
                put(text, &path, &whole)?
            }
        }
    };
    parse(&after, file)?;
    Ok(after)
}
