//! A decision of a mode while it is made: the events so far, and its part of the state as they leave it.
//!
//! What every mode does with a draft; what a mode alone proposes or refuses stands in its own folder.

use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::conflict::Settlement;
use crate::rules::decide::asked;
use crate::rules::decision_context::DecisionContext;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::WorkflowEvidence;
use crate::rules::mode_rules::ModeRules;
use crate::rules::pending::WorkflowDecision;
use crate::rules::state::Workflow;

/// The most answers of one role in a row that are refused before a person is asked.
pub(crate) const REFUSED_MAX: usize = 3;

/// A decision while it is made.
pub(crate) struct DecisionDraft<'a, S> {
    /// The workflow before the decision.
    pub(crate) workflow: &'a Workflow,
    /// The mode's own part as the events so far leave it.
    pub(crate) now: S,
    /// The events so far.
    pub(crate) events: Vec<WorkflowEvent>,
    /// What the decision is given from outside.
    pub(crate) given: &'a DecisionContext,
    /// What the outcome at hand used, which is recorded with the outcome.
    pub(crate) used: Usage,
    is_blocked: bool,
}

impl<'a, S: ModeRules + Clone> DecisionDraft<'a, S> {
    pub(crate) fn new(workflow: &'a Workflow, state: &S, given: &'a DecisionContext) -> Self {
        Self {
            workflow,
            now: state.clone(),
            events: Vec::new(),
            given,
            used: Usage::default(),
            is_blocked: workflow.status != WorkflowStatus::Active,
        }
    }

    /// Adds a fact of the mode.
    pub(crate) fn fact(&mut self, event: impl Into<WorkflowEvent>) {
        let event = event.into();
        if let WorkflowEvent::Mode(fact) = &event {
            self.now.evolve(fact);
        }
        self.events.push(event);
    }

    /// Adds evidence.
    pub(crate) fn evidence(&mut self, evidence: WorkflowEvidence) {
        self.events.push(WorkflowEvent::EvidenceRecorded {
            evidence: Box::new(evidence),
        });
    }

    /// Records what became of the conflicts of a task or a source, where any are open.
    pub(crate) fn settle_conflicts(&mut self, what: &str, settlement: Settlement) {
        let mut known = self.workflow.conflicts.iter();
        let mut found = self.events.iter();
        let is_new = found.any(
            |event| matches!(event, WorkflowEvent::ConflictFound { what: found, .. } if found == what),
        );
        if is_new || known.any(|conflict| conflict.is_open_of(what)) {
            self.events.push(WorkflowEvent::ConflictSettled {
                what: what.to_owned(),
                settlement,
            });
        }
    }

    /// Asks the person for a decision about what the events so far propose.
    pub(crate) fn ask_person(&mut self, decision: WorkflowDecision, risks: Vec<String>) {
        let asked = asked(self.workflow, &self.events, decision, risks, self.given);
        self.events.push(asked);
    }

    /// Holds the workflow up, unless something does already.
    pub(crate) fn block(&mut self, reason: String, unblock: String) {
        if !self.is_blocked {
            self.is_blocked = true;
            self.events.push(WorkflowEvent::Blocked { reason, unblock });
        }
    }

    /// Lets it go on, where something holds it up.
    pub(crate) fn unblock(&mut self) {
        if self.workflow.status == WorkflowStatus::Blocked {
            self.is_blocked = false;
            self.now.unblocked();
            self.events.push(WorkflowEvent::Unblocked {});
        }
    }

    /// Holds it up where answers of a role are refused again and again. `instead` is what a person
    /// can do besides having it asked again.
    pub(crate) fn block_on_refusals(&mut self, role: &str, refused: &[String], instead: &str) {
        let (n_refused, last) = (refused.len(), refused.last());
        if n_refused < REFUSED_MAX {
            return;
        }
        let why = last.map_or("", String::as_str);
        let reason = format!("{n_refused} answers in a row from the {role} were refused: {why}");
        let unblock = format!("{} to ask again{instead}", self.resume());
        self.block(reason, unblock);
    }

    /// Returns the command that lets it go on.
    pub(crate) fn resume(&self) -> String {
        let workflow = self.workflow;
        format!("kapi {} resume {:03}", workflow.mode(), workflow.id.index())
    }
}
