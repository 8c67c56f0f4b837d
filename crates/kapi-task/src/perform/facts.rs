//! What a condition asks, looked up: files, git, the time, other runs, and commands in the sandbox.
//!
//! Git is read without running anything of the repository's. What cannot be found out is said so,
//! and never holds. Decides nothing.

use std::collections::BTreeMap;
use std::path::Path;

use kapi_core::failure::Failure;
use kapi_core::pattern;
use kapi_core::task_id::LoopName;
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_run::workshop::Workshop;
use kapi_run::{failure, tree, workshop};

use super::Performer;
use super::allowance::Allowance;
use super::look::ConditionCommand;
use crate::record::condition_file;
use crate::record::worker::Hands;
use crate::rules::condition::{Answer, Condition, Facts, Question, RunResult, needs};
use crate::rules::state::{LastRun, LoopState};
use crate::rules::task::{End, Task};
use crate::rules::task_state::State;

/// Paths that an answer names at most.
const PATHS_MAX: usize = 20;
/// Commits that are counted at most.
const AHEAD_MAX: u64 = 1_000;

/// Looks up what a condition asks.
pub(super) struct Finder<'a> {
    pub(super) performer: &'a Performer<'a>,
    pub(super) task: &'a Task,
    pub(super) hands: &'a Hands<'a>,
    /// What is left of the task's budget.
    pub(super) allowance: &'a Allowance<'a>,
    /// What is known of the loops of the project.
    pub(super) loops: &'a BTreeMap<LoopName, LoopState>,
    /// The loop that asks.
    pub(super) own: &'a LoopName,
}

/// Returns the commit that the project stands at.
pub(super) fn head(performer: &Performer<'_>, hands: &Hands<'_>) -> Option<String> {
    let root = performer.project.layout.root();
    let workshop = Workshop::open(&performer.book, root, hands.cancel()).ok()?;
    let head = workshop.repository.resolve_commit("HEAD").ok()?;
    Some(head.to_string())
}

/// Returns the name under which it is noted where a ref was when a loop last ran.
fn ref_mark(reference: &str) -> String {
    format!("ref {reference}")
}

