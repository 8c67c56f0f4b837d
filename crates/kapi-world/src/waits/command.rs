//! Trying a command that is waited for: in the goal's sandbox, on a clean checkout of its work.
//!
//! It has the authority of the agent's runs, the same network, and no door to a model. When it was
//! tried last stands in the run's directory, so neither a restart nor a second looker tries sooner.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kapi_core::goal::outcome::Failure;
use kapi_core::goal::state::Goal;
use kapi_engine::world::Watch;
use kapi_git::checkout::CheckoutPlan;
use kapi_git::owned_dir;
use kapi_sandbox::spec::Access;
use kapi_sys::cancel::Cancel;
use kapi_sys::disk::Disk as _;
use kapi_sys::lock::{Lock, LockError};
use kapi_sys::process::{End, Finished};
use kapi_sys::real_disk::RealDisk;

use super::{Found, found};
use crate::asking::RUN_ID_VARIABLE;
use crate::confine::{Cell, Payload, WorksAt};
use crate::doors::Doors;
use crate::doors::serve::Served;
use crate::real::RealWorld;
use crate::run_dir::RunDir;
use crate::verify::checkout;
use crate::workshop::{self, ShownAt, Workshop};
use crate::{failure, home};

/// The longest that one try may take, in milliseconds.
const TRY_MS_MAX: u64 = 10 * 60 * 1000;

/// One try of a command, if it is time for one.
pub(super) struct Attempt<'a> {
    pub(super) goal: &'a Goal,
    /// The number of the wait.
    pub(super) number: u32,
    pub(super) command: &'a str,
    /// Milliseconds between the beginnings of two tries.
    pub(super) every_ms: u64,
    /// Milliseconds until the deadline.
    pub(super) left_ms: u64,
}

impl Attempt<'_> {
    pub(super) fn look(&self, world: &RealWorld<'_>, cancel: &Cancel) -> Result<Found, Failure> {
        let run_id = format!("{}-wait-{}", self.goal.id, self.number);
        let run_dir = RunDir::open(&world.place.runs, &run_id)?;
        let _alone = match Lock::acquire(&run_dir.file("lock"), "trying what is waited for", 0) {
            Ok(lock) => lock,
            Err(LockError::Busy { .. }) => return Ok(found(false, self.every_ms)),
            Err(error @ LockError::Failed { .. }) => return Err(failure::plain(&error)),
        };
        let now_ms = world.clock.now_ms();
        if let Some(left_ms) = self.left_of_pause(&run_dir, now_ms)? {
            return Ok(found(false, left_ms));
        }
        run_dir.keep("tried", now_ms.to_string().as_bytes())?;
        let finished = self.run(world, (&run_id, &run_dir), cancel)?;
        run_dir.keep(
            "tried.log",
            &[finished.stdout.tail, finished.stderr.tail].concat(),
        )?;
        Ok(found(finished.end == End::Exited(0), self.every_ms))
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

    fn run(
        &self,
        world: &RealWorld<'_>,
        (run_id, run_dir): (&str, &RunDir),
        cancel: &Cancel,
    ) -> Result<Finished, Failure> {
        let (place, contract) = (&world.place, &self.goal.contract);
        let (base, start) = (&contract.base.commit, self.goal.turn_start_commit());
        let workshop = Workshop::open(&world.book, &place.project, cancel)?;
        let workspace = workshop.workspace(place, (&contract.branch, base), start)?;
        let commit = workshop::commit_id(start)?;
        let plan = CheckoutPlan {
            commit: &commit,
            base: &workshop::commit_id(base)?,
            protect: &contract.protect,
            to: &place.scratch.join("wait"),
        };
        checkout(&workshop, &plan)?;
        let view_dir = place.scratch.join("wait-git");
        let shown_at = ShownAt::of(contract.sandbox, plan.to);
        let shown = (shown_at, place.stores.as_path());
        let (git_view, git_env) = workshop.git_view(&view_dir, &workspace, &commit, shown)?;
        let home = home::make_anew(&place.scratch.join("wait-home"))?;
        let cell = Cell {
            name: run_id,
            level: contract.sandbox,
            workspace: plan.to,
            workspace_access: Access::ReadWrite,
            project: Some(workshop.repository.top_level()),
            works_at: WorksAt::Project,
            home: &home,
            git_view: Some(git_view),
            mounts: Vec::new(),
            deadline: Duration::from_millis(TRY_MS_MAX.min(self.left_ms)),
            idle: None,
        };
        let mut env: BTreeMap<OsString, OsString> = git_env.into_iter().collect();
        // What the agent wrote runs here: it has the agent's authority, not the person's.
        env.insert(RUN_ID_VARIABLE.into(), run_id.into());
        let payload = Payload {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), self.command.into()],
            env,
            stdin: Vec::new(),
        };
        let doors = Doors::new(contract.sandbox, contract.network, &world.book.grant)?;
        let notice = |_| {};
        let watch = Watch {
            cancel,
            notice: &notice,
        };
        let served = Served::new(&doors, &watch, run_dir)?;
        let ran = cell.run(&world.book, payload, &served, &mut |_| {})?;
        owned_dir::discard(plan.to).map_err(|error| failure::plain(&error))?;
        owned_dir::discard(&view_dir).map_err(|error| failure::plain(&error))?;
        owned_dir::wipe(&home).map_err(|error| failure::plain(&error))?;
        Ok(ran.finished)
    }
}
