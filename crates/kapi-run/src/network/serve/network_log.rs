//! The connections of a run, one JSON object a line, and never more than a named size.
//!
//! What is let through is always written, or the network must close; what is refused and what models
//! are asked may not take its room. Knows no connection and tells nobody.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use crate::run_dir::RunLog;

/// Different refusals that are counted each; later ones are written while there is room.
const REPEATS_MAX: usize = 20_000;

/// How large a log may grow with lines of each part, all lines counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogCapacity {
    /// With refusals; what is beyond is for the others alone.
    pub(super) refused: usize,
    /// With what happened at the model's gateway.
    pub(super) model: usize,
    /// With what was let through; at this size no more may be.
    pub(super) allowed: usize,
}

impl LogCapacity {
    /// Returns the room of a run's log: a quarter is kept from refusals.
    pub(super) const fn usual() -> Self {
        Self {
            refused: 12 << 20,
            model: 14 << 20,
            allowed: 16 << 20,
        }
    }
}

/// Whether more may be let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NetworkDecision {
    /// It would be written down.
    Open,
    /// It could not be written down.
    MustClose,
}

/// The log of one run's connections.
#[derive(Debug)]
pub(super) struct NetworkLog {
    file: RunLog,
    capacity: LogCapacity,
    /// How often each refusal came.
    repeats: BTreeMap<String, u64>,
    n_refused: u64,
    n_unwritten: u64,
    /// The parts whose end was written.
    ended: Vec<&'static str>,
}

impl NetworkLog {
    pub(super) const fn new(file: RunLog, capacity: LogCapacity) -> Self {
        Self {
            file,
            capacity,
            repeats: BTreeMap::new(),
            n_refused: 0,
            n_unwritten: 0,
            ended: Vec::new(),
        }
    }

    /// Writes what was let through.
    ///
    /// Also where there is no room left: the network is closing then, and what still comes was under
    /// way.
    pub(super) fn allowed(&mut self, line: &Value) -> NetworkDecision {
        let written = self.file.add(&line.to_string());
        if written.is_ok() && self.file.n_bytes() < self.capacity.allowed {
            return NetworkDecision::Open;
        }
        self.end_part("allowed");
        NetworkDecision::MustClose
    }

    /// Writes what was refused: in full when it is new, and later as a count at each power of ten.
    pub(super) fn refused(&mut self, what: String, mut line: Value) {
        self.n_refused = self.n_refused.saturating_add(1);
        let count = self.count(what);
        if count > 1 {
            line["count"] = count.into();
        }
        let is_due = 10_u64.checked_pow(count.ilog10()) == Some(count);
        let is_written = is_due && self.add_within(self.capacity.refused, "refused", &line);
        self.n_unwritten += u64::from(!is_written);
    }

    /// Writes what happened at the model's gateway, while there is room.
    pub(super) fn model(&mut self, line: &Value) {
        // What a model used is counted elsewhere, so a line less is no loss to the budget.
        self.add_within(self.capacity.model, "model", line);
    }

    /// Writes how much was refused, where not every line was written.
    pub(super) fn finish(&mut self) {
        if self.n_unwritten == 0 {
            return;
        }
        let line = json!({
            "log": "end", "refused": self.n_refused, "not_written": self.n_unwritten,
        });
        ignore_full_disk(self.file.add(&line.to_string()));
    }

