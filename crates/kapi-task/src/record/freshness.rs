//! Whether a handoff still speaks of the project as it is.
//!
//! Sealed with a hash over what it says and the facts it rests on; looked at again before the next
//! run gets it. Which commit the project stands at is the caller's to know.

use std::path::{Component, Path};

use kapi_store::canonical::canonical_hash;
use kapi_store::hash::sha256_hex;
use kapi_sys::disk::{Disk, DiskError};
use serde::Serialize;

use crate::rules::handoff::{EvalResult, FileMark, Handoff, StaleReason};

/// The largest file that is marked.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// How many files a handoff can rest on.
pub const FILES_MAX: usize = 1_000;

/// A handoff that could not be sealed or looked at.
#[derive(Debug, thiserror::Error)]
pub enum FreshnessError {
    /// A path leads out of the project.
    #[error("mark {path:?}: it is not a path inside the project")]
    Outside {
        /// The path.
        path: String,
    },
    /// A file is larger than any that is marked.
    #[error("mark {path}: it is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge {
        /// The path.
        path: String,
    },
    /// There are too many files.
    #[error("mark {n_files} files: a handoff can rely on at most {FILES_MAX}")]
    TooMany {
        /// How many.
        n_files: usize,
    },
    /// It cannot be written as JSON.
    #[error("hash a handoff")]
    Encode(#[source] serde_json::Error),
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// What the project is like now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFacts {
    /// The files a handoff speaks of.
    pub files: Vec<FileMark>,
    /// Those of them that cannot be read.
    pub unreadable: Vec<String>,
    /// The commit the project stands at.
    pub head: Option<String>,
}

/// Whether a handoff may be relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// It may.
    Fresh,
    /// It may not.
    Stale {
        /// Why, at least one.
        reasons: Vec<StaleReason>,
    },
}

/// What the hash covers.
#[derive(Serialize)]
struct HashInput<'a> {
    summary: &'a str,
    next_action: &'a str,
    evals: &'a [EvalResult],
    files: &'a [FileMark],
    head: &'a Option<String>,
}

/// Seals a handoff: its hash is set to what it says now.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn seal(handoff: &mut Handoff) -> Result<(), FreshnessError> {
    handoff.freshness = hash(handoff)?;
    Ok(())
}

/// Compares a handoff with the project as it is now. A file that nobody looked at again counts as
/// gone.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn verify(handoff: &Handoff, now: &ProjectFacts) -> Result<Freshness, FreshnessError> {
    let mut reasons = Vec::new();
    if hash(handoff)? != handoff.freshness {
        reasons.push(StaleReason::TextChanged);
    }
    if let Some(from) = &handoff.head
        && now.head.as_ref() != Some(from)
    {
        reasons.push(StaleReason::HeadMoved {
            from: from.clone(),
            to: now.head.clone(),
        });
    }
    for mark in &handoff.files {
        if now.unreadable.contains(&mark.path) {
            let path = mark.path.clone();
            reasons.push(StaleReason::FileUnreadable { path });
            continue;
        }
        let found = now.files.iter().find(|now| now.path == mark.path);
        let now_sha256 = found.and_then(|now| now.sha256.as_ref());
        let path = mark.path.clone();
        match (&mark.sha256, now_sha256) {
            (None, None) => {}
            (Some(before), Some(now)) if before == now => {}
            (Some(_), Some(_)) => reasons.push(StaleReason::FileChanged { path }),
            (Some(_), None) => reasons.push(StaleReason::FileGone { path }),
            (None, Some(_)) => reasons.push(StaleReason::FileAppeared { path }),
        }
    }
    Ok(if reasons.is_empty() {
        Freshness::Fresh
    } else {
        Freshness::Stale { reasons }
    })
}

