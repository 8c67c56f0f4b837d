//! One match from effect to the tools that perform it.
//!
//! Each arm is safe to repeat under the same effect id: what was half done is finished or done
//! again from the same start.

use std::thread;
use std::time::Duration;

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::judge::host_model::HostModels;
use kapi_check::perform::prover::ProofSubject;
use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_git::author::Author;
use kapi_git::candidate::{Candidate, CandidatePlan};
use kapi_git::id::CommitId;
use kapi_git::own_commits::{OwnCommit, OwnCommitsPlan};
use kapi_git::owned_dir;
use kapi_git::workspace::{GitWorkspace, WorkspaceOrigin};
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::goal_paths::GoalPaths;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_run::spending::Spending;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::{failure, repository_session};
use kapi_spend::rules::account::ModelRole;
use kapi_sys::clock::Clock;

use crate::perform::tools::ToolService;
use crate::perform::turn_spending::within_caps;
use crate::record::world::World;
use crate::rules::effect::{AgentPurpose, CommitTask, GoalAction, GoalEffect};
use crate::rules::outcome::{GoalCandidate, GoalOutcome};

/// How often a wait looks at the clock and the cancel flag.
const WAIT_STEP: Duration = Duration::from_millis(50);
/// How many left-out paths are recorded.
const LEFT_OUT_MAX: usize = 20;

/// The world of one goal: the person's machine.
pub struct RealWorld<'a> {
    /// Where the goal's things are.
    pub location: GoalPaths,
    /// What may be used.
    pub grants: HostGrants,
    /// The time.
    pub clock: &'a dyn Clock,
    /// What its agent's tools need on this side.
    pub tool_service: ToolService<'a>,
    /// Where its turns are booked, and what they may cost.
    pub spending: Spending<'a>,
}

impl World for RealWorld<'_> {
    fn perform(&self, effect: &GoalEffect, watch: &EffectWatch<'_>) -> GoalOutcome {
        self.perform_beside(effect, None, watch)
    }
}

impl RealWorld<'_> {
    /// Performs an effect beside the host of a session, whose models may judge.
    pub(crate) fn perform_beside(
        &self,
        effect: &GoalEffect,
        host: Option<HostModels<'_>>,
        watch: &EffectWatch<'_>,
    ) -> GoalOutcome {
        match turn_of(effect, &self.grants) {
            None => self.act(effect, host, watch),
            Some(turn) => within_caps(&self.spending, &turn, watch, |watch| {
                self.act(effect, host, watch)
            }),
        }
    }

    fn act(
        &self,
        effect: &GoalEffect,
        host: Option<HostModels<'_>>,
        watch: &EffectWatch<'_>,
    ) -> GoalOutcome {
        let result = match &effect.action {
            GoalAction::CreateWorkspace {
                branch,
                base,
                start,
            } => self.create_workspace(branch, base, start, watch),
            GoalAction::RunAgent(task) => match task.purpose {
                AgentPurpose::Work => self.run_agent(effect, task, watch),
                AgentPurpose::Setup | AgentPurpose::Distill => self.run_beside(effect, task, watch),
            },
            GoalAction::Commit(task) => self.commit(task, watch),
            GoalAction::Baseline(task) => self.verify(effect, ProofSubject::Base, task, watch),
            GoalAction::Verify(task) => self.verify(effect, ProofSubject::Candidate, task, watch),
            GoalAction::Judge(task) => self.judge(effect, task, host, watch),
            GoalAction::Publish {
                branch,
                base,
                commit,
            } => self.publish(branch, base, commit, watch),
            GoalAction::Wait { until_ms } => Ok(self.wait(*until_ms, watch)),
        };
        match result {
            Ok(outcome) => outcome,
            Err(_) if watch.cancel.is_raised() => cancelled(),
            Err(failure) => GoalOutcome::Failed(failure),
        }
    }

    fn create_workspace(
        &self,
        branch: &str,
        base: &str,
        start: &str,
        watch: &EffectWatch<'_>,
    ) -> Result<GoalOutcome, Failure> {
        let repo = RepositorySession::open(&self.grants, &self.location.project, watch.cancel)?;
        let workspace = repo.workspace(&self.location, branch, base, start)?;
        let commit = repository_session::commit_id(base)?;
        let absent = repo.repository.absent_submodules(&commit);
        for path in absent.map_err(|error| failure::plain(&error))? {
            let text = format!(
                "the submodule {} is empty for checks: run `git submodule update --init` in \
                 your checkout",
                path.display()
            );
            (watch.notice)(Activity::Note { text });
        }
        Dependencies::fix(&self.grants, &repo.repository, &self.location.scratch)?;
        Ok(GoalOutcome::Workspace {
            path: workspace.path.display().to_string(),
        })
    }

    fn commit(&self, task: &CommitTask, watch: &EffectWatch<'_>) -> Result<GoalOutcome, Failure> {
        let repo = RepositorySession::open(&self.grants, &self.location.project, watch.cancel)?;
        let workspace =
            repo.workspace(&self.location, &task.branch, &task.base, &task.start_commit)?;
        if workspace.origin != WorkspaceOrigin::Adopted {
            return Err(Failure {
                message: format!(
                    "record the work of turn {}: its worktree was gone",
                    task.turn
                ),
                hint: Some(
                    "it was created again at the start of the turn; resume to \
                    continue."
                        .to_owned(),
                ),
            });
        }
        let author = repository_session::person(&repo.repository, &self.grants);
        let plan = candidate_plan(task, author)?;
        let own = self.own_commits(&repo, &workspace, task, watch);
        let found = repo
            .repository
            .commit_candidate_after(&workspace, &plan, &own)
            .map_err(|error| failure::plain(&error))?;
        repository_session::tell_left_out(&found, &mut |text| {
            (watch.notice)(Activity::Note { text });
        });
        Ok(GoalOutcome::Committed(work_so_far(&found, &task.base)))
    }

    /// Returns the commits that the agent made by itself, where they are to be kept; none where they
    /// cannot be taken, because its files are what counts.
    fn own_commits(
        &self,
        repo: &RepositorySession,
        workspace: &GitWorkspace,
        task: &CommitTask,
        watch: &EffectWatch<'_>,
    ) -> Vec<OwnCommit> {
        if !task.keep_commits {
            return Vec::new();
        }
        let plan = OwnCommitsPlan {
            view: &self.location.scratch.join("agent-git"),
            scratch: &self.location.scratch.join("own-commits"),
            base: &workspace.base,
        };
        repo.own_commits(&plan, &mut |text| {
            (watch.notice)(Activity::Note { text });
        })
    }

    fn publish(
        &self,
        branch: &str,
        base: &str,
        commit: &str,
        watch: &EffectWatch<'_>,
    ) -> Result<GoalOutcome, Failure> {
        let repo = RepositorySession::open(&self.grants, &self.location.project, watch.cancel)?;
        // The branch is at `base`: where the goal began, or at the result that was not accepted.
        let goal = repository_session::ref_part(&self.location.ref_name)?;
        let first = repo
            .repository
            .recorded_base(&goal)
            .map_err(|error| failure::plain(&error))?;
        let first = first.as_ref().map_or(base, CommitId::as_str);
        let workspace = repo.workspace(&self.location, branch, first, commit)?;
        let (from, to) = (
            repository_session::commit_id(base)?,
            repository_session::commit_id(commit)?,
        );
        repo.repository
            .publish_from(&workspace, &from, &to)
            .map_err(|error| failure::plain(&error))?;
        workspace
            .free_branch(&repo.repository, &to)
            .map_err(|error| failure::plain(&error))?;
        self.clear_scratch();
        Ok(GoalOutcome::Published {
            commit: commit.to_owned(),
        })
    }

    /// Removes throw-away directories; the agent's home stays, it holds the session.
    fn clear_scratch(&self) {
        let scratch = &self.location.scratch;
        // What cannot be removed is only space; the next run wipes it.
        for name in ["verify", "verify-git", "agent-git", "own-commits"] {
            drop(owned_dir::discard(&scratch.join(name)));
        }
        for name in [
            "verify-home",
            "judge",
            "beside",
            "wait",
            "ignored",
            "dependencies",
            "verify-dependencies",
        ] {
            drop(owned_dir::wipe(&scratch.join(name)));
        }
    }

    fn wait(&self, until_ms: i64, watch: &EffectWatch<'_>) -> GoalOutcome {
        while self.clock.now_ms() < until_ms {
            if watch.cancel.is_raised() {
                return cancelled();
            }
            thread::sleep(WAIT_STEP);
        }
        GoalOutcome::Waited
    }
}

