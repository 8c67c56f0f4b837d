//! A project: the disk, the clock and the paths that every request of one directory needs.
//!
//! Holds no state. Knows which goals and workflows there are by name, and opens none of them.

use std::path::PathBuf;

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::workflow_key::WorkflowKey;
use kapi_machine::file_log::LOCK_WAIT_MS;
use kapi_machine::follow::LogCursor;
use kapi_machine::logged::EventRecord;
use kapi_store::error::StoreError;
use kapi_store::layout::ProjectLayout;
use kapi_store::stream::LogStream;
use kapi_sys::clock::Clock;
use kapi_sys::disk::{Disk, create_dir_durably, replace_durably};
use kapi_sys::lock::Lock;

use crate::record::error::EngineError;
use crate::record::inventory::{goal_ids, workflow_ids};
use crate::record::reference::{ResolveError, find};
use crate::rules::event::GoalEvent;

/// A project directory, seen by one process.
#[derive(Clone)]
pub struct Project<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// The project's paths.
    pub layout: ProjectLayout,
    /// What other processes are told about who holds a lock ("kapi run").
    pub owner: String,
    /// The home of the person whose approvals count; `None` where nobody is asked, in simulations.
    pub home: Option<PathBuf>,
}

impl Project<'_> {
    /// Makes the state directory, which git ignores by a rule of its own; no file of the
    /// person's is touched. Done by [`Project::claim_goal`] too.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn prepare(&self) -> Result<(), EngineError> {
        const RULE: &[u8] = b"*\n";
        let file = self.layout.gitignore();
        let is_there = || -> Result<bool, EngineError> {
            Ok(self.disk.read(&file, 0)?.as_deref() == Some(RULE))
        };
        if is_there()? {
            return Ok(());
        }
        create_dir_durably(self.disk, self.layout.root(), &self.layout.state_dir())?;
        let _held = self.lock()?;
        if !is_there()? {
            replace_durably(self.disk, &file, RULE)?;
        }
        Ok(())
    }

    /// Returns the ids of all goals, sorted by index.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn goal_ids(&self) -> Result<Vec<GoalId>, EngineError> {
        Ok(goal_ids(self.disk, &self.layout)?)
    }

    /// Finds the goal that a person means: `7`, `007`, `fix-login` or `007-fix-login`.
    ///
    /// # Errors
    /// When none or several fit.
    pub fn resolve(&self, reference: &str) -> Result<GoalId, ResolveError> {
        let found = find(reference, &goal_ids(self.disk, &self.layout)?);
        let Err(ResolveError::Unknown { .. }) = found else {
            return found;
        };
        for key in self.workflow_keys()? {
            if find(reference, std::slice::from_ref(&key.id)).is_ok() {
                return Err(ResolveError::Workflow {
                    reference: reference.to_owned(),
                    id: key.id,
                    mode: key.mode,
                });
            }
        }
        found
    }

    /// Returns the names of all workflows, whatever their logs say.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn workflow_keys(&self) -> Result<Vec<WorkflowKey>, StoreError> {
        let mut keys = Vec::new();
        for mode in Mode::ALL {
            let ids = workflow_ids(self.disk, &self.layout, mode, None)?;
            keys.extend(ids.into_iter().map(|id| WorkflowKey { mode, id }));
        }
        Ok(keys)
    }

    /// Returns who drives a goal right now, if anybody does. Asks the real file system.
    ///
    /// # Errors
    /// When the lock cannot be read.
    pub fn driver(&self, goal: &GoalId) -> Result<Option<String>, EngineError> {
        Ok(Lock::holder(&self.layout.goal(goal).drive_lock())?)
    }

    /// Returns the events of a goal that were recorded since `cursor`, and moves it.
    ///
    /// # Errors
    /// When there is no such goal, or its log is damaged.
    pub fn log_since(
        &self,
        goal: &GoalId,
        cursor: &mut LogCursor,
    ) -> Result<Vec<EventRecord<GoalEvent>>, EngineError> {
        let logged = cursor.follow(&self.stream(goal))?;
        logged.ok_or_else(|| EngineError::NotFound { goal: goal.clone() })
    }

    /// Returns every event of a goal.
    ///
    /// # Errors
    /// When there is no such goal, or its log is damaged.
    pub fn log(&self, goal: &GoalId) -> Result<Vec<EventRecord<GoalEvent>>, EngineError> {
        self.log_since(goal, &mut LogCursor::default())
    }

    /// Returns a goal's stream.
    #[must_use]
    pub fn stream(&self, goal: &GoalId) -> LogStream<'_> {
        LogStream {
            disk: self.disk,
            name: goal.to_string(),
            dir: self.layout.goal(goal).dir().to_path_buf(),
            anchor: self.layout.root().to_path_buf(),
        }
    }

    /// Takes the lock of the project, under which indexes are given out and the inventory is written.
    ///
    /// # Errors
    /// When somebody else holds it, or the disk refuses.
    pub fn lock(&self) -> Result<Lock, EngineError> {
        Ok(self
            .disk
            .lock(&self.layout.lock(), &self.owner, LOCK_WAIT_MS)?)
    }
}
