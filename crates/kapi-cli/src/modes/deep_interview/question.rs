//! What an interview asks its person now: a question, or whether this is the goal.
//!
//! A function of the workflow; asks nobody.

use kapi_wire::workflow::modes::interview::open_round;
use kapi_workflow::rules::modes::Body;
use kapi_workflow::rules::modes::interview::round::Round;
use kapi_workflow::rules::modes::interview::state::{Interview, InterviewPhase};
use kapi_workflow::rules::state::Workflow;

/// What the person is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PersonPrompt<'a> {
    /// A question.
    Question(&'a Round),
    /// Whether this is the goal.
    Goal {
        /// The round.
        round: u32,
        /// The goal.
        goal: &'a str,
    },
}

impl PersonPrompt<'_> {
    /// Returns the round it is asked in.
    pub(super) const fn round(self) -> u32 {
        match self {
            Self::Question(round) => round.number,
            Self::Goal { round, .. } => round,
        }
    }
}

/// Returns what an interview asks its person now.
pub(crate) fn asked(workflow: &Workflow) -> Option<(&Interview, PersonPrompt<'_>)> {
    let Body::Interview(interview) = &workflow.body else {
        return None;
    };
    match (interview.phase, &interview.restated) {
        (InterviewPhase::Awaiting, _) => {
            open_round(interview).map(|round| (&**interview, PersonPrompt::Question(round)))
        }
        (InterviewPhase::Restating, Some(restated)) => Some((
            &**interview,
            PersonPrompt::Goal {
                round: restated.round,
                goal: &restated.goal,
            },
        )),
        (InterviewPhase::Restating, None)
        | (
            InterviewPhase::Asking
            | InterviewPhase::Spec
            | InterviewPhase::Branch
            | InterviewPhase::Linked,
            _,
        ) => None,
    }
}
