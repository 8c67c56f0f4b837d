//! The person at the terminal, who is asked while a run waits.
//!
//! Knows neither who asks nor what the answer means.

use std::sync::Arc;

use kapi_core::actor::Actor;

/// A person who is asked while a run waits.
#[derive(Clone)]
pub struct Person {
    /// Who.
    pub actor: Actor,
    /// Asks a question in at most half a minute, or until the second argument says that nobody
    /// waits any more; no answer is a no.
    pub ask: Arc<Ask>,
}

/// A way to ask a person something.
pub type Ask = dyn Fn(&str, &dyn Fn() -> bool) -> bool + Send + Sync;
