//! Ralph as a mode: its rules, plan and documents behind the seam that every mode has.

use kapi_core::id::EffectId;

use crate::rules::branch::Branch;
use crate::rules::context_begin::ContextBegin;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::documents::WorkflowDocument;
use crate::rules::effect::WorkflowEffect;
use crate::rules::event::WorkflowEvent;
use crate::rules::mode_rules::{FactConsequence, ModeRules};
use crate::rules::mode_spec::{ModeSpec, PhaseSpec};
use crate::rules::modes::ralph::spec::SPEC;
use crate::rules::modes::ralph::state::{Ralph, Stand, TaskState};
use crate::rules::modes::ralph::{decide, documents, effects, evolve};
use crate::rules::modes::{Begin, ModeEvent};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

impl ModeRules for Ralph {
    fn spec(&self) -> &'static ModeSpec {
        &SPEC
    }

    fn phase(&self) -> (&'static PhaseSpec, Option<&'static str>) {
        self.phase.spec()
    }

    fn report(
        &self,
        workflow: &Workflow,
        effect: &EffectId,
        outcome: &WorkflowOutcome,
        given: &DecisionContext,
    ) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
        decide::report(workflow, self, effect, outcome, given)
    }

    fn after_approval(&self, workflow: &Workflow, given: &DecisionContext) -> Vec<WorkflowEvent> {
        decide::going_on(workflow, self, given)
    }

    fn after_unblock(&self, workflow: &Workflow, given: &DecisionContext) -> Vec<WorkflowEvent> {
        decide::going_on(workflow, self, given)
    }

    fn after_revision(
        &self,
        workflow: &Workflow,
        text: &str,
        given: &DecisionContext,
    ) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
        decide::revised(workflow, self, text, given)
    }

    fn evolve(&mut self, event: &ModeEvent) -> FactConsequence {
        if let ModeEvent::Ralph(event) = event {
            evolve::evolve(self, event);
        }
        FactConsequence::Nothing
    }

    fn approved(&mut self) {
        evolve::approved(self);
    }

    fn unblocked(&mut self) {
        evolve::unblocked(self);
    }

    fn next(&self, workflow: &Workflow) -> Vec<WorkflowEffect> {
        effects::next(workflow, self)
    }

    fn documents(&self, workflow: &Workflow) -> Vec<WorkflowDocument> {
        documents::documents(workflow, self)
    }

    fn beginning(&self) -> Begin {
        Begin::Ralph(ContextBegin {
            base: self.base.clone(),
            interview: None,
            spec: self.spec.clone(),
        })
    }

    fn base(&self) -> Option<&str> {
        Some(&self.base)
    }

    fn counts(&self) -> Vec<(&'static str, usize)> {
        let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let attempt = self.attempts.last().map(|attempt| attempt.number);
        let mut counts = vec![("cycle", number(self.cycle))];
        counts.extend(attempt.map(|attempt| ("attempt", number(attempt))));
        counts.extend([
            ("tasks", self.tasks.len()),
            ("landed", n_landed(self)),
            ("reviews", self.reviews.len()),
        ]);
        counts
    }

    fn counts_words(&self) -> Option<String> {
        let (landed, all) = (n_landed(self), self.tasks.len());
        (all > 0).then(|| format!("{landed} of {all} tasks have landed."))
    }

    fn branch(&self) -> Option<&Branch> {
        self.branch.as_ref()
    }
}

fn n_landed(ralph: &Ralph) -> usize {
    let is_landed = |task: &&TaskState| matches!(task.stand, Stand::Landed { .. });
    ralph.tasks.values().filter(is_landed).count()
}
