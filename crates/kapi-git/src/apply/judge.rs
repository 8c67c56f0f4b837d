//! What happens to each offered path, seen before anything is changed.
//!
//! Compares three states of a path: what it was when the sandbox began, what it is in the sandbox
//! and what it is on the host. Only reads; what it decides is carried out elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::beneath::{FileIdentity, OpenTree, PathContent};
use super::content::{Content, ContentReader};
use super::rule::refusal_of;
use super::select::PathSelection;
use super::{
    ApplyConflict, ApplyError, ApplyOffer, ApplyPlan, ApplyRefusal, BaseState, ByteSource,
    OnConflict, PATHS_MAX, PathVerdict, Preview, SandboxState,
};
use crate::candidate::link::leads_out;

/// Looks at both sides.
#[derive(Debug)]
pub(super) struct ApplyJudge<'a> {
    plan: &'a ApplyPlan<'a>,
    pub(super) project: &'a OpenTree,
    pub(super) reader: ContentReader<'a>,
    selection: PathSelection,
}

/// All verdicts, and what they come to.
#[derive(Debug)]
pub(super) struct ApplyVerdicts {
    pub(super) preview: Preview,
    pub(super) actions: Vec<ProjectChange>,
}

/// One change to the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProjectChange {
    /// A file or link goes.
    Remove { path: PathBuf, was: FileIdentity },
    /// A directory that is empty by then goes.
    RemoveDir { path: PathBuf },
    /// A directory is made.
    MakeDir { path: PathBuf },
    /// A file or link comes, in the place of another if there was one.
    Put {
        path: PathBuf,
        put: Placement,
        was: Option<FileIdentity>,
    },
}

/// What is put somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Placement {
    Copy { source: ByteSource, mode: u32 },
    Text { text: Vec<u8>, mode: u32 },
    Link { target: std::ffi::OsString },
}

type Judgement = (PathVerdict, Vec<ProjectChange>);

impl<'a> ApplyJudge<'a> {
    pub(super) fn new(plan: &'a ApplyPlan<'a>, project: &'a OpenTree) -> Result<Self, ApplyError> {
        Ok(Self {
            plan,
            project,
            reader: ContentReader {
                git: plan.git,
                repository: plan.repository,
                work: plan.work.to_path_buf(),
            },
            selection: PathSelection::parse(plan.select)?,
        })
    }

    pub(super) fn judge(&self) -> Result<ApplyVerdicts, ApplyError> {
        let all = self.plan.offers.iter();
        let wanted: BTreeMap<&Path, &ApplyOffer> = all
            .map(|offer| (offer.path.as_path(), offer))
            .filter(|(path, _)| self.selection.wants(path))
            .collect();
        if wanted.len() > PATHS_MAX {
            return Err(ApplyError::TooMany {
                n_paths: wanted.len(),
            });
        }
        let mut judged: BTreeMap<&Path, Judgement> = BTreeMap::new();
        let mut blocked = Vec::new();
        // From the bottom up, so that a directory knows what becomes of what is in it.
        for (path, offer) in wanted.iter().rev() {
            if let Some(refusal) = self.refusal_of(offer, &wanted)? {
                judged.insert(path, (PathVerdict::Refused(refusal), Vec::new()));
                continue;
            }
            match self.project.look(path)? {
                PathContent::Blocked => blocked.push(*offer),
                here => {
                    let judgement = self.judge_one(offer, &here, &judged)?;
                    judged.insert(path, judgement);
                }
            }
        }
        // From the top down, so that what stands in the way has been judged.
        for offer in blocked.into_iter().rev() {
            let judgement = self.judge_blocked(offer, &judged)?;
            judged.insert(&offer.path, judgement);
        }
        let paths = self.plan.offers.iter().map(|offer| offer.path.as_path());
        let paths: Vec<&Path> = paths.collect();
        let mut preview = Preview {
            n_left_out: self.plan.offers.len() - wanted.len(),
            unmatched: self.selection.unmatched(&paths),
            ..Preview::default()
        };
        let mut actions = Vec::new();
        for (path, (verdict, mut parts)) in judged {
            preview.verdicts.push((path.to_path_buf(), verdict));
            actions.append(&mut parts);
        }
        Ok(ApplyVerdicts { preview, actions })
    }

