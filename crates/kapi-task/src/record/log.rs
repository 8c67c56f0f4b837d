//! Where a kernel's events are kept: in the project's own files, or on a cluster that several
//! machines share.
//!
//! The same records, the same fold and the same history in both; only here is it known which. In
//! files one lock makes writers take turns; on a cluster a batch is refused when another came
//! first, and whoever asked decides again.

pub(in crate::record) mod files;
mod fleet;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use kapi_core::task_id::Holder;
use kapi_fleet::error::FleetError;
use kapi_fleet::watch::{News, NewsWatch};
use kapi_goal::record::project::Project;
use kapi_machine::file_log::FileLog;
use kapi_machine::fold::LoadedLog;
use kapi_machine::slots::MachineSlot;
use kapi_store::record::{Batch, LogRecord};
use kapi_sys::lock::Lock;
use serde_json::value::RawValue;

use super::store::KernelStore;
use crate::record::bundles::WorkBundles;
use crate::record::error::KernelError;
use crate::record::history::KernelHistory;
use crate::record::log::fleet::Fleet;

/// How long the leader's lease lasts without a word, in milliseconds: in files it is seen at once
/// when a leader dies, from afar only by time.
pub const LEAD_MS: u64 = 5 * 60_000;
const FLEET_LEAD_MS: u64 = 30_000;

/// A kernel's log, and how far it was read.
pub(super) enum Log<'a> {
    Files(FileLog<'a>),
    Fleet(Box<Fleet>),
}

/// The right to append, for as long as it lives.
pub(super) enum AppendLock {
    /// Nobody else can.
    Alone(Lock),
    /// Anybody can, and one of them wins.
    Shared,
}

/// Makes something of records.
pub(super) type Understand<'a, T> = &'a dyn Fn(&[LogRecord]) -> Result<T, KernelError>;

/// What became of a batch.
pub(super) enum AppendOutcome {
    Accepted(Vec<LogRecord>),
    Conflict,
}

/// A worker's place among the living.
#[derive(Debug)]
pub(super) enum WatcherId {
    /// The system gives it back when the process dies.
    Place(MachineSlot),
    /// Nobody can see from afar whether a process lives: its leases run out.
    Afar,
}

/// Waits until somebody else has recorded something.
pub struct LogWaker(NewsWatch);

impl LogWaker {
    /// Waits, at most this long; tells whether something may have been recorded.
    ///
    /// # Errors
    /// When the store cannot be reached; it may be called again.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, KernelError> {
        Ok(self.0.wait(timeout)? == News::Some)
    }
}

impl<'a> Log<'a> {
    /// Opens it and loads the fold and the records after it.
    pub(super) fn open(
        project: &'a Project<'a>,
        store: &KernelStore,
    ) -> Result<(Self, LoadedLog), KernelError> {
        match store {
            KernelStore::Files => {
                let (log, loaded) = FileLog::load(files::stream(project))?;
                Ok((Self::Files(log), loaded))
            }
            KernelStore::Fleet {
                settings,
                project: name,
            } => {
                let mut fleet = Fleet::open(settings.clone(), name, project.clock)?;
                let loaded = fleet.load()?;
                Ok((Self::Fleet(Box::new(fleet)), loaded))
            }
        }
    }

    /// Loads every record, for a fold that cannot be used.
    pub(super) fn load_all(&mut self) -> Result<LoadedLog, KernelError> {
        match self {
            Self::Files(log) => Ok(log.load_all()?),
            Self::Fleet(fleet) => fleet.load_all(),
        }
    }

    /// Reads what others have recorded since. What is not understood is not passed by: it is read
    /// again the next time, so that nobody decides on a state without it.
    pub(super) fn refresh<T>(&mut self, understand: Understand<'_, T>) -> Result<T, KernelError> {
        match self {
            Self::Files(log) => log.refresh(understand),
            Self::Fleet(fleet) => fleet.refresh(understand),
        }
    }

    /// Takes the right to append. What others recorded is to be read after it.
    pub(super) fn hold(&self, owner: &str) -> Result<AppendLock, KernelError> {
        match self {
            Self::Files(log) => Ok(AppendLock::Alone(log.lock(owner)?)),
            Self::Fleet(_) => Ok(AppendLock::Shared),
        }
    }

    /// Makes what was read durable, before anybody acts on it.
    pub(super) fn settle(&mut self, held: &AppendLock) -> Result<(), KernelError> {
        match (self, held) {
            (Self::Files(log), AppendLock::Alone(lock)) => Ok(log.settle(lock)?),
            // What can be read on a cluster was accepted by most of its servers.
            (Self::Files(_) | Self::Fleet(_), AppendLock::Alone(_) | AppendLock::Shared) => Ok(()),
        }
    }

    /// Appends a batch, unless something was recorded since the log was read.
    pub(super) fn append(
        &mut self,
        held: &AppendLock,
        batch: &Batch<'_>,
    ) -> Result<AppendOutcome, KernelError> {
        match (self, held) {
            (Self::Files(log), AppendLock::Alone(lock)) => {
                Ok(AppendOutcome::Accepted(log.append(lock, batch)?))
            }
            (Self::Fleet(fleet), AppendLock::Alone(_) | AppendLock::Shared) => fleet.append(batch),
            // Without the lock somebody else may have come first.
            (Self::Files(_), AppendLock::Shared) => Ok(AppendOutcome::Conflict),
        }
    }

