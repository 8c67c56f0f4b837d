//! What every stream of events is made of, whatever its events mean.
//!
//! Knows the store and who acts; knows no goal, workflow, task, sum of money or preference, nor any
//! project. A [`Machine`] says what is folded into what.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::logged::EventRecord;

/// What a stream needs to know of what is recorded in it.
///
/// Rules are not here: what a request leads to differs from machine to machine, and is decided
/// between taking the lock and recording.
pub trait Machine: Sized {
    /// The fold. Its default is the fold of nothing: `Option<Goal>` where nothing is no goal.
    type State: Clone + Default + PartialEq + Serialize + DeserializeOwned;
    /// A recorded fact.
    type Event: Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned;
    /// What errors call an event.
    const EVENT: &'static str;
    /// What errors call the fold.
    const STATE: &'static str;

    /// Applies an event. Total: what was recorded is true.
    fn evolve(state: &mut Self::State, logged: &EventRecord<Self::Event>);
}
