//! Proving a goal's work and its base: the prover, where the goal's things are.
//!
//! Knows what a goal's task says and nothing of how commands are run.

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::hidden;
use kapi_check::perform::prover::{
    HiddenChecks, ProofClaim, ProofSubject, Prover, ProverSite, WorkToProve, strength,
};
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_machine::watch::Watch;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;
use kapi_run::workshop;
use kapi_run::workshop::Workshop;

use crate::perform::agent_run::run_id;
use crate::perform::real::{RealWorld, cancelled};
use crate::rules::effect::{Effect, StrengthWanted, VerifyTask};
use crate::rules::outcome::Outcome;

impl RealWorld<'_> {
    /// Performs a goal's effect.
    pub(crate) fn verify(
        &self,
        effect: &Effect,
        subject: ProofSubject,
        task: &VerifyTask,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        self.settle_hidden(&effect.goal, task)?;
        let report = self.prove(&run_id(effect), subject, task, watch)?;
        Ok(report.map_or_else(cancelled, Outcome::Verified))
    }

    /// Makes sure that the hidden checks of a goal are where they are kept, and as approved.
    fn settle_hidden(&self, goal: &GoalId, task: &VerifyTask) -> Result<(), Failure> {
        let Some(approved) = &task.hidden else {
            return Ok(());
        };
        let old = self.desk.project.layout.goal(goal).hidden();
        hidden::verify_kept_or_move(approved, &self.place.hidden, &old)
    }

    /// Runs the commands and returns what they showed; nothing where it was called off.
    pub fn prove(
        &self,
        run_id: &str,
        subject: ProofSubject,
        task: &VerifyTask,
        watch: &Watch<'_>,
    ) -> Result<Option<VerifyReport>, Failure> {
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let run_dir = RunDir::open(&self.place.runs, run_id)?;
        let commits = (
            workshop::commit_id(&task.base)?,
            workshop::commit_id(&task.commit)?,
        );
        let work = WorkToProve::of(&workshop.repository, &task.branch, commits, &task.protect)?;
        let repository = &workshop.repository;
        let dependencies = Dependencies::of_goal(&self.book, repository, &self.place.scratch)?;
        let prover = Prover {
            book: &self.book,
            workshop: &workshop,
            site: ProverSite {
                project: &self.place.project,
                stores: &self.place.stores,
                scratch: &self.place.scratch,
                hidden: task.hidden.as_ref().map(|approved| HiddenChecks::Kept {
                    approved,
                    at: &self.place.hidden,
                }),
                name: run_id,
                dependencies: &dependencies,
                level: task.sandbox,
                network: task.network,
                downloads: &task.downloads,
            },
            listener: Listener {
                watch,
                run_dir: &run_dir,
            },
        };
        let claim = ProofClaim {
            commands: &task.commands,
            policy: task.policy,
            base_is_green: task.base_is_green,
            strength_ms: match task.strength {
                StrengthWanted::No => None,
                StrengthWanted::Briefly => Some(strength::UNASKED_MS),
                StrengthWanted::Whole => Some(strength::ASKED_MS),
            },
            timeout_ms: task.timeout_ms,
            until_ms: None,
        };
        match subject {
            ProofSubject::Candidate => prover.prove(&work, &claim),
            ProofSubject::Base => prover.baseline(&work, &claim),
        }
    }
}
