//! The transcripts of a task's attempts, all of them or as they are written.
//!
//! A task that drives a goal has none: the goal has a log of its own.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use kapi_core::task_id::KernelTaskId;
use kapi_sys::alarm::{Alarm, WakeSources};
use kapi_task::record::queue::Queue;
use kapi_task::rules::goal_drive::GoalDrive;
use kapi_task::rules::task::KernelTask;
use serde_json::json;

use crate::commands::log::OWNER;
use crate::commands::log::transcript::TranscriptPosition;
use crate::context::Context;
use crate::driving::attendance::{alarm, alarm_failed};
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::listening::listen;
use crate::kernel::{self, ProjectKernel, failed, no_task};
use crate::ui::{Format, OutputDisposition};

/// The longest until a followed transcript is looked at again.
const LOOK: Duration = Duration::from_millis(1_000);

/// Prints transcripts.
pub(super) fn log(context: &Context, id: KernelTaskId, follow: bool) -> Result<Exit, Error> {
    kernel::with(context, OWNER, |kernel| print(kernel, id, follow))
}

fn print(kernel: &ProjectKernel<'_>, id: KernelTaskId, is_followed: bool) -> Result<Exit, Error> {
    let alarm = alarm()?;
    let waker = alarm.waker();
    let mut queue = kernel.queue()?;
    let found = task(&mut queue, id)?;
    if let Some(drive) = found.goal_drive() {
        point(kernel.context, &found, drive);
        return Ok(Exit::Success);
    }
    thread::scope(|scope| {
        let _listening = listen(scope, &queue, move || waker.ring())?;
        follow(kernel, id, is_followed, queue, alarm)
    })
}

/// Says where the log of a task is that drives a goal: the goal has one of its own.
fn point(context: &Context, task: &KernelTask, drive: &GoalDrive) {
    let command = format!("kapi log {:03}", drive.goal.reference());
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "goal_log",
            "task": task.id.to_string(),
            "goal": drive.goal.to_string(),
            "workflow": drive.workflow.to_string(),
            "next": [command],
        })),
        Format::Human => context.ui.line(&format!(
            "{} drives goal {}, which has its own log: see `{command}`.",
            task.id, drive.goal
        )),
    }
}

fn follow(
    kernel: &ProjectKernel<'_>,
    id: KernelTaskId,
    is_followed: bool,
    mut queue: Queue<'_>,
    mut alarm: Alarm,
) -> Result<Exit, Error> {
    let context = kernel.context;
    let interrupts = interrupts()?;
    let mut printed: BTreeMap<u64, TranscriptPosition> = BTreeMap::new();
    loop {
        // Asked first, so that whatever it wrote last is among what is read next.
        let task = task(&mut queue, id)?;
        let found = kernel.transcripts(id)?;
        let mut watched = WakeSources::default();
        watched
            .directories
            .insert(kernel.project.layout.kernel_dir());
        watched.directories.extend(
            found
                .values()
                .filter_map(|path| Some(path.parent()?.to_path_buf())),
        );
        alarm
            .watch(&watched)
            .map_err(|error| alarm_failed(&error))?;
        for (attempt, path) in &found {
            let whose = [
                ("task", id.to_string().into()),
                ("lease", (*attempt).into()),
            ];
            let transcript = printed.entry(*attempt).or_default();
            transcript.print(context.ui, path, &whose)?;
        }
        let is_enough = !is_followed
            || task.state.is_ended()
            || context.ui.disposition() == OutputDisposition::Closed;
        if is_enough {
            if found.is_empty() {
                let why = match queue.holders() {
                    None => "no agent has started for it yet",
                    Some(_) => "no agent has run for it on this machine",
                };
                context.ui.say(&format!("{id} has no transcript: {why}."));
            } else if printed.values().all(TranscriptPosition::is_empty) {
                context.ui.say(&format!(
                    "The agent of {id} has said nothing; see `kapi show {id}`."
                ));
            }
            return Ok(Exit::Success);
        }
        if interrupts.is_raised() {
            return Ok(Exit::Interrupted);
        }
        let slept = alarm.sleep(LOOK, &|| interrupts.is_raised());
        slept.map_err(|error| alarm_failed(&error))?;
    }
}

fn task(queue: &mut Queue<'_>, id: KernelTaskId) -> Result<KernelTask, Error> {
    queue.refresh().map_err(|error| failed(&error))?;
    let found = queue.find(id).map_err(|error| failed(&error))?;
    found.ok_or_else(|| no_task(id))
}
