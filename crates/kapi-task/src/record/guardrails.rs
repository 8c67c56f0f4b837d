//! Guardrail memory: one markdown file a domain, which a person edits and Kapi adds to.
//!
//! Every change is made under a lock and put in place whole. What a person wrote between our
//! reading and our writing is seen and kept. What a lesson is, and which are told, stands in
//! [`crate::rules::guardrail`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::Clock;
use kapi_sys::disk::{Disk, create_dir_durably};

use crate::record::guardrails::document::{GuardrailDocument, entry_id};
use crate::record::guardrails::error::MemoryError;
use crate::record::guardrails::replace::{ReplaceOutcome, replace_unless_changed};
use crate::rules::guardrail::choose::{LessonQuery, LessonSelection, choose};
use crate::rules::guardrail::lesson::{Lesson, is_same};
use crate::rules::guardrail::{
    Domain, GuardrailEntry, LessonSource, LessonState, Repetition, Severity,
};

mod document;
pub mod error;
mod line;
pub(crate) mod replace;

/// How long a change waits for another process to finish its own, in milliseconds.
const LOCK_WAIT_MS: u64 = 10_000;
/// The longest file of one domain.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How many domains there can be; agents name them.
const DOMAINS_MAX: usize = 256;
/// How many lessons of one domain can wait for a person.
const PROPOSED_MAX: usize = 200;
/// How often a change is tried again because a person was saving the file.
const TRIES_MAX: usize = 16;
/// The fewest characters that name an entry.
const ID_CHARS_MIN: usize = 4;
/// What ends the name of a domain's file.
const SUFFIX: &str = ".md";

/// The guardrails of one project, seen by one process.
#[derive(Clone)]
pub struct GuardrailMemory<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// The project's directory, which is there.
    pub project: PathBuf,
    /// The directory of the files, below the project's; made when it is first needed.
    pub dir: PathBuf,
    /// What other processes are told about who holds the lock ("kapi loop guardrail").
    pub owner: String,
    /// From how many sources on a proposed lesson is accepted without a person; `None` for never.
    pub accept_after_hits: Option<u32>,
}

/// A lesson to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLesson<'a> {
    /// What it is about, as somebody wrote it.
    pub domain: &'a str,
    /// The lesson, as somebody wrote it.
    pub lesson: &'a str,
    /// How much it matters.
    pub severity: Severity,
    /// Who says it; decides whether it is accepted at once.
    pub source: LessonSource,
    /// When it is no longer told, if ever.
    pub expires_at_ms: Option<i64>,
}

/// What became of a lesson.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LessonOutcome {
    /// It was written down.
    New(GuardrailEntry),
    /// It was known: this is the entry now.
    Repeated(GuardrailEntry),
}

/// A line that looks like an entry and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadLine {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: &'static str,
}

/// What is in the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The entries, by domain and then as they stand there.
    pub entries: Vec<GuardrailEntry>,
    /// Lines a person should correct.
    pub unread: Vec<UnreadLine>,
}

/// How many entries a domain has. Those that expired are in no other number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LessonCount {
    /// Told.
    pub accepted: usize,
    /// Waiting for a person.
    pub proposed: usize,
    /// Refused.
    pub rejected: usize,
    /// No longer told.
    pub expired: usize,
}

/// What to do with a file, decided by looking at its content.
enum FileStep<T> {
    Keep(T),
    Write(T),
}

