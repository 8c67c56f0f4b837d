//! What attempts leave on the host that nothing needs any more, taken away by workers.
//!
//! When an attempt runs an agent, what attempts before it left of the same task goes, what is held back of
//! their work included; a worker that starts does the same for tasks that have ended. What they had changed stays
//! under one rescue ref for its task. What holds anything else, or is in use, stays for `kapi cleanup`.

use std::collections::BTreeMap;
use std::fs;

use kapi_core::task_id::KernelTaskId;
use kapi_git::rescue::Signature;
use kapi_git::rescue::batch::Retirement;
use kapi_launch::error::LaunchError;
use kapi_launch::paths::{SandboxId, SandboxPaths, Sandboxes};
use kapi_launch::remains::{SandboxRemains, UncommittedWork};
use kapi_launch::{adopt, remains};
use kapi_machine::watch::Activity;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};
use kapi_status::perform::writer;
use kapi_sys::cancel::Cancel;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use super::Performer;
use super::held::{of_task, queue_digits};
use crate::record::worker::LeaseHandle;
use crate::rules::task::{AttemptReport, End, KernelTask};

/// What of a sandbox always stays: what its agent was told and did.
const RUNS: &str = "runs";
/// Marks a sandbox that holds what no commit takes, for a person to look at.
const MARK: &str = "kept";
/// Directories that one sweep looks at.
const LOOKED_AT_MAX: usize = 20_000;

/// The sandboxes of attempts, by task, with the numbers of their leases.
type AttemptSandboxes = BTreeMap<KernelTaskId, Vec<(u64, SandboxPaths)>>;

/// What a sweep did.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// The tasks of which something went.
    pub tasks: Vec<KernelTaskId>,
    /// What was kept, as sentences with the line that brings it back.
    pub kept: Vec<String>,
    /// What could not be taken away, as sentences.
    pub failed: Vec<String>,
}

/// Marks a sandbox that its worker leaves whole.
pub(super) fn keep(location: &SandboxPaths) {
    // Without the mark it stays as long as its layer holds what no commit takes.
    drop(RealDisk.write(&location.dir().join(MARK), b"\n"));
}

/// Notes of a sandbox that stays that how its agent has ended is on record with its task.
pub(super) fn settle(location: &SandboxPaths, now_ms: i64) {
    // One that is not settled is not looked at once the task goes on from its record.
    drop(adopt::settle(location, now_ms));
}

/// Takes away what attempts before this one left, whose work is done again or not wanted any more;
/// returns a sentence about what is kept.
pub(super) fn before(
    performer: &Performer<'_>,
    task: &KernelTask,
    handle: &LeaseHandle<'_>,
) -> Option<String> {
    cleared(performer, task, handle, Some(task))
}

/// Takes away what attempts before this one left; returns a sentence about what is kept.
pub(super) fn after(
    performer: &Performer<'_>,
    task: &KernelTask,
    handle: &LeaseHandle<'_>,
) -> Option<String> {
    cleared(performer, task, handle, None)
}

fn cleared(
    performer: &Performer<'_>,
    task: &KernelTask,
    handle: &LeaseHandle<'_>,
    done_again: Option<&KernelTask>,
) -> Option<String> {
    if task.attempts < 2 {
        return None;
    }
    let locations = earlier(performer, task, handle);
    let old = EarlierWork {
        done_again,
        last: None,
    };
    let text = match performer.clear(task.id, &locations, &old) {
        Ok(kept) => kept,
        Err(error) => Some(format!("failed to {}", error.message)),
    }?;
    (performer.notice)(task.id, Activity::Note { text: text.clone() });
    Some(text)
}

/// Says in a report what is kept of earlier attempts.
pub(super) fn tell(report: &mut AttemptReport, text: &str) {
    match &mut report.end {
        End::Failed(failure) => failure.message.extend(["; ", text]),
        End::Completed | End::Skipped { .. } | End::Cancelled => {
            report.output.extend(["\n[", text, "]"]);
        }
    }
}

/// Returns the sandboxes of the attempts at a task before this one, the oldest first.
pub(super) fn earlier(
    performer: &Performer<'_>,
    task: &KernelTask,
    handle: &LeaseHandle<'_>,
) -> Vec<SandboxPaths> {
    let own = handle.hold().fence.0;
    let locations = performer.attempts(usize::MAX).remove(&task.id);
    let before = locations.unwrap_or_default().into_iter();
    before
        .filter(|(fence, _)| *fence != own)
        .map(|(_, location)| location)
        .collect()
}

