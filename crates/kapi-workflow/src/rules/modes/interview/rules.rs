//! The interview as a mode: its rules, plan and documents behind the seam that every mode has.

use kapi_core::id::{EffectId, GoalId};
use kapi_core::link::{Link, WorkflowRelation};
use kapi_core::mode::Mode;

use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::documents::WorkflowDocument;
use crate::rules::effect::WorkflowEffect;
use crate::rules::event::WorkflowEvent;
use crate::rules::handover::Spec;
use crate::rules::mode_rules::{FactConsequence, ModeRules, PersonQuestion};
use crate::rules::mode_spec::{ModeSpec, PhaseSpec};
use crate::rules::modes::interview::begin::InterviewBegin;
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::event::InterviewEvent;
use crate::rules::modes::interview::spec::SPEC;
use crate::rules::modes::interview::state::Interview;
use crate::rules::modes::interview::{decide, documents, evolve, prompt};
use crate::rules::modes::{Begin, ModeCommand, ModeEvent};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

impl ModeRules for Interview {
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

    fn after_revision(
        &self,
        workflow: &Workflow,
        text: &str,
        given: &DecisionContext,
    ) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
        decide::revised(workflow, self, text, given)
    }

    fn evolve(&mut self, event: &ModeEvent) -> FactConsequence {
        let ModeEvent::Interview(event) = event else {
            return FactConsequence::Nothing;
        };
        evolve::evolve(self, event);
        if let InterviewEvent::Branched {
            mode,
            workflow,
            at_ms,
        } = event
        {
            return FactConsequence::Linked(Link {
                relation: WorkflowRelation::Successor,
                mode: *mode,
                workflow: workflow.clone(),
                at_ms: *at_ms,
            });
        }
        FactConsequence::Nothing
    }

    fn approved(&mut self) {
        evolve::approved(self);
    }

    fn unblocked(&mut self) {
        self.refused.clear();
    }

    fn next(&self, workflow: &Workflow) -> Vec<WorkflowEffect> {
        prompt::next(workflow, self)
    }

    fn documents(&self, workflow: &Workflow) -> Vec<WorkflowDocument> {
        documents::documents(workflow, self)
    }

    fn beginning(&self) -> Begin {
        let commit = self.commit.clone();
        Begin::Interview(InterviewBegin { commit })
    }

    fn handover(&self) -> Option<&Spec> {
        self.spec.as_deref()
    }

    fn base(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    fn open_question(&self) -> Option<PersonQuestion<'_>> {
        let round = self.open()?;
        Some(PersonQuestion {
            round: round.number,
            text: &round.question.text,
            proposed: round.question.proposed.as_deref(),
        })
    }

    fn counts(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("rounds", self.rounds.len()),
            ("answered", self.answered().count()),
        ]
    }

    fn counts_words(&self) -> Option<String> {
        let (answered, all) = (self.answered().count(), self.rounds.len());
        Some(format!("{answered} of {all} questions are answered."))
    }

    fn succeeded_by(&self, mode: Mode, workflow: GoalId) -> Option<ModeCommand> {
        let command = InterviewCommand::Branch { mode, workflow };
        Some(ModeCommand::Interview(command))
    }
}
