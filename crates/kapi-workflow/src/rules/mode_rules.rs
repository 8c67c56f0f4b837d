//! What a mode decides, folds, wants and shows: the seam between the lifecycle that every mode shares
//! and what one mode knows alone.
//!
//! Pure, as everything here; each mode's state implements it in a file `rules.rs` of its own.

use kapi_core::id::{EffectId, GoalId};
use kapi_core::link::Link;
use kapi_core::mode::Mode;

use crate::rules::branch::Branch;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::documents::WorkflowDocument;
use crate::rules::effect::WorkflowEffect;
use crate::rules::event::WorkflowEvent;
use crate::rules::handover::Spec;
use crate::rules::mode_spec::{ModeSpec, PhaseSpec};
use crate::rules::modes::{Begin, ModeCommand, ModeEvent};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

/// What a mode's fact means for the workflow around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactConsequence {
    /// Nothing.
    Nothing,
    /// It goes on in another workflow, and ends here.
    Linked(Link),
}

/// A question that waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonQuestion<'a> {
    /// Its round.
    pub round: u32,
    /// The question.
    pub text: &'a str,
    /// An answer to accept or to correct.
    pub proposed: Option<&'a str>,
}

/// The rules of one mode, implemented by its part of the state.
///
/// What only some modes have (something that follows an approval, a handover, a question, a branch)
/// is nothing unless the mode says otherwise.
pub trait ModeRules {
    /// Returns the table of the mode.
    fn spec(&self) -> &'static ModeSpec;

    /// Returns the phase that it is in, and the name of the part of it.
    fn phase(&self) -> (&'static PhaseSpec, Option<&'static str>);

    /// Decides what follows from how an effect ended.
    ///
    /// # Errors
    /// When what came back is not what was asked for.
    fn report(
        &self,
        workflow: &Workflow,
        effect: &EffectId,
        outcome: &WorkflowOutcome,
        given: &DecisionContext,
    ) -> Result<Vec<WorkflowEvent>, WorkflowRule>;

    /// Returns what follows an approval; the workflow is as it stands after it.
    fn after_approval(&self, _: &Workflow, _: &DecisionContext) -> Vec<WorkflowEvent> {
        Vec::new()
    }

    /// Returns what follows a person's word to go on; the workflow is as it stands after it.
    fn after_unblock(&self, _: &Workflow, _: &DecisionContext) -> Vec<WorkflowEvent> {
        Vec::new()
    }

    /// Decides what follows what a person wants changed.
    ///
    /// # Errors
    /// When nothing can be changed any more.
    fn after_revision(
        &self,
        workflow: &Workflow,
        text: &str,
        given: &DecisionContext,
    ) -> Result<Vec<WorkflowEvent>, WorkflowRule>;

    /// Applies a fact of this mode; another mode's changes nothing.
    fn evolve(&mut self, event: &ModeEvent) -> FactConsequence;

    /// Applies an approval.
    fn approved(&mut self);

    /// Applies a person's word to go on: as many tries and answers as before are allowed again.
    fn unblocked(&mut self);

    /// Returns what should be under way now; asked only while it is active and no person is waited
    /// for.
    fn next(&self, workflow: &Workflow) -> Vec<WorkflowEffect>;

    /// Returns every artifact as it stands.
    fn documents(&self, workflow: &Workflow) -> Vec<WorkflowDocument>;

    /// Returns what it began with, apart from whoever gave it its context.
    fn beginning(&self) -> Begin;

    /// Returns what it hands over to the workflow that goes on from it, as far as that is drafted.
    fn handover(&self) -> Option<&Spec> {
        None
    }

    /// Returns the commit that it began at, where there is a repository.
    fn base(&self) -> Option<&str>;

    /// Returns the question that waits for its person.
    fn open_question(&self) -> Option<PersonQuestion<'_>> {
        None
    }

    /// Returns how far it has come, as `snapshot.json` counts it.
    fn counts(&self) -> Vec<(&'static str, usize)>;

    /// Says the same in a sentence; nothing before there is something to count.
    fn counts_words(&self) -> Option<String>;

    /// Returns the request that records that it goes on in another workflow; `None` where no other
    /// goes on from it.
    fn succeeded_by(&self, _: Mode, _: GoalId) -> Option<ModeCommand> {
        None
    }

    /// Returns the branch that it works for, once there is one.
    fn branch(&self) -> Option<&Branch> {
        None
    }
}
