//! Makes everything ready beside the project, so that applying is nothing but renames.
//!
//! Contents are copied and synced here, which is where a full disk or an unreadable file shows.
//! The project is only looked at.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::beneath::{Found, Identity, Tree, identity_of};
use super::content::{Content, copy};
use super::judge::{Action, Judge, Judged, Put};
use super::perform::Step;
use super::{ApplyError, Refusal, Source};
use crate::owned_dir::{self, failed};

/// Stages the contents and returns the steps in the order they are to be made.
pub(super) fn stage(
    judge: &Judge<'_>,
    work: &Tree,
    judged: &Judged,
) -> Result<Vec<Step>, ApplyError> {
    let mut actions: Vec<&Action> = judged.actions.iter().collect();
    actions.sort_by_key(|action| path_of(action));
    let mut steps = Vec::new();
    let mut gone: BTreeSet<&Path> = BTreeSet::new();
    // What goes goes first and from the bottom up; what comes comes from the top down.
    for action in actions.iter().rev() {
        match action {
            Action::Remove { path, was } => {
                gone.insert(path);
                let slot = steps.len();
                steps.push(Step::Take {
                    path: path.clone(),
                    slot,
                    was: *was,
                });
            }
            Action::RemoveDir { path } => {
                gone.insert(path);
                steps.push(Step::RemoveDir { path: path.clone() });
            }
            Action::MakeDir { .. } | Action::Put { .. } => {}
        }
    }
    let mut made: BTreeSet<PathBuf> = BTreeSet::new();
    for action in actions {
        let path = path_of(action);
        match action {
            Action::Remove { .. } | Action::RemoveDir { .. } => continue,
            Action::MakeDir { .. } => {
                make_way(judge, path, &gone, &mut made, &mut steps)?;
                if made.insert(path.to_path_buf()) {
                    steps.push(Step::MakeDir {
                        path: path.to_path_buf(),
                    });
                }
            }
            Action::Put { put, was, .. } => {
                make_way(judge, path, &gone, &mut made, &mut steps)?;
                let slot = steps.len();
                let staged = stage_one(judge, work, slot, put)?;
                let path = path.to_path_buf();
                steps.push(match *was {
                    None => Step::Create { path, slot, staged },
                    Some(was) => Step::Swap {
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

fn path_of(action: &Action) -> &Path {
    match action {
        Action::Remove { path, .. }
        | Action::RemoveDir { path }
        | Action::MakeDir { path }
        | Action::Put { path, .. } => path,
    }
}

/// Adds the steps that make the directories above `path`.
fn make_way(
    judge: &Judge<'_>,
    path: &Path,
    gone: &BTreeSet<&Path>,
    made: &mut BTreeSet<PathBuf>,
    steps: &mut Vec<Step>,
) -> Result<(), ApplyError> {
    let mut missing = Vec::new();
    for above in path.ancestors().skip(1) {
        let is_top = above.as_os_str().is_empty();
        if is_top || made.contains(above) {
            break;
        }
        if !gone.contains(above) && judge.project.look(above)? == Found::Directory {
            break;
        }
        missing.push(above.to_path_buf());
    }
    for path in missing.into_iter().rev() {
        made.insert(path.clone());
        steps.push(Step::MakeDir { path });
    }
    Ok(())
}

fn stage_one(
    judge: &Judge<'_>,
    work: &Tree,
    slot: usize,
    put: &Put,
) -> Result<Identity, ApplyError> {
    let name = PathBuf::from(format!("new-{slot}"));
    let dir = work
        .dir(Path::new(""))
        .map_err(work.failed("open", &name))?;
    let mode = match put {
        Put::Link { target } => {
            rustix::fs::symlinkat(target, &dir, &name).map_err(work.failed("create", &name))?;
            let stat = rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW);
            return Ok(identity_of(&stat.map_err(work.failed("inspect", &name))?));
        }
        Put::Copy { mode, .. } | Put::Text { mode, .. } => *mode,
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(opened.map_err(work.failed("create", &name))?);
    let full = work.full(&name);
    let written = match put {
        Put::Copy { source, .. } => {
            let content = content_of(judge, source, &full)?;
            copy(content, &mut file)
        }
        Put::Text { text, .. } => std::io::Write::write_all(&mut file, text),
        Put::Link { .. } => Ok(()),
    };
    written.map_err(failed("write", &full))?;
    let mode = Mode::from_raw_mode(mode);
    rustix::fs::fchmod(&file, mode).map_err(work.failed("set permissions of", &name))?;
    file.sync_all().map_err(failed("sync", &full))?;
    let stat = rustix::fs::fstat(&file).map_err(work.failed("inspect", &name))?;
    Ok(identity_of(&stat))
}

fn content_of(judge: &Judge<'_>, source: &Source, full: &Path) -> Result<Content, ApplyError> {
    match judge.reader.open(source)? {
        Ok(content) => Ok(content),
        // It was a plain file a moment ago.
        Err(Refusal::TooLarge | Refusal::NoFile) | Err(_) => {
            owned_dir::wipe(full)?;
            let path = match source {
                Source::File { path, .. } | Source::InCommit { path, .. } => path.clone(),
                Source::Blob { id } => PathBuf::from(id),
            };
            Err(ApplyError::Raced { path })
        }
    }
}
