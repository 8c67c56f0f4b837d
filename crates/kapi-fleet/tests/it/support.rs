//! Batches to append, and what must hold of a log whatever happened to it.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use kapi_core::actor::Actor;
use kapi_fleet::error::FleetError;
use kapi_fleet::log::{BatchOutcome, FleetCursor, NetLog};
use kapi_store::record::{Batch, LogRecord, NewRecord};
use serde_json::value::to_raw_value;

/// One writer of a race.
pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) log: NetLog,
    pub(crate) cursor: FleetCursor,
    pub(crate) n_conflicts: u32,
    pub(crate) n_unknown: u32,
}

impl Writer {
    pub(crate) fn new(name: &str, log: NetLog) -> Self {
        Self {
            name: name.to_owned(),
            log,
            cursor: FleetCursor::start(),
            n_conflicts: 0,
            n_unknown: 0,
        }
    }

    /// Appends once, as long as it takes: what the engine does with a command.
    pub(crate) fn append(&mut self, number: u32) {
        for _ in 0..10_000 {
            let records = self.log.read_more(&mut self.cursor).unwrap();
            // Whoever does not know whether it was accepted reads on before it tries again.
            if self.n_unknown > 0
                && records
                    .iter()
                    .any(|record| says(record) == (self.name.clone(), number))
            {
                return;
            }
            match self.try_append(number) {
                Ok(BatchOutcome::Accepted(records)) => {
                    assert_eq!(records.len(), 2);
                    return;
                }
                Ok(BatchOutcome::Conflict) => self.n_conflicts += 1,
                Err(FleetError::Unknown { .. }) => self.n_unknown += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("{} never came through", self.name);
    }

    pub(crate) fn try_append(&mut self, number: u32) -> Result<BatchOutcome, FleetError> {
        let data = to_raw_value(&(&self.name, number)).unwrap();
        let payload = |kind: &str| NewRecord {
            kind: kind.to_owned(),
            data: data.clone(),
        };
        let batch = Batch {
            actor: &Actor::Engine,
            at_ms: 1_800_000_000_000,
            payloads: vec![payload("begun"), payload("ended")],
        };
        self.log.append(&mut self.cursor, &batch)
    }
}

/// Pauses between two looks: whoever looks without one takes the time of what is waited for.
pub(crate) fn pause() {
    thread::park_timeout(Duration::from_millis(5));
}

/// Returns who wrote a record, and its number among theirs.
pub(crate) fn says(record: &LogRecord) -> (String, u32) {
    serde_json::from_str(record.data.get()).unwrap()
}

/// Checks that each of `n_writers` wrote each of `n_batches` once, in order, both halves together.
pub(crate) fn check(log: &NetLog, n_writers: usize, n_batches: u32) {
    let loaded = log.load_all().unwrap();
    let mut numbers: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for pair in loaded.records.chunks(2) {
        let kinds: Vec<&str> = pair.iter().map(|record| record.kind.as_str()).collect();
        assert_eq!(kinds, ["begun", "ended"]);
        assert_eq!(says(&pair[0]), says(&pair[1]));
        let (name, number) = says(&pair[0]);
        numbers.entry(name).or_default().push(number);
    }
    assert_eq!(numbers.len(), n_writers);
    for (name, found) in numbers {
        assert_eq!(found, (0..n_batches).collect::<Vec<_>>(), "{name}");
    }
}
