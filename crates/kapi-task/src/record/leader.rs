//! The leader of a project's kernel: it triggers loops, at their instants and after events.
//!
//! Whoever has the leader's lease does, and all it remembers can be read again, so it may be killed
//! at any time. That an instant or an event triggers one run is decided by the kernel: two leaders
//! that do not know of each other do no harm. Looks at no file; what it is told to watch is seen by
//! whoever calls.

pub mod call;
mod clock;
mod lease;
mod watch;

use std::collections::BTreeMap;

use kapi_core::actor::Actor;
use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::value::KernelValue;

use crate::record::admission::{KeyAsk, LoopAsk, TaskAdmission};
use crate::record::error::KernelError;
use crate::record::events::Sight;
use crate::record::leader::lease::Lead;
use crate::record::profile_file::AgentProfiles;
use crate::record::queue::{Queue, WorkerSlot};
use crate::record::schedule::Schedule;
use crate::rules::command::KernelCommand;
use crate::rules::decide::KernelReply;
use crate::rules::definition::Definition;
use crate::rules::definition::trigger::{EventSource, LoopTrigger};
use crate::rules::loop_run::RunTrigger;
use crate::rules::request::TaskOrigin;
use crate::rules::state::{LoopState, is_on};

/// The pause before something that cannot be done now is tried again, in milliseconds.
const WAIT_MS: i64 = 1_000;

/// Triggers loops while it leads.
#[derive(Debug, Default)]
pub struct Leader {
    plans: BTreeMap<LoopName, LoopMemory>,
    lead: Lead,
}

/// What is remembered of a loop.
#[derive(Debug)]
struct LoopMemory {
    definition: Definition,
    schedule: Option<Schedule>,
    /// When its schedule was asked last, in milliseconds since the epoch.
    planned_at_ms: i64,
    /// When there is something to ask again.
    next_at_ms: i64,
}

/// What stands around a leader.
#[derive(Clone, Copy)]
pub struct LeaderContext<'a> {
    /// The door that runs come in by.
    pub admission: &'a TaskAdmission<'a>,
    /// Who can work.
    pub profiles: &'a AgentProfiles,
    /// What was seen of what events watch, by loop; one that is left out was not looked at.
    pub sights: &'a BTreeMap<LoopName, Sight>,
    /// The time, in milliseconds since the epoch.
    pub now_ms: i64,
}

/// What a step came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeadOutcome {
    /// What was due, in the order in which it was dealt with.
    pub dealt: Vec<HandledOccurrence>,
    /// When there is something to do again, in milliseconds since the epoch.
    pub again_at_ms: Option<i64>,
}

/// One occurrence that was dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandledOccurrence {
    /// The loop.
    pub name: LoopName,
    /// What triggered it, or would have.
    pub trigger: RunTrigger,
    /// What became of it.
    pub outcome: OccurrenceOutcome,
}

/// What became of an occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OccurrenceOutcome {
    /// This run.
    Run(KernelTaskId),
    /// Nothing, for a reason.
    None(String),
}

impl Leader {
    /// Takes the loops as they are defined now.
    pub fn set(&mut self, definitions: Vec<Definition>) {
        let mut plans = BTreeMap::new();
        for definition in definitions {
            let name = definition.name.clone();
            let plan = match self.plans.remove(&name) {
                Some(plan) if plan.definition.trigger == definition.trigger => {
                    Some(LoopMemory { definition, ..plan })
                }
                Some(_) | None => LoopMemory::of(definition),
            };
            plans.extend(plan.map(|plan| (name, plan)));
        }
        self.plans = plans;
    }

    /// Tells whether it leads, as far as it knows.
    #[must_use]
    pub const fn leads(&self) -> bool {
        matches!(self.lead, Lead::Until { .. })
    }

    /// Returns what has to be looked at before a step: each loop's source, where it is no loop's.
    pub fn watched(&self) -> impl Iterator<Item = (&LoopName, &EventSource)> {
        self.plans
            .iter()
            .filter_map(|(name, plan)| match plan.source()? {
                EventSource::Files { .. } | EventSource::GitRef { .. } => {
                    Some((name, plan.source()?))
                }
                EventSource::LoopResult { .. } | EventSource::Webhook { .. } => None,
            })
    }

    /// Leads if it can, and triggers what is due.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn step(
        &mut self,
        queue: &mut Queue<'_>,
        own: &WorkerSlot,
        around: &LeaderContext<'_>,
    ) -> Result<LeadOutcome, KernelError> {
        let mut led = LeadOutcome::default();
        if self.plans.is_empty() {
            self.resign(queue, own)?;
            return Ok(led);
        }
        led.again_at_ms = Some(self.lead(queue, own, around.now_ms)?);
        if !self.leads() {
            return Ok(led);
        }
        let mut launcher = LoopLauncher { queue, around };
        for plan in self.plans.values_mut() {
            let again_at_ms = match (&plan.definition.trigger, &plan.schedule) {
                (LoopTrigger::Cron { .. }, Some(_)) => {
                    clock::step(plan, &mut launcher, &mut led.dealt)?
                }
                (LoopTrigger::Event { .. }, _) => watch::step(plan, &mut launcher, &mut led.dealt)?,
                (LoopTrigger::Cron { .. }, None) | (LoopTrigger::Manual, _) => None,
            };
            led.again_at_ms = led.again_at_ms.into_iter().chain(again_at_ms).min();
        }
        Ok(led)
    }
}

