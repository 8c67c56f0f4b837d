//! The record of an apply that is under way, so that a crash leaves all of it or nothing.
//!
//! Written and synced before the first rename, and marked as done after the last. Who finds one
//! that is not done undoes it, step by step from the end; whether a step was made is seen from
//! the files, so undoing may itself be interrupted.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::beneath::{FileIdentity, OpenTree};
use super::perform::{ApplyStep, Site, UndoRemainder, new_name, old_name};
use super::{ApplyError, Moment, Recovery};
use crate::owned_dir::{self, DirError, failed};

/// The first words of a journal, which name its format.
const UNDER_WAY: &[u8] = b"kapi apply 1 under way\0";
const DONE: &[u8] = b"kapi apply 1 done\0";

/// How many fields a step has: kind, path, slot, and two identities of five numbers.
const FIELDS: usize = 13;

/// The journal in a work directory.
#[derive(Debug)]
pub(super) struct Journal {
    dir: PathBuf,
}

impl Journal {
    pub(super) fn of(work: &Path) -> Self {
        Self {
            dir: work.to_path_buf(),
        }
    }

    /// Makes all steps durable, or none.
    pub(super) fn run(
        &self,
        project: &OpenTree,
        work: &OpenTree,
        steps: &[ApplyStep],
    ) -> Result<(), ApplyError> {
        if steps.is_empty() {
            return Ok(());
        }
        self.begin(steps)?;
        let site = Site { project, work };
        for step in steps {
            if let Err(error) = site.perform(step) {
                self.undo(&site, steps)?;
                return Err(error);
            }
        }
        sync_parents(project, steps)?;
        self.end(steps)
    }

    /// Undoes an apply that did not come to its end, and clears what any apply left.
    pub(super) fn recover(&self, project: &OpenTree) -> Result<Recovery, ApplyError> {
        let path = self.path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.clear()?;
                return Ok(Recovery::default());
            }
            Err(error) => return Err(failed("read", &path)(error).into()),
        };
        if bytes.starts_with(DONE) {
            self.clear()?;
            return Ok(Recovery::default());
        }
        let steps = decode(&bytes).ok_or_else(|| ApplyError::Journal { path: path.clone() })?;
        let work = OpenTree::open(&self.dir)?;
        let site = Site {
            project,
            work: &work,
        };
        let left = self.undo(&site, &steps)?;
        Ok(Recovery {
            was_interrupted: true,
            left,
        })
    }

    /// Writes the intent down; from here on an interruption is seen.
    pub(super) fn begin(&self, steps: &[ApplyStep]) -> Result<(), ApplyError> {
        let mut bytes = UNDER_WAY.to_vec();
        for step in steps {
            encode(step, &mut bytes);
        }
        Ok(owned_dir::replace(&self.path(), &bytes)?)
    }

    fn end(&self, steps: &[ApplyStep]) -> Result<(), ApplyError> {
        owned_dir::replace(&self.path(), DONE)?;
        for slot in steps.iter().filter_map(slot_of) {
            owned_dir::wipe(&self.dir.join(new_name(slot)))?;
            owned_dir::wipe(&self.dir.join(old_name(slot)))?;
        }
        Ok(owned_dir::wipe(&self.path())?)
    }

    fn undo(
        &self,
        site: &Site<'_>,
        steps: &[ApplyStep],
    ) -> Result<Vec<(PathBuf, Option<PathBuf>)>, ApplyError> {
        let mut left = Vec::new();
        for step in steps.iter().rev() {
            if let UndoRemainder::Left { kept } = site.undo(step)? {
                left.push((step.path().to_path_buf(), kept));
            }
        }
        sync_parents(site.project, steps)?;
        owned_dir::replace(&self.path(), DONE)?;
        self.clear()?;
        Ok(left)
    }

    /// Removes what an apply put beside the project; kept files stay.
    fn clear(&self) -> Result<(), ApplyError> {
        for entry in fs::read_dir(&self.dir).map_err(failed("list", &self.dir))? {
            let entry = entry.map_err(failed("list", &self.dir))?;
            let name = entry.file_name();
            let name = name.as_bytes();
            let is_ours = [&b"new-"[..], b"old-", b"merge-"]
                .iter()
                .any(|start| name.starts_with(start));
            if is_ours {
                owned_dir::wipe(&entry.path())?;
            }
        }
        Ok(owned_dir::wipe(&self.path())?)
    }

    fn path(&self) -> PathBuf {
        self.dir.join("journal")
    }
}

