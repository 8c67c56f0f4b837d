//! Trying a command that is waited for: in the goal's sandbox, on a clean checkout of its work.
//!
//! It has the authority of the agent's runs, the same network, and no way to a model. When it was
//! tried last stands in the run's directory, so neither a restart nor a second looker tries sooner.

use std::fs;

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::prover::checkout::LineResult;
use kapi_check::perform::prover::{Prover, ProverSite, WorkToProve};
use kapi_check::rules::proof::downloads::Downloads;
use kapi_core::failure::Failure;
use kapi_git::owned_dir;
use kapi_git::repository::range::CommitRange;
use kapi_machine::watch::{EffectWatch, unlimited};
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;
use kapi_run::{failure, repository_session};
use kapi_sys::cancel::Cancel;
use kapi_sys::disk::Disk as _;
use kapi_sys::lock::{Lock, LockError};
use kapi_sys::real_disk::RealDisk;

use super::{ConditionState, found};
use crate::perform::real::RealWorld;
use crate::rules::state::Goal;

/// The longest that one try may take, in milliseconds.
const TRY_MS_MAX: u64 = 10 * 60 * 1000;

/// One try of a command, if it is time for one.
pub(super) struct CommandTry<'a> {
    pub(super) goal: &'a Goal,
    /// The number of the wait.
    pub(super) number: u32,
    pub(super) command: &'a str,
    /// Milliseconds between the beginnings of two tries.
    pub(super) every_ms: u64,
    /// Milliseconds until the deadline.
    pub(super) left_ms: u64,
}

impl CommandTry<'_> {
    pub(super) fn look(
        &self,
        world: &RealWorld<'_>,
        cancel: &Cancel,
    ) -> Result<ConditionState, Failure> {
        let run_id = format!("{}-wait-{}", self.goal.id, self.number);
        let run_dir = RunDir::open(&world.location.runs, &run_id)?;
        let _alone = match Lock::acquire(&run_dir.file("lock"), "running the wait command", 0) {
            Ok(lock) => lock,
            Err(LockError::Busy { .. }) => return Ok(found(false, self.every_ms)),
            Err(error @ LockError::Failed { .. }) => return Err(failure::plain(&error)),
        };
        let now_ms = world.clock.now_ms();
        if let Some(left_ms) = self.left_of_pause(&run_dir, now_ms)? {
            return Ok(found(false, left_ms));
        }
        run_dir.keep("tried", now_ms.to_string().as_bytes())?;
        let Some(ended) = self.run(world, &run_id, &run_dir, cancel)? else {
            return Ok(found(false, self.every_ms));
        };
        run_dir.keep("tried.log", ended.output.as_bytes())?;
        Ok(found(ended.run.passed(), self.every_ms))
    }

    /// Returns how long it is too soon for another try; a last try that lies ahead is of another
    /// clock, and none.
    fn left_of_pause(&self, run_dir: &RunDir, now_ms: i64) -> Result<Option<u64>, Failure> {
        let kept = RealDisk
            .read(&run_dir.file("tried"), 0)
            .map_err(|error| failure::plain(&error))?;
        let tried_ms = kept.and_then(|bytes| String::from_utf8(bytes).ok()?.parse::<i64>().ok());
        let passed_ms = tried_ms.and_then(|tried_ms| u64::try_from(now_ms - tried_ms).ok());
        Ok(passed_ms
            .map(|passed_ms| self.every_ms.saturating_sub(passed_ms))
            .filter(|left_ms| *left_ms > 0))
    }

    /// Runs the command on a clean checkout; nothing where it was called off.
    fn run(
        &self,
        world: &RealWorld<'_>,
        run_id: &str,
        run_dir: &RunDir,
        cancel: &Cancel,
    ) -> Result<Option<LineResult>, Failure> {
        let (location, contract) = (&world.location, &self.goal.contract);
        let repo = RepositorySession::open(&world.grants, &location.project, cancel)?;
        let range = CommitRange {
            base: repository_session::commit_id(&contract.base.commit)?,
            commit: repository_session::commit_id(self.goal.turn_start_commit())?,
        };
        let repository = &repo.repository;
        let work = WorkToProve::of(repository, &contract.branch, range, &contract.protect)?;
        let notice = |_| {};
        let watch = EffectWatch {
            cancel,
            notice: &notice,
            room: &unlimited,
        };
        let scratch = location.scratch.join("wait");
        fs::create_dir_all(&scratch).map_err(|error| failure::file("create", &scratch, &error))?;
        let dependencies = Dependencies::of_goal(&world.grants, repository, &location.scratch)?;
        let prover = Prover {
            grants: &world.grants,
            repo: &repo,
            site: ProverSite {
                project: &location.project,
                stores: &location.stores,
                scratch: &scratch,
                hidden: None,
                name: run_id,
                dependencies: &dependencies,
                level: contract.sandbox,
                network: contract.network,
                downloads: &Downloads::within(contract.network),
            },
            listener: Listener {
                watch: &watch,
                run_dir,
            },
        };
        let ended = prover.run_once(&work, self.command, TRY_MS_MAX.min(self.left_ms));
        owned_dir::wipe(&scratch).map_err(|error| failure::plain(&error))?;
        ended
    }
}
