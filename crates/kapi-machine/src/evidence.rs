//! The files of runs: hashed when a run is over, and compared with what the log remembers.
//!
//! Knows directories and hashes. What stands in a file, and which effect wrote it, is not known here.

pub mod pruned;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_core::evidence::EvidenceFile;
use kapi_store::hash::sha256_hex;
use kapi_sys::disk::{Disk, DiskError};

/// Directories below a run's directory that are looked into.
const DEPTH_MAX: u32 = 3;
/// Files of one run that are hashed; no run of ours writes as many.
const FILES_MAX: usize = 4_096;
/// The lock of a run, which says nothing about it.
const LOCK: &str = "lock";

/// What is wrong with a file of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceFault {
    /// It is gone.
    #[error("it is missing")]
    Missing,
    /// It has fewer bytes than were recorded.
    #[error("it is shorter than recorded: {found} bytes, not {recorded}")]
    Shorter {
        /// How many were recorded.
        recorded: u64,
        /// How many there are.
        found: u64,
    },
    /// It has more bytes than were recorded.
    #[error("it is longer than recorded: {found} bytes, not {recorded}")]
    Longer {
        /// How many were recorded.
        recorded: u64,
        /// How many there are.
        found: u64,
    },
    /// It has as many bytes, and others.
    #[error("its content was altered")]
    Altered,
}

/// A run as a log remembers it: its directory and every file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRun {
    /// The run's directory.
    pub dir: PathBuf,
    /// Its files.
    pub files: Vec<EvidenceFile>,
}

/// Hashes every file below a run's directory, sorted by name, and makes it durable; none where there
/// is no directory.
///
/// A log that is durable must not remember files that a power cut can still take back.
///
/// # Errors
/// When the disk refuses.
pub fn hash_run(disk: &dyn Disk, dir: &Path) -> Result<Vec<EvidenceFile>, DiskError> {
    let mut files = Vec::new();
    hash_below(disk, dir, "", DEPTH_MAX, &mut files)?;
    if !files.is_empty() {
        // The run's directory, that of all runs, and the one that names it.
        for directory in dir.ancestors().take(3) {
            disk.sync(directory)?;
        }
    }
    Ok(files)
}

fn hash_below(
    disk: &dyn Disk,
    dir: &Path,
    prefix: &str,
    depth: u32,
    files: &mut Vec<EvidenceFile>,
) -> Result<(), DiskError> {
    for name in disk.list(dir)? {
        if files.len() >= FILES_MAX || name == LOCK {
            continue;
        }
        let path = dir.join(&name);
        let name = format!("{prefix}{name}");
        match disk.len(&path) {
            Ok(Some(_)) => {
                disk.sync(&path)?;
                let bytes = disk.read(&path, 0)?.unwrap_or_default();
                files.push(EvidenceFile {
                    name,
                    bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                    sha256: sha256_hex(&bytes),
                });
            }
            // What is no file is a directory, or nothing that a run wrote.
            Err(_) if depth > 0 => {
                let prefix = format!("{name}/");
                hash_below(disk, &path, &prefix, depth - 1, files)?;
                disk.sync(&path)?;
            }
            Ok(None) | Err(_) => {}
        }
    }
    Ok(())
}

/// Compares the files of runs with what was recorded, and returns every one that differs.
///
/// # Errors
/// When the disk refuses.
pub fn check_runs<'a>(
    disk: &dyn Disk,
    runs: impl IntoIterator<Item = &'a RecordedRun>,
) -> Result<Vec<(PathBuf, EvidenceFault)>, DiskError> {
    let mut faults = Vec::new();
    for run in runs {
        for recorded in &run.files {
            let path = run.dir.join(&recorded.name);
            if let Some(fault) = check_file(disk, &path, recorded)? {
                faults.push((path, fault));
            }
        }
    }
    Ok(faults)
}

