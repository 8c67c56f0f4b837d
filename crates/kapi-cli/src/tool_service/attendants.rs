//! The workers of `kapi mcp`: threads that work on the tasks this process submitted, as long as it
//! lives.
//!
//! Each attends one task at a time, whoever has it. What is left when the client hangs up goes back
//! to the queue.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use kapi_core::task_id::KernelTaskId;
use kapi_sys::signal::Interrupts;

use super::MCP;
use crate::context::Context;
use crate::error::Error;
use crate::kernel;
use crate::kernel::foreground::{Foreground, attend};

/// Tasks that are attended at once; the others wait, here or for `kapi up`.
const ATTENDED_MAX: usize = 8;
/// Tasks that wait to be attended; any more are left to `kapi up`.
const WAITING_MAX: usize = 1_000;

/// The workers of one process.
pub(crate) struct Attendants<'a> {
    context: &'a Context,
    interrupts: &'a Interrupts,
    line: Mutex<AttendantLine>,
}

#[derive(Debug, Default)]
struct AttendantLine {
    waiting: VecDeque<KernelTaskId>,
    n_working: usize,
}

impl<'a> Attendants<'a> {
    /// Begins with nothing to do; when the interrupts are raised, it ends.
    pub(crate) fn new(context: &'a Context, interrupts: &'a Interrupts) -> Self {
        Self {
            context,
            interrupts,
            line: Mutex::default(),
        }
    }

    /// Has a task worked on.
    pub(crate) fn take<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, task: KernelTaskId) {
        let mut line = self.line();
        if line.waiting.len() < WAITING_MAX {
            line.waiting.push_back(task);
        }
        if line.n_working < ATTENDED_MAX {
            line.n_working += 1;
            scope.spawn(|| self.work());
        }
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            if let Err(error) = self.attend(task) {
                let said = format!("{task} stays queued for `kapi up`: {error}");
                self.context.ui.say(&said);
            }
        }
    }

    /// Returns the next task; whoever gets none ends.
    fn next(&self) -> Option<KernelTaskId> {
        let mut line = self.line();
        let next = line
            .waiting
            .pop_front()
            .filter(|_| !self.interrupts.is_raised());
        if next.is_none() {
            line.n_working -= 1;
        }
        next
    }

    fn attend(&self, task: KernelTaskId) -> Result<(), Error> {
        kernel::with(self.context, MCP, |kernel| {
            // Standard output belongs to the protocol, and what happens stands in the transcript.
            let performer = kernel.performer(&|_, _| {})?;
            let foreground = Foreground {
                kernel,
                is_over: &|| self.interrupts.is_raised(),
                perform: &|task, handle| performer.perform(task, handle),
                has_capacity: &|| true,
            };
            attend(&foreground, task, &mut |_| {}).map(drop)
        })
    }

    fn line(&self) -> MutexGuard<'_, AttendantLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