/// Marks the files at these paths below `root` as they are now, sorted and each once.
///
/// # Errors
/// When a path leads out of the project, a file is too large or there are too many, or the disk
/// refuses.
pub fn mark<'p>(
    disk: &dyn Disk,
    root: &Path,
    paths: impl Iterator<Item = &'p str>,
) -> Result<Vec<FileMark>, FreshnessError> {
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_unstable();
    paths.dedup();
    if paths.len() > FILES_MAX {
        return Err(FreshnessError::TooMany {
            n_files: paths.len(),
        });
    }
    paths
        .into_iter()
        .map(|path| mark_one(disk, root, path))
        .collect()
}

/// Looks again at the files a handoff speaks of. One that cannot be read is a fact, too: whoever
/// relies on it must be told.
///
/// # Errors
/// When a path leads out of the project.
pub fn look(
    disk: &dyn Disk,
    root: &Path,
    handoff: &Handoff,
    head: Option<String>,
) -> Result<ProjectFacts, FreshnessError> {
    let mut facts = ProjectFacts {
        head,
        ..ProjectFacts::default()
    };
    for before in &handoff.files {
        match mark_one(disk, root, &before.path) {
            Ok(mark) => facts.files.push(mark),
            Err(FreshnessError::TooLarge { path }) => facts.unreadable.push(path),
            Err(FreshnessError::Disk(_)) => facts.unreadable.push(before.path.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(facts)
}

fn mark_one(disk: &dyn Disk, root: &Path, path: &str) -> Result<FileMark, FreshnessError> {
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if path.is_empty() || !Path::new(path).components().all(is_inside) {
        let path = path.to_owned();
        return Err(FreshnessError::Outside { path });
    }
    let location = root.join(path);
    let is_too_large = disk.len(&location)?.is_some_and(|len| len > FILE_BYTES_MAX);
    if is_too_large {
        let path = path.to_owned();
        return Err(FreshnessError::TooLarge { path });
    }
    let bytes = disk.read(&location, 0)?;
    Ok(FileMark {
        path: path.to_owned(),
        sha256: bytes.map(|bytes| sha256_hex(&bytes)),
    })
}

fn hash(handoff: &Handoff) -> Result<String, FreshnessError> {
    let sealed = HashInput {
        summary: &handoff.summary,
        next_action: &handoff.next_action,
        evals: &handoff.evals,
        files: &handoff.files,
        head: &handoff.head,
    };
    canonical_hash(&sealed).map_err(FreshnessError::Encode)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kapi_core::task_id::KernelTaskId;
    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;
    use kapi_sys::sim_disk::SimDisk;

    use super::{Freshness, FreshnessError, ProjectFacts, look, mark, seal, verify};
    use crate::rules::handoff::{EvalResult, Handoff, StaleReason};

    const ROOT: &str = "/project";

    fn disk() -> SimDisk {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        disk.create_dir(Path::new("/project/src")).unwrap();
        disk.write(Path::new("/project/src/a.rs"), b"one").unwrap();
        disk.write(Path::new("/project/b"), b"").unwrap();
        disk
    }

    fn sealed(disk: &SimDisk) -> Handoff {
        let paths = ["src/a.rs", "b", "not-yet", "b"];
        let mut handoff = Handoff {
            task: KernelTaskId::new(3),
            loop_name: None,
            from_agent: "oracle".to_owned(),
            to_agent: "oracle".to_owned(),
            summary: "done".to_owned(),
            next_action: "go on".to_owned(),
            evals: vec![EvalResult {
                name: "exit_code".to_owned(),
                passed: true,
                blocking: true,
                details: None,
            }],
            files: mark(disk, Path::new(ROOT), paths.into_iter()).unwrap(),
            head: Some("c1".to_owned()),
            freshness: String::new(),
            created_at_ms: 0,
        };
        seal(&mut handoff).unwrap();
        handoff
    }

    fn reasons(disk: &SimDisk, handoff: &Handoff, head: Option<&str>) -> Vec<String> {
        let head = head.map(str::to_owned);
        let now = look(disk, Path::new(ROOT), handoff, head).unwrap();
        match verify(handoff, &now).unwrap() {
            Freshness::Fresh => Vec::new(),
            Freshness::Stale { reasons } => reasons.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_handoff_stays_fresh_while_nothing_moves() {
        let disk = disk();
        let handoff = sealed(&disk);
        assert_eq!(handoff.freshness.len(), 64);
        assert_eq!(handoff.files.len(), 3);
        let paths: Vec<&str> = handoff
            .files
            .iter()
            .map(|mark| mark.path.as_str())
            .collect();
        assert_eq!(paths, ["b", "not-yet", "src/a.rs"]);
        assert_eq!(reasons(&disk, &handoff, Some("c1")), [""; 0]);
        // Who it is for and when it was made are no facts it rests on.
        let later = Handoff {
            created_at_ms: 9,
            to_agent: "prometheus".to_owned(),
            ..handoff
        };
        assert_eq!(reasons(&disk, &later, Some("c1")), [""; 0]);
    }

    #[test]
    fn every_change_makes_it_stale_and_says_so() {
        let disk = disk();
        let handoff = sealed(&disk);
        disk.write(Path::new("/project/src/a.rs"), b"two").unwrap();
        disk.write(Path::new("/project/not-yet"), b"").unwrap();
        disk.rename(Path::new("/project/b"), Path::new("/project/elsewhere"))
            .unwrap();
        assert_eq!(
            reasons(&disk, &handoff, Some("c2")),
            [
                "the project moved from c1 to c2",
                "b is gone",
                "not-yet was created",
                "src/a.rs was changed",
            ]
        );
        assert_eq!(
            reasons(&disk, &handoff, None)[0],
            "the project was at c1 and has no commit now"
        );
    }

    #[test]
    fn a_changed_text_is_seen_wherever_it_is() {
        let disk = disk();
        let handoff = sealed(&disk);
        let changes: [fn(&mut Handoff); 5] = [
            |handoff| handoff.summary.push('!'),
            |handoff| handoff.next_action.clear(),
            |handoff| handoff.evals[0].passed = false,
            |handoff| handoff.files[1].path.push('x'),
            |handoff| handoff.head = None,
        ];
        for change in changes {
            let mut changed = handoff.clone();
            change(&mut changed);
            let now = look(&disk, Path::new(ROOT), &changed, Some("c1".to_owned())).unwrap();
            let found = verify(&changed, &now).unwrap();
            let reasons = vec![StaleReason::TextChanged];
            assert_eq!(found, Freshness::Stale { reasons });
        }
    }

    #[test]
    fn a_file_nobody_looked_at_is_not_fresh() {
        let handoff = sealed(&disk());
        let now = ProjectFacts {
            head: handoff.head.clone(),
            ..ProjectFacts::default()
        };
        assert_ne!(verify(&handoff, &now).unwrap(), Freshness::Fresh);
    }

    #[test]
    fn a_file_that_became_a_directory_makes_it_stale() {
        let disk = disk();
        let mut handoff = sealed(&disk);
        let dir = tempfile::tempdir().unwrap();
        RealDisk.create_dir(&dir.path().join("src/a.rs")).unwrap();
        handoff.files.retain(|mark| mark.path == "src/a.rs");
        seal(&mut handoff).unwrap();
        let now = look(&RealDisk, dir.path(), &handoff, handoff.head.clone()).unwrap();
        let path = "src/a.rs".to_owned();
        let reasons = vec![StaleReason::FileUnreadable { path }];
        assert_eq!(
            verify(&handoff, &now).unwrap(),
            Freshness::Stale { reasons }
        );
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        let disk = disk();
        for path in ["", "/etc/passwd", "../x", "src/../../x", "."] {
            let marked = mark(&disk, Path::new(ROOT), [path].into_iter());
            assert!(
                matches!(marked, Err(FreshnessError::Outside { .. })),
                "{path}"
            );
        }
        let many: Vec<String> = (0..1_001).map(|idx| idx.to_string()).collect();
        let marked = mark(&disk, Path::new(ROOT), many.iter().map(String::as_str));
        assert!(matches!(
            marked,
            Err(FreshnessError::TooMany { n_files: 1_001 })
        ));
    }
}
