//! What events triggered: a mark that is another one than the last that was dealt with.
//!
//! The first look only notes the mark. What happens while a loop rests is not lost: files and refs are
//! looked at again when the rest is over, and results wait for it in the queue. Where there is no room,
//! nothing is noted.

use kapi_core::task_id::KernelTaskId;
use kapi_core::value::KernelValue;

use crate::record::error::KernelError;
use crate::record::events;
use crate::record::events::Sight;
use crate::record::leader::{
    HandledOccurrence, LoopLauncher, LoopMemory, Occurrence, WAIT_MS, is_off,
};
use crate::rules::definition::trigger::EventSource;
use crate::rules::loop_run::RunTrigger;

/// Deals with what happened to what one loop watches, and returns when to look again.
pub(super) fn step(
    plan: &mut LoopMemory,
    launcher: &mut LoopLauncher<'_, '_, '_>,
    dealt: &mut Vec<HandledOccurrence>,
) -> Result<Option<i64>, KernelError> {
    let Some(source) = plan.source() else {
        return Ok(None);
    };
    let sight = match source {
        EventSource::LoopResult { loop_name, on } => Some(events::look_at_loop(
            launcher.queue.kernel(),
            loop_name,
            *on,
        )),
        EventSource::Files { .. } | EventSource::GitRef { .. } => {
            launcher.around.sights.get(&plan.definition.name).cloned()
        }
        // Whoever calls triggers it.
        EventSource::Webhook { .. } => None,
    };
    let state = launcher.state(plan);
    let mark = state.and_then(|state| state.mark.as_deref());
    let known = mark.filter(|mark| events::is_mark_of(source, mark));
    let (now, payload) = match sight {
        None | Some(Sight::Failed { .. }) => return Ok(None),
        Some(Sight::Unsettled { again_at_ms }) => return Ok(Some(again_at_ms)),
        Some(Sight::Nothing) if known.is_some() => return Ok(None),
        Some(Sight::Nothing) => (events::mark(source, ""), KernelValue::Null),
        Some(Sight::Is { state, payload }) => (events::mark(source, &state), payload),
    };
    if known.is_none() {
        launcher.see(plan, now)?;
        return Ok(None);
    }
    // What happens while it is off is noted by whoever switches it on.
    if known == Some(now.as_str()) || is_off(&plan.definition, state) {
        return Ok(None);
    }
    let is_result = matches!(source, EventSource::LoopResult { .. });
    if let Some(rested_at_ms) = rests_until(plan, launcher).filter(|_| !is_result) {
        return Ok(Some(rested_at_ms));
    }
    if !launcher.has_room() {
        return Ok(Some(launcher.around.now_ms.saturating_add(WAIT_MS)));
    }
    let occurrence = Occurrence {
        trigger: RunTrigger::Event {
            source: events::words(source),
            mark: now.clone(),
        },
        key: format!("loop:{}@{now}", plan.definition.name),
        depth: depth(source, &payload, launcher)?,
        payload,
    };
    dealt.push(launcher.fire(plan, occurrence)?);
    Ok(None)
}

/// Returns when the rest of a loop is over, if it rests.
fn rests_until(plan: &LoopMemory, launcher: &LoopLauncher<'_, '_, '_>) -> Option<i64> {
    let state = launcher.state(plan)?;
    let until_ms = state.rests_until_ms(plan.definition.cooldown_ms)?;
    (until_ms > launcher.around.now_ms).then_some(until_ms)
}

/// Returns how many runs set each other off before this one: loops that wait for each other's
/// results end by that.
fn depth(
    source: &EventSource,
    payload: &KernelValue,
    launcher: &LoopLauncher<'_, '_, '_>,
) -> Result<u32, KernelError> {
    let EventSource::LoopResult { .. } = source else {
        return Ok(0);
    };
    let Some(KernelValue::Text(task)) = payload.get("task") else {
        return Ok(1);
    };
    let Ok(task) = KernelTaskId::parse(task) else {
        return Ok(1);
    };
    let found = launcher.queue.find(task)?;
    let run = found.as_ref().and_then(|task| task.loop_run());
    Ok(run.map_or(0, |run| run.depth).saturating_add(1))
}
