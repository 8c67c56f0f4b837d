//! What happens to each offered path, seen before anything is changed.
//!
//! Compares three states of a path: what it was when the sandbox began, what it is in the sandbox
//! and what it is on the host. Only reads; what it decides is carried out elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::beneath::{Found, Identity, Tree};
use super::content::{Content, Reader};
use super::rule::refusal_of;
use super::select::Selection;
use super::{
    ApplyError, ApplyPlan, Conflict, New, Offer, Old, OnConflict, PATHS_MAX, Preview, Refusal,
    Source, Verdict,
};
use crate::candidate::link::leads_out;

/// Looks at both sides.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    plan: &'a ApplyPlan<'a>,
    pub(super) project: &'a Tree,
    pub(super) reader: Reader<'a>,
    selection: Selection,
}

/// All verdicts, and what they come to.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) preview: Preview,
    pub(super) actions: Vec<Action>,
}

/// One change to the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// A file or link goes.
    Remove { path: PathBuf, was: Identity },
    /// A directory that is empty by then goes.
    RemoveDir { path: PathBuf },
    /// A directory is made.
    MakeDir { path: PathBuf },
    /// A file or link comes, in the place of another if there was one.
    Put {
        path: PathBuf,
        put: Put,
        was: Option<Identity>,
    },
}

/// What is put somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Put {
    Copy { source: Source, mode: u32 },
    Text { text: Vec<u8>, mode: u32 },
    Link { target: std::ffi::OsString },
}

type Judgement = (Verdict, Vec<Action>);

impl<'a> Judge<'a> {
    pub(super) fn new(plan: &'a ApplyPlan<'a>, project: &'a Tree) -> Result<Self, ApplyError> {
        Ok(Self {
            plan,
            project,
            reader: Reader {
                git: plan.git,
                repository: plan.repository,
                work: plan.work.to_path_buf(),
            },
            selection: Selection::parse(plan.select)?,
        })
    }

    pub(super) fn judge(&self) -> Result<Judged, ApplyError> {
        let all = self.plan.offers.iter();
        let wanted: BTreeMap<&Path, &Offer> = all
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
                judged.insert(path, (Verdict::Refused(refusal), Vec::new()));
                continue;
            }
            match self.project.look(path)? {
                Found::Blocked => blocked.push(*offer),
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
        Ok(Judged { preview, actions })
    }

    fn refusal_of(
        &self,
        offer: &Offer,
        wanted: &BTreeMap<&Path, &Offer>,
    ) -> Result<Option<Refusal>, ApplyError> {
        let path = &offer.path;
        if let Some(refusal) = refusal_of(path) {
            return Ok(Some(refusal));
        }
        if is_below_no_directory(path, wanted) {
            return Ok(Some(Refusal::NotBelow));
        }
        Ok(match &offer.new {
            New::Link { target } => {
                let is_wanted = self.plan.links_out.contains(path);
                (!is_wanted && leads_out(path, target)).then_some(Refusal::LinkOut)
            }
            New::File { source, .. } => self.reader.open(source)?.err(),
            New::Absent | New::Directory => None,
        })
    }

    fn judge_one(
        &self,
        offer: &Offer,
        here: &Found,
        judged: &BTreeMap<&Path, Judgement>,
    ) -> Result<Judgement, ApplyError> {
        let (mode, was) = match (here, &offer.new) {
            (Found::Nothing, New::Absent) | (Found::Directory, New::Directory) => {
                return Ok((Verdict::Same, Vec::new()));
            }
            (Found::Nothing, New::Directory) => return Ok(create(offer)),
            (Found::Nothing, _) if offer.old == Old::Absent => return Ok(create(offer)),
            (Found::Nothing, _) => return Ok(conflict(Conflict::GoneHere)),
            (Found::Special | Found::Blocked, _) => return Ok(conflict(Conflict::SpecialFile)),
            (Found::Directory, _) => return self.judge_directory(offer, judged),
            (Found::File { mode, identity, .. }, _) => (Some(*mode), *identity),
            (Found::Link { identity, .. }, _) => (None, *identity),
        };
        if self.is_so_already(offer, here)? {
            return Ok((Verdict::Same, Vec::new()));
        }
        if !self.is_unchanged(offer, here)? {
            return self.judge_changed(offer, mode, was);
        }
        let path = offer.path.clone();
        Ok(match &offer.new {
            New::Absent => (Verdict::Delete, vec![Action::Remove { path, was }]),
            New::Directory => {
                let remove = Action::Remove {
                    path: path.clone(),
                    was,
                };
                (Verdict::Replace, vec![remove, Action::MakeDir { path }])
            }
            New::File { .. } | New::Link { .. } => {
                let action = put(offer, mode, Some(was));
                (Verdict::Replace, action.into_iter().collect())
            }
        })
    }

    /// Judges a path below something on the host that is no directory.
    fn judge_blocked(
        &self,
        offer: &Offer,
        judged: &BTreeMap<&Path, Judgement>,
    ) -> Result<Judgement, ApplyError> {
        if offer.new == New::Absent {
            return Ok((Verdict::Same, Vec::new()));
        }
        for above in offer.path.ancestors().skip(1) {
            match self.project.look(above)? {
                Found::Blocked => {}
                Found::File { .. } | Found::Link { .. } if is_going(judged.get(above)) => {
                    return Ok(create(offer));
                }
                _ => break,
            }
        }
        Ok(conflict(Conflict::NoDirectory))
    }

