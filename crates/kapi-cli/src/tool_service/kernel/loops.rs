//! Loops for agents: triggering one, and where they stand.
//!
//! Whether a loop runs now is the kernel's business; what it does then is its run's.

use std::collections::BTreeMap;

use kapi_core::task_id::LoopName;
use kapi_core::value::KernelValue;
use kapi_settings::fault::nearest;
use kapi_store::timestamp::format_ms;
use kapi_sys::clock::Clock as _;
use kapi_task::record::admission::{KeyAsk, LoopAsk};
use kapi_task::record::definition_file::LoopCatalog;
use kapi_task::record::queue::Queue;
use kapi_task::record::schedule::{Schedule, due};
use kapi_task::rules::decide;
use kapi_task::rules::definition::Definition;
use kapi_task::rules::loop_run::RunTrigger;
use kapi_task::rules::state::LoopState;
use kapi_task::rules::task_terms::TaskBudget;
use kapi_wire::kernel_tools::answer::ToolAnswer;
use kapi_wire::kernel_tools::answers::{self, LoopSummary, TriggerResult, loop_status_word};

use super::{Asker, ToolResult, within, words};
use crate::error::Error;
use crate::kernel::ProjectKernel;

/// Sets a loop off.
pub(super) fn trigger(
    kernel: &ProjectKernel<'_>,
    asker: &Asker,
    name: &str,
    source: Option<&str>,
) -> Result<ToolResult, Error> {
    let refused = |reason: &str| Ok(answers::triggered(name, TriggerResult::Error(reason)).into());
    let loops = kernel.loops();
    let known = LoopName::parse(name).ok();
    let Some(definition) = known.as_ref().and_then(|name| loops.find(name)) else {
        let mut reason = format!("loop not found: {name}");
        // A file that cannot be read is why there is none of its name.
        let hint = loops.fault_of(name).map(ToString::to_string);
        let hint = hint.or_else(|| meant(&loops, name));
        reason.extend(hint.map(|hint| format!(" ({hint})")));
        return refused(&reason);
    };
    let profile = match kernel.profile(Some(&definition.agent)) {
        Ok(profile) => profile,
        Err(error) => return refused(&error.to_string()),
    };
    let backend = definition.backend.as_ref();
    if let Err(error) = kernel.check_limits(backend, profile, &definition.budget) {
        return refused(&error.to_string());
    }
    kernel.prepare()?;
    let mut queue = kernel.queue()?;
    let allowance = match within::allowance(&queue, asker)? {
        Ok(allowance) => allowance,
        Err(reason) => return refused(&reason),
    };
    let definition = Definition {
        budget: narrower(definition.budget, allowance),
        ..definition.clone()
    };
    let ask = LoopAsk {
        definition: &definition,
        profile,
        trigger: RunTrigger::Manual {
            source: source.map(str::to_owned),
        },
        inputs: BTreeMap::new(),
        payload: KernelValue::Null,
        depth: asker.depth,
        key: KeyAsk::Derived,
        origin: asker.origin(),
    };
    let answer =
        kernel.at_admission(|admission| admission.trigger_loop(&mut queue, &asker.actor(), ask));
    match answer {
        Ok(decide::KernelReply::Submitted(id)) => {
            let task = super::found(&queue, id)?;
            Ok(ToolResult {
                answer: answers::triggered(name, TriggerResult::Launched(&task)),
                task: Some(id),
            })
        }
        Ok(decide::KernelReply::Skipped(reason)) => {
            Ok(answers::triggered(name, TriggerResult::Skipped(&reason)).into())
        }
        Ok(decide::KernelReply::Duplicate(first)) => Ok(ToolResult {
            answer: answers::triggered(name, TriggerResult::Duplicate(first)),
            task: Some(first),
        }),
        Ok(other) => refused(&format!("it ended as {other:?}")),
        Err(error) => refused(&words(&error)),
    }
}

/// Says where one loop stands, or all.
pub(super) fn status(kernel: &ProjectKernel<'_>, name: Option<&str>) -> Result<ToolAnswer, Error> {
    let loops = kernel.loops();
    let queue = kernel.queue()?;
    let now_ms = kernel.context.clock.now_ms();
    let shown = |definition: &Definition| line_of(&queue, definition, now_ms);
    let Some(name) = name else {
        let lines: Vec<LoopSummary> = loops.definitions.iter().map(shown).collect();
        return Ok(answers::loops(&lines));
    };
    let known = LoopName::parse(name).ok();
    match known.as_ref().and_then(|name| loops.find(name)) {
        Some(definition) => Ok(answers::loops(&[shown(definition)])),
        None => Ok(answers::no_loop(name, &instead(&loops, name))),
    }
}

/// Says what is wrong with the file of a loop that there is not, or what may have been meant.
fn instead(loops: &LoopCatalog, name: &str) -> String {
    if let Some(fault) = loops.fault_of(name) {
        return fault.to_string();
    }
    let names = loops.definitions.iter().map(|known| known.name.as_str());
    let known: Vec<&str> = names.collect();
    match (meant(loops, name), known.as_slice()) {
        (Some(question), _) => question,
        (None, []) => "There are no loops.".to_owned(),
        (None, known) => format!("There are: {}.", known.join(", ")),
    }
}

/// Asks whether a loop with a name like this was meant.
fn meant(loops: &LoopCatalog, name: &str) -> Option<String> {
    let names = loops.definitions.iter().map(|known| known.name.as_str());
    nearest(name, names).map(|meant| format!("Did you mean {meant}?"))
}

fn line_of(queue: &Queue<'_>, definition: &Definition, now_ms: i64) -> LoopSummary {
    let kernel = queue.kernel();
    let known = kernel.loops.get(&definition.name);
    let is_its = |run: &kapi_task::rules::loop_run::LoopRun| *run.name() == definition.name;
    let tasks = kernel.tasks.values();
    let live = tasks.filter(|task| task.loop_run().is_some_and(is_its));
    let last = known.and_then(|known| known.last_run.as_ref());
    LoopSummary {
        name: definition.name.to_string(),
        last_run: last.map(|last| format_ms(last.ended_at_ms)),
        status: loop_status_word(live, known).to_owned(),
        next_scheduled: next_ms(definition, known, now_ms).map(format_ms),
    }
}

/// Returns when a loop is due next; what was missed is due now.
fn next_ms(definition: &Definition, known: Option<&LoopState>, now_ms: i64) -> Option<i64> {
    if known.is_some_and(|known| known.is_enabled == Some(false)) {
        return None;
    }
    let schedule = Schedule::of(&definition.name, &definition.trigger).ok()??;
    let fired_at_ms = known.and_then(|known| known.fired_at_ms);
    let seen_at_ms = known.and_then(|known| known.seen_at_ms);
    let due = due(&schedule, fired_at_ms, seen_at_ms.unwrap_or(now_ms), now_ms);
    let next = due.fire.first().copied().or(due.next);
    next.map(|next| next.at_ms)
}

/// Returns the tighter of two budgets.
fn narrower(one: TaskBudget, other: TaskBudget) -> TaskBudget {
    let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, None) => one,
        (None, other) => other,
    };
    TaskBudget {
        tokens: least(one.tokens, other.tokens),
        usd_micros: least(one.usd_micros, other.usd_micros),
        time_ms: least(one.time_ms, other.time_ms),
    }
}
