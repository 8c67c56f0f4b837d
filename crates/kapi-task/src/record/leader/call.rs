//! What somebody triggers by a call: every loop that waits for calls of that name.
//!
//! Any process can take a call, leading or not: what makes it the same as another is its delivery's
//! id. Knows no protocol and no secret.

use std::collections::BTreeMap;

use kapi_core::actor::Actor;
use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::value::KernelValue;

use crate::record::admission::{KeyAsk, LoopAsk};
use crate::record::error::KernelError;
use crate::record::events;
use crate::record::leader::{Leader, LeaderContext, is_off};
use crate::record::queue::Queue;
use crate::rules::decide::KernelReply;
use crate::rules::definition::Definition;
use crate::rules::definition::trigger::EventSource;
use crate::rules::denied::KernelDenial;
use crate::rules::loop_run::RunTrigger;
use crate::rules::request::TaskOrigin;

/// A call that was proved to know the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopCall {
    /// The name that was called.
    pub name: LoopName,
    /// What came with it.
    pub payload: KernelValue,
    /// Which delivery it is, where the caller says so: the same one triggers one run.
    pub delivery: Option<String>,
}

/// What a call came to for one loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopCallOutcome {
    /// This run.
    Run(KernelTaskId),
    /// The same delivery set this run off before.
    Duplicate(KernelTaskId),
    /// A run that waits stands for it.
    Coalesced(String),
    /// There is no room.
    Full(String),
    /// A rule forbids it, or it cannot be run at all.
    Refused(String),
}

impl Leader {
    /// Triggers what waits for a call; nothing where no loop does, or those that do are off.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn called(
        &self,
        queue: &mut Queue<'_>,
        around: &LeaderContext<'_>,
        call: &LoopCall,
    ) -> Result<Vec<(LoopName, LoopCallOutcome)>, KernelError> {
        let mut outcomes = Vec::new();
        for (name, plan) in &self.plans {
            let Some(source @ EventSource::Webhook { name: called }) = plan.source() else {
                continue;
            };
            if *called != call.name || is_off(&plan.definition, queue.kernel().loops.get(name)) {
                continue;
            }
            let outcome = take(queue, around, &plan.definition, source, call)?;
            outcomes.push((name.clone(), outcome));
        }
        Ok(outcomes)
    }
}

fn take(
    queue: &mut Queue<'_>,
    around: &LeaderContext<'_>,
    definition: &Definition,
    source: &EventSource,
    call: &LoopCall,
) -> Result<LoopCallOutcome, KernelError> {
    let name = &definition.name;
    let profile = match around.profiles.find(&definition.agent) {
        Ok(profile) => profile,
        Err(unknown) => return Ok(LoopCallOutcome::Refused(format!("failed to {unknown}"))),
    };
    // Without an id every call is one of its own.
    let mark = match &call.delivery {
        Some(delivery) => delivery.clone(),
        None => format!("at {}", around.now_ms),
    };
    let key = call.delivery.as_ref().map_or(KeyAsk::None, |delivery| {
        KeyAsk::Given(format!("webhook:{name}@{delivery}"))
    });
    let ask = LoopAsk {
        definition,
        profile,
        trigger: RunTrigger::Event {
            source: events::words(source),
            mark: events::mark(source, &mark),
        },
        inputs: BTreeMap::new(),
        payload: call.payload.clone(),
        depth: 0,
        key,
        origin: TaskOrigin::Loop { name: name.clone() },
    };
    match around.admission.trigger_loop(queue, &Actor::Engine, ask) {
        Ok(KernelReply::Submitted(task)) => Ok(LoopCallOutcome::Run(task)),
        Ok(KernelReply::Duplicate(task)) => Ok(LoopCallOutcome::Duplicate(task)),
        Ok(KernelReply::Skipped(reason)) => Ok(LoopCallOutcome::Coalesced(reason)),
        Ok(answer @ (KernelReply::Claimed(..) | KernelReply::Nothing | KernelReply::Done)) => {
            unreachable!("a run that is asked for is let in or not, and never {answer:?}")
        }
        Err(KernelError::Denied(denied @ KernelDenial::OverCapacity { .. })) => {
            Ok(LoopCallOutcome::Full(denied.to_string()))
        }
        Err(error @ (KernelError::Denied(_) | KernelError::Policy(_) | KernelError::Inputs(_))) => {
            Ok(LoopCallOutcome::Refused(error.to_string()))
        }
        Err(error) => Err(error),
    }
}
