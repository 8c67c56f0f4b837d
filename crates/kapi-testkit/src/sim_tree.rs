//! What the simulated world is made of: its clock, and trees that are named by their content.
//!
//! Tells no story and performs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use kapi_store::hash::sha256_hex;
use kapi_sys::clock::Clock;

/// Files by name: a tree.
pub type Files = BTreeMap<String, String>;

/// A clock that moves only when somebody waits.
#[derive(Debug, Clone)]
pub struct SimClock(Arc<AtomicI64>);

impl SimClock {
    /// Returns a clock that stands at this many milliseconds since the epoch.
    #[must_use]
    pub fn new(now_ms: i64) -> Self {
        Self(Arc::new(AtomicI64::new(now_ms)))
    }

    pub(crate) fn wait_until(&self, until_ms: i64) {
        self.0.fetch_max(until_ms, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Returns the id of a commit; equal content, parent and time make an equal id.
#[must_use]
pub fn commit_id(files: &Files, parent: &str, at_s: i64) -> String {
    sha256_hex(format!("{files:?} {parent} {at_s}").as_bytes())
}

/// Returns the id of a tree.
#[must_use]
pub fn tree_id(files: &Files) -> String {
    sha256_hex(format!("{files:?}").as_bytes())
}