/// Returns the plan of a turn's commit.
pub(crate) fn candidate_plan(task: &CommitTask, author: Author) -> Result<CandidatePlan, Failure> {
    Ok(CandidatePlan {
        name: repository_session::ref_part(&format!("turn-{}", task.turn))?,
        message: task.message.clone(),
        author,
        at_unix_seconds: task.at_s,
    })
}

/// Returns the work so far that a commit of it found; one that changed nothing leaves the base itself.
pub(crate) fn work_so_far(found: &Candidate, base: &str) -> GoalCandidate {
    let left_out = found.refused.iter().take(LEFT_OUT_MAX);
    GoalCandidate {
        commit: if found.changed.is_empty() {
            base.to_owned()
        } else {
            found.commit.to_string()
        },
        tree: found.tree.to_string(),
        files_changed: u32::try_from(found.changed.len()).unwrap_or(u32::MAX),
        left_out: left_out
            .map(|refused| format!("{}: {}", refused.path.display(), refused.why))
            .collect(),
    }
}

/// Returns the outcome of an effect that was stopped and used nothing.
pub(crate) fn cancelled() -> GoalOutcome {
    GoalOutcome::Cancelled {
        usage: Usage::default(),
        session: None,
    }
}

/// Returns the turn that an effect is booked as; nothing where it asks no model.
fn turn_of(effect: &GoalEffect, grants: &HostGrants) -> Option<BookedTurn> {
    let (reference, role) = match &effect.action {
        GoalAction::RunAgent(task) => (&task.agent, ModelRole::Executor),
        GoalAction::Judge(task) => (&task.agent, ModelRole::Judge),
        GoalAction::CreateWorkspace { .. }
        | GoalAction::Commit(_)
        | GoalAction::Baseline(_)
        | GoalAction::Verify(_)
        | GoalAction::Publish { .. }
        | GoalAction::Wait { .. } => return None,
    };
    let key = TurnKey {
        goal: effect.goal.to_string(),
        effect: effect.id.to_string(),
    };
    BookedTurn::of_reference(key, reference, role, grants)
}
