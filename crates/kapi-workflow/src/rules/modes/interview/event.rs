//! The facts of an interview, as they stand in its log.

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use serde::{Deserialize, Serialize};

use crate::rules::handover::Spec;
use crate::rules::modes::interview::round::{Contradiction, InterviewAnswer, InterviewQuestion};
use crate::rules::modes::interview::score::Score;

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InterviewEvent {
    /// A question waits for the person.
    QuestionAsked {
        /// Its number.
        round: u32,
        /// The question.
        question: InterviewQuestion,
        /// The numbers of the contradictions that an answer settles.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        settles: Vec<u32>,
    },
    /// The goal was said back and waits for the person.
    GoalRestated {
        /// The round's number.
        round: u32,
        /// The goal, in one sentence.
        goal: String,
    },
    /// A question was answered by looking it up.
    FactFound {
        /// Its number.
        round: u32,
        /// The question.
        question: InterviewQuestion,
        /// The answer, with the files that say it.
        answer: InterviewAnswer,
    },
    /// The open question was answered.
    AnswerRecorded {
        /// Its number.
        round: u32,
        /// The answer.
        answer: InterviewAnswer,
    },
    /// The person said something without being asked: a change they want, why it goes on.
    Remarked {
        /// Its number among the rounds.
        round: u32,
        /// What they said.
        text: String,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// The person confirmed the restated goal.
    GoalConfirmed {
        /// The round's number.
        round: u32,
        /// The goal as confirmed.
        goal: String,
    },
    /// The open question is left for later.
    QuestionDeferred {
        /// Its number.
        round: u32,
        /// Why.
        reason: Option<String>,
    },
    /// The open question was taken back.
    QuestionWithdrawn {
        /// Its number.
        round: u32,
        /// Why.
        reason: String,
    },
    /// How clear it is.
    ScoreRecorded {
        /// The score.
        score: Score,
    },
    /// Answers do not fit together.
    ContradictionNamed {
        /// Which.
        contradiction: Contradiction,
    },
    /// The person says that it is enough.
    EnoughSaid {},
    /// A proposal of the interviewer broke a rule; it is told and asked again.
    StepRefused {
        /// The rule.
        why: String,
    },
    /// There is a spec.
    SpecDrafted {
        /// The spec.
        spec: Box<Spec>,
    },
    /// It goes on in another workflow.
    Branched {
        /// Its mode.
        mode: Mode,
        /// Which.
        workflow: GoalId,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// It goes on as an interview.
    Reopened {
        /// Why.
        reason: String,
    },
}
