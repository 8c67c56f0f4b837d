//! What can be asked of an interview beside what can be asked of every workflow.

use crate::rules::modes::interview::round::Provenance;
use crate::rules::modes::interview::step::InterviewStep;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterviewCommand {
    /// Record what an interviewer proposes: by the host whose session interviews.
    Propose(Box<InterviewStep>),
    /// Answer the open question, or confirm or correct the restated goal.
    Answer {
        /// The round.
        round: u32,
        /// The answer; empty accepts what was proposed.
        text: String,
        /// Where it comes from: a person's, never the repository or an assumption.
        provenance: Provenance,
    },
    /// Leave the open question for later.
    Defer {
        /// The round.
        round: u32,
        /// Why.
        reason: Option<String>,
    },
    /// Take the open question back.
    Withdraw {
        /// The round.
        round: u32,
        /// Why.
        reason: String,
    },
    /// Draft now with what there is: the person has said enough.
    Enough {},
    /// Record that the interview goes on in another workflow, which was just started from it.
    Branch {
        /// The other one's mode.
        mode: kapi_core::mode::Mode,
        /// The other one.
        workflow: kapi_core::id::GoalId,
    },
    /// Interview further before anything was started from an approved spec.
    Reopen {
        /// Why.
        reason: String,
    },
}