    /// Judges what is to take the place of a directory with all that is in it.
    fn judge_directory(
        &self,
        offer: &Offer,
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
                let is_going = verdict == Some(&Verdict::Delete) || found == Found::Nothing;
                match (verdict, found, was) {
                    _ if is_going => continue,
                    (None, Found::Directory, _) => dirs.push(path),
                    (None, _, Some(was)) => actions.push(Action::Remove { path, was }),
                    _ => return Ok(conflict(Conflict::NotEmpty)),
                }
            }
            actions.push(Action::RemoveDir { path: dir });
            let n_paths = actions.len() + dirs.len();
            if n_paths > PATHS_MAX {
                return Err(ApplyError::TooMany { n_paths });
            }
        }
        if offer.new == New::Absent {
            return Ok((Verdict::Delete, actions));
        }
        actions.extend(put(offer, None, None));
        Ok((Verdict::Replace, actions))
    }

    /// Judges a file or link that is not what it was when the sandbox began.
    fn judge_changed(
        &self,
        offer: &Offer,
        mode: Option<u32>,
        was: Identity,
    ) -> Result<Judgement, ApplyError> {
        let ancestor = match &offer.old {
            Old::Absent => return Ok(conflict(Conflict::AppearedHere)),
            Old::AsOf { ancestor, .. } => ancestor.as_ref(),
            Old::File { source, .. } => Some(source),
            Old::Link { .. } => None,
        };
        let (Some(ancestor), Some(mode), New::File { source, mode: new }) =
            (ancestor, mode, &offer.new)
        else {
            return Ok(conflict(Conflict::ChangedHere));
        };
        let Some(here) = self.content_here(&offer.path)? else {
            return Ok(conflict(Conflict::ChangedHere));
        };
        let Some(merged) = self.reader.merge(here, ancestor, source)? else {
            return Ok(conflict(Conflict::ChangedHere));
        };
        let n_places = merged.n_places;
        if n_places > 0 && self.plan.on_conflict != OnConflict::Mark {
            return Ok(conflict(Conflict::SamePlaces { n_places }));
        }
        let mode = match offer.old {
            Old::File { is_executable, .. } if is_executable != (new & 0o100 != 0) => {
                mode_of(*new, Some(mode))
            }
            _ => mode,
        };
        let action = Action::Put {
            path: offer.path.clone(),
            put: Put::Text {
                text: merged.text,
                mode,
            },
            was: Some(was),
        };
        let verdict = if n_places > 0 {
            Verdict::Marked { n_places }
        } else {
            Verdict::Merge
        };
        Ok((verdict, vec![action]))
    }

    fn is_so_already(&self, offer: &Offer, here: &Found) -> Result<bool, ApplyError> {
        match (&offer.new, here) {
            (New::Link { target }, Found::Link { target: found, .. }) => Ok(target == found),
            (New::File { source, mode }, Found::File { mode: found, .. }) => {
                let is_like = (mode ^ found) & 0o100 == 0;
                Ok(is_like && self.is_content(&offer.path, source)?)
            }
            _ => Ok(false),
        }
    }

    fn is_unchanged(&self, offer: &Offer, here: &Found) -> Result<bool, ApplyError> {
        match (&offer.old, here) {
            (Old::AsOf { .. }, _) => Ok(self.unchanged_identity(&offer.old, here).is_some()),
            (Old::Link { target }, Found::Link { target: found, .. }) => Ok(target == found),
            (
                Old::File {
                    source,
                    is_executable,
                },
                Found::File { mode, .. },
            ) => {
                let is_like = *is_executable == (mode & 0o100 != 0);
                Ok(is_like && self.is_content(&offer.path, source)?)
            }
            _ => Ok(false),
        }
    }

    /// Returns what tells a file from others if it did not change since the sandbox began.
    fn unchanged_identity(&self, old: &Old, here: &Found) -> Option<Identity> {
        let Old::AsOf { moment, .. } = old else {
            return None;
        };
        match here {
            Found::File {
                identity, changed, ..
            }
            | Found::Link {
                identity, changed, ..
            } => (changed < moment).then_some(*identity),
            Found::Nothing | Found::Blocked | Found::Directory | Found::Special => None,
        }
    }

    fn is_content(&self, path: &Path, source: &Source) -> Result<bool, ApplyError> {
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
fn is_below_no_directory(path: &Path, wanted: &BTreeMap<&Path, &Offer>) -> bool {
    let is_gone = wanted
        .get(path)
        .is_some_and(|offer| offer.new == New::Absent);
    let mut above = path.ancestors().skip(1);
    !is_gone
        && above.any(|above| {
            let offer = wanted.get(above);
            offer.is_some_and(|offer| offer.new != New::Directory)
        })
}

/// Tells whether a file or link that was judged goes away.
fn is_going(judgement: Option<&Judgement>) -> bool {
    let actions = judgement.map(|(_, actions)| actions.as_slice());
    let mut actions = actions.unwrap_or_default().iter();
    actions.any(|action| matches!(action, Action::Remove { .. }))
}

fn conflict(conflict: Conflict) -> Judgement {
    (Verdict::Conflict(conflict), Vec::new())
}

fn create(offer: &Offer) -> Judgement {
    let path = offer.path.clone();
    let actions = match put(offer, None, None) {
        Some(action) => vec![action],
        None => vec![Action::MakeDir { path }],
    };
    (Verdict::Create, actions)
}

/// Returns the action that puts an offered file or link in its place.
fn put(offer: &Offer, mode_here: Option<u32>, was: Option<Identity>) -> Option<Action> {
    let put = match &offer.new {
        New::Absent | New::Directory => return None,
        New::File { source, mode } => Put::Copy {
            source: source.clone(),
            mode: mode_of(*mode, mode_here),
        },
        New::Link { target } => Put::Link {
            target: target.clone(),
        },
    };
    let path = offer.path.clone();
    Some(Action::Put { path, put, was })
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
