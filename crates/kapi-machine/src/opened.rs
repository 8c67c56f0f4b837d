//! One stream of a machine, opened: lock, load, append, fold, save.
//!
//! Owns the only copy of the state there is in a process. What is decided in between, what else is
//! derived and when the fold is written is said by whoever owns the stream, in their own order.

use kapi_core::actor::Actor;
use kapi_store::stream::LogStream;
use kapi_sys::lock::Lock;

use crate::error::StreamError;
use crate::file_log::FileLog;
use crate::fold::{Fold, parse};
use crate::logged::{EventRecord, batch, recorded};
use crate::machine::Machine;

/// A stream and its fold.
pub struct OpenStream<'a, M: Machine> {
    log: FileLog<'a>,
    fold: Fold<M>,
    unseen: Vec<EventRecord<M::Event>>,
}

impl<'a, M: Machine> OpenStream<'a, M> {
    /// Loads a stream, which may be empty. Changes nothing, and needs no lock.
    pub fn load(stream: LogStream<'a>) -> Result<Self, StreamError> {
        let (mut log, loaded) = FileLog::load(stream)?;
        let file = log.file();
        let (fold, _) = Fold::load(&file, loaded, || Ok::<_, StreamError>(log.load_all()?))?;
        Ok(Self {
            log,
            fold,
            unseen: Vec::new(),
        })
    }

    /// Returns the fold, with what is known of the one on disk.
    #[must_use]
    pub const fn fold(&self) -> &Fold<M> {
        &self.fold
    }

    /// Returns what is folded.
    #[must_use]
    pub const fn state(&self) -> &M::State {
        self.fold.state()
    }

    /// Returns what is folded, and lets go of the rest.
    #[must_use]
    pub fn into_state(self) -> M::State {
        self.fold.into_state()
    }

    /// Returns how far the log was read.
    pub const fn log(&self) -> &FileLog<'a> {
        &self.log
    }

    /// Reads what others have recorded meanwhile, and returns how many events that were.
    pub fn refresh(&mut self) -> Result<usize, StreamError> {
        let file = self.log.file();
        let fold = &mut self.fold;
        let logged = self.log.refresh(|records| fold.take(&file, records))?;
        let n_read = logged.len();
        self.unseen.extend(logged);
        Ok(n_read)
    }

    /// Returns the events that came since the last call, whoever recorded them.
    pub fn take_unseen(&mut self) -> Vec<EventRecord<M::Event>> {
        std::mem::take(&mut self.unseen)
    }

    /// Takes the lock, after which what others recorded is to be read.
    pub fn lock(&self, owner: &str) -> Result<Lock, StreamError> {
        Ok(self.log.lock(owner)?)
    }

    /// Makes what was read durable, before anybody acts on it.
    pub fn settle(&mut self, held: &Lock) -> Result<(), StreamError> {
        Ok(self.log.settle(held)?)
    }

    /// Makes events durable that were decided on this state under this lock, and folds them.
    pub fn record(
        &mut self,
        held: &Lock,
        actor: &Actor,
        at_ms: i64,
        events: &[M::Event],
    ) -> Result<Vec<EventRecord<M::Event>>, StreamError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let batch = batch(M::EVENT, actor, at_ms, events)?;
        let records = self.log.append(held, &batch)?;
        let logged = recorded(records, events);
        for one in &logged {
            self.fold.push(one);
        }
        self.unseen.extend_from_slice(&logged);
        Ok(logged)
    }

    /// Replaces the fold on disk with this one.
    pub fn save(&mut self, held: &Lock) -> Result<(), StreamError> {
        self.log.save(held, self.fold.encode()?)?;
        self.fold.saved();
        Ok(())
    }

    /// Tells whether the fold on disk is this one.
    pub fn is_saved(&self) -> Result<bool, StreamError> {
        let found = self.log.stream().load()?;
        let saved = found.state.as_deref().and_then(parse::<M::State>);
        Ok(found.records.is_empty() && saved.as_ref() == Some(self.fold.state()))
    }
}
