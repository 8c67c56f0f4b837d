//! Letting a request in: its own rules, the same request again, the room there is, and for a
//! loop's run whether its time has come.

use kapi_core::actor::Actor;
use kapi_core::task_id::KernelTaskId;

use crate::rules::command::Admission;
use crate::rules::decide::{KernelDecision, KernelReply, only_engine};
use crate::rules::definition;
use crate::rules::denied::KernelDenial;
use crate::rules::event::KernelEvent;
use crate::rules::loop_run::{LoopRun, RunTrigger};
use crate::rules::request::{DEPTH_MAX, KernelRequest};
use crate::rules::state::{KernelState, is_on};
use crate::rules::task_state::KernelTaskState;

pub(super) fn submit(
    kernel: &KernelState,
    actor: &Actor,
    request: &KernelRequest,
    admission: Admission,
    now_ms: i64,
) -> Result<KernelDecision, KernelDenial> {
    if let Some(rule) = request.fault() {
        return Err(KernelDenial::BadRequest { rule });
    }
    check_depth(request)?;
    if request.goal.is_some() {
        // A person approved the workflow; what it has done is not asked for by anybody else.
        only_engine(actor, "run a workflow's goal")?;
    }
    if let Some(key) = &request.key
        && let Some(first) = kernel.holder_of(&key.text, now_ms)
    {
        return Ok(KernelDecision {
            events: Vec::new(),
            answer: KernelReply::Duplicate(first),
        });
    }
    if let Some(run) = &request.loop_run
        && let Some(reason) = not_now(kernel, actor, request, run, now_ms)
    {
        return Ok(KernelDecision {
            events: vec![KernelEvent::LoopSkipped {
                name: run.name().clone(),
                trigger: run.trigger.clone(),
                reason: reason.clone(),
                is_refused: false,
            }],
            answer: KernelReply::Skipped(reason),
        });
    }
    check_capacity(kernel, admission)?;
    let task = KernelTaskId::new(kernel.last_task.saturating_add(1));
    Ok(KernelDecision {
        events: vec![KernelEvent::Submitted {
            task,
            request: Box::new(request.clone()),
        }],
        answer: KernelReply::Submitted(task),
    })
}

fn check_depth(request: &KernelRequest) -> Result<(), KernelDenial> {
    let too_deep = |depth, max| Err(KernelDenial::TooDeep { depth, max });
    if request.depth > DEPTH_MAX {
        return too_deep(request.depth, DEPTH_MAX);
    }
    match &request.loop_run {
        Some(run) if run.depth > definition::DEPTH_MAX => {
            too_deep(run.depth, definition::DEPTH_MAX)
        }
        Some(_) | None => Ok(()),
    }
}

fn check_capacity(kernel: &KernelState, admission: Admission) -> Result<(), KernelDenial> {
    let running = kernel.n_tasks();
    match admission.full_at(running) {
        Some(max) => Err(KernelDenial::OverCapacity { running, max }),
        None => Ok(()),
    }
}

/// Returns why a loop does not run now.
fn not_now(
    kernel: &KernelState,
    actor: &Actor,
    request: &KernelRequest,
    run: &LoopRun,
    now_ms: i64,
) -> Option<String> {
    let is_asked = matches!(run.trigger, RunTrigger::Manual { .. });
    let loop_state = kernel.loops.get(run.name());
    let is_off = loop_state.is_some_and(|state| state.is_enabled == Some(false));
    let by_person = is_asked && matches!(actor, Actor::Human { .. });
    if is_off && !by_person {
        return Some("the loop is disabled".to_owned());
    }
    let sets_itself_off = matches!(
        run.trigger,
        RunTrigger::Cron { .. } | RunTrigger::Event { .. }
    );
    if sets_itself_off && !is_on(&run.definition, loop_state) {
        return Some("it came with the repository and is not enabled".to_owned());
    }
    if let RunTrigger::Cron { due_at_ms } = &run.trigger
        && loop_state
            .and_then(|state| state.fired_at_ms)
            .is_some_and(|fired_at_ms| fired_at_ms >= *due_at_ms)
    {
        return Some("this scheduled time was already handled".to_owned());
    }
    if let RunTrigger::Event { .. } = run.trigger {
        // An event comes once: it waits for the cooldown in the queue, and only the same one is dropped.
        return stands_for(kernel, run).then(|| "a run of it is already queued".to_owned());
    }
    if !is_asked && waits(kernel, run).next().is_some() {
        return Some("a run of it is already queued".to_owned());
    }
    if by_person && request.key.is_none() {
        // Whoever asks for another run in so many words means it.
        return None;
    }
    let rests_until_ms = loop_state?.rests_until_ms(run.definition.cooldown_ms)?;
    (rests_until_ms > now_ms).then(|| "cooldown active".to_owned())
}

/// Tells whether a run that waits stands for this one: with the same payload, or any where the definition
/// says so.
fn stands_for(kernel: &KernelState, run: &LoopRun) -> bool {
    let is_same = |other: &LoopRun| {
        let is_event = matches!(other.trigger, RunTrigger::Event { .. });
        is_event && other.payload == run.payload
    };
    waits(kernel, run).any(|other| run.definition.coalesce || is_same(other))
}

/// Returns the runs of the same loop that wait.
fn waits<'k>(kernel: &'k KernelState, run: &LoopRun) -> impl Iterator<Item = &'k LoopRun> {
    let pending = kernel
        .tasks
        .values()
        .filter(|task| task.state == KernelTaskState::Pending);
    let runs = pending.filter_map(|task| task.loop_run());
    runs.filter(|other| other.name() == run.name())
}