impl Finder<'_> {
    /// Looks up everything.
    ///
    /// # Errors
    /// Only when the run is not wanted any more, or its budget is spent.
    pub(super) fn find(&self, condition: &Condition) -> Result<Facts, End> {
        let now_ms = self.performer.project.clock.now_ms();
        let mut facts = condition_file::times(condition, now_ms);
        for question in needs(condition) {
            let left_ms = self.allowance.bounded(u64::MAX)?;
            if facts.contains_key(&question) {
                continue;
            }
            let answer = self.answer(&question, left_ms);
            facts.insert(
                question,
                answer.unwrap_or_else(|failure| Answer::Unknown {
                    why: failure.message,
                }),
            );
        }
        if self.hands.cancel().is_raised() {
            return Err(End::Cancelled);
        }
        match self.allowance.spent_in("its condition") {
            Some(end) => Err(end),
            None => Ok(facts),
        }
    }

    fn answer(&self, question: &Question, left_ms: u64) -> Result<Answer, Failure> {
        match question {
            Question::Files { glob } => self.files(glob),
            Question::FilesChanged { glob } => self.changed(std::slice::from_ref(glob)),
            Question::Changed { globs } => self.changed(globs),
            Question::Command { run, timeout_ms } => {
                let timeout_ms = left_ms.min(*timeout_ms);
                let command = ConditionCommand {
                    task: self.task,
                    hands: self.hands,
                    line: run,
                    timeout_ms,
                };
                command.answer(self.performer)
            }
            Question::Branch => {
                let name = self.repository()?.head_branch();
                let name = name.map_err(|error| failure::plain(&error))?;
                Ok(Answer::Branch { name })
            }
            Question::Uncommitted => {
                let count = self.uncommitted(&self.repository()?)?.len() as u64;
                Ok(Answer::Uncommitted { count })
            }
            Question::AheadOf { reference } => self.ahead(reference),
            Question::RefChanged { reference } => self.moved(reference),
            Question::LocalTime { zone } => Ok(Answer::Unknown {
                why: format!("there is no time zone {zone:?}"),
            }),
            Question::LastResult { loop_name } => {
                Ok(self.last_result(loop_name.as_ref().unwrap_or(self.own)))
            }
        }
    }

    fn root(&self) -> &Path {
        self.performer.project.layout.root()
    }

    fn repository(&self) -> Result<Repository, Failure> {
        let workshop = Workshop::open(&self.performer.book, self.root(), self.hands.cancel())?;
        Ok(workshop.repository)
    }

    fn files(&self, pattern: &str) -> Result<Answer, Failure> {
        let files = tree::files(self.root())?;
        let matching = files.iter().filter(|path| pattern::is_path(pattern, path));
        let count = matching.count() as u64;
        Ok(Answer::Files { count })
    }

    /// Returns the paths that nobody committed; those of Kapi's own do not count.
    fn uncommitted(&self, repository: &Repository) -> Result<Vec<String>, Failure> {
        let dirt = repository.dirt().map_err(|error| failure::plain(&error))?;
        let names = dirt
            .names
            .iter()
            .map(|path| path.to_string_lossy().into_owned());
        Ok(names.filter(|name| !name.starts_with(".ilchul/")).collect())
    }

    fn last_run(&self) -> Option<&LastRun> {
        self.loops.get(self.own)?.last_run.as_ref()
    }

    /// Compares the project with the commit of the last run, what nobody committed included.
    fn changed(&self, globs: &[String]) -> Result<Answer, Failure> {
        let Some(last) = self.last_run() else {
            return Ok(Answer::NoRunBefore);
        };
        let Some(commit) = &last.commit else {
            return Ok(Answer::Unknown {
                why: format!("the commit that {} ran on is unknown", last.task),
            });
        };
        let repository = self.repository()?;
        let head = resolve(&repository, "HEAD")?;
        let before = before(&repository, &workshop::commit_id(commit)?, &head)?;
        let everything = ["**".to_owned()];
        let changes = repository
            .protected_changes(&before, &head, &everything)
            .map_err(|error| failure::plain(&error))?;
        let committed = changes
            .iter()
            .map(|change| change.path.to_string_lossy().into_owned());
        let mut paths: Vec<String> = committed.chain(self.uncommitted(&repository)?).collect();
        paths.retain(|path| globs.iter().any(|pattern| meets(pattern, path)));
        paths.sort();
        paths.dedup();
        paths.truncate(PATHS_MAX);
        Ok(Answer::Changed { paths })
    }

    /// Counts commits along the first parents.
    fn ahead(&self, reference: &str) -> Result<Answer, Failure> {
        let repository = self.repository()?;
        let other = resolve(&repository, reference)?;
        for commits in 0..AHEAD_MAX {
            let Ok(commit) = repository.resolve_commit(&format!("HEAD~{commits}")) else {
                return Ok(Answer::Ahead { commits });
            };
            let is_there = repository.is_ancestor(&commit, &other);
            if is_there.map_err(|error| failure::plain(&error))? {
                return Ok(Answer::Ahead { commits });
            }
        }
        Ok(Answer::Ahead { commits: AHEAD_MAX })
    }

    fn moved(&self, reference: &str) -> Result<Answer, Failure> {
        let known = self.loops.get(self.own);
        let mark = known.and_then(|known| known.metrics.get(&ref_mark(reference)));
        let Some(before) = mark else {
            return Ok(Answer::NoRunBefore);
        };
        let repository = self.repository()?;
        Ok(Answer::Moved {
            before: Some(before.clone()).filter(|before| !before.is_empty()),
            now: place_of(&repository, reference),
        })
    }

    /// Returns where the refs are that a condition asks about, to be noted for the next run.
    pub(super) fn refs(&self, condition: &Condition) -> BTreeMap<String, String> {
        let mut marks = BTreeMap::new();
        for question in needs(condition) {
            if let (Question::RefChanged { reference }, Ok(repository)) =
                (question, self.repository())
            {
                let place = place_of(&repository, &reference).unwrap_or_default();
                marks.insert(ref_mark(&reference), place);
            }
        }
        marks
    }

    fn last_result(&self, name: &LoopName) -> Answer {
        let last = self
            .loops
            .get(name)
            .and_then(|known| known.last_run.as_ref());
        let Some(last) = last else {
            return Answer::Result(RunResult::None);
        };
        match last.state {
            State::Completed if last.was_skipped => Answer::Result(RunResult::Skipped),
            State::Completed => Answer::Result(RunResult::Completed),
            State::Failed => Answer::Result(RunResult::Failed),
            State::Cancelled | State::Pending | State::Leased | State::Running => Answer::Unknown {
                why: format!("{} was cancelled", last.task),
            },
        }
    }
}

/// Tells whether a pattern matches a path; a directory that git does not know, which ends in a
/// slash, stands for what is in it.
fn meets(pattern: &str, path: &str) -> bool {
    match path.strip_suffix('/') {
        None => pattern::is_path(pattern, path),
        Some(dir) => {
            let first = pattern.split(['*', '?']).next().unwrap_or_default();
            pattern::covers(pattern, dir) || first.starts_with(path) || path.starts_with(first)
        }
    }
}

fn place_of(repository: &Repository, reference: &str) -> Option<String> {
    let found = repository.resolve_commit(reference).ok()?;
    Some(found.to_string())
}

fn resolve(repository: &Repository, revision: &str) -> Result<CommitId, Failure> {
    let found = repository.resolve_commit(revision);
    found.map_err(|error| failure::plain(&error))
}

/// Returns what the last run began at, unless its work has become part of the project since.
fn before(
    repository: &Repository,
    commit: &CommitId,
    head: &CommitId,
) -> Result<CommitId, Failure> {
    let is_part = repository.is_ancestor(commit, head);
    if is_part.map_err(|error| failure::plain(&error))? {
        return Ok(commit.clone());
    }
    resolve(repository, &format!("{commit}^"))
}
