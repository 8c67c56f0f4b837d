//! Proving a goal's work and its base: the prover, where the goal's things are.
//!
//! Knows what a goal's task says and nothing of how commands are run.

use kapi_core::goal::effect::VerifyTask;
use kapi_core::goal::outcome::{Failure, Outcome, VerifyReport};
use kapi_engine::world::Watch;

use crate::prover::{Claim, Prover, Site, Work};
use crate::real::{RealWorld, cancelled};
use crate::run_dir::RunDir;
use crate::shell::Listener;
use crate::workshop::{self, Workshop};

/// What a goal's commands are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The work of a turn.
    Candidate,
    /// What it began with.
    Base,
}

impl RealWorld<'_> {
    /// Runs a goal's commands under the name of a run.
    pub(crate) fn verify(
        &self,
        run_id: &str,
        subject: Subject,
        task: &VerifyTask,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let report = self.prove(run_id, subject, task, watch)?;
        Ok(report.map_or_else(cancelled, Outcome::Verified))
    }

    /// Does the same and returns what it showed; nothing where it was called off.
    pub(crate) fn prove(
        &self,
        run_id: &str,
        subject: Subject,
        task: &VerifyTask,
        watch: &Watch<'_>,
    ) -> Result<Option<VerifyReport>, Failure> {
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let run_dir = RunDir::open(&self.place.runs, run_id)?;
        let commits = (
            workshop::commit_id(&task.base)?,
            workshop::commit_id(&task.commit)?,
        );
        let work = Work::of(&workshop.repository, &task.branch, commits, &task.protect)?;
        let prover = Prover {
            book: &self.book,
            workshop: &workshop,
            site: Site {
                project: &self.place.project,
                stores: &self.place.stores,
                scratch: &self.place.scratch,
                hidden: task.hidden.then_some(self.place.hidden.as_path()),
                name: run_id,
                level: task.sandbox,
                network: task.network,
            },
            listener: Listener {
                watch,
                run_dir: &run_dir,
            },
        };
        let claim = Claim {
            commands: &task.commands,
            policy: task.policy,
            timeout_ms: task.timeout_ms,
        };
        match subject {
            Subject::Candidate => prover.prove(&work, &claim),
            Subject::Base => prover.baseline(&work, &claim),
        }
    }
}