impl GuardrailMemory<'_> {
    /// Remembers a lesson, or takes in that a known one was said again.
    ///
    /// Durable when it returns. What a person says is accepted at once; what an agent or a loop
    /// says waits for a person, or for [`GuardrailMemory::accept_after_hits`] sources.
    ///
    /// # Errors
    /// When there is no domain or lesson in the texts, there are too many, or the disk refuses.
    pub fn add(&self, new: &NewLesson<'_>) -> Result<LessonOutcome, MemoryError> {
        let domain = Domain::parse(new.domain)?;
        let lesson = Lesson::clean(new.lesson)?;
        let words = lesson.words();
        let again = Repetition {
            severity: new.severity,
            source: new.source.clone(),
            at_ms: self.clock.now_ms(),
            expires_at_ms: new.expires_at_ms,
            accept_after_hits: self.accept_after_hits,
        };
        self.change(&domain, |document| {
            let listed = document.entries(&domain);
            let is_known = |entry: &GuardrailEntry| is_same(&entry.lesson.words(), &words);
            if let Some((location, known)) = listed.iter().find(|(_, entry)| is_known(entry)) {
                return Ok(repeat(document, *location, known, &again));
            }
            let entry = first(&domain, &lesson, &again);
            let is_waiting = |entry: &GuardrailEntry| entry.state == LessonState::Proposed;
            let n_waiting = listed.iter().filter(|(_, entry)| is_waiting(entry)).count();
            if is_waiting(&entry) && n_waiting >= PROPOSED_MAX {
                let domain = domain.clone();
                return Err(MemoryError::TooManyProposed { domain });
            }
            document.append(&entry);
            Ok(FileStep::Write(LessonOutcome::New(entry)))
        })
    }

    /// Returns the entries of one domain, or of all.
    ///
    /// # Errors
    /// When a file is too large or the disk refuses.
    pub fn list(&self, domain: Option<&Domain>) -> Result<Listing, MemoryError> {
        let domains = match domain {
            Some(domain) => vec![domain.clone()],
            None => self.domains()?,
        };
        let mut listing = Listing::default();
        for domain in &domains {
            let Some(bytes) = self.read(domain)? else {
                continue;
            };
            let document = GuardrailDocument::parse(&bytes);
            let entries = document.entries(domain);
            listing
                .entries
                .extend(entries.into_iter().map(|(_, entry)| entry));
            let file = self.file(domain);
            listing
                .unread
                .extend(document.unread().map(|(line, why)| UnreadLine {
                    file: file.clone(),
                    line,
                    why,
                }));
        }
        Ok(listing)
    }

    /// Returns how many entries each domain has.
    ///
    /// # Errors
    /// When a file is too large or the disk refuses.
    pub fn count_by_domain(&self) -> Result<BTreeMap<Domain, LessonCount>, MemoryError> {
        let now_ms = self.clock.now_ms();
        let mut counts: BTreeMap<Domain, LessonCount> = self
            .domains()?
            .into_iter()
            .map(|domain| (domain, LessonCount::default()))
            .collect();
        for entry in self.list(None)?.entries {
            let is_expired = entry.is_expired(now_ms);
            let count = counts.entry(entry.domain).or_default();
            let number = match entry.state {
                _ if is_expired => &mut count.expired,
                LessonState::Accepted => &mut count.accepted,
                LessonState::Proposed => &mut count.proposed,
                LessonState::Rejected => &mut count.rejected,
            };
            *number += 1;
        }
        Ok(counts)
    }

    /// Chooses what a run is told.
    ///
    /// # Errors
    /// When a file is too large or the disk refuses.
    pub fn choose(&self, ask: &LessonQuery<'_>) -> Result<LessonSelection, MemoryError> {
        let mut domains: Vec<&Domain> = ask.domains.iter().map(|asked| &asked.domain).collect();
        domains.sort();
        domains.dedup();
        let mut entries = Vec::new();
        for domain in domains {
            entries.extend(self.list(Some(domain))?.entries);
        }
        Ok(choose(&entries, ask))
    }

    /// Accepts the entry whose id begins so: it is told from now on.
    ///
    /// # Errors
    /// When it is not a person who asks, there is no such entry or several, or the disk refuses.
    pub fn accept(&self, actor: &Actor, id: &str) -> Result<GuardrailEntry, MemoryError> {
        self.set_state(actor, id, LessonState::Accepted)
    }

    /// Rejects the entry whose id begins so: it is told no more, and not proposed again.
    ///
    /// # Errors
    /// When it is not a person who asks, there is no such entry or several, or the disk refuses.
    pub fn reject(&self, actor: &Actor, id: &str) -> Result<GuardrailEntry, MemoryError> {
        self.set_state(actor, id, LessonState::Rejected)
    }

    /// Removes the line of the entry whose id begins so, and returns what it was.
    ///
    /// # Errors
    /// When it is not a person who asks, there is no such entry or several, or the disk refuses.
    pub fn remove(&self, actor: &Actor, id: &str) -> Result<GuardrailEntry, MemoryError> {
        only_person("remove", actor)?;
        self.change_entry(id, |document, location, entry| {
            document.remove(location);
            FileStep::Write(entry)
        })
    }

    /// Returns the file of a domain, which a person may edit.
    #[must_use]
    pub fn file(&self, domain: &Domain) -> PathBuf {
        self.dir.join(format!("{domain}{SUFFIX}"))
    }

    /// Returns the lock's file: Kapi's own, not beside files that may be under version control.
    fn lock_file(&self) -> PathBuf {
        let layout = ProjectLayout::new(self.project.clone());
        layout.state_dir().join("guardrails.lock")
    }

    fn set_state(
        &self,
        actor: &Actor,
        id: &str,
        state: LessonState,
    ) -> Result<GuardrailEntry, MemoryError> {
        let action = match state {
            LessonState::Proposed => "propose",
            LessonState::Accepted => "accept",
            LessonState::Rejected => "reject",
        };
        only_person(action, actor)?;
        self.change_entry(id, |document, location, mut entry| {
            if entry.state == state {
                return FileStep::Keep(entry);
            }
            entry.state = state;
            document.rewrite(location, &entry);
            entry.is_edited = false;
            FileStep::Write(entry)
        })
    }

    /// Changes every line that is the one entry whose id begins with `id`.
    fn change_entry(
        &self,
        id: &str,
        change: impl Fn(&mut GuardrailDocument, usize, GuardrailEntry) -> FileStep<GuardrailEntry>,
    ) -> Result<GuardrailEntry, MemoryError> {
        let found = self.find(id)?;
        self.change(&found.domain, |document| {
            let mut listed = document.entries(&found.domain);
            listed.retain(|(_, entry)| entry.id == found.id);
            let mut step = None;
            // The last line first: removing one moves those after it.
            for (location, entry) in listed.into_iter().rev() {
                step = Some(match (step, change(document, location, entry)) {
                    (Some(FileStep::Write(_)), FileStep::Keep(entry)) => FileStep::Write(entry),
                    (_, next) => next,
                });
            }
            step.ok_or_else(|| MemoryError::NotFound { id: id.to_owned() })
        })
    }

    fn find(&self, id: &str) -> Result<GuardrailEntry, MemoryError> {
        let mut found: Vec<GuardrailEntry> = self.list(None)?.entries;
        found.retain(|entry| id.len() >= ID_CHARS_MIN && entry.id.starts_with(id));
        found.dedup_by(|one, other| one.id == other.id);
        match found.as_slice() {
            [entry] => Ok(entry.clone()),
            [] => Err(MemoryError::NotFound { id: id.to_owned() }),
            [first, rest @ ..] if rest.iter().all(|entry| entry.id == first.id) => {
                Ok(first.clone())
            }
            several => Err(MemoryError::Ambiguous {
                id: id.to_owned(),
                ids: several.iter().map(|entry| entry.id.clone()).collect(),
            }),
        }
    }

    /// Reads, decides and writes one domain's file under the lock, again while somebody who
    /// takes no lock saves the file in between.
    fn change<T>(
        &self,
        domain: &Domain,
        decide: impl Fn(&mut GuardrailDocument) -> Result<FileStep<T>, MemoryError>,
    ) -> Result<T, MemoryError> {
        create_dir_durably(self.disk, &self.project, &self.dir)?;
        let _held = self
            .disk
            .lock(&self.lock_file(), &self.owner, LOCK_WAIT_MS)?;
        let file = self.file(domain);
        if file.is_symlink() {
            return Err(MemoryError::IsLink { file });
        }
        for _ in 0..TRIES_MAX {
            let before = self.read(domain)?;
            if before.is_none() && self.domains()?.len() >= DOMAINS_MAX {
                let domain = domain.clone();
                return Err(MemoryError::TooManyDomains { domain });
            }
            let mut document = GuardrailDocument::parse(before.as_deref().unwrap_or_default());
            let outcome = match decide(&mut document)? {
                FileStep::Keep(outcome) => return Ok(outcome),
                FileStep::Write(outcome) => outcome,
            };
            let after = document.to_bytes();
            match replace_unless_changed(self.disk, &file, before.as_deref(), &after)? {
                ReplaceOutcome::Yes => return Ok(outcome),
                ReplaceOutcome::NoItChanged => {}
            }
        }
        Err(MemoryError::KeepsChanging { file })
    }

    fn read(&self, domain: &Domain) -> Result<Option<Vec<u8>>, MemoryError> {
        let file = self.file(domain);
        if self.disk.len(&file)?.unwrap_or_default() > FILE_BYTES_MAX {
            return Err(MemoryError::TooLarge { file });
        }
        Ok(self.disk.read(&file, 0)?)
    }

    /// Returns the domains that have a file. A file whose name is no domain's is a person's own.
    fn domains(&self) -> Result<Vec<Domain>, MemoryError> {
        let is_domain = |name: String| {
            let stem = name.strip_suffix(SUFFIX)?;
            let domain = Domain::parse(stem).ok()?;
            (domain.as_str() == stem).then_some(domain)
        };
        let names = self.disk.list(&self.dir)?;
        Ok(names.into_iter().filter_map(is_domain).collect())
    }
}