    fn refusal_of(
        &self,
        offer: &ApplyOffer,
        wanted: &BTreeMap<&Path, &ApplyOffer>,
    ) -> Result<Option<ApplyRefusal>, ApplyError> {
        let path = &offer.path;
        if let Some(refusal) = refusal_of(path) {
            return Ok(Some(refusal));
        }
        if is_below_no_directory(path, wanted) {
            return Ok(Some(ApplyRefusal::NotBelow));
        }
        Ok(match &offer.new {
            SandboxState::Link { target } => {
                let is_wanted = self.plan.links_out.contains(path);
                (!is_wanted && leads_out(path, target)).then_some(ApplyRefusal::LinkOut)
            }
            SandboxState::File { source, .. } => self.reader.open(source)?.err(),
            SandboxState::Absent | SandboxState::Directory => None,
        })
    }

    fn judge_one(
        &self,
        offer: &ApplyOffer,
        here: &PathContent,
        judged: &BTreeMap<&Path, Judgement>,
    ) -> Result<Judgement, ApplyError> {
        let (mode, was) = match (here, &offer.new) {
            (PathContent::Nothing, SandboxState::Absent)
            | (PathContent::Directory, SandboxState::Directory) => {
                return Ok((PathVerdict::Same, Vec::new()));
            }
            (PathContent::Nothing, SandboxState::Directory) => return Ok(create(offer)),
            (PathContent::Nothing, _) if offer.old == BaseState::Absent => {
                return Ok(create(offer));
            }
            (PathContent::Nothing, _) => return Ok(conflict(ApplyConflict::GoneHere)),
            (PathContent::Special | PathContent::Blocked, _) => {
                return Ok(conflict(ApplyConflict::SpecialFile));
            }
            (PathContent::Directory, _) => return self.judge_directory(offer, judged),
            (PathContent::File { mode, identity, .. }, _) => (Some(*mode), *identity),
            (PathContent::Link { identity, .. }, _) => (None, *identity),
        };
        if self.is_so_already(offer, here)? {
            return Ok((PathVerdict::Same, Vec::new()));
        }
        if !self.is_unchanged(offer, here)? {
            return self.judge_changed(offer, mode, was);
        }
        let path = offer.path.clone();
        Ok(match &offer.new {
            SandboxState::Absent => (
                PathVerdict::Delete,
                vec![ProjectChange::Remove { path, was }],
            ),
            SandboxState::Directory => {
                let remove = ProjectChange::Remove {
                    path: path.clone(),
                    was,
                };
                (
                    PathVerdict::Replace,
                    vec![remove, ProjectChange::MakeDir { path }],
                )
            }
            SandboxState::File { .. } | SandboxState::Link { .. } => {
                let action = put(offer, mode, Some(was));
                (PathVerdict::Replace, action.into_iter().collect())
            }
        })
    }

    /// Judges a path below something on the host that is no directory.
    fn judge_blocked(
        &self,
        offer: &ApplyOffer,
        judged: &BTreeMap<&Path, Judgement>,
    ) -> Result<Judgement, ApplyError> {
        if offer.new == SandboxState::Absent {
            return Ok((PathVerdict::Same, Vec::new()));
        }
        for above in offer.path.ancestors().skip(1) {
            match self.project.look(above)? {
                PathContent::Blocked => {}
                PathContent::File { .. } | PathContent::Link { .. }
                    if is_going(judged.get(above)) =>
                {
                    return Ok(create(offer));
                }
                _ => break,
            }
        }
        Ok(conflict(ApplyConflict::NoDirectory))
    }

