//! The end of a launch: what comes after its agent. Its work is committed and pushed, or listed, and
//! what came of it is put on record.
//!
//! May be done again where it was cut off. Does not know whether an agent has just run.

use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_status::perform::writer::StatusWriter;
use kapi_status::rules::phase::StatusPhase;

use super::context::{LaunchHandlers, reported, say};
use super::error::LaunchError;
use super::event::LaunchEvent;
use super::finish::{self, LaunchCommit, SandboxWork};
use super::kept::{changes, commit_time_ms, list, published, take};
use super::plan::{LaunchPlan, Push};
use super::prepare::ReadyWorkspace;
use super::result::{LaunchResult, OURS_FAILED};
use super::{log, progress};

/// A launch whose agent has ended.
#[derive(Clone, Copy)]
pub(crate) struct LaunchEnding<'a> {
    /// What may be used of the host.
    pub(crate) grants: &'a HostGrants,
    /// What was asked for.
    pub(crate) plan: &'a LaunchPlan,
    /// The time, and who is told.
    pub(crate) stage: &'a LaunchHandlers<'a>,
    /// Its status file.
    pub(crate) writer: &'a StatusWriter<'a>,
    /// The repository, if the project is one.
    pub(crate) repo: Option<&'a RepositorySession>,
    /// Whether its launcher was killed on the way, so that some of it may be done already.
    pub(crate) is_again: bool,
}

impl LaunchEnding<'_> {
    /// Commits and pushes, or lists what an overlay holds.
    pub(crate) fn keep(
        &self,
        ready: &ReadyWorkspace,
        launched: &mut LaunchResult,
    ) -> Result<(), LaunchError> {
        progress::forget(&ready.written)?;
        let (Some(repo), Some(_)) = (self.repo, &launched.record.branch) else {
            return match &ready.layer {
                Some(layer) => list(layer, &ready.lower, launched),
                None => Ok(()),
            };
        };
        reported(self.writer, StatusPhase::Committing, 92, "Committing")?;
        self.commit(repo, ready, launched)?;
        self.push(repo, launched)
    }

    /// Commits the work, once more where that fails: a git process that somebody kills is no reason to
    /// give up work that is paid for.
    fn commit(
        &self,
        repo: &RepositorySession,
        ready: &ReadyWorkspace,
        launched: &mut LaunchResult,
    ) -> Result<(), LaunchError> {
        let made = self.made(repo, ready, launched, self.is_again);
        let made = made.or_else(|error| {
            let text = format!("failed to {}; the commit is made again", error.message);
            say(self.stage, &text);
            self.made(repo, ready, launched, true)
        })?;
        for note in &made.notes {
            say(self.stage, note);
        }
        launched.changed = made.changed;
        launched.left_out = made.left_out;
        take(launched, made.commit.map(|commit| commit.to_string()));
        match (made.landed, &mut launched.record.branch) {
            (Some((landed, error)), Some(branch)) => {
                branch.landed = Some(landed);
                Err(error)
            }
            (_, _) => Ok(()),
        }
    }

    /// Makes the commit of the work, or finds it where some of it may be done already.
    fn made(
        &self,
        repo: &RepositorySession,
        ready: &ReadyWorkspace,
        launched: &LaunchResult,
        is_again: bool,
    ) -> Result<LaunchCommit, LaunchError> {
        let record = &launched.record;
        if let (true, Some(branch), Some(commit)) =
            (is_again, &record.branch, published(record, repo))
        {
            return Ok(LaunchCommit {
                changed: changes(&repo.repository, &branch.start, &commit)?,
                commit: Some(repository_session::commit_id(&commit)?),
                ..LaunchCommit::default()
            });
        }
        let now_ms = self.stage.clock.now_ms();
        let at_ms = match is_again {
            true => commit_time_ms(repo, record, now_ms),
            false => now_ms,
        };
        let work = SandboxWork {
            repo,
            ready,
            record,
        };
        let (plan, location) = (self.plan, &self.plan.location);
        work.commit(self.grants, location, &plan.commit_message, at_ms)
    }

    fn push(
        &self,
        repo: &RepositorySession,
        launched: &mut LaunchResult,
    ) -> Result<(), LaunchError> {
        let Self { plan, stage, .. } = *self;
        let Some(branch) = &launched.record.branch else {
            return Ok(());
        };
        match branch.push {
            Push::No => return Ok(()),
            Push::Yes if launched.agent_exit_code != 0 => {
                say(
                    stage,
                    &format!(
                        "Not pushed, because the agent did not end well; push it with `git push {} \
                         {}:{}`.",
                        branch.remote, branch.name, branch.remote_name
                    ),
                );
                return Ok(());
            }
            Push::Yes | Push::Always => {}
        }
        if branch.commit.is_none() && branch.local.is_none() {
            say(stage, "Nothing was changed, so nothing was pushed.");
            return Ok(());
        }
        // On record before a remote is asked: what follows can take a minute.
        let committed = LaunchEvent::Committed {
            sandbox: Box::new(launched.record.clone()),
        };
        log::at(&plan.location).record(stage.clock.now_ms(), &[committed])?;
        reported(self.writer, StatusPhase::Pushing, 97, "Pushing")?;
        let Some(branch) = &mut launched.record.branch else {
            return Ok(());
        };
        let pushed = finish::push(self.grants, repo, branch)?;
        branch.pushed = Some(pushed.commit);
        branch.pr_url = pushed.pr_url.or(branch.pr_url.take());
        Ok(())
    }

    /// Puts on record how the launch has ended, given what came of its work.
    pub(crate) fn end(
        &self,
        mut launched: LaunchResult,
        kept: Result<(), LaunchError>,
    ) -> Result<LaunchResult, LaunchError> {
        if let Err(error) = kept {
            if launched.exit_code == 0 {
                launched.exit_code = OURS_FAILED;
            }
            launched.error = Some(error);
        }
        let class = launched.class();
        let record = &mut launched.record;
        record.exit_code = Some(launched.exit_code);
        record.error = launched.error.as_ref().map(|error| error.message.clone());
        record.error_class = class;
        record.advice = launched.error.as_ref().and_then(|error| error.hint.clone());
        record.n_changed = launched.changed.len();
        let now_ms = self.stage.clock.now_ms();
        let log = log::at(&self.plan.location);
        launched.record = log.end(record.clone(), launched.usage, now_ms)?;
        Ok(launched)
    }
}
