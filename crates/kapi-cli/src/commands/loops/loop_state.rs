//! Where a loop stands: its definition, what the kernel knows of it, and when it is due.
//!
//! A function of the files, the fold and the time; decides nothing about when it runs.

use kapi_core::task_id::LoopName;
use kapi_core::text::one_line;
use kapi_task::record::definition_file::LoopCatalog;
use kapi_task::record::schedule::{Schedule, due};
use kapi_task::record::{cron, events};
use kapi_task::rules::definition::Definition;
use kapi_task::rules::definition::trigger::LoopTrigger;
use kapi_task::rules::state::KernelState;
use kapi_task::rules::task::End;
use kapi_task::rules::task_state::KernelTaskState;
use kapi_wire::loops::{LoopView, Timing};

use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{ProjectKernel, failed};

/// Returns the definition with a name, or says which there are and what is wrong with files.
pub(super) fn find<'d>(found: &'d LoopCatalog, name: &LoopName) -> Result<&'d Definition, Error> {
    if let Some(definition) = found.find(name) {
        return Ok(definition);
    }
    let error = Error::new(Exit::NotFound, format!("loop not found: {name}"));
    let faulty = || {
        let text = format!("the definition of loop {name} has an error");
        Error::new(Exit::Usage, text)
    };
    let fault = found.fault_of(name.as_str());
    let names: Vec<&str> = found
        .definitions
        .iter()
        .map(|definition| definition.name.as_str())
        .collect();
    Err(match (fault, names.as_slice()) {
        (Some(fault), _) => faulty().with_hint(fault.to_string()),
        (None, []) => error.with_hint("there are none; copy some examples with `kapi loop init`."),
        (None, names) => error.with_hint(format!("available: {}.", names.join(", "))),
    })
}

/// A loop that a person should look at.
#[derive(Debug)]
pub(crate) struct LoopTrouble {
    /// Which.
    pub(crate) name: LoopName,
    /// `loop_denied` or `loop_failed`.
    pub(crate) kind: &'static str,
    /// What, in a sentence without a period.
    pub(crate) what: String,
    /// Since when, in milliseconds since the epoch.
    pub(crate) since_ms: i64,
}

/// Returns the loops that were refused since their last run, or whose last run failed.
pub(crate) fn troubles(kernel: &ProjectKernel<'_>) -> Result<Vec<LoopTrouble>, Error> {
    let queue = kernel.queue()?;
    let mut troubles = Vec::new();
    for definition in &kernel.loops().definitions {
        let Some(known) = queue.kernel().loops.get(&definition.name) else {
            continue;
        };
        let trouble = |kind, what, since_ms| LoopTrouble {
            name: definition.name.clone(),
            kind,
            what,
            since_ms,
        };
        if let Some(skip) = known.refused() {
            let what = format!("it did not run: {}", one_line(&skip.reason));
            troubles.push(trouble("loop_denied", what, skip.at_ms));
            continue;
        }
        let Some(last) = known.last_run.as_ref() else {
            continue;
        };
        if last.state == KernelTaskState::Failed {
            let task = queue.find(last.task).map_err(|error| failed(&error))?;
            let why = task
                .as_ref()
                .and_then(|task| match &task.report.as_ref()?.end {
                    End::Failed(failure) => Some(one_line(&failure.message)),
                    End::Completed | End::Skipped { .. } | End::Cancelled => None,
                });
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let what = format!("its last run, {}, failed{why}", last.task);
            troubles.push(trouble("loop_failed", what, last.ended_at_ms));
        }
    }
    Ok(troubles)
}

/// Returns the view of one loop at a time.
pub(super) fn view(fold: &KernelState, definition: &Definition, now_ms: i64) -> LoopView {
    LoopView::of(fold, definition, timing(fold, definition, now_ms))
}

fn timing(fold: &KernelState, definition: &Definition, now_ms: i64) -> Timing {
    let words = match &definition.trigger {
        LoopTrigger::Manual => "by hand".to_owned(),
        LoopTrigger::Event { source } => format!("on {}", events::words(source)),
        LoopTrigger::Cron { schedule, .. } => schedule.clone(),
    };
    // What cannot be read is no definition, and so is not listed here.
    let Ok(Some(schedule)) = Schedule::of(&definition.name, &definition.trigger) else {
        let next_at_ms = None;
        return Timing { words, next_at_ms };
    };
    let known = fold.loops.get(&definition.name);
    let handled = known.and_then(|known| known.fired_at_ms);
    let since_ms = known.and_then(|known| known.seen_at_ms).unwrap_or(now_ms);
    let found = due(&schedule, handled, since_ms, now_ms);
    // What is due and was not triggered yet comes first.
    let first = found.fire.first().copied().or(found.next);
    Timing {
        words: cron::describe(&schedule.cron),
        next_at_ms: first.map(|firing| firing.at_ms),
    }
}
