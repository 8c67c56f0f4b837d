//! The modes in the simulator, in one list: the stories of each, what its agents answer, and what goes
//! wrong under its effects.
//!
//! A new mode is a line here and a file beside the others.

mod autoresearch;
mod integrate;
mod interview;
mod ralph;

use kapi_workflow::rules::effect::{AgentQuestion, WorkflowEffect};
use kapi_workflow::rules::modes::{Body, ModeAnswer, ModeEvent};
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::state::Workflow;

use crate::workflow_sim::script::WorkflowScript;

/// What an agent says that does not answer.
pub(super) enum NoAnswer {
    /// Something in another shape.
    Unreadable(&'static str),
    /// Nothing: its model is away.
    Away,
}

/// Makes of the list the ways to each mode's file.
macro_rules! simulated {
    ($($tag:ident in $folder:ident;)+) => {
        /// The kinds of facts of every mode.
        pub(super) const KINDS: &[&[&str]] = &[$($folder::KINDS,)+];

        /// Every story.
        pub(super) const TALES: &[&[WorkflowScript]] = &[$($folder::TALES,)+];

        /// Returns the kind of a mode's fact.
        pub(super) const fn kind(event: &ModeEvent) -> &'static str {
            match event {
                $(ModeEvent::$tag(event) => $folder::kind(event),)+
            }
        }

        /// Returns what an agent says to a question that failed so often.
        pub(super) fn reply(
            question: &AgentQuestion,
            workflow: &Workflow,
            failures: usize,
        ) -> Result<ModeAnswer, NoAnswer> {
            match &workflow.body {
                $(Body::$tag(state) => {
                    $folder::reply(question, workflow, state, failures).map(ModeAnswer::$tag)
                })+
            }
        }

        /// Tells whether an agent takes so long that what it uses is recorded before it answers: once
        /// in each mode.
        pub(super) fn takes_long(question: &AgentQuestion, workflow: &Workflow) -> bool {
            match &workflow.body {
                $(Body::$tag(state) => $folder::takes_long(question, state),)+
            }
        }

        /// Returns what comes of an effect in this mode alone: of its own verbs, and where one goes wrong.
        pub(super) fn outcome(effect: &WorkflowEffect, workflow: &Workflow) -> Option<WorkflowOutcome> {
            match &workflow.body {
                $(Body::$tag(_) => $folder::outcome(effect, workflow),)+
            }
        }

        /// Returns what must be equal in the end however often the power failed on the way.
        pub(super) fn detail(workflow: &Workflow) -> Vec<String> {
            match &workflow.body {
                $(Body::$tag(state) => $folder::detail(state),)+
            }
        }
    };
}

simulated! {
    Interview in interview;
    Ralph in ralph;
    Autoresearch in autoresearch;
    Integrate in integrate;
}
