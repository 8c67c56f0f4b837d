//! How a changed file steers a run: as a whole, or by the parts of it that differ.
//!
//! Read from the repository. What it means for a proof is decided in core.

use std::collections::BTreeMap;
use std::path::Path;

use kapi_core::failure::Failure;
use kapi_core::glob::Glob;
use kapi_core::value::KernelValue;
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_run::failure;

use super::document::SettingsDocument;
use crate::rules::proof::role::{Present, Steering, differing_keys, steering_lines};

/// Bytes of a file that is looked into for what steers a run.
const STEERING_BYTES_MAX: usize = 4 << 20;

/// What of a file steers a run and differs.
#[derive(Debug, Clone)]
pub(super) enum SteeringPart {
    /// These keys.
    Keys(Vec<String>),
    /// Lines like these.
    Lines(Vec<Glob>),
}

/// Where a change begins and ends.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    pub(super) base: CommitId,
    pub(super) commit: CommitId,
}

impl Ends {
    pub(super) fn of(base: &CommitId, commit: &CommitId) -> Self {
        Self {
            base: base.clone(),
            commit: commit.clone(),
        }
    }
}

/// How a changed file steers a run.
pub(super) enum FileSteering {
    /// As a whole, or not at all.
    Whole,
    /// By parts, and none of them differs.
    Unchanged,
    /// By this part.
    Part(SteeringPart),
}

impl FileSteering {
    /// Returns which parts differ, in words; nothing where it steers as a whole.
    pub(super) fn words(&self) -> Option<Vec<String>> {
        match self {
            Self::Whole => None,
            Self::Unchanged => Some(Vec::new()),
            Self::Part(SteeringPart::Keys(keys)) => Some(keys.clone()),
            Self::Part(SteeringPart::Lines(_)) => Some(vec!["lines".to_owned()]),
        }
    }
}

pub(super) fn part(
    repository: &Repository,
    present: &Present<'_>,
    path: &Path,
    ends: &Ends,
) -> Result<FileSteering, Failure> {
    match present.steering(&path.to_string_lossy()) {
        None | Some(Steering::Whole) => Ok(FileSteering::Whole),
        Some(Steering::Keys(keys)) => keys_changed(repository, path, keys, ends),
        Some(Steering::Lines(lines)) => {
            let (old, new) = both(repository, path, ends)?;
            let differs = steering_lines(lines, &old) != steering_lines(lines, &new);
            Ok(if differs {
                FileSteering::Part(SteeringPart::Lines(lines.to_vec()))
            } else {
                FileSteering::Unchanged
            })
        }
    }
}

pub(super) fn both(
    repository: &Repository,
    path: &Path,
    ends: &Ends,
) -> Result<(String, String), Failure> {
    let text = |commit: &CommitId| {
        let read = repository.file_at(commit, path, STEERING_BYTES_MAX);
        let bytes = read.map_err(|error| failure::plain(&error))?;
        Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
    };
    Ok((text(&ends.base)?, text(&ends.commit)?))
}

/// Returns the keys of a file that steer a run and differ. What cannot be read steers as a whole.
fn keys_changed(
    repository: &Repository,
    path: &Path,
    keys: &[Glob],
    ends: &Ends,
) -> Result<FileSteering, Failure> {
    let (old, new) = both(repository, path, ends)?;
    let value = |text: &str| {
        if text.trim().is_empty() {
            return Some(KernelValue::Map(BTreeMap::new()));
        }
        SettingsDocument::parse(path, text).map(|document| document.value())
    };
    let (Some(old), Some(new)) = (value(&old), value(&new)) else {
        return Ok(FileSteering::Whole);
    };
    let found = differing_keys(keys, &old, &new);
    Ok(if found.is_empty() {
        FileSteering::Unchanged
    } else {
        FileSteering::Part(SteeringPart::Keys(found))
    })
}
