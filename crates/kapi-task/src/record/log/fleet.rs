//! A kernel's log on a cluster: no lock, a batch is accepted in its place or not at all.
//!
//! Leases end by time alone here, so the time is the cluster's: machines' own clocks differ.

use kapi_core::task_id::Holder;
use kapi_fleet::client::FleetSettings;
use kapi_fleet::log::{self, FleetCursor, NetLog};
use kapi_fleet::objects::FleetObjects;
use kapi_fleet::watch::NewsWatch;
use kapi_machine::fold::LoadedLog;
use kapi_store::record::Batch;
use kapi_sys::clock::Clock;
use rustix::system::uname;
use serde_json::value::RawValue;

use crate::record::error::KernelError;
use crate::record::history::KernelHistory;
use crate::record::log::{AppendOutcome, Understand};
use crate::record::store::STREAM;

/// The log, and how far it was read.
pub(in crate::record) struct Fleet {
    log: NetLog,
    /// What the project is called there.
    project: String,
    cursor: FleetCursor,
    /// How long the fold was when this process met it last.
    fold_bytes: u64,
    /// What the cluster's clock is ahead of this machine's.
    offset_ms: i64,
}

impl Fleet {
    pub(super) fn open(
        settings: FleetSettings,
        project: &str,
        clock: &dyn Clock,
    ) -> Result<Self, KernelError> {
        let log = NetLog::open(settings, project, STREAM)?;
        Ok(Self {
            offset_ms: log.clock_offset_ms(clock)?,
            log,
            project: project.to_owned(),
            cursor: FleetCursor::start(),
            fold_bytes: 0,
        })
    }

    pub(super) fn load(&mut self) -> Result<LoadedLog, KernelError> {
        let loaded = self.log.load()?;
        self.cursor = loaded.cursor;
        self.fold_bytes = loaded.state.as_deref().map_or(0, length_of);
        Ok(LoadedLog {
            state: loaded.state,
            records: loaded.records,
        })
    }

    pub(super) fn load_all(&mut self) -> Result<LoadedLog, KernelError> {
        let loaded = self.log.load_all()?;
        self.cursor = loaded.cursor;
        Ok(LoadedLog {
            state: None,
            records: loaded.records,
        })
    }

    pub(super) fn refresh<T>(&mut self, understand: Understand<'_, T>) -> Result<T, KernelError> {
        let mut cursor = self.cursor.clone();
        let records = self.log.read_more(&mut cursor)?;
        let understood = understand(&records)?;
        self.cursor = cursor;
        Ok(understood)
    }

    pub(super) fn append(&mut self, batch: &Batch<'_>) -> Result<AppendOutcome, KernelError> {
        Ok(match self.log.append(&mut self.cursor, batch)? {
            log::BatchOutcome::Accepted(records) => AppendOutcome::Accepted(records),
            log::BatchOutcome::Conflict => AppendOutcome::Conflict,
        })
    }

    /// Somebody else's fold that is as new will do.
    pub(super) fn save(&mut self, state: Box<RawValue>) -> Result<(), KernelError> {
        let bytes = length_of(&state);
        self.log.save(&self.cursor, state)?;
        self.fold_bytes = bytes;
        Ok(())
    }

    pub(super) fn saved_seq(&self) -> Result<u64, KernelError> {
        Ok(self.log.saved_seq()?)
    }

    pub(super) const fn fold_bytes(&self) -> u64 {
        self.fold_bytes
    }

    pub(super) const fn length(&self) -> u64 {
        self.cursor.position.offset
    }

    pub(super) fn history(&self) -> KernelHistory<'static> {
        KernelHistory::afar(self.log.past())
    }

    /// One process of one machine: two never have the same.
    pub(super) fn holder(&self, owner: &str) -> Holder {
        let host = machine();
        let process = std::process::id();
        let random: String = self.log.writer().chars().take(8).collect();
        Holder(format!("{owner} on {host}, pid {process}, {random}"))
    }

    pub(super) const fn shared_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_add(self.offset_ms)
    }

    pub(super) fn watch(&self) -> Result<NewsWatch, KernelError> {
        Ok(self.log.watch()?)
    }

    pub(super) fn project(&self) -> &str {
        &self.project
    }

    pub(super) fn objects(&self) -> FleetObjects {
        self.log.objects()
    }

    pub(super) fn name(&self) -> String {
        self.log.name()
    }
}

/// Returns what this machine is called.
pub(super) fn machine() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

fn length_of(state: &RawValue) -> u64 {
    u64::try_from(state.get().len()).unwrap_or(u64::MAX)
}
