//! The record of the runs that a person had cleaned away, so that an audit can tell them from lost
//! ones.
//!
//! A chained log of its own in the person's home, because sandboxes of all projects are there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_store::audit::audit;
use kapi_store::error::StoreError;
use kapi_store::record::{Batch, NewRecord};
use kapi_store::stream::LogStream;
use kapi_sys::disk::Disk;
use serde::{Deserialize, Serialize};

use crate::audit::StreamAudit;
use crate::file_log::LOCK_WAIT_MS;
use crate::logged::{to_logged, to_payload};

/// One fact of that log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
enum PruneEvent {
    /// The runs of a sandbox were removed because a person asked.
    RunsPruned {
        /// The key of the project.
        project: String,
        /// The sandbox.
        sandbox: String,
    },
}

/// One sandbox whose runs are gone: the key of its project, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrunedRuns {
    /// The key of the project.
    pub project: String,
    /// The sandbox.
    pub sandbox: String,
}

/// Where the record is.
#[derive(Clone)]
pub struct PruneLog<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The state directory of the person's home, which is there.
    pub state_dir: PathBuf,
}

impl PruneLog<'_> {
    fn stream(&self) -> LogStream<'_> {
        LogStream {
            disk: self.disk,
            name: "pruned".to_owned(),
            dir: self.state_dir.join("pruned"),
            anchor: self.state_dir.clone(),
        }
    }

    /// Records that the runs of some sandboxes are about to be removed.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses; nothing may be removed then.
    pub fn record(&self, pruned: &[PrunedRuns], at_ms: i64) -> Result<(), StoreError> {
        if pruned.is_empty() {
            return Ok(());
        }
        let stream = self.stream();
        let held = stream.lock("kapi cleanup", LOCK_WAIT_MS)?;
        let mut cursor = stream.load()?.cursor;
        let payload = |one: &PrunedRuns| -> Result<NewRecord, StoreError> {
            let event = PruneEvent::RunsPruned {
                project: one.project.clone(),
                sandbox: one.sandbox.clone(),
            };
            to_payload(&event).map_err(|source| StoreError::Encode {
                file: stream.log(),
                source,
            })
        };
        let payloads = pruned.iter().map(payload).collect::<Result<_, _>>()?;
        let actor = Actor::Engine;
        let batch = Batch {
            actor: &actor,
            at_ms,
            payloads,
        };
        stream.append(&held, &mut cursor, &batch)?;
        Ok(())
    }

    /// Checks the log, line by line; `None` where nothing was ever recorded.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn audit(&self) -> Result<Option<StreamAudit>, StoreError> {
        let stream = self.stream();
        let mut found = audit(&stream)?;
        let is_there = !found.records.is_empty() || !found.faults.is_empty();
        // A newer Kapi may know other reasons; those are not ours.
        Ok(is_there.then(|| StreamAudit::of(stream.log(), &mut found)))
    }

    /// Returns everything that was ever recorded.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn load(&self) -> Result<BTreeSet<PrunedRuns>, StoreError> {
        let loaded = self.stream().load_all()?;
        let read = loaded.records.iter().filter_map(|record| {
            // A newer Kapi may know other reasons; those are not ours.
            let logged = to_logged(record).ok()?;
            let PruneEvent::RunsPruned { project, sandbox } = logged.event;
            Some(PrunedRuns { project, sandbox })
        });
        Ok(read.collect())
    }
}

#[cfg(test)]
mod tests {
    use kapi_sys::real_disk::RealDisk;

    use super::{PruneEvent, PruneLog, PrunedRuns};

    #[test]
    fn what_was_pruned_is_known_afterwards() {
        let home = tempfile::tempdir().unwrap();
        let log = PruneLog {
            disk: &RealDisk,
            state_dir: home.path().to_path_buf(),
        };
        assert!(log.load().unwrap().is_empty());
        let one = |sandbox: &str| PrunedRuns {
            project: "shop-1".to_owned(),
            sandbox: sandbox.to_owned(),
        };
        log.record(&[one("task_1-1"), one("task_2-4")], 1).unwrap();
        log.record(&[], 2).unwrap();
        log.record(&[one("task_3-5")], 3).unwrap();
        let known: Vec<String> = log
            .load()
            .unwrap()
            .into_iter()
            .map(|it| it.sandbox)
            .collect();
        assert_eq!(known, ["task_1-1", "task_2-4", "task_3-5"]);
    }

    #[test]
    fn golden_line() {
        let event = PruneEvent::RunsPruned {
            project: "shop-1".to_owned(),
            sandbox: "task_1-1".to_owned(),
        };
        let line = r#"{"type":"runs_pruned","data":{"project":"shop-1","sandbox":"task_1-1"}}"#;
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        assert_eq!(serde_json::from_str::<PruneEvent>(line).unwrap(), event);
    }
}