/// What becomes of the work of attempts that ended.
struct EarlierWork<'a> {
    /// The task whose work is done again: what is held back of it goes.
    done_again: Option<&'a KernelTask>,
    /// The sandbox of the attempt that ended the task, if it has ended: what could not be committed of
    /// its work stays. That of any other attempt was done again.
    last: Option<&'a SandboxPaths>,
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
        for (id, locations) in ended {
            if n_cleared >= tasks_max || cancel.is_raised() {
                break;
            }
            let locations: Vec<SandboxPaths> = locations.into_iter().map(|(_, it)| it).collect();
            let left = locations.iter().filter(|it| is_more_than_runs(it));
            let left: Vec<SandboxPaths> = left.cloned().collect();
            if left.is_empty() {
                continue;
            }
            let work = EarlierWork {
                done_again: None,
                last: locations.last(),
            };
            match self.clear(id, &left, &work) {
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

    fn attempts(&self, max: usize) -> AttemptSandboxes {
        attempts(&self.setting.sandboxes, &self.setting.project_key, max)
    }

    /// Takes away what is left of attempts at one task that nobody works on; returns a sentence about
    /// what was kept.
    fn clear(
        &self,
        id: KernelTaskId,
        locations: &[SandboxPaths],
        old: &EarlierWork<'_>,
    ) -> Result<Option<String>, LaunchError> {
        let mut held = Vec::new();
        for location in locations
            .iter()
            .filter(|location| is_more_than_runs(location))
        {
            // One that is in use is its user's.
            if let Ok(lock) = location.hold("kapi task") {
                held.push((location, lock));
            }
        }
        if held.is_empty() && old.done_again.is_none() {
            return Ok(None);
        }
        let root = self.project.layout.root();
        let now_ms = self.project.clock.now_ms();
        let repo = RepositorySession::open(&self.grants, root, &Cancel::new()).ok();
        let mut gone: Vec<(&SandboxPaths, SandboxRemains)> = Vec::new();
        for &(location, ref _lock) in &held {
            if location.dir().join(MARK).exists() {
                settle(location, now_ms);
                continue;
            }
            let uncommitted = match old.last {
                Some(last) if last == location => UncommittedWork::Stays,
                Some(_) | None => UncommittedWork::IsDoneAgain,
            };
            let found = remains::of(location, repo.as_ref(), uncommitted, now_ms)?;
            gone.extend(found.map(|found| (location, found)));
        }
        let mut kept = None;
        if let Some(repo) = &repo {
            let key = &self.setting.project_key;
            let done_again = old.done_again;
            let held_back = done_again.map(|task| of_task(&repo.repository, key, task));
            let mut going = held_back.transpose()?.unwrap_or_default();
            going.extend(gone.iter().flat_map(|(_, found)| found.refs.clone()));
            let also: Vec<_> = gone
                .iter()
                .filter_map(|(_, found)| found.commit.clone())
                .collect();
            let by = Signature {
                author: &repository_session::author(),
                at_unix_seconds: now_ms.div_euclid(1_000),
            };
            let rescued = repo.repository.retire_refs(&Retirement {
                going: &going,
                also: &also,
                name: &repository_session::ref_part(&self.rescue_name(id))?,
                by: &by,
            });
            kept = rescued.map_err(|error| LaunchError::failed(&error))?;
        }
        let statuses = writer::list(&self.setting.sandboxes.status_dir());
        let statuses = statuses.map_err(|error| LaunchError::failed(&error))?;
        for (location, found) in &gone {
            remains::remove(location, found, RUNS, &statuses)?;
        }
        Ok(kept.map(|kept| {
            format!(
                "the changes of an earlier attempt are kept; restore them with `{}`",
                kept.restore_line
            )
        }))
    }

    fn rescue_name(&self, id: KernelTaskId) -> String {
        format!("{id}-{}", queue_digits(&self.setting.project_key))
    }
}

/// Returns the sandboxes of the attempts of a project, of so many at most.
pub(super) fn attempts(sandboxes: &Sandboxes, key: &str, max: usize) -> AttemptSandboxes {
    let dir = sandboxes.root().join(key);
    let mut found = AttemptSandboxes::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten().take(max) {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let parts = name.rsplit_once('-').filter(|_| name.starts_with("task_"));
        let parts = parts
            .and_then(|(task, fence)| Some((KernelTaskId::parse(task).ok()?, fence.parse().ok()?)));
        if let (Some((task, fence)), Ok(id)) = (parts, SandboxId::parse(&name)) {
            found
                .entry(task)
                .or_default()
                .push((fence, sandboxes.location(key, &id)));
        }
    }
    found.values_mut().for_each(|locations| locations.sort());
    found
}

/// Tells whether a sandbox holds anything but what its agent was told and did.
pub(super) fn is_more_than_runs(location: &SandboxPaths) -> bool {
    let entries = fs::read_dir(location.dir()).into_iter().flatten().flatten();
    location.worktree().exists() || entries.into_iter().any(|entry| entry.file_name() != RUNS)
}
