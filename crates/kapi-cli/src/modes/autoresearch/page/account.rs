//! What each run used, told by the log: everything between one decision and the next.
//!
//! A sum of what was reported; an agent that was asked again costs its run more.

use std::collections::BTreeMap;
use std::mem;

use kapi_core::usage::Usage;
use kapi_machine::logged::EventRecord;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::modes::autoresearch::event::AutoresearchEvent;
use kapi_workflow::rules::modes::autoresearch::run::Run;

/// What runs used, by their numbers.
pub(super) struct RunCosts(BTreeMap<u32, Usage>);

impl RunCosts {
    /// Reads a log.
    pub(super) fn of(log: &[EventRecord<WorkflowEvent>]) -> Self {
        let mut costs = BTreeMap::new();
        let mut used = Usage::default();
        for logged in log {
            if let Some(usage) = usage(&logged.event) {
                used.add(usage);
            }
            let Some(run) = decided(&logged.event) else {
                continue;
            };
            // What came before a baseline drafted the contract.
            let usage = mem::take(&mut used);
            if !run.is_baseline {
                costs.insert(run.number, usage);
            }
        }
        Self(costs)
    }

    /// Returns what a run used.
    pub(super) fn get(&self, run: u32) -> Option<&Usage> {
        self.0.get(&run).filter(|usage| !usage.is_zero())
    }
}

const fn usage(event: &WorkflowEvent) -> Option<&Usage> {
    match event {
        WorkflowEvent::EffectUsed { usage, .. } | WorkflowEvent::EffectEnded { usage, .. } => {
            Some(usage)
        }
        _ => None,
    }
}

const fn decided(event: &WorkflowEvent) -> Option<&Run> {
    match event {
        WorkflowEvent::Mode(ModeEvent::Autoresearch(AutoresearchEvent::RunDecided { run })) => {
            Some(run)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::actor::Actor;
    use kapi_core::id::EffectId;
    use kapi_core::usage::Usage;
    use kapi_machine::logged::EventRecord;
    use kapi_workflow::rules::event::WorkflowEvent;
    use kapi_workflow::rules::modes::ModeEvent;
    use kapi_workflow::rules::modes::autoresearch::event::AutoresearchEvent;

    use super::RunCosts;

    fn used(input_tokens: u64) -> WorkflowEvent {
        WorkflowEvent::EffectUsed {
            effect: EffectId::new(1, "propose", 1),
            usage: Usage {
                input_tokens,
                output_tokens: 1,
                usd_micros: Some(10),
            },
        }
    }

    fn decided(number: u32, is_baseline: bool) -> WorkflowEvent {
        let run = serde_json::json!({
            "number": number, "segment": 0, "is_baseline": is_baseline, "commit": "c", "tree": "t",
            "status": "keep", "metric": "1", "description": "", "hypothesis": "", "reason": "",
            "at_ms": 0,
        });
        let run = Box::new(serde_json::from_value(run).unwrap());
        WorkflowEvent::Mode(ModeEvent::Autoresearch(AutoresearchEvent::RunDecided {
            run,
        }))
    }

    #[test]
    fn a_run_costs_what_was_used_since_the_one_before() {
        let events = [
            used(100),
            decided(1, true),
            used(20),
            used(3),
            decided(2, false),
            decided(3, false),
        ];
        let log: Vec<_> = (1_u64..)
            .zip(events)
            .map(|(seq, event)| EventRecord {
                seq,
                at_ms: 0,
                actor: Actor::Engine,
                event,
            })
            .collect();
        let costs = RunCosts::of(&log);
        assert_eq!(costs.get(1), None, "drafting is no experiment");
        let cost = costs.get(2).map(|cost| (cost.tokens(), cost.usd_micros));
        assert_eq!(cost, Some((25, Some(20))));
        assert_eq!(costs.get(3), None);
    }
}
