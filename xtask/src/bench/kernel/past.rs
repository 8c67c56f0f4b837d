//! A project in which many tasks have ended, made quickly and then as durable as any other.
//!
//! The events are written in batches; fold and history are the queue's own work.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use kapi_core::task_id::{Fence, Holder, KernelTaskId};
use kapi_goal::record::project::Project;
use kapi_store::record::{Batch, NewRecord};
use kapi_store::stream::LogStream;
use kapi_sys::real_disk::RealDisk;
use kapi_task::record::queue::Queue;
use kapi_task::rules::event::KernelEvent;
use kapi_task::rules::task::{AttemptReport, End};
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::errand;
use super::unsynced::UnsyncedDisk;
use crate::tool::ToolCommand;

/// Tasks between one fold and the next while the past is made.
const CHUNK_TASKS: u64 = 20_000;
/// By how much the log grows between two folds of the queue; a prompt of this size makes it fold.
const FOLD_BYTES: usize = 64 * 1024;
/// How near to the last fold measuring begins, so that every past begins at the same distance.
const NEAR_BYTES: u64 = 2_048;
/// Requests until it is that near: far more than it takes.
const APPROACH_MAX: u32 = 4_096;
const AT_MS: i64 = 1_700_000_000_000;
const LOCK_WAIT_MS: u64 = 1_000;

/// A project with a past.
pub(in crate::bench) struct Past {
    pub(super) project: Project<'static>,
    pub(super) n_ended: u64,
}

impl Past {
    /// Makes a project in which at least this many tasks have ended, hardly more.
    pub(in crate::bench) fn create(root: &Path, n_ended: u64) -> anyhow::Result<Self> {
        fs::create_dir_all(root).with_context(|| format!("create {}", root.display()))?;
        let project = errand::project(&UnsyncedDisk, root);
        let mut last = 0;
        while last < n_ended {
            // One of each chunk is the large one that makes the queue fold.
            let n_plain = CHUNK_TASKS.min(n_ended - last) - 1;
            write(&project, last + 1, n_plain)?;
            let mut queue = Queue::open(&project)?;
            let task = errand::submit(&mut queue, &"x".repeat(FOLD_BYTES))?;
            errand::cancel(&mut queue, task)?;
            last += n_plain + 1;
            ensure!(task.number() == last, "fill the past: {task} is not {last}");
        }
        approach(&project)?;
        // What is measured must not wait for what was left unsynced.
        ToolCommand::new(root, "sync", &["--file-system", "."]).run()?;
        let past = Self {
            project: errand::project(&RealDisk, root),
            n_ended,
        };
        past.check()?;
        Ok(past)
    }

    /// Returns the length of its log.
    pub(super) fn log_bytes(&self) -> anyhow::Result<u64> {
        log_bytes(&self.project)
    }

    /// Makes sure that fold and history hold what was written.
    fn check(&self) -> anyhow::Result<()> {
        let queue = Queue::open(&self.project)?;
        let kernel = queue.kernel();
        let n_ended = kernel.totals.completed + kernel.totals.cancelled;
        ensure!(
            n_ended >= self.n_ended && kernel.tasks.is_empty(),
            "fill the past: {n_ended} of {} tasks have ended",
            self.n_ended
        );
        for number in [1, self.n_ended.div_ceil(2), self.n_ended] {
            let task = queue.find(KernelTaskId::new(number))?;
            let has_ended = task.is_some_and(|task| task.state.is_ended());
            ensure!(has_ended, "find task {number} in the history");
        }
        Ok(())
    }
}

/// Writes tasks that were submitted, worked off and completed.
fn write(project: &Project<'_>, first: u64, n_tasks: u64) -> anyhow::Result<()> {
    let stream = LogStream {
        disk: project.disk,
        name: "kernel".to_owned(),
        dir: project.layout.kernel_dir(),
        anchor: project.layout.root().to_path_buf(),
    };
    let held = stream.lock("xtask bench", LOCK_WAIT_MS)?;
    let mut cursor = stream.load()?.cursor;
    let payloads: Result<Vec<NewRecord>, _> = (first..first + n_tasks)
        .flat_map(events)
        .map(|event| payload(&event))
        .collect();
    let batch = Batch {
        actor: &errand::person(),
        at_ms: AT_MS,
        payloads: payloads?,
    };
    stream.append(&held, &mut cursor, &batch)?;
    Ok(())
}

fn events(number: u64) -> [KernelEvent; 4] {
    let task = KernelTaskId::new(number);
    [
        KernelEvent::Submitted {
            task,
            request: Box::new(errand::request(errand::PROMPT)),
        },
        KernelEvent::Claimed {
            task,
            holder: Holder("worker 1".to_owned()),
            fence: Fence(number),
            expires_at_ms: AT_MS,
        },
        KernelEvent::Begun { task },
        KernelEvent::Ended {
            task,
            report: Box::new(AttemptReport::of(End::Completed)),
        },
    ]
}

fn payload(event: &KernelEvent) -> anyhow::Result<NewRecord> {
    let tagged = serde_json::to_value(event).context("encode an event")?;
    let kind = tagged.get("type").and_then(Value::as_str);
    Ok(NewRecord {
        kind: kind.context("find an event's name")?.to_owned(),
        data: to_raw_value(tagged.get("data").unwrap_or(&Value::Null))?,
    })
}

/// Submits and cancels until the log has just crossed the place where the queue folds.
fn approach(project: &Project<'_>) -> anyhow::Result<()> {
    // The fold on disk may still hold the large task, and is then written half as often.
    let step = 2 * u64::try_from(FOLD_BYTES)?;
    let mut queue = Queue::open(project)?;
    for _ in 0..APPROACH_MAX {
        let task = errand::submit(&mut queue, errand::PROMPT)?;
        errand::cancel(&mut queue, task)?;
        if log_bytes(project)? % step < NEAR_BYTES {
            return Ok(());
        }
    }
    anyhow::bail!("come near to the queue's last fold")
}

fn log_bytes(project: &Project<'_>) -> anyhow::Result<u64> {
    let log = project.layout.kernel_dir().join("events.jsonl");
    let found = fs::metadata(&log).with_context(|| format!("measure {}", log.display()))?;
    Ok(found.len())
}

#[cfg(test)]
mod tests {
    use kapi_task::record::queue::Queue;

    use super::Past;

    #[test]
    fn a_past_is_in_fold_and_history() {
        let directory = tempfile::tempdir().unwrap();
        let past = Past::create(directory.path(), 250).unwrap();
        let queue = Queue::open(&past.project).unwrap();
        let totals = queue.kernel().totals;
        // All but the one that made the queue fold ended well.
        assert_eq!(totals.completed, 249);
        assert!(totals.cancelled >= 1);
    }
}
