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
