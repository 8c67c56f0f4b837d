//! A machine's state, and how it follows from the records of a log.
//!
//! Touches no disk: it is given what was read, and hands out what is to be saved.

use std::path::Path;

use kapi_store::record::LogRecord;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::StreamError;
use crate::logged::{EventRecord, read};
use crate::machine::Machine;

/// What a log holds: the fold on disk, and the records after it.
pub struct LoadedLog {
    /// The fold as it is on disk; `None` where there is none.
    pub state: Option<Box<RawValue>>,
    /// The records that came after it.
    pub records: Vec<LogRecord>,
}

/// A machine's events as its log holds them.
type Events<M> = Vec<EventRecord<<M as Machine>::Event>>;

/// A state that follows from records.
pub struct Fold<M: Machine> {
    state: M::State,
    is_saved: bool,
    n_unsaved: usize,
}

impl<M: Machine> Fold<M> {
    /// Folds what a log holds, and returns the events that came after the fold on disk; asks for all
    /// of it where that has another shape.
    pub fn load<E: From<StreamError>>(
        file: &Path,
        loaded: LoadedLog,
        all: impl FnOnce() -> Result<LoadedLog, E>,
    ) -> Result<(Self, Events<M>), E> {
        let saved = loaded.state.as_deref().and_then(parse);
        let is_unusable = loaded.state.is_some() && saved.is_none();
        let records = if is_unusable {
            all()?.records
        } else {
            loaded.records
        };
        let mut fold = Self {
            is_saved: saved.is_some(),
            state: saved.unwrap_or_default(),
            n_unsaved: 0,
        };
        let logged = fold.take(file, &records)?;
        Ok((fold, logged))
    }

    /// Returns what is folded.
    #[must_use]
    pub const fn state(&self) -> &M::State {
        &self.state
    }

    /// Returns the state, for what is forgotten of it without an event.
    pub const fn state_mut(&mut self) -> &mut M::State {
        &mut self.state
    }

    pub(crate) fn into_state(self) -> M::State {
        self.state
    }

    /// Tells whether there is a fold on disk that can be used, however old.
    pub const fn is_saved(&self) -> bool {
        self.is_saved
    }

    /// Returns how many records came after the fold on disk.
    pub const fn n_unsaved(&self) -> usize {
        self.n_unsaved
    }

    /// Folds records, each of which is understood before the first is folded.
    pub(crate) fn take(
        &mut self,
        file: &Path,
        records: &[LogRecord],
    ) -> Result<Events<M>, StreamError> {
        let logged = read(file, records)?;
        for logged in &logged {
            self.push(logged);
        }
        Ok(logged)
    }

    /// Folds an event.
    pub fn push(&mut self, logged: &EventRecord<M::Event>) {
        M::evolve(&mut self.state, logged);
        self.n_unsaved += 1;
    }

    /// Returns the state as it is saved.
    pub fn encode(&self) -> Result<Box<RawValue>, StreamError> {
        to_raw_value(&self.state).map_err(|source| StreamError::Encode {
            what: M::STATE,
            source,
        })
    }

    /// Notes that the fold on disk is this one.
    pub const fn saved(&mut self) {
        self.is_saved = true;
        self.n_unsaved = 0;
    }
}

/// Reads a fold as it was saved; `None` where it has another shape. A fold of nothing is none.
pub(crate) fn parse<S: DeserializeOwned>(state: &RawValue) -> Option<S> {
    let text = state.get();
    let is_nothing = text == "null";
    serde_json::from_str(text).ok().filter(|_| !is_nothing)
}
