//! A task of ordinary size, and what is asked of the kernel about it.
//!
//! Through the engine's own calls. Measures nothing.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::task_id::{Holder, KernelTaskId};
use kapi_goal::record::project::Project;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::disk::Disk;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::LEASE_MS;
use kapi_task::rules::command::{Admission, Capacity, Hold, KernelCommand, Overflow};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::request::{KernelRequest, TaskOrigin};
use kapi_task::rules::task::{AttemptReport, End};
use kapi_task::rules::task_terms::{Priority, Retry, TaskBudget};

/// What an ordinary task says.
pub(super) const PROMPT: &str = "Find the cause of the failing test and repair it. Change nothing else, and say what it was in one sentence.";
const USER: &str = "bench";

/// Returns a project on this disk.
pub(super) fn project(disk: &'static dyn Disk, root: &Path) -> Project<'static> {
    Project {
        disk,
        clock: &SystemClock,
        layout: ProjectLayout::new(root.to_path_buf()),
        owner: "xtask bench".to_owned(),
        home: None,
    }
}

/// Returns who asks.
pub(super) fn person() -> Actor {
    Actor::Human {
        user: USER.to_owned(),
    }
}

/// Returns a request; without a key, so that each is another task.
pub(super) fn request(prompt: &str) -> KernelRequest {
    KernelRequest {
        description: "Repair the failing test".to_owned(),
        prompt: prompt.to_owned(),
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 300_000,
        budget: TaskBudget::default(),
        domain: None,
        priority: Priority::Normal,
        key: None,
        retry: Retry::default(),
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        base: None,
        origin: TaskOrigin::Person {
            user: USER.to_owned(),
        },
        depth: 0,
        retry_of: None,
        loop_run: None,
        goal: None,
    }
}

/// Returns as many places as no measurement needs.
pub(super) const fn capacity() -> Capacity {
    Capacity {
        project: 1_000,
        per_agent: BTreeMap::new(),
        usd_micros_per_day: None,
    }
}

/// Submits a task.
pub(super) fn submit(queue: &mut Queue<'_>, prompt: &str) -> anyhow::Result<KernelTaskId> {
    let command = KernelCommand::Submit {
        request: Box::new(request(prompt)),
        admission: Admission {
            tasks_max: 1_000_000,
            overflow: Overflow::Queue,
            running_max: 1_000,
        },
    };
    match queue.submit(&person(), &command)? {
        KernelReply::Submitted(task) => Ok(task),
        answer => bail!("submit a task: it came to {answer:?}"),
    }
}

/// Cancels a task that waits, which ends it.
pub(super) fn cancel(queue: &mut Queue<'_>, task: KernelTaskId) -> anyhow::Result<()> {
    let why = "not wanted".to_owned();
    queue.submit(&person(), &KernelCommand::Cancel { task, why })?;
    Ok(())
}

/// Claims a task, begins it and finishes it, as a worker does whose work is nothing.
pub(super) fn work_off(queue: &mut Queue<'_>, holder: &Holder) -> anyhow::Result<()> {
    let claim = KernelCommand::Claim {
        holder: holder.clone(),
        ttl_ms: LEASE_MS,
        capacity: capacity(),
        only: None,
        reach: None,
    };
    let (task, fence) = match queue.submit(&Actor::Engine, &claim)? {
        KernelReply::Claimed(task, fence) => (task, fence),
        answer => bail!("claim a task: it came to {answer:?}"),
    };
    let hold = Hold { task, fence };
    queue.submit(&Actor::Engine, &KernelCommand::Begin(hold))?;
    let report = Box::new(AttemptReport::of(End::Completed));
    queue.submit(&Actor::Engine, &KernelCommand::Finish { hold, report })?;
    Ok(())
}
