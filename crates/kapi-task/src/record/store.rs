//! Where a kernel is kept, and how long leases last there.
//!
//! A setting alone: the log, its parcels and the worker open what it names.

use kapi_fleet::client::FleetSettings;

/// The name of the stream in the ids of its records, in files as on a cluster.
pub(crate) const STREAM: &str = "kernel";

/// How long a lease lasts without a word on a cluster, in milliseconds.
pub(crate) const FLEET_LEASE_MS: u64 = 15_000;

/// How long a lease lasts without a word from its holder, in milliseconds.
pub const LEASE_MS: u64 = 60_000;

/// Where a project's kernel is kept.
#[derive(Debug, Clone)]
pub enum KernelStore {
    /// In the project's directory, for the processes of one machine.
    Files,
    /// On a cluster, for the processes of many.
    Fleet {
        /// How to speak with it.
        settings: FleetSettings,
        /// What the project is called there: the same on every machine.
        project: String,
    },
}

impl KernelStore {
    /// Tells whether several machines may share it.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        match self {
            Self::Files => false,
            Self::Fleet { .. } => true,
        }
    }

    /// Returns how long a worker's lease lasts without a word, in milliseconds.
    ///
    /// From afar only time tells that a worker is gone, so it is short there: longer than a
    /// request may take, and than a cluster needs to choose another leader.
    #[must_use]
    pub const fn lease_ms(&self) -> u64 {
        match self {
            Self::Files => LEASE_MS,
            Self::Fleet { .. } => FLEET_LEASE_MS,
        }
    }
}