    /// Replaces the fold with that at the place the log was read to.
    pub(super) fn save(
        &mut self,
        held: &AppendLock,
        state: Box<RawValue>,
    ) -> Result<(), KernelError> {
        match (self, held) {
            (Self::Files(log), AppendLock::Alone(lock)) => Ok(log.save(lock, state)?),
            (Self::Fleet(fleet), AppendLock::Alone(_) | AppendLock::Shared) => fleet.save(state),
            (Self::Files(_), AppendLock::Shared) => Ok(()),
        }
    }

    /// Tells whether a fold that could not be written is no failure of whoever asked: what they
    /// asked for is recorded. A cluster that is away says so at the next request anyway.
    pub(super) const fn is_put_off(&self, error: &KernelError) -> bool {
        matches!((self, error), (Self::Fleet(_), KernelError::Fleet(_)))
    }

    /// Returns the number of the last record that the stored fold knows.
    pub(super) fn saved_seq(&self) -> Result<u64, KernelError> {
        match self {
            Self::Files(log) => Ok(log.stream().saved_seq()?),
            Self::Fleet(fleet) => fleet.saved_seq(),
        }
    }

    /// Returns how long the stored fold is, as far as is known without asking.
    pub(super) fn fold_bytes(&self) -> Result<u64, KernelError> {
        match self {
            Self::Files(log) => files::fold_bytes(log),
            Self::Fleet(fleet) => Ok(fleet.fold_bytes()),
        }
    }

    /// Returns how long the log is, as far as it was read.
    pub(super) const fn length(&self) -> u64 {
        match self {
            Self::Files(log) => log.position().offset,
            Self::Fleet(fleet) => fleet.length(),
        }
    }

    /// Returns what has ended.
    pub(super) fn history(&self) -> KernelHistory<'a> {
        match self {
            Self::Files(log) => files::history(log),
            Self::Fleet(fleet) => fleet.history(),
        }
    }

    /// Takes a place as a worker; the name by which it holds leases.
    pub(super) fn sit(&self, owner: &str) -> Result<(WatcherId, Holder), KernelError> {
        match self {
            Self::Files(log) => {
                let location = files::locations(log, owner).claim()?;
                let holder = files::holder_of(location.number);
                Ok((WatcherId::Place(location), holder))
            }
            Self::Fleet(fleet) => Ok((WatcherId::Afar, fleet.holder(owner))),
        }
    }

    /// Returns those of the holders whose process is known to be gone.
    pub(super) fn gone<'b>(
        &self,
        own: &WatcherId,
        owner: &str,
        holders: impl Iterator<Item = &'b Holder>,
    ) -> Result<BTreeSet<Holder>, KernelError> {
        match (self, own) {
            (Self::Files(log), WatcherId::Place(location)) => {
                files::gone(&files::locations(log, owner), location.number, holders)
            }
            (Self::Files(_) | Self::Fleet(_), WatcherId::Place(_) | WatcherId::Afar) => {
                Ok(BTreeSet::new())
            }
        }
    }

    /// Returns the time that leases are measured by, given that of this machine.
    pub(super) const fn shared_ms(&self, now_ms: i64) -> i64 {
        match self {
            Self::Files(_) => now_ms,
            Self::Fleet(fleet) => fleet.shared_ms(now_ms),
        }
    }

    /// Returns how long the leader's lease lasts without a word, in milliseconds.
    pub(super) const fn lead_ms(&self) -> u64 {
        match self {
            Self::Files(_) => LEAD_MS,
            Self::Fleet(_) => FLEET_LEAD_MS,
        }
    }

    /// Returns what the project is called where several machines share its kernel.
    pub(super) fn shared_name(&self) -> Option<&str> {
        match self {
            Self::Files(_) => None,
            Self::Fleet(fleet) => Some(fleet.project()),
        }
    }

    /// Returns what this machine is called, where several share the log.
    pub(super) fn machine(&self) -> Option<String> {
        match self {
            Self::Files(_) => None,
            Self::Fleet(_) => Some(fleet::machine()),
        }
    }

    /// Returns what travels between the machines; `None` where there is one.
    pub(super) fn bundles(&self) -> Option<WorkBundles> {
        match self {
            Self::Files(_) => None,
            Self::Fleet(fleet) => Some(WorkBundles::of(fleet.objects())),
        }
    }

    /// Returns what waits for others' records; `None` where looking costs nothing.
    pub(super) fn waker(&self) -> Result<Option<LogWaker>, KernelError> {
        match self {
            Self::Files(_) => Ok(None),
            Self::Fleet(fleet) => Ok(Some(LogWaker(fleet.watch()?))),
        }
    }

    /// Returns how errors name it.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::Files(log) => log.file(),
            Self::Fleet(fleet) => PathBuf::from(fleet.name()),
        }
    }

    /// Returns the error of whoever decided again and again and was never first.
    pub(super) fn contended(&self, n_tries: u32) -> KernelError {
        let stream = self.name().display().to_string();
        FleetError::Contended { stream, n_tries }.into()
    }
}
