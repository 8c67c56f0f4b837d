//! The gate of a checkout, in the person's home: nothing that a repository brings can open it.
//!
//! One small file, replaced durably under a lock; the checks run outside of the lock.

use std::path::{Path, PathBuf};

use kapi_check::rules::stop_gate::StopGate;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_store::layout::{HomeLayout, project_key};
use kapi_sys::disk::{Disk as _, replace_durably};
use kapi_sys::lock::Lock;

use crate::config::Config;
use crate::context::Context;
use crate::error::{Error, chain};
use crate::exit_code::Exit;

/// The name of the gate's file and of the lock beside it.
const FILE: &str = "gate.json";
const LOCK: &str = "gate.lock";
/// How long another process's change is waited for, in milliseconds.
const LOCK_WAIT_MS: u64 = 10_000;

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

    /// Returns the gate.
    pub(crate) fn load(&self) -> Result<Option<StopGate>, Error> {
        let path = self.dir.join(FILE);
        let bytes = self.context.disk.read(&path, 0);
        let Some(bytes) = bytes.map_err(|error| Error::failed(&error))? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            Error::usage(format!("{}: {error}", path.display()))
                .with_hint("remove the file; then set the gate anew.")
        })
    }

    /// Returns the gate, or says how to set one.
    pub(crate) fn require(&self) -> Result<StopGate, Error> {
        self.load()?.ok_or_else(|| {
            Error::new(Exit::NotFound, "this checkout has no stop gate")
                .with_hint("set one with `kapi gate set \"<task>\" --verify \"<command>\"`.")
        })
    }

    /// Changes the gate as it is now, and returns what it became with what the change says.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(Option<StopGate>) -> Result<(Option<StopGate>, T), Error>,
    ) -> Result<T, Error> {
        let _held = self.lock()?;
        let (after, said) = change(self.load()?)?;
        self.keep(after.as_ref())?;
        Ok(said)
    }

    /// Puts a gate in place of whatever is there, readable or not; `None` takes it away.
    pub(crate) fn replace(&self, gate: Option<&StopGate>) -> Result<(), Error> {
        let _held = self.lock()?;
        self.keep(gate)
    }

    fn lock(&self) -> Result<Lock, Error> {
        let disk = &self.context.disk;
        let made = disk.create_dir(&self.dir);
        made.map_err(|error| Error::failed(&error))?;
        let lock = disk.lock(&self.dir.join(LOCK), "kapi gate", LOCK_WAIT_MS);
        lock.map_err(|error| Error::new(Exit::Busy, chain(&error)))
    }

    fn keep(&self, gate: Option<&StopGate>) -> Result<(), Error> {
        let path = self.dir.join(FILE);
        let Some(gate) = gate else {
            return remove(&path);
        };
        let mut bytes = serde_json::to_vec_pretty(gate)
            .map_err(|error| Error::usage(format!("the gate cannot be kept: {error}")))?;
        bytes.push(b'\n');
        replace_durably(&self.context.disk, &path, &bytes).map_err(|error| Error::failed(&error))
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
