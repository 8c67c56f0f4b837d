//! Going on where an earlier worker was cut off: the phases that are recorded, and an agent that had
//! ended although nobody recorded it. Such an agent is not run, and not paid for, again.
//!
//! Whether what it made is right is judged by the phases after it, as for any other.

use kapi_launch::adopt::{CommitNote, adopt, is_unsettled};
use kapi_machine::watch::Activity;

use super::Performer;
use super::agent::{AttemptRun, bounds, commit_message, ran};
use super::attempt::TaskAttempt;
use super::leavings::{earlier, keep};
use super::ruling::Ruling;
use super::setup::Setup;
use crate::record::worker::LeaseHandle;
use crate::rules::task::{AttemptReport, End, KernelTask, LoopPhase};

/// Returns what came of a task's agent, if that is recorded.
pub(super) fn executed(task: &KernelTask) -> Option<&AttemptReport> {
    let is_over = task
        .phases
        .iter()
        .any(|record| record.phase == LoopPhase::Execute);
    task.report.as_deref().filter(|_| is_over)
}

/// Tells whether an agent of an earlier attempt seems to have ended although nobody recorded it.
pub(super) fn is_unrecorded(
    performer: &Performer<'_>,
    task: &KernelTask,
    handle: &LeaseHandle<'_>,
) -> bool {
    task.attempts > 1 && earlier(performer, task, handle).iter().any(is_unsettled)
}

/// Takes over what the agent of an earlier attempt had finished; `None` where none had.
pub(super) fn adopted(
    performer: &Performer<'_>,
    attempt: TaskAttempt<'_>,
    setup: &Setup,
    ruling: &Ruling,
) -> Option<AttemptRun> {
    let TaskAttempt { task, handle, .. } = attempt;
    if !is_unrecorded(performer, task, handle) {
        return None;
    }
    let message = commit_message(task, setup);
    let note = CommitNote {
        message: &message,
        now_ms: performer.project.clock.now_ms(),
    };
    let say = |text: String| (performer.notice)(task.id, Activity::Note { text });
    for location in earlier(performer, task, handle).iter().rev() {
        match adopt(&performer.grants, location, note) {
            Ok(None) => {}
            Ok(Some(launched)) => {
                if !launched.left_out.is_empty() {
                    keep(location);
                }
                say("An earlier attempt's agent had finished; its work is taken over.".to_owned());
                let bounds = bounds(setup, ruling);
                return Some(ran(location.id(), &bounds, launched, End::Completed));
            }
            // The agent does the work again, and what is there stays.
            Err(error) => say(format!("failed to {}", error.message)),
        }
    }
    None
}
