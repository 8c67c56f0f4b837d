//! What attempts leave on the host that nothing needs any more, taken away by workers.
//!
//! When an attempt ends, what killed ones before it left of the same task goes; a worker that starts
//! does the same for tasks that have ended. What a killed attempt had changed stays under one rescue
//! ref for its task. What holds anything else, or is in use, stays for `kapi cleanup`.

use std::collections::BTreeMap;
use std::fs;

use kapi_core::task_id::TaskId;
use kapi_git::rescue::Signature;
use kapi_git::rescue::batch::Retirement;
use kapi_launch::error::LaunchError;
use kapi_launch::place::{SandboxId, SandboxPlace};
use kapi_launch::remains;
use kapi_launch::remains::SandboxRemains;
use kapi_machine::watch::Activity;
use kapi_run::workshop::Workshop;
use kapi_run::{failure, workshop};
use kapi_status::perform::writer;
use kapi_sys::cancel::Cancel;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use super::Performer;
use crate::record::worker::Hands;
use crate::rules::task::{End, Report, Task};

/// What of a sandbox always stays: what its agent was told and did.
const RUNS: &str = "runs";
/// Marks a sandbox that holds what no commit takes, for a person to look at.
const MARK: &str = "kept";
/// Directories that one sweep looks at.
const LOOKED_AT_MAX: usize = 20_000;
/// Digits of a project's key that tell its tasks from those of another queue of the repository.
const KEY_DIGITS: usize = 12;

/// What a sweep did.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// The tasks of which something went.
    pub tasks: Vec<TaskId>,
    /// What was kept, as sentences with the line that brings it back.
    pub kept: Vec<String>,
    /// What could not be taken away, as sentences.
    pub failed: Vec<String>,
}

/// Marks a sandbox that its worker leaves whole.
pub(super) fn keep(place: &SandboxPlace) {
    // Without the mark it stays as long as its layer holds what no commit takes.
    drop(RealDisk.write(&place.dir().join(MARK), b"\n"));
}

/// Takes away what killed attempts before this one left, and says in the report what is kept.
pub(super) fn after(
    performer: &Performer<'_>,
    task: &Task,
    hands: &Hands<'_>,
    report: &mut Report,
) {
    if task.attempts < 2 {
        return;
    }
    let own = hands.hold().fence.0;
    let places = performer.attempts(usize::MAX).remove(&task.id);
    let before = places.unwrap_or_default().into_iter();
    let before: Vec<SandboxPlace> = before
        .filter(|(fence, _)| *fence != own)
        .map(|(_, place)| place)
        .collect();
    let text = match performer.clear(task.id, &before) {
        Ok(kept) => kept,
        Err(error) => Some(format!("failed to {}", error.message)),
    };
    let Some(text) = text else {
        return;
    };
    (performer.notice)(task.id, Activity::Note { text: text.clone() });
    match &mut report.end {
        End::Failed(failure) => failure.message.extend(["; ", &text]),
        End::Completed | End::Skipped { .. } | End::Cancelled => {
            report.output.extend(["\n[", &text, "]"]);
        }
    }
}

