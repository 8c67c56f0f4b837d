//! The file of one goal or workflow among a person's approvals, in their own home.
//!
//! Knows where it is and how it is written; what it says is not known here.

use std::path::{Path, PathBuf};

use kapi_core::id::GoalId;
use kapi_machine::file_log::LOCK_WAIT_MS;
use kapi_store::layout::{HomeLayout, project_key};
use kapi_sys::disk::{DiskError, create_dir_durably, replace_durably};
use kapi_sys::lock::Lock;
use serde::Serialize;

use crate::record::error::EngineError;
use crate::record::json_file::json_file;
use crate::record::project::Project;

/// Where the approvals of one goal or workflow are kept.
pub struct HomeRecord<'a> {
    project: &'a Project<'a>,
    home: &'a Path,
    dir: PathBuf,
    id: GoalId,
}

impl<'a> HomeRecord<'a> {
    /// Returns the file of a goal or workflow; `None` where nobody is asked.
    pub fn of(project: &'a Project<'a>, id: &GoalId) -> Option<Self> {
        Some(Self::in_home(project, id, project.home.as_deref()?))
    }

    pub(crate) fn in_home(project: &'a Project<'a>, id: &GoalId, home: &'a Path) -> Self {
        let all = HomeLayout::new(home).state_dir().join("approvals");
        Self {
            project,
            home,
            dir: all.join(project_key(project.layout.root())),
            id: id.clone(),
        }
    }

    pub(crate) const fn project(&self) -> &'a Project<'a> {
        self.project
    }

    /// Returns the goal that it is about.
    #[must_use]
    pub const fn id(&self) -> &GoalId {
        &self.id
    }

    /// Serialises everybody who approves something in this project.
    pub(crate) fn lock(&self) -> Result<Lock, EngineError> {
        self.prepare()?;
        let (path, owner) = (self.dir.join("lock"), &self.project.owner);
        Ok(self.project.disk.lock(&path, owner, LOCK_WAIT_MS)?)
    }

    /// Makes the directory in which it is written.
    pub fn prepare(&self) -> Result<(), DiskError> {
        create_dir_durably(self.project.disk, self.home, &self.dir)?;
        Ok(())
    }

    /// Returns what is there; `None` where nothing was recorded.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn read(&self) -> Result<Option<Vec<u8>>, DiskError> {
        self.project.disk.read(&self.file(), 0)
    }

    /// Replaces what it says, which errors call `what`.
    pub fn write<R: Serialize>(&self, record: &R, what: &'static str) -> Result<(), EngineError> {
        let bytes = json_file(record, what)?;
        Ok(replace_durably(self.project.disk, &self.file(), &bytes)?)
    }

    fn file(&self) -> PathBuf {
        self.dir.join(format!("{}.json", self.id))
    }
}
