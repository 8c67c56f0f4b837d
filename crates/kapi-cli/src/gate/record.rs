//! Which goal the stop gate of a checkout holds to, in the person's home: nothing that a repository brings
//! can open it.
//!
//! One small file, replaced durably under a lock; where the goal stands is in its log.

use std::path::{Path, PathBuf};

use kapi_core::failure::chain;
use kapi_core::id::GoalId;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_store::layout::{HomeLayout, project_key};
use kapi_sys::disk::{Disk as _, replace_durably};
use kapi_sys::lock::Lock;
use serde::{Deserialize, Serialize};

use crate::commands::rpc::attached::AttachedGoal;
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// The name of the gate's file and of the lock beside it.
const FILE: &str = "gate.json";
const LOCK: &str = "gate.lock";
/// How long another process's change is waited for, in milliseconds.
const LOCK_WAIT_MS: u64 = 10_000;

/// What other processes are told about who holds a lock.
pub(super) const OWNER: &str = "kapi gate";

/// What is kept of a gate.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GateRecord {
    /// The goal it holds to.
    goal: String,
}

/// A checkout, with its gate or without.
pub(crate) struct GatedCheckout<'a> {
    context: &'a Context,
    /// The top level of the repository.
    pub(crate) root: PathBuf,
    /// A directory of Kapi's own for it.
    pub(crate) dir: PathBuf,
}

impl<'a> GatedCheckout<'a> {
    /// Finds the checkout of the working directory.
    pub(crate) fn find(context: &'a Context) -> Result<Self, Error> {
        let grants = context.grants(&Config::unconfigured());
        let survey = RepositorySurvey::of(&grants, &context.cwd);
        let root = survey.map_err(|failure| Error::world(&failure))?.root();
        Ok(Self::at(context, root))
    }

    fn at(context: &'a Context, root: PathBuf) -> Self {
        let layout = HomeLayout::new(&context.home);
        let dir = layout.state_dir().join("gates").join(project_key(&root));
        Self { context, root, dir }
    }

    /// Finds the checkout at or above a directory that has a gate; `None` where there is none.
    ///
    /// Asks no git: a hook runs at every step of a session, also where nobody uses Kapi.
    pub(crate) fn with_gate(context: &'a Context, cwd: &Path) -> Option<Self> {
        let real = std::fs::canonicalize(cwd).ok()?;
        let mut checkouts = real
            .ancestors()
            .map(|dir| Self::at(context, dir.to_path_buf()));
        checkouts.find(|checkout| checkout.dir.join(FILE).exists())
    }

    /// Returns the goal of the gate, if there is one.
    pub(crate) fn goal(&self) -> Result<Option<AttachedGoal<'a>>, Error> {
        let path = self.dir.join(FILE);
        let bytes = self.context.disk.read(&path, 0);
        let Some(bytes) = bytes.map_err(|error| Error::failed(&error))? else {
            return Ok(None);
        };
        let unreadable = |error: &dyn std::fmt::Display| {
            Error::usage(format!("{}: {error}", path.display()))
                .with_hint("remove the gate with `kapi gate off`, then set it again.")
        };
        let record: GateRecord =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
        let id = GoalId::parse(&record.goal).map_err(|error| unreadable(&error))?;
        let project = self.context.project(&self.root, OWNER);
        AttachedGoal::of(self.context, project, id).map(Some)
    }

    /// Returns the goal of the gate, or says how to set one.
    pub(crate) fn require(&self) -> Result<AttachedGoal<'a>, Error> {
        self.goal()?.ok_or_else(|| {
            Error::new(Exit::NotFound, "this checkout has no stop gate")
                .with_hint("set one with `kapi gate set \"<task>\" --verify \"<command>\"`.")
        })
    }

    /// Has the gate hold to another goal; to none, there is no gate.
    pub(crate) fn point_at(&self, goal: Option<&GoalId>) -> Result<(), Error> {
        let _held = self.lock()?;
        let path = self.dir.join(FILE);
        let Some(goal) = goal else {
            return remove(&path);
        };
        let record = GateRecord {
            goal: goal.to_string(),
        };
        let mut bytes = serde_json::to_vec_pretty(&record)
            .map_err(|error| Error::usage(format!("the gate cannot be kept: {error}")))?;
        bytes.push(b'\n');
        replace_durably(&self.context.disk, &path, &bytes).map_err(|error| Error::failed(&error))
    }

    fn lock(&self) -> Result<Lock, Error> {
        let disk = &self.context.disk;
        let made = disk.create_dir(&self.dir);
        made.map_err(|error| Error::failed(&error))?;
        let lock = disk.lock(&self.dir.join(LOCK), OWNER, LOCK_WAIT_MS);
        lock.map_err(|error| Error::new(Exit::Busy, chain(&error)))
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::new(
            Exit::Failed,
            format!("failed to remove {}: {error}", path.display()),
        )),
    }
}
