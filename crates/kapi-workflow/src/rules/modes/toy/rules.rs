//! A toy as a mode: its rules, plan and documents behind the seam that every mode has.

use kapi_core::id::EffectId;

use crate::rules::branch::Branch;
use crate::rules::decide::wrong_phase;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::documents::WorkflowDocument;
use crate::rules::effect::WorkflowEffect;
use crate::rules::event::WorkflowEvent;
use crate::rules::mode_rules::{FactConsequence, ModeRules};
use crate::rules::mode_spec::{ModeSpec, PhaseSpec};
use crate::rules::modes::toy::begin::ToyBegin;
use crate::rules::modes::toy::effects;
use crate::rules::modes::toy::event::ToyEvent;
use crate::rules::modes::toy::spec::{CARRY, DESCRIBE, SPEC};
use crate::rules::modes::toy::state::Toy;
use crate::rules::modes::{Begin, ModeEvent};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

impl ModeRules for Toy {
    fn spec(&self) -> &'static ModeSpec {
        &SPEC
    }

    fn phase(&self) -> (&'static PhaseSpec, Option<&'static str>) {
        match (self.is_approved, &self.draft) {
            (true, _) => (&CARRY, None),
            (false, None) => (&DESCRIBE, Some("asking")),
            (false, Some(_)) => (&DESCRIBE, Some("approval")),
        }
    }

    fn report(
        &self,
        workflow: &Workflow,
        effect: &EffectId,
        outcome: &WorkflowOutcome,
        given: &DecisionContext,
    ) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
        effects::report(workflow, self, effect, outcome, given)
    }

    fn after_revision(
        &self,
        workflow: &Workflow,
        _: &str,
        _: &DecisionContext,
    ) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
        if self.is_approved {
            return Err(wrong_phase(workflow, "change"));
        }
        Ok(vec![ToyEvent::Reopened {}.into()])
    }

    fn evolve(&mut self, event: &ModeEvent) -> FactConsequence {
        if let ModeEvent::Toy(event) = event {
            self.evolve(event);
        }
        FactConsequence::Nothing
    }

    fn approved(&mut self) {
        self.is_approved = true;
    }

    fn unblocked(&mut self) {}

    fn next(&self, workflow: &Workflow) -> Vec<WorkflowEffect> {
        effects::next(workflow, self).into_iter().collect()
    }

    fn documents(&self, _: &Workflow) -> Vec<WorkflowDocument> {
        let Some(scale) = &self.draft else {
            return Vec::new();
        };
        let document = |name: &str, text: &str| WorkflowDocument {
            name: name.to_owned(),
            text: format!("{text}\n"),
        };
        vec![
            document("toy.md", &scale.text),
            document("toy.sh", &scale.script),
        ]
    }

    fn beginning(&self) -> Begin {
        let base = self.base.clone();
        Begin::Toy(ToyBegin { base })
    }

    fn base(&self) -> Option<&str> {
        Some(&self.base)
    }

    fn counts(&self) -> Vec<(&'static str, usize)> {
        vec![("tries", usize::try_from(self.tries).unwrap_or(usize::MAX))]
    }

    fn counts_words(&self) -> Option<String> {
        self.carried.as_ref().map(|_| "It is carried.".to_owned())
    }

    fn branch(&self) -> Option<&Branch> {
        self.branch.as_ref()
    }
}