fn slot_of(step: &ApplyStep) -> Option<usize> {
    match step {
        ApplyStep::Take { slot, .. }
        | ApplyStep::Create { slot, .. }
        | ApplyStep::Swap { slot, .. } => Some(*slot),
        ApplyStep::RemoveDir { .. } | ApplyStep::MakeDir { .. } => None,
    }
}

/// Makes the names in every directory that changed durable.
fn sync_parents(project: &OpenTree, steps: &[ApplyStep]) -> Result<(), DirError> {
    let parents: BTreeSet<&Path> = steps
        .iter()
        .filter_map(|step| step.path().parent())
        .collect();
    for parent in parents {
        // One that went away itself is synced with its own parent.
        let Ok(dir) = project.dir(parent) else {
            continue;
        };
        let path = project.full(parent);
        File::from(dir).sync_all().map_err(failed("sync", &path))?;
    }
    Ok(())
}

fn encode(step: &ApplyStep, bytes: &mut Vec<u8>) {
    const NONE: FileIdentity = FileIdentity {
        device: 0,
        inode: 0,
        len: 0,
        written: Moment {
            seconds: 0,
            nanoseconds: 0,
        },
    };
    let (kind, slot, was, staged) = match step {
        ApplyStep::Take { slot, was, .. } => ("take", *slot, *was, NONE),
        ApplyStep::RemoveDir { .. } => ("rmdir", 0, NONE, NONE),
        ApplyStep::MakeDir { .. } => ("mkdir", 0, NONE, NONE),
        ApplyStep::Create { slot, staged, .. } => ("create", *slot, NONE, *staged),
        ApplyStep::Swap {
            slot, was, staged, ..
        } => ("swap", *slot, *was, *staged),
    };
    let mut field = |text: &[u8]| {
        bytes.extend_from_slice(text);
        bytes.push(0);
    };
    field(kind.as_bytes());
    field(step.path().as_os_str().as_bytes());
    field(slot.to_string().as_bytes());
    for identity in [was, staged] {
        let FileIdentity {
            device,
            inode,
            len,
            written,
        } = identity;
        for number in [device, inode, len] {
            field(number.to_string().as_bytes());
        }
        for number in [written.seconds, written.nanoseconds] {
            field(number.to_string().as_bytes());
        }
    }
}

pub(super) fn decode(bytes: &[u8]) -> Option<Vec<ApplyStep>> {
    let rest = bytes.strip_prefix(UNDER_WAY)?;
    let rest = rest.strip_suffix(b"\0")?;
    let fields: Vec<&[u8]> = rest.split(|&b| b == 0).collect();
    if !fields.len().is_multiple_of(FIELDS) {
        return None;
    }
    fields.chunks(FIELDS).map(decode_step).collect()
}

fn decode_step(fields: &[&[u8]]) -> Option<ApplyStep> {
    let [kind, path, slot, identities @ ..] = fields else {
        return None;
    };
    let path = PathBuf::from(OsStr::from_bytes(path));
    let slot = number(slot)?;
    let (was, staged) = identities.split_at_checked(5)?;
    let (was, staged) = (decode_identity(was)?, decode_identity(staged)?);
    Some(match *kind {
        b"take" => ApplyStep::Take { path, slot, was },
        b"rmdir" => ApplyStep::RemoveDir { path },
        b"mkdir" => ApplyStep::MakeDir { path },
        b"create" => ApplyStep::Create { path, slot, staged },
        b"swap" => ApplyStep::Swap {
            path,
            slot,
            was,
            staged,
        },
        _ => return None,
    })
}

fn decode_identity(fields: &[&[u8]]) -> Option<FileIdentity> {
    let [device, inode, len, seconds, nanoseconds] = fields else {
        return None;
    };
    Some(FileIdentity {
        device: number(device)?,
        inode: number(inode)?,
        len: number(len)?,
        written: Moment {
            seconds: number(seconds)?,
            nanoseconds: number(nanoseconds)?,
        },
    })
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}