fn check_file(
    disk: &dyn Disk,
    path: &Path,
    recorded: &EvidenceFile,
) -> Result<Option<EvidenceFault>, DiskError> {
    let Ok(Some(found)) = disk.len(path) else {
        return Ok(Some(EvidenceFault::Missing));
    };
    let recorded_bytes = recorded.bytes;
    if found < recorded_bytes {
        return Ok(Some(EvidenceFault::Shorter {
            recorded: recorded_bytes,
            found,
        }));
    }
    if found > recorded_bytes {
        return Ok(Some(EvidenceFault::Longer {
            recorded: recorded_bytes,
            found,
        }));
    }
    let bytes = disk.read(path, 0)?.unwrap_or_default();
    Ok((sha256_hex(&bytes) != recorded.sha256).then_some(EvidenceFault::Altered))
}

/// The runs of one log by their directories; the last record of each holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedRuns(BTreeMap<PathBuf, Vec<EvidenceFile>>);

impl RecordedRuns {
    /// Takes one record.
    pub fn record(&mut self, dir: PathBuf, files: &[EvidenceFile]) {
        self.0.insert(dir, files.to_vec());
    }

    /// Leaves a run out, because it is being performed again.
    pub fn forget(&mut self, dir: &Path) {
        self.0.remove(dir);
    }

    /// Returns the runs, sorted by directory.
    #[must_use]
    pub fn into_runs(self) -> Vec<RecordedRun> {
        let runs = self.0.into_iter();
        runs.map(|(dir, files)| RecordedRun { dir, files })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;

    use super::{EvidenceFault, RecordedRuns, check_runs, hash_run};

    fn write(path: &std::path::Path, text: &str) {
        RealDisk.write(path, text.as_bytes()).unwrap();
    }

    fn faults_after(change: impl Fn(&std::path::Path)) -> Vec<(String, EvidenceFault)> {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("run");
        fs::create_dir_all(dir.join("1")).unwrap();
        write(&dir.join("prompt.md"), "do it");
        write(&dir.join("1").join("transcript.jsonl"), "{}\n");
        write(&dir.join("lock"), "kapi");
        let files = hash_run(&RealDisk, &dir).unwrap();
        assert_eq!(files.len(), 2, "{files:?}");
        change(&dir);
        let mut runs = RecordedRuns::default();
        runs.record(dir, &files);
        let faults = check_runs(&RealDisk, &runs.into_runs()).unwrap();
        let name = |path: std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().into();
        faults
            .into_iter()
            .map(|(path, fault)| (name(path), fault))
            .collect()
    }

    #[test]
    fn a_file_that_is_missing_cut_grown_or_altered_is_named() {
        assert_eq!(faults_after(|_| {}), []);
        let gone = faults_after(|dir| fs::remove_file(dir.join("prompt.md")).unwrap());
        assert_eq!(gone, [("prompt.md".to_owned(), EvidenceFault::Missing)]);
        let all_gone = faults_after(|dir| fs::remove_dir_all(dir).unwrap());
        assert_eq!(all_gone.len(), 2);
        let cut = faults_after(|dir| write(&dir.join("prompt.md"), "do"));
        let (recorded, found) = (5, 2);
        let shorter = EvidenceFault::Shorter { recorded, found };
        assert_eq!(cut, [("prompt.md".to_owned(), shorter)]);
        let grown = faults_after(|dir| write(&dir.join("1/transcript.jsonl"), "{}\n{}"));
        let (recorded, found) = (3, 5);
        let longer = EvidenceFault::Longer { recorded, found };
        assert_eq!(grown, [("transcript.jsonl".to_owned(), longer)]);
        let altered = faults_after(|dir| write(&dir.join("prompt.md"), "do IT"));
        assert_eq!(altered, [("prompt.md".to_owned(), EvidenceFault::Altered)]);
    }

    #[test]
    fn what_is_added_beside_the_record_is_no_fault() {
        let added = faults_after(|dir| write(&dir.join("note"), "mine"));
        assert_eq!(added, []);
    }
}
