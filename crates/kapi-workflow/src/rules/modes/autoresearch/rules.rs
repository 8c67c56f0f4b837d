//! Autoresearch as a mode: its rules, plan and documents behind the seam that every mode has.

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
use crate::rules::modes::autoresearch::run::{Run, RunStatus};
use crate::rules::modes::autoresearch::spec::SPEC;
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::autoresearch::summary::{shown, summary};
use crate::rules::modes::autoresearch::{decide, documents, effects, evolve};
use crate::rules::modes::{Begin, ModeEvent};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

impl ModeRules for Autoresearch {
    fn spec(&self) -> &'static ModeSpec {
        &SPEC
    }

    fn phase(&self) -> (&'static PhaseSpec, Option<&'static str>) {
        self.location()
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

    fn after_revision(
        &self,
        workflow: &Workflow,
        text: &str,
        given: &DecisionContext,
    ) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
        Ok(decide::revised(workflow, self, text, given))
    }

    fn evolve(&mut self, event: &ModeEvent) -> FactConsequence {
        if let ModeEvent::Autoresearch(event) = event {
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
        Begin::Autoresearch(ContextBegin {
            base: self.base.clone(),
            interview: None,
            spec: self.spec.clone(),
        })
    }

    fn base(&self) -> Option<&str> {
        Some(&self.base)
    }

    fn counts(&self) -> Vec<(&'static str, usize)> {
        let of = |status: RunStatus| {
            let is_of = |run: &&Run| run.status == status && !run.is_baseline;
            self.current().filter(is_of).count()
        };
        vec![
            (
                "segment",
                usize::try_from(self.segment).unwrap_or(usize::MAX),
            ),
            (
                "runs",
                usize::try_from(self.experiments()).unwrap_or(usize::MAX),
            ),
            ("kept", of(RunStatus::Keep)),
            ("discarded", of(RunStatus::Discard)),
            ("crashed", of(RunStatus::Crash)),
            ("checksFailed", of(RunStatus::ChecksFailed)),
        ]
    }

    fn counts_words(&self) -> Option<String> {
        let contract = self.contract.as_ref()?;
        let found = summary(self)?;
        let (runs, unit) = (self.experiments(), &contract.metric.unit);
        let most = contract.runs;
        let gain = found.gain_percent.map_or_else(String::new, |gain| {
            format!(", {} % better than the baseline", shown(gain))
        });
        Some(format!(
            "{runs} of {most} runs; best {} {}{unit}{gain}.",
            contract.metric.name,
            shown(found.best)
        ))
    }

    fn branch(&self) -> Option<&Branch> {
        self.branch.as_ref()
    }
}
