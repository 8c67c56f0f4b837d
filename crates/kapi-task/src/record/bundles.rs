//! What travels between the machines that share a queue: commits, as bytes under their own ids.
//!
//! Knows no git: whoever sends says which names a parcel builds on, whoever receives has those
//! first. Where a kernel is kept in files there are none.

use kapi_fleet::log::NetLog;
use kapi_fleet::objects::{FleetObjects, ObjectHead};

use super::store::{KernelStore, STREAM};
use crate::record::error::KernelError;

/// The parcels of one project.
#[derive(Clone)]
pub struct WorkBundles(FleetObjects);

/// One parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkBundle {
    /// The names that whoever opens it must have already.
    pub parents: Vec<String>,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl WorkBundles {
    pub(super) const fn of(objects: FleetObjects) -> Self {
        Self(objects)
    }

    /// Opens the parcels of a project; `None` where its kernel is kept in files.
    ///
    /// # Errors
    /// When the store does not answer or refuses.
    pub fn open(store: &KernelStore) -> Result<Option<Self>, KernelError> {
        match store {
            KernelStore::Files => Ok(None),
            KernelStore::Fleet { settings, project } => {
                let log = NetLog::open(settings.clone(), project, STREAM)?;
                Ok(Some(Self(log.objects())))
            }
        }
    }

    /// Returns the names that a parcel builds on; `None` where there is no such parcel.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn parents(&self, name: &str) -> Result<Option<Vec<String>>, KernelError> {
        let head = self.0.head(name)?;
        Ok(head.map(|ObjectHead { parents, .. }| parents))
    }

    /// Returns the names of all parcels.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn names(&self) -> Result<Vec<String>, KernelError> {
        Ok(self.0.names()?)
    }

    /// Sends a parcel; one that is there already under the name stays.
    ///
    /// # Errors
    /// When it is too large, or the store does not answer or refuses.
    pub fn send(&self, name: &str, bundle: &WorkBundle) -> Result<(), KernelError> {
        Ok(self.0.put(name, &bundle.parents, &bundle.bytes)?)
    }

    /// Returns a parcel.
    ///
    /// # Errors
    /// When the store does not answer, or has other bytes than were sent.
    pub fn receive(&self, name: &str) -> Result<Option<WorkBundle>, KernelError> {
        let (Some(parents), Some(bytes)) = (self.parents(name)?, self.0.get(name)?) else {
            return Ok(None);
        };
        Ok(Some(WorkBundle { parents, bytes }))
    }
}
