//! Proving a goal's work and its base: the prover, where the goal's things are.
//!
//! Knows what a goal's task says and nothing of how commands are run.

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::hidden;
use kapi_check::perform::prover::{
    ProofClaim, ProofSubject, Prover, ProverSite, UnseenChecks, WorkToProve, strength,
};
use kapi_check::rules::proof::obstacle;
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_git::repository::range::CommitRange;
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;

use crate::perform::agent_run::run_id;
use crate::perform::real::{RealWorld, cancelled};
use crate::rules::effect::{GoalEffect, StrengthWanted, VerifyTask};
use crate::rules::outcome::GoalOutcome;

impl RealWorld<'_> {
    /// Performs a goal's effect.
    pub(crate) fn verify(
        &self,
        effect: &GoalEffect,
        subject: ProofSubject,
        task: &VerifyTask,
        watch: &EffectWatch<'_>,
    ) -> Result<GoalOutcome, Failure> {
        self.settle_hidden(&effect.goal, task)?;
        let report = self.prove(&run_id(effect), subject, task, watch)?;
        Ok(report.map_or_else(cancelled, GoalOutcome::Verified))
    }

    /// Makes sure that the hidden checks of a goal are where they are kept, and as approved.
    fn settle_hidden(&self, goal: &GoalId, task: &VerifyTask) -> Result<(), Failure> {
        let Some(approved) = &task.hidden else {
            return Ok(());
        };
        let old = self.tool_service.project.layout.goal(goal).hidden();
        hidden::verify_kept_or_move(approved, &self.location.hidden, &old)
    }

    /// Runs the commands and returns what they showed; nothing where it was called off.
    pub fn prove(
        &self,
        run_id: &str,
        subject: ProofSubject,
        task: &VerifyTask,
        watch: &EffectWatch<'_>,
    ) -> Result<Option<VerifyReport>, Failure> {
        let repo = RepositorySession::open(&self.grants, &self.location.project, watch.cancel)?;
        let run_dir = RunDir::open(&self.location.runs, run_id)?;
        let range = CommitRange {
            base: repository_session::commit_id(&task.base)?,
            commit: repository_session::commit_id(&task.commit)?,
        };
        let work = WorkToProve::of(&repo.repository, &task.branch, range, &task.protect)?;
        let repository = &repo.repository;
        let dependencies = Dependencies::of_goal(&self.grants, repository, &self.location.scratch)?;
        let prover = Prover {
            grants: &self.grants,
            repo: &repo,
            site: ProverSite {
                project: &self.location.project,
                stores: &self.location.stores,
                scratch: &self.location.scratch,
                hidden: task.hidden.as_ref().map(|approved| UnseenChecks::Kept {
                    approved,
                    at: &self.location.hidden,
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
            ProofSubject::Candidate => {
                let report = prover.prove(&work, &claim)?;
                // The work is not at fault, so no turn is spent on it.
                let killed = report.as_ref().and_then(VerifyReport::killed);
                match killed.and_then(obstacle::of_kill) {
                    Some(obstacle) => Err(obstacle.failure("the work")),
                    None => Ok(report),
                }
            }
            ProofSubject::Base => prover.baseline(&work, &claim),
        }
    }
}