impl LoopMemory {
    /// Plans a loop that something but a person triggers. A schedule that cannot be read is told
    /// where definitions are read.
    fn of(definition: Definition) -> Option<Self> {
        let schedule = Schedule::of(&definition.name, &definition.trigger).ok()?;
        match (&definition.trigger, &schedule) {
            (LoopTrigger::Manual, _) | (LoopTrigger::Cron { .. }, None) => return None,
            (LoopTrigger::Cron { .. }, Some(_)) | (LoopTrigger::Event { .. }, _) => {}
        }
        Some(Self {
            definition,
            schedule,
            planned_at_ms: 0,
            next_at_ms: 0,
        })
    }

    const fn source(&self) -> Option<&EventSource> {
        match &self.definition.trigger {
            LoopTrigger::Event { source } => Some(source),
            LoopTrigger::Manual | LoopTrigger::Cron { .. } => None,
        }
    }
}

/// Where a leader asks for runs.
struct LoopLauncher<'s, 'q, 'a> {
    queue: &'s mut Queue<'q>,
    around: &'s LeaderContext<'a>,
}

/// What a run is asked with.
struct Occurrence {
    trigger: RunTrigger,
    key: String,
    payload: KernelValue,
    depth: u32,
}

impl LoopLauncher<'_, '_, '_> {
    fn state(&self, plan: &LoopMemory) -> Option<&LoopState> {
        self.queue.kernel().loops.get(&plan.definition.name)
    }

    /// Tells whether another task is let in.
    fn has_room(&self) -> bool {
        let admission = self.around.admission.terms.admission();
        admission.full_at(self.queue.kernel().n_tasks()).is_none()
    }

    fn record(&mut self, command: &KernelCommand) -> Result<(), KernelError> {
        self.queue.submit(&Actor::Engine, command).map(drop)
    }

    fn see(&mut self, plan: &LoopMemory, mark: String) -> Result<(), KernelError> {
        let name = plan.definition.name.clone();
        let mark = Some(mark);
        self.record(&KernelCommand::See { name, mark })
    }

    /// Records an occurrence that nothing comes of by the loop's own terms.
    fn skip(
        &mut self,
        plan: &LoopMemory,
        trigger: RunTrigger,
        reason: &str,
    ) -> Result<HandledOccurrence, KernelError> {
        self.dismiss(plan, trigger, reason, false)
    }

    /// Records an occurrence of which a rule or a fault lets nothing come.
    fn refuse(
        &mut self,
        plan: &LoopMemory,
        trigger: RunTrigger,
        reason: &str,
    ) -> Result<HandledOccurrence, KernelError> {
        self.dismiss(plan, trigger, reason, true)
    }

    fn dismiss(
        &mut self,
        plan: &LoopMemory,
        trigger: RunTrigger,
        reason: &str,
        is_refused: bool,
    ) -> Result<HandledOccurrence, KernelError> {
        let name = plan.definition.name.clone();
        let reason = reason.to_owned();
        self.record(&KernelCommand::Skip {
            name: name.clone(),
            trigger: trigger.clone(),
            reason: reason.clone(),
            is_refused,
        })?;
        Ok(HandledOccurrence {
            name,
            trigger,
            outcome: OccurrenceOutcome::None(reason),
        })
    }

    /// Sets a loop off. Whatever comes of it is recorded, so that it is not asked again.
    fn fire(
        &mut self,
        plan: &LoopMemory,
        occurrence: Occurrence,
    ) -> Result<HandledOccurrence, KernelError> {
        let definition = &plan.definition;
        let trigger = occurrence.trigger.clone();
        let profile = match self.around.profiles.find(&definition.agent) {
            Ok(profile) => profile,
            Err(unknown) => return self.refuse(plan, trigger, &format!("failed to {unknown}")),
        };
        let ask = LoopAsk {
            definition,
            profile,
            trigger: trigger.clone(),
            inputs: BTreeMap::new(),
            payload: occurrence.payload,
            depth: occurrence.depth,
            key: KeyAsk::Given(occurrence.key),
            origin: TaskOrigin::Loop {
                name: definition.name.clone(),
            },
        };
        let admission = self.around.admission;
        let answer = admission.trigger_loop(self.queue, &Actor::Engine, ask);
        let outcome = match answer {
            Ok(KernelReply::Submitted(task)) => OccurrenceOutcome::Run(task),
            Ok(KernelReply::Skipped(reason)) => OccurrenceOutcome::None(reason),
            Ok(KernelReply::Duplicate(first)) => {
                return self.skip(plan, trigger, &format!("{first} was triggered by it"));
            }
            Ok(answer @ (KernelReply::Claimed(..) | KernelReply::Nothing | KernelReply::Done)) => {
                unreachable!("a run that is asked for is let in or not, and never {answer:?}")
            }
            // It was recorded where it was asked.
            Err(denied @ KernelError::Policy(_)) => OccurrenceOutcome::None(denied.to_string()),
            Err(
                error
                @ (KernelError::Denied(_) | KernelError::Inputs(_) | KernelError::Base { .. }),
            ) => return self.refuse(plan, trigger, &error.to_string()),
            Err(error) => return Err(error),
        };
        Ok(HandledOccurrence {
            name: definition.name.clone(),
            trigger,
            outcome,
        })
    }
}

fn is_off(definition: &Definition, state: Option<&LoopState>) -> bool {
    !is_on(definition, state)
}