    /// Judges what is to take the place of a directory with all that is in it.
    fn judge_directory(
        &self,
        offer: &ApplyOffer,
        judged: &BTreeMap<&Path, Judgement>,
    ) -> Result<Judgement, ApplyError> {
        let mut actions = Vec::new();
        let mut dirs = vec![offer.path.clone()];
        while let Some(dir) = dirs.pop() {
            for name in self.project.names(&dir)? {
                let path = dir.join(name);
                let found = self.project.look(&path)?;
                let was = self.unchanged_identity(&offer.old, &found);
                let verdict = judged.get(path.as_path()).map(|(verdict, _)| verdict);
                // What is offered by itself goes by itself, with all that is in it.
                let is_going =
                    verdict == Some(&PathVerdict::Delete) || found == PathContent::Nothing;
                match (verdict, found, was) {
                    _ if is_going => continue,
                    (None, PathContent::Directory, _) => dirs.push(path),
                    (None, _, Some(was)) => actions.push(ProjectChange::Remove { path, was }),
                    _ => return Ok(conflict(ApplyConflict::NotEmpty)),
                }
            }
            actions.push(ProjectChange::RemoveDir { path: dir });
            let n_paths = actions.len() + dirs.len();
            if n_paths > PATHS_MAX {
                return Err(ApplyError::TooMany { n_paths });
            }
        }
        if offer.new == SandboxState::Absent {
            return Ok((PathVerdict::Delete, actions));
        }
        actions.extend(put(offer, None, None));
        Ok((PathVerdict::Replace, actions))
    }

    /// Judges a file or link that is not what it was when the sandbox began.
    fn judge_changed(
        &self,
        offer: &ApplyOffer,
        mode: Option<u32>,
        was: FileIdentity,
    ) -> Result<Judgement, ApplyError> {
        let ancestor = match &offer.old {
            BaseState::Absent => return Ok(conflict(ApplyConflict::AppearedHere)),
            BaseState::AsOf { ancestor, .. } => ancestor.as_ref(),
            BaseState::File { source, .. } => Some(source),
            BaseState::Link { .. } => None,
        };
        let (Some(ancestor), Some(mode), SandboxState::File { source, mode: new }) =
            (ancestor, mode, &offer.new)
        else {
            return Ok(conflict(ApplyConflict::ChangedHere));
        };
        let Some(here) = self.content_here(&offer.path)? else {
            return Ok(conflict(ApplyConflict::ChangedHere));
        };
        let Some(merged) = self.reader.merge(here, ancestor, source)? else {
            return Ok(conflict(ApplyConflict::ChangedHere));
        };
        let n_locations = merged.n_locations;
        if n_locations > 0 && self.plan.on_conflict != OnConflict::Mark {
            return Ok(conflict(ApplyConflict::SamePlaces { n_locations }));
        }
        let mode = match offer.old {
            BaseState::File { is_executable, .. } if is_executable != (new & 0o100 != 0) => {
                mode_of(*new, Some(mode))
            }
            _ => mode,
        };
        let action = ProjectChange::Put {
            path: offer.path.clone(),
            put: Placement::Text {
                text: merged.text,
                mode,
            },
            was: Some(was),
        };
        let verdict = if n_locations > 0 {
            PathVerdict::Marked { n_locations }
        } else {
            PathVerdict::Merge
        };
        Ok((verdict, vec![action]))
    }

    fn is_so_already(&self, offer: &ApplyOffer, here: &PathContent) -> Result<bool, ApplyError> {
        match (&offer.new, here) {
            (SandboxState::Link { target }, PathContent::Link { target: found, .. }) => {
                Ok(target == found)
            }
            (SandboxState::File { source, mode }, PathContent::File { mode: found, .. }) => {
                let is_like = (mode ^ found) & 0o100 == 0;
                Ok(is_like && self.is_content(&offer.path, source)?)
            }
            _ => Ok(false),
        }
    }