/// Takes in that a known lesson was said again.
fn repeat(
    document: &mut GuardrailDocument,
    location: usize,
    known: &GuardrailEntry,
    again: &Repetition,
) -> FileStep<LessonOutcome> {
    let mut entry = known.clone();
    entry.repeat(again);
    if entry == *known {
        return FileStep::Keep(LessonOutcome::Repeated(entry));
    }
    document.rewrite(location, &entry);
    FileStep::Write(LessonOutcome::Repeated(entry))
}

/// Returns the entry of a lesson that is said for the first time.
fn first(domain: &Domain, lesson: &Lesson, said: &Repetition) -> GuardrailEntry {
    let by_rule = said.accept_after_hits.is_some_and(|n| n <= 1);
    let state = match said.source.first_state() {
        LessonState::Proposed if by_rule => LessonState::Accepted,
        state => state,
    };
    GuardrailEntry {
        id: entry_id(domain, lesson),
        domain: domain.clone(),
        at_ms: said.at_ms,
        severity: said.severity,
        lesson: lesson.clone(),
        sources: vec![said.source.clone()],
        state,
        hits: 1,
        seen_at_ms: None,
        expires_at_ms: said.expires_at_ms,
        is_edited: false,
    }
}

fn only_person(action: &'static str, actor: &Actor) -> Result<(), MemoryError> {
    match actor {
        Actor::Human { .. } => Ok(()),
        Actor::Agent { .. } | Actor::Engine => Err(MemoryError::OnlyPerson {
            action,
            actor: actor.clone(),
        }),
    }
}

#[cfg(test)]
mod tests;
