//! What a full check of a stream finds: in its log, and in the files that follow from it.
//!
//! Changes nothing. Knows of runs that the log remembers only where their files should be.

use std::path::PathBuf;

use kapi_core::id::GoalId;
use kapi_fleet::error::FleetError;
use kapi_store::audit::{Audit, AuditFault, audit};
use kapi_store::stream::LogStream;
use kapi_sys::disk::{Disk, DiskError};
use serde::de::DeserializeOwned;

use crate::evidence::{EvidenceFault, RecordedRuns, check_runs};
use crate::fold::parse;
use crate::logged::{EventRecord, to_logged};
use crate::machine::Machine;

/// What an audit of a stream found.
#[derive(Debug)]
pub struct StreamAudit {
    /// The log.
    pub file: PathBuf,
    /// How many of its records are sound, counted up to the first fault.
    pub records: u64,
    /// Bytes at its end that somebody did not finish writing. No fault: the next append cuts
    /// them off.
    pub torn_bytes: u64,
    /// Everything that is wrong.
    pub faults: Vec<StreamFault>,
    /// Derived files that are behind the log or missing. No fault: they are written again.
    pub stale: Vec<PathBuf>,
}

/// One thing that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum StreamFault {
    /// A line of the log.
    #[error(transparent)]
    Log(#[from] AuditFault),
    /// The log on a cluster is not the one that was accepted.
    #[error(transparent)]
    Fleet(FleetError),
    /// A sound line that this program does not understand.
    #[error("understand {} at line {line}", file.display())]
    UnknownEvent {
        /// The log.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The log names another goal.
    #[error("trust {}: it is the log of goal {found}", file.display())]
    OtherGoal {
        /// The log.
        file: PathBuf,
        /// The goal it names.
        found: GoalId,
    },
    /// A file of a run is not what the log remembers.
    #[error("trust {}", file.display())]
    Evidence {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        fault: EvidenceFault,
    },
    /// A derived file says something else than the log does at the same place.
    #[error("trust {}: it does not match the log", file.display())]
    NotDerived {
        /// The derived file.
        file: PathBuf,
    },
}

/// Checks a stream that has nothing beside its log but its fold; `None` where there is none.
pub fn audit_folded<M: Machine>(stream: &LogStream<'_>) -> Result<Option<StreamAudit>, DiskError> {
    let mut found = audit(stream)?;
    if found.records.is_empty() && found.faults.is_empty() && found.saved.is_none() {
        return Ok(None);
    }
    let mut report = StreamAudit::of(stream.log(), &mut found);
    let replayed = report.replay::<M>(&found, |_, _| {});
    if report.is_whole() {
        report.check_fold(stream.state(), &found, &replayed);
    }
    Ok(Some(report))
}

/// A log folded again from its beginning.
pub struct ReplayedLog<M: Machine> {
    /// The state at its end, or before the first event that is not understood.
    pub end: M::State,
    /// The state at the place of the fold on disk.
    pub(crate) at_saved: Option<M::State>,
}

impl StreamAudit {
    /// Begins with what is wrong with the lines, which `found` no longer has then.
    pub fn of(file: PathBuf, found: &mut Audit) -> Self {
        let faults = std::mem::take(&mut found.faults);
        Self {
            file,
            records: u64::try_from(found.records.len()).unwrap_or(u64::MAX),
            torn_bytes: found.torn_bytes,
            faults: faults.into_iter().map(StreamFault::Log).collect(),
            stale: Vec::new(),
        }
    }

    /// Tells whether nothing is wrong.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }

    /// Folds the sound records; `each` is handed every event with the state before it.
    pub fn replay<M: Machine>(
        &mut self,
        found: &Audit,
        mut each: impl FnMut(&M::State, &EventRecord<M::Event>),
    ) -> ReplayedLog<M> {
        let saved_seq = found.saved.as_ref().map(|saved| saved.position.seq);
        let (mut state, mut at_saved) = (M::State::default(), None);
        for record in &found.records {
            match to_logged(record) {
                Ok(logged) => {
                    each(&state, &logged);
                    M::evolve(&mut state, &logged);
                }
                Err(source) => {
                    self.add_unknown(record.seq, source);
                    break;
                }
            }
            if saved_seq == Some(record.seq) {
                at_saved = Some(state.clone());
            }
        }
        ReplayedLog {
            end: state,
            at_saved,
        }
    }

    /// Notes a sound line whose event this program does not know.
    pub fn add_unknown(&mut self, line: u64, source: serde_json::Error) {
        let file = self.file.clone();
        let fault = StreamFault::UnknownEvent { file, line, source };
        self.faults.push(fault);
    }

    /// Compares the fold on disk with the state at its place. One of another shape is made anew,
    /// and so no fault.
    pub fn check_fold<M: Machine>(
        &mut self,
        file: PathBuf,
        found: &Audit,
        replayed: &ReplayedLog<M>,
    ) {
        let saved = found.saved.as_ref();
        let saved: Option<M::State> = saved.and_then(|saved| parse(&saved.state));
        if saved.is_some() && saved != replayed.at_saved {
            self.faults.push(StreamFault::NotDerived { file });
        }
    }

    /// Notes a fold that is missing or behind, of a stream whose fold is written with every event.
    pub fn check_saved_to_the_end(&mut self, file: PathBuf, found: &Audit) {
        let saved_seq = found.saved.as_ref().map(|saved| saved.position.seq);
        if saved_seq != Some(self.records) {
            self.stale.push(file);
        }
    }

    /// Compares a snapshot with what the log comes to; `seq_of` is how many events it knows.
    pub fn check_snapshot<S: DeserializeOwned + PartialEq>(
        &mut self,
        disk: &dyn Disk,
        file: PathBuf,
        expected: &S,
        seq_of: fn(&S) -> u64,
    ) -> Result<(), DiskError> {
        let bytes = disk.read(&file, 0)?.unwrap_or_default();
        match serde_json::from_slice(&bytes).ok() {
            Some(found) if seq_of(&found) == seq_of(expected) => {
                if found != *expected {
                    self.faults.push(StreamFault::NotDerived { file });
                }
            }
            Some(_) | None => self.stale.push(file),
        }
        Ok(())
    }

    /// Compares the files of runs with what the log remembers of them.
    pub fn check_evidence(&mut self, disk: &dyn Disk, runs: RecordedRuns) -> Result<(), DiskError> {
        let found = check_runs(disk, &runs.into_runs())?.into_iter();
        let faults = found.map(|(file, fault)| StreamFault::Evidence { file, fault });
        self.faults.extend(faults);
        Ok(())
    }
}