    fn is_unchanged(&self, offer: &ApplyOffer, here: &PathContent) -> Result<bool, ApplyError> {
        match (&offer.old, here) {
            (BaseState::AsOf { .. }, _) => Ok(self.unchanged_identity(&offer.old, here).is_some()),
            (BaseState::Link { target }, PathContent::Link { target: found, .. }) => {
                Ok(target == found)
            }
            (
                BaseState::File {
                    source,
                    is_executable,
                },
                PathContent::File { mode, .. },
            ) => {
                let is_like = *is_executable == (mode & 0o100 != 0);
                Ok(is_like && self.is_content(&offer.path, source)?)
            }
            _ => Ok(false),
        }
    }

    /// Returns what tells a file from others if it did not change since the sandbox began.
    fn unchanged_identity(&self, old: &BaseState, here: &PathContent) -> Option<FileIdentity> {
        let BaseState::AsOf { moment, .. } = old else {
            return None;
        };
        match here {
            PathContent::File {
                identity, changed, ..
            }
            | PathContent::Link {
                identity, changed, ..
            } => (changed < moment).then_some(*identity),
            PathContent::Nothing
            | PathContent::Blocked
            | PathContent::Directory
            | PathContent::Special => None,
        }
    }

    fn is_content(&self, path: &Path, source: &ByteSource) -> Result<bool, ApplyError> {
        match self.content_here(path)? {
            Some(here) => self.reader.is_same(source, here),
            None => Ok(false),
        }
    }

    fn content_here(&self, path: &Path) -> Result<Option<Content>, ApplyError> {
        let found = self.project.file(path)?;
        Ok(found.map(|(file, stat)| {
            Content::of_file(file, u64::try_from(stat.st_size).unwrap_or_default())
        }))
    }
}

/// Tells whether another offer makes a file or link of something above this path.
fn is_below_no_directory(path: &Path, wanted: &BTreeMap<&Path, &ApplyOffer>) -> bool {
    let is_gone = wanted
        .get(path)
        .is_some_and(|offer| offer.new == SandboxState::Absent);
    let mut above = path.ancestors().skip(1);
    !is_gone
        && above.any(|above| {
            let offer = wanted.get(above);
            offer.is_some_and(|offer| offer.new != SandboxState::Directory)
        })
}

/// Tells whether a file or link that was judged goes away.
fn is_going(judgement: Option<&Judgement>) -> bool {
    let actions = judgement.map(|(_, actions)| actions.as_slice());
    let mut actions = actions.unwrap_or_default().iter();
    actions.any(|action| matches!(action, ProjectChange::Remove { .. }))
}

fn conflict(conflict: ApplyConflict) -> Judgement {
    (PathVerdict::Conflict(conflict), Vec::new())
}

fn create(offer: &ApplyOffer) -> Judgement {
    let path = offer.path.clone();
    let actions = match put(offer, None, None) {
        Some(action) => vec![action],
        None => vec![ProjectChange::MakeDir { path }],
    };
    (PathVerdict::Create, actions)
}

/// Returns the action that puts an offered file or link in its place.
fn put(
    offer: &ApplyOffer,
    mode_here: Option<u32>,
    was: Option<FileIdentity>,
) -> Option<ProjectChange> {
    let put = match &offer.new {
        SandboxState::Absent | SandboxState::Directory => return None,
        SandboxState::File { source, mode } => Placement::Copy {
            source: source.clone(),
            mode: mode_of(*mode, mode_here),
        },
        SandboxState::Link { target } => Placement::Link {
            target: target.clone(),
        },
    };
    let path = offer.path.clone();
    Some(ProjectChange::Put { path, put, was })
}

/// Returns the permissions of a file that comes from a sandbox.
///
/// Special bits are dropped, and others may write only if they may now.
fn mode_of(new: u32, here: Option<u32>) -> u32 {
    let wanted = new & 0o755 | 0o600;
    match here {
        Some(here) if (here ^ wanted) & 0o755 == 0 => here & 0o777,
        Some(here) => wanted | here & 0o022,
        None => wanted,
    }
}
