//! Integrate as a mode: its rules, plan and documents behind the seam that every mode has.

use kapi_core::id::EffectId;

use crate::rules::branch::Branch;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::documents::WorkflowDocument;
use crate::rules::effect::WorkflowEffect;
use crate::rules::event::WorkflowEvent;
use crate::rules::mode_rules::{FactConsequence, ModeRules};
use crate::rules::mode_spec::{ModeSpec, PhaseSpec};
use crate::rules::modes::integrate::begin::IntegrateBegin;
use crate::rules::modes::integrate::spec::SPEC;
use crate::rules::modes::integrate::state::Integrate;
use crate::rules::modes::integrate::{decide, documents, effects, evolve};
use crate::rules::modes::{Begin, ModeEvent};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

impl ModeRules for Integrate {
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

    fn after_unblock(&self, workflow: &Workflow, given: &DecisionContext) -> Vec<WorkflowEvent> {
        decide::let_go_on(workflow, self, given)
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
        if let ModeEvent::Integrate(event) = event {
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
        Begin::Integrate(IntegrateBegin {
            target: self.began.clone(),
            sources: self.sources.clone(),
            leave: self.leave,
            rules: self.rules.clone(),
        })
    }

    fn base(&self) -> Option<&str> {
        Some(&self.began)
    }

    fn counts(&self) -> Vec<(&'static str, usize)> {
        let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        vec![
            ("cycle", number(self.cycle)),
            ("attempt", number(self.attempt)),
            ("sources", self.sources.len()),
            ("applied", self.applied.len()),
            ("evicted", self.evicted.len()),
            ("conflicts", self.resolutions.len()),
        ]
    }

    fn counts_words(&self) -> Option<String> {
        self.plan.as_ref()?;
        let evicted = match self.evicted.len() {
            0 => String::new(),
            n => format!(", {n} left out"),
        };
        Some(format!(
            "{} of {} sources are on the branch{evicted}.",
            self.applied.len(),
            self.sources.len()
        ))
    }

    fn branch(&self) -> Option<&Branch> {
        self.branch.as_ref()
    }
}
