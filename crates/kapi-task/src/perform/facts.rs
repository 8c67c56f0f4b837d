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
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session, tree};

use super::Performer;
use super::allowance::Allowance;
use super::look::ConditionCommand;
use crate::record::condition_file;
use crate::record::worker::LeaseHandle;
use crate::rules::condition::{Condition, ConditionQuestion, Facts, ProbeAnswer, RunResult, needs};
use crate::rules::state::{LastRun, LoopState};
use crate::rules::task::{End, KernelTask};
use crate::rules::task_state::KernelTaskState;

/// Paths that an answer names at most.
const PATHS_MAX: usize = 20;
/// Commits that are counted at most.
const AHEAD_MAX: u64 = 1_000;

/// Looks up what a condition asks.
pub(super) struct Finder<'a> {
    pub(super) performer: &'a Performer<'a>,
    pub(super) task: &'a KernelTask,
    pub(super) handle: &'a LeaseHandle<'a>,
    /// What is left of the task's budget.
    pub(super) allowance: &'a Allowance<'a>,
    /// What is known of the loops of the project.
    pub(super) loops: &'a BTreeMap<LoopName, LoopState>,
    /// The loop that asks.
    pub(super) own: &'a LoopName,
}

/// Returns the commit that the project stands at.
pub(super) fn head(performer: &Performer<'_>, handle: &LeaseHandle<'_>) -> Option<String> {
    let root = performer.project.layout.root();
    let repo = RepositorySession::open(&performer.grants, root, handle.cancel()).ok()?;
    let head = repo.repository.resolve_commit("HEAD").ok()?;
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
                answer.unwrap_or_else(|failure| ProbeAnswer::Unknown {
                    why: failure.message,
                }),
            );
        }
        if self.handle.cancel().is_raised() {
            return Err(End::Cancelled);
        }
        match self.allowance.spent_in("its condition") {
            Some(end) => Err(end),
            None => Ok(facts),
        }
    }

    fn answer(&self, question: &ConditionQuestion, left_ms: u64) -> Result<ProbeAnswer, Failure> {
        match question {
            ConditionQuestion::Files { glob } => self.files(glob),
            ConditionQuestion::FilesChanged { glob } => self.changed(std::slice::from_ref(glob)),
            ConditionQuestion::Changed { globs } => self.changed(globs),
            ConditionQuestion::Command { run, timeout_ms } => {
                let timeout_ms = left_ms.min(*timeout_ms);
                let command = ConditionCommand {
                    task: self.task,
                    handle: self.handle,
                    line: run,
                    timeout_ms,
                };
                command.answer(self.performer)
            }
            ConditionQuestion::Branch => {
                let name = self.repository()?.head_branch();
                let name = name.map_err(|error| failure::plain(&error))?;
                Ok(ProbeAnswer::Branch { name })
            }
            ConditionQuestion::Uncommitted => {
                let count = self.uncommitted(&self.repository()?)?.len() as u64;
                Ok(ProbeAnswer::Uncommitted { count })
            }
            ConditionQuestion::AheadOf { reference } => self.ahead(reference),
            ConditionQuestion::RefChanged { reference } => self.moved(reference),
            ConditionQuestion::LocalTime { zone } => Ok(ProbeAnswer::Unknown {
                why: format!("there is no time zone {zone:?}"),
            }),
            ConditionQuestion::LastResult { loop_name } => {
                Ok(self.last_result(loop_name.as_ref().unwrap_or(self.own)))
            }
        }
    }

    fn root(&self) -> &Path {
        self.performer.project.layout.root()
    }

    fn repository(&self) -> Result<Repository, Failure> {
        let repo =
            RepositorySession::open(&self.performer.grants, self.root(), self.handle.cancel())?;
        Ok(repo.repository)
    }

    fn files(&self, pattern: &str) -> Result<ProbeAnswer, Failure> {
        let files = tree::files(self.root())?;
        let matching = files.iter().filter(|path| pattern::is_path(pattern, path));
        let count = matching.count() as u64;
        Ok(ProbeAnswer::Files { count })
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
    fn changed(&self, globs: &[String]) -> Result<ProbeAnswer, Failure> {
        let Some(last) = self.last_run() else {
            return Ok(ProbeAnswer::NoRunBefore);
        };
        let Some(commit) = &last.commit else {
            return Ok(ProbeAnswer::Unknown {
                why: format!("the commit that {} ran on is unknown", last.task),
            });
        };
        let repository = self.repository()?;
        let head = resolve(&repository, "HEAD")?;
        let commit = repository_session::commit_id(commit)?;
        let before = before(&repository, &commit, last.start.as_deref(), &head)?;
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
        Ok(ProbeAnswer::Changed { paths })
    }

    /// Counts commits along the first parents.
    fn ahead(&self, reference: &str) -> Result<ProbeAnswer, Failure> {
        let repository = self.repository()?;
        let other = resolve(&repository, reference)?;
        for commits in 0..AHEAD_MAX {
            let Ok(commit) = repository.resolve_commit(&format!("HEAD~{commits}")) else {
                return Ok(ProbeAnswer::Ahead { commits });
            };
            let is_there = repository.is_ancestor(&commit, &other);
            if is_there.map_err(|error| failure::plain(&error))? {
                return Ok(ProbeAnswer::Ahead { commits });
            }
        }
        Ok(ProbeAnswer::Ahead { commits: AHEAD_MAX })
    }

    fn moved(&self, reference: &str) -> Result<ProbeAnswer, Failure> {
        let known = self.loops.get(self.own);
        let mark = known.and_then(|known| known.metrics.get(&ref_mark(reference)));
        let Some(before) = mark else {
            return Ok(ProbeAnswer::NoRunBefore);
        };
        let repository = self.repository()?;
        Ok(ProbeAnswer::Moved {
            before: Some(before.clone()).filter(|before| !before.is_empty()),
            now: location_of(&repository, reference),
        })
    }

    /// Returns where the refs are that a condition asks about, to be noted for the next run.
    pub(super) fn refs(&self, condition: &Condition) -> BTreeMap<String, String> {
        let mut marks = BTreeMap::new();
        for question in needs(condition) {
            if let (ConditionQuestion::RefChanged { reference }, Ok(repository)) =
                (question, self.repository())
            {
                let location = location_of(&repository, &reference).unwrap_or_default();
                marks.insert(ref_mark(&reference), location);
            }
        }
        marks
    }

    fn last_result(&self, name: &LoopName) -> ProbeAnswer {
        let last = self
            .loops
            .get(name)
            .and_then(|known| known.last_run.as_ref());
        let Some(last) = last else {
            return ProbeAnswer::Result(RunResult::None);
        };
        match last.state {
            KernelTaskState::Completed if last.was_skipped => {
                ProbeAnswer::Result(RunResult::Skipped)
            }
            KernelTaskState::Completed => ProbeAnswer::Result(RunResult::Completed),
            KernelTaskState::Failed => ProbeAnswer::Result(RunResult::Failed),
            KernelTaskState::Cancelled
            | KernelTaskState::Pending
            | KernelTaskState::Leased
            | KernelTaskState::Running => ProbeAnswer::Unknown {
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

fn location_of(repository: &Repository, reference: &str) -> Option<String> {
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
    start: Option<&str>,
    head: &CommitId,
) -> Result<CommitId, Failure> {
    let is_part = repository.is_ancestor(commit, head);
    if is_part.map_err(|error| failure::plain(&error))? {
        return Ok(commit.clone());
    }
    match start {
        Some(start) => resolve(repository, start),
        None => resolve(repository, &format!("{commit}^")),
    }
}
