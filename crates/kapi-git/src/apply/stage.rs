//! Makes everything ready beside the project, so that applying is nothing but renames.
//!
//! Contents are copied and synced here, which is where a full disk or an unreadable file shows.
//! The project is only looked at.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::beneath::{FileIdentity, OpenTree, PathContent, identity_of};
use super::content::{Content, copy};
use super::judge::{ApplyJudge, ApplyVerdicts, Placement, ProjectChange};
use super::perform::ApplyStep;
use super::{ApplyError, ApplyRefusal, ByteSource};
use crate::owned_dir::{self, failed};

/// Stages the contents and returns the steps in the order they are to be made.
pub(super) fn stage(
    judge: &ApplyJudge<'_>,
    work: &OpenTree,
    judged: &ApplyVerdicts,
) -> Result<Vec<ApplyStep>, ApplyError> {
    let mut actions: Vec<&ProjectChange> = judged.actions.iter().collect();
    actions.sort_by_key(|action| path_of(action));
    let mut steps = Vec::new();
    let mut gone: BTreeSet<&Path> = BTreeSet::new();
    // What goes goes first and from the bottom up; what comes comes from the top down.
    for action in actions.iter().rev() {
        match action {
            ProjectChange::Remove { path, was } => {
                gone.insert(path);
                let slot = steps.len();
                steps.push(ApplyStep::Take {
                    path: path.clone(),
                    slot,
                    was: *was,
                });
            }
            ProjectChange::RemoveDir { path } => {
                gone.insert(path);
                steps.push(ApplyStep::RemoveDir { path: path.clone() });
            }
            ProjectChange::MakeDir { .. } | ProjectChange::Put { .. } => {}
        }
    }
    let mut made: BTreeSet<PathBuf> = BTreeSet::new();
    for action in actions {
        let path = path_of(action);
        match action {
            ProjectChange::Remove { .. } | ProjectChange::RemoveDir { .. } => continue,
            ProjectChange::MakeDir { .. } => {
                make_way(judge, path, &gone, &mut made, &mut steps)?;
                if made.insert(path.to_path_buf()) {
                    steps.push(ApplyStep::MakeDir {
                        path: path.to_path_buf(),
                    });
                }
            }
            ProjectChange::Put { put, was, .. } => {
                make_way(judge, path, &gone, &mut made, &mut steps)?;
                let slot = steps.len();
                let staged = stage_one(judge, work, slot, put)?;
                let path = path.to_path_buf();
                steps.push(match *was {
                    None => ApplyStep::Create { path, slot, staged },
                    Some(was) => ApplyStep::Swap {
                        path,
                        slot,
                        was,
                        staged,
                    },
                });
            }
        }
    }
    Ok(steps)
}

fn path_of(action: &ProjectChange) -> &Path {
    match action {
        ProjectChange::Remove { path, .. }
        | ProjectChange::RemoveDir { path }
        | ProjectChange::MakeDir { path }
        | ProjectChange::Put { path, .. } => path,
    }
}

/// Adds the steps that make the directories above `path`.
fn make_way(
    judge: &ApplyJudge<'_>,
    path: &Path,
    gone: &BTreeSet<&Path>,
    made: &mut BTreeSet<PathBuf>,
    steps: &mut Vec<ApplyStep>,
) -> Result<(), ApplyError> {
    let mut missing = Vec::new();
    for above in path.ancestors().skip(1) {
        let is_top = above.as_os_str().is_empty();
        if is_top || made.contains(above) {
            break;
        }
        if !gone.contains(above) && judge.project.look(above)? == PathContent::Directory {
            break;
        }
        missing.push(above.to_path_buf());
    }
    for path in missing.into_iter().rev() {
        made.insert(path.clone());
        steps.push(ApplyStep::MakeDir { path });
    }
    Ok(())
}

fn stage_one(
    judge: &ApplyJudge<'_>,
    work: &OpenTree,
    slot: usize,
    put: &Placement,
) -> Result<FileIdentity, ApplyError> {
    let name = PathBuf::from(format!("new-{slot}"));
    let dir = work
        .dir(Path::new(""))
        .map_err(work.failed("open", &name))?;
    let mode = match put {
        Placement::Link { target } => {
            rustix::fs::symlinkat(target, &dir, &name).map_err(work.failed("create", &name))?;
            let stat = rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW);
            return Ok(identity_of(&stat.map_err(work.failed("inspect", &name))?));
        }
        Placement::Copy { mode, .. } | Placement::Text { mode, .. } => *mode,
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(opened.map_err(work.failed("create", &name))?);
    let full = work.full(&name);
    let written = match put {
        Placement::Copy { source, .. } => {
            let content = content_of(judge, source, &full)?;
            copy(content, &mut file)
        }
        Placement::Text { text, .. } => std::io::Write::write_all(&mut file, text),
        Placement::Link { .. } => Ok(()),
    };
    written.map_err(failed("write", &full))?;
    let mode = Mode::from_raw_mode(mode);
    rustix::fs::fchmod(&file, mode).map_err(work.failed("set permissions of", &name))?;
    file.sync_all().map_err(failed("sync", &full))?;
    let stat = rustix::fs::fstat(&file).map_err(work.failed("inspect", &name))?;
    Ok(identity_of(&stat))
}

fn content_of(
    judge: &ApplyJudge<'_>,
    source: &ByteSource,
    full: &Path,
) -> Result<Content, ApplyError> {
    match judge.reader.open(source)? {
        Ok(content) => Ok(content),
        // It was a plain file a moment ago.
        Err(ApplyRefusal::TooLarge | ApplyRefusal::NoFile) | Err(_) => {
            owned_dir::wipe(full)?;
            let path = match source {
                ByteSource::File { path, .. } | ByteSource::InCommit { path, .. } => path.clone(),
                ByteSource::Blob { id } => PathBuf::from(id),
            };
            Err(ApplyError::Raced { path })
        }
    }
}
