//! What a run leaves for the next: its summary, what to do next, and the facts that both rest on.
//!
//! Sealed here; whoever reads it looks whether it is still true.

use kapi_core::quote::head;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};

use super::context::NEXT;
use super::learn::marked;
use super::{Ended, LoopExecution, skipped};
use crate::perform::facts;
use crate::record::freshness;
use crate::record::freshness::{FILES_MAX, FreshnessError};
use crate::rules::handoff::{EvalResult, FileMark, Handoff};
use crate::rules::task::{End, PhaseStatus};

/// Bytes of a summary.
const SUMMARY_BYTES_MAX: usize = 4 * 1024;
/// Bytes of what should be done next.
const NEXT_BYTES_MAX: usize = 1_000;
/// Characters of the hash that are shown.
const SHOWN: usize = 12;

impl LoopExecution<'_> {
    /// Makes and seals the handoff. One that cannot be made fails no run.
    pub(super) fn handoff(&mut self) -> Ended {
        if !self.has_run() {
            return skipped("nothing was done to hand on");
        }
        let (summary, next) = self.summary();
        let files = match self.marks() {
            Ok(files) => files,
            Err(error) => {
                let text = format!("failed to {}", failure::chain(&error));
                return (PhaseStatus::Error, Some(text));
            }
        };
        let definition = &self.run.definition;
        let mut handoff = Handoff {
            task: self.task.id,
            loop_name: Some(definition.name.clone()),
            from_agent: self.task.request.agent.clone(),
            to_agent: self.task.request.agent.clone(),
            summary,
            next_action: next,
            evals: self.evals(),
            files,
            head: facts::head(self.performer, self.handle),
            freshness: String::new(),
            created_at_ms: self.performer.project.clock.now_ms(),
        };
        if let Err(error) = freshness::seal(&mut handoff) {
            let text = format!("failed to {}", failure::chain(&error));
            return (PhaseStatus::Error, Some(text));
        }
        let shown = format!("freshness={}", head(&handoff.freshness, SHOWN));
        self.report.handoff = Some(handoff);
        (PhaseStatus::Ok, Some(shown))
    }

    fn summary(&self) -> (String, String) {
        let output = head(self.report.output.trim(), SUMMARY_BYTES_MAX);
        let next = marked(&self.report.output, NEXT).last();
        let next = next.map(|next| head(next, NEXT_BYTES_MAX).to_owned());
        match &self.report.end {
            End::Failed(failure) => (
                head(&failure.message, SUMMARY_BYTES_MAX).to_owned(),
                next.unwrap_or_else(|| "inspect the transcript and retry".to_owned()),
            ),
            End::Completed | End::Skipped { .. } | End::Cancelled => (
                match output {
                    "" => "task completed".to_owned(),
                    output => output.to_owned(),
                },
                next.unwrap_or_else(|| "no follow-up required".to_owned()),
            ),
        }
    }

    /// Returns how the evals came out; without any, whether the agent ended well.
    fn evals(&self) -> Vec<EvalResult> {
        if !self.report.evals.is_empty() {
            return self.report.evals.clone();
        }
        vec![EvalResult {
            name: "exit_code".to_owned(),
            passed: self.report.end == End::Completed,
            blocking: true,
            details: None,
        }]
    }

    /// Marks the files that the run changed, as they are in the project.
    fn marks(&self) -> Result<Vec<FileMark>, FreshnessError> {
        let paths = self.touched();
        let project = self.performer.project;
        let root = project.layout.root();
        let paths = paths.iter().map(String::as_str).take(FILES_MAX);
        freshness::mark(project.disk, root, paths)
    }

    /// Returns the paths that the run's commit changes. Asked of git, because another worker may have
    /// made the commit.
    fn touched(&self) -> Vec<String> {
        let work = &self.report.work;
        let (Some(began_at), Some(commit)) = (work.began_at(), &work.commit) else {
            return Vec::new();
        };
        let root = self.performer.project.layout.root();
        let changes = || {
            let repo =
                RepositorySession::open(&self.performer.grants, root, self.handle.cancel()).ok()?;
            let repository = &repo.repository;
            let base = repository.resolve_commit(&began_at).ok()?;
            let commit = repository_session::commit_id(commit).ok()?;
            let all = ["**".to_owned()];
            repository.protected_changes(&base, &commit, &all).ok()
        };
        let changes = changes().unwrap_or_default().into_iter();
        changes
            .filter_map(|change| change.path.into_os_string().into_string().ok())
            .collect()
    }
}