impl Performer<'_> {
    /// Takes away what dead workers left of tasks that have ended, of so many tasks at most; stops
    /// when it is called off.
    #[must_use]
    pub fn sweep(&self, tasks_max: usize, cancel: &Cancel) -> SweepReport {
        let mut swept = SweepReport::default();
        let queue = match self.queue() {
            Ok(queue) => queue,
            Err(error) => {
                swept
                    .failed
                    .push(format!("failed to {}", failure::chain(&error)));
                return swept;
            }
        };
        let found = self.attempts(LOOKED_AT_MAX).into_iter().rev();
        // What is left of a task that goes on is its next attempt's to take away, and to report.
        let ended = found.filter(|(id, _)| !queue.kernel().tasks.contains_key(id));
        let mut n_cleared = 0;
        for (id, places) in ended {
            if n_cleared >= tasks_max || cancel.is_raised() {
                break;
            }
            let left = places.into_iter().map(|(_, place)| place);
            let left: Vec<SandboxPlace> = left.filter(is_more_than_runs).collect();
            if left.is_empty() {
                continue;
            }
            match self.clear(id, &left) {
                Ok(kept) => {
                    n_cleared += 1;
                    swept.tasks.push(id);
                    swept.kept.extend(kept.map(|kept| format!("{id}: {kept}")));
                }
                Err(error) => swept
                    .failed
                    .push(format!("{id}: failed to {}", error.message)),
            }
        }
        swept
    }

    /// Returns the sandboxes of attempts, by task, with the numbers of their leases.
    fn attempts(&self, max: usize) -> BTreeMap<TaskId, Vec<(u64, SandboxPlace)>> {
        let (sandboxes, key) = (&self.setting.sandboxes, &self.setting.project_key);
        let dir = sandboxes.root().join(key);
        let mut found: BTreeMap<TaskId, Vec<(u64, SandboxPlace)>> = BTreeMap::new();
        for entry in fs::read_dir(dir).into_iter().flatten().flatten().take(max) {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let parts = name.rsplit_once('-').filter(|_| name.starts_with("task_"));
            let parts = parts
                .and_then(|(task, fence)| Some((TaskId::parse(task).ok()?, fence.parse().ok()?)));
            if let (Some((task, fence)), Ok(id)) = (parts, SandboxId::parse(&name)) {
                found
                    .entry(task)
                    .or_default()
                    .push((fence, sandboxes.place(key, &id)));
            }
        }
        found.values_mut().for_each(|places| places.sort());
        found
    }

    /// Takes away what is left of attempts at one task that nobody works on; returns a sentence about
    /// what was kept.
    fn clear(&self, id: TaskId, places: &[SandboxPlace]) -> Result<Option<String>, LaunchError> {
        let mut held = Vec::new();
        for place in places.iter().filter(|place| is_more_than_runs(place)) {
            // One that is in use is its user's.
            if let Ok(lock) = place.hold("kapi task") {
                held.push((place, lock));
            }
        }
        if held.is_empty() {
            return Ok(None);
        }
        let root = self.project.layout.root();
        let now_ms = self.project.clock.now_ms();
        let workshop = Workshop::open(&self.book, root, &Cancel::new()).ok();
        let mut gone: Vec<(&SandboxPlace, SandboxRemains)> = Vec::new();
        for (place, _lock) in &held {
            if place.dir().join(MARK).exists() {
                continue;
            }
            gone.extend(
                remains::of(place, workshop.as_ref(), now_ms)?.map(|found| (*place, found)),
            );
        }
        let mut kept = None;
        if let Some(workshop) = &workshop {
            let going = gone
                .iter()
                .flat_map(|(_, found)| found.refs.clone())
                .collect();
            let also: Vec<_> = gone
                .iter()
                .filter_map(|(_, found)| found.commit.clone())
                .collect();
            let by = Signature {
                author: &workshop::author(),
                at_unix_seconds: now_ms.div_euclid(1_000),
            };
            let rescued = workshop.repository.retire_refs(&Retirement {
                going: &going,
                also: &also,
                name: &workshop::ref_part(&self.rescue_name(id))?,
                by: &by,
            });
            kept = rescued.map_err(|error| LaunchError::failed(&error))?;
        }
        let statuses = writer::list(&self.setting.sandboxes.status_dir());
        let statuses = statuses.map_err(|error| LaunchError::failed(&error))?;
        for (place, found) in &gone {
            remains::remove(place, found, RUNS, &statuses)?;
        }
        Ok(kept.map(|kept| {
            format!(
                "the changes of an earlier attempt are kept; restore them with `{}`",
                kept.restore_line
            )
        }))
    }

    fn rescue_name(&self, id: TaskId) -> String {
        let key = &self.setting.project_key;
        let digits = key.get(key.len().saturating_sub(KEY_DIGITS)..);
        format!("{id}-{}", digits.unwrap_or_default())
    }
}

fn is_more_than_runs(place: &SandboxPlace) -> bool {
    let entries = fs::read_dir(place.dir()).into_iter().flatten().flatten();
    place.worktree().exists() || entries.into_iter().any(|entry| entry.file_name() != RUNS)
}
