//! Waiting for a task: until it has ended. The exit code is that of `kapi task run`.
//!
//! Whoever waits is told a line whenever it stands elsewhere.

use std::thread;
use std::time::Duration;

use kapi_core::task_id::KernelTaskId;
use kapi_sys::alarm::{Alarm, WakeSources};
use kapi_sys::clock::monotonic_ms;
use kapi_task::record::queue::Queue;

use crate::commands::task::answer;
use crate::commands::task::follow::Follower;
use crate::commands::wait::{OWNER, late};
use crate::context::Context;
use crate::driving::attendance::{alarm, alarm_failed};
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::foreground::TaskSnapshot;
use crate::kernel::listening::listen;
use crate::kernel::{self, ProjectKernel, failed, no_task};

/// The longest until the task is looked at again, should the system not tell of a change.
const LOOK_MS: u64 = 5_000;

/// Waits for a task.
pub(super) fn wait(
    context: &Context,
    id: KernelTaskId,
    timeout_ms: Option<u64>,
) -> Result<Exit, Error> {
    kernel::with(context, OWNER, |kernel| {
        let alarm = alarm()?;
        let waker = alarm.waker();
        let queue = kernel.queue()?;
        thread::scope(|scope| {
            let _listening = listen(scope, &queue, move || waker.ring())?;
            look_on(kernel, id, timeout_ms, queue, alarm)
        })
    })
}

fn look_on(
    kernel: &ProjectKernel<'_>,
    id: KernelTaskId,
    timeout_ms: Option<u64>,
    mut queue: Queue<'_>,
    mut alarm: Alarm,
) -> Result<Exit, Error> {
    let context = kernel.context;
    let interrupts = interrupts()?;
    let mut watched = WakeSources::default();
    watched
        .directories
        .insert(kernel.project.layout.kernel_dir());
    let mut follower = Follower::new(context.ui);
    let end_ms = timeout_ms.map(|ms| monotonic_ms().saturating_add(ms));
    loop {
        alarm
            .watch(&watched)
            .map_err(|error| alarm_failed(&error))?;
        queue.refresh().map_err(|error| failed(&error))?;
        let found = queue.find(id).map_err(|error| failed(&error))?;
        let task = found.ok_or_else(|| no_task(id))?;
        let waits = kernel.waits_of(&queue, &task);
        if task.state.is_ended() {
            kernel.bring_home(&task);
            return Ok(answer::give_result(context, &task));
        }
        if follower.is_first() && kernel.living(&queue)?.is_empty() {
            context.ui.say(
                "note: no worker is running for this project; start one with `kapi up --once` \
                 in another terminal.",
            );
        }
        follower.show(&TaskSnapshot { task: &task, waits });
        if interrupts.is_raised() {
            return Ok(Exit::Interrupted);
        }
        let left_ms = end_ms.map_or(LOOK_MS, |end| end.saturating_sub(monotonic_ms()));
        if left_ms == 0 {
            return Err(late(&id.to_string()));
        }
        let pause = Duration::from_millis(left_ms.min(LOOK_MS));
        let slept = alarm.sleep(pause, &|| interrupts.is_raised());
        slept.map_err(|error| alarm_failed(&error))?;
    }
}
