//! A flag one thread raises and others watch.
//!
//! Knows nothing of what is being cancelled; raising it never blocks and cannot be undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shared flag that asks a running effect to stop.
#[derive(Debug, Clone, Default)]
pub struct Cancel(pub(crate) Arc<AtomicBool>);

impl Cancel {
    /// Returns a flag that is not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag for every clone.
    pub fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Tells whether any clone was raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