    /// Counts a refusal and returns how often it came.
    fn count(&mut self, what: String) -> u64 {
        if self.repeats.len() >= REPEATS_MAX && !self.repeats.contains_key(&what) {
            return 1;
        }
        let count = self.repeats.entry(what).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Writes a line if the log is smaller than a part may make it; returns whether it did.
    fn add_within(&mut self, bytes_max: usize, part: &'static str, line: &Value) -> bool {
        if self.file.n_bytes() >= bytes_max {
            self.end_part(part);
            return false;
        }
        self.file.add(&line.to_string()).is_ok()
    }

    /// Writes, once, that nothing of a part follows.
    fn end_part(&mut self, part: &'static str) {
        if self.ended.contains(&part) {
            return;
        }
        self.ended.push(part);
        let line = json!({"log": "full", "part": part, "bytes": self.file.n_bytes()});
        ignore_full_disk(self.file.add(&line.to_string()));
    }
}

/// A full disk must not end the run: its refusals and marks are then missing, and the network closes
/// at the next thing that should be let through.
fn ignore_full_disk(written: io::Result<()>) {
    drop(written);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LogCapacity, NetworkDecision, NetworkLog};
    use crate::run_dir::RunDir;

    /// Does something with a log of so much room and returns its lines.
    fn lines(capacity: LogCapacity, write: &dyn Fn(&mut NetworkLog)) -> Vec<Value> {
        let directory = tempfile::tempdir().unwrap();
        let run_dir = RunDir::open(directory.path(), "run").unwrap();
        let mut log = NetworkLog::new(run_dir.log("network.jsonl").unwrap(), capacity);
        write(&mut log);
        log.finish();
        let text = std::fs::read_to_string(run_dir.file("network.jsonl")).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    const SMALL: LogCapacity = LogCapacity {
        refused: 3000,
        model: 3500,
        allowed: 4000,
    };

    #[test]
    fn a_refusal_that_repeats_is_a_count() {
        let found = lines(LogCapacity::usual(), &|log| {
            for _ in 0..1234 {
                log.refused("a".to_owned(), json!({"host": "a"}));
            }
            log.refused("b".to_owned(), json!({"host": "b"}));
        });
        let expected = [
            json!({"host": "a"}),
            json!({"host": "a", "count": 10}),
            json!({"host": "a", "count": 100}),
            json!({"host": "a", "count": 1000}),
            json!({"host": "b"}),
            json!({"log": "end", "refused": 1235, "not_written": 1230}),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_flood_of_refusals_hides_nothing_that_is_let_through() {
        let found = lines(SMALL, &|log| {
            for n in 0..10_000 {
                log.refused(n.to_string(), json!({"refused": n}));
            }
            assert_eq!(log.allowed(&json!({"allowed": 1})), NetworkDecision::Open);
            for n in 0..10_000 {
                log.model(&json!({"model": n}));
            }
            assert_eq!(log.allowed(&json!({"allowed": 2})), NetworkDecision::Open);
        });
        let is = |name: &str| found.iter().filter(|line| !line[name].is_null()).count();
        assert!(is("model") > 10);
        assert_eq!(is("allowed"), 2);
        let full: Vec<&Value> = found.iter().filter(|line| line["log"] == "full").collect();
        let parts: Vec<&Value> = full.iter().map(|line| &line["part"]).collect();
        assert_eq!(parts, [&json!("refused"), &json!("model")]);
        let end = found.last().unwrap();
        assert_eq!(end["refused"], 10_000);
        let n_written = u64::try_from(is("refused")).unwrap() - 1;
        assert_eq!(end["not_written"], 10_000 - n_written);
    }

    #[test]
    fn a_log_that_is_full_closes_the_doors_and_what_is_under_way_is_still_written() {
        let found = lines(SMALL, &|log| {
            let mut n = 0;
            while log.allowed(&json!({"allowed": n})) == NetworkDecision::Open {
                n += 1;
            }
            for _ in 0..3 {
                n += 1;
                assert_eq!(
                    log.allowed(&json!({"allowed": n})),
                    NetworkDecision::MustClose
                );
            }
        });
        let numbers = found.iter().filter_map(|line| line["allowed"].as_u64());
        assert!(numbers.eq(0..u64::try_from(found.len()).unwrap() - 1));
        let full = found.iter().filter(|line| line["part"] == "allowed");
        assert_eq!(full.count(), 1);
    }
}
