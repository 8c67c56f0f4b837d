//! An interview as others see it: every round with where its answer came from, and the score.
//!
//! Numbers are thousandths, as they are recorded.

use kapi_core::workflow::interview::round::{Contradiction, Provenance, Reply, Round};
use kapi_core::workflow::interview::score::{Dimension, Score};
use kapi_core::workflow::interview::spec::Spec;
use kapi_core::workflow::interview::state::{Interview, Restated};
use serde::Serialize;

/// An interview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterviewView {
    /// The commit that facts are looked up in.
    pub commit: Option<String>,
    /// Every question so far.
    pub rounds: Vec<RoundView>,
    /// The number of the question that waits for the person.
    pub open: Option<u32>,
    /// The goal as it was said back.
    pub restated: Option<Restated>,
    /// How clear it is.
    pub score: Option<Score>,
    /// Answers that do not fit together.
    pub contradictions: Vec<Contradiction>,
    /// Whether the person said that it is enough.
    pub is_enough: bool,
    /// The spec.
    pub spec: Option<Box<Spec>>,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoundView {
    /// Its number, from 1.
    pub round: u32,
    /// The question.
    pub question: String,
    /// `goal`, `constraints`, `success` or `context`.
    pub dimension: &'static str,
    /// An answer to accept or to correct.
    pub proposed: Option<String>,
    /// `open`, `answered`, `deferred` or `withdrawn`.
    pub state: &'static str,
    /// The answer.
    pub answer: Option<String>,
    /// `person`, `person_accepted`, `answers_file`, `repository` or `assumption`.
    pub provenance: Option<&'static str>,
    /// The files that say it, for what the repository says.
    pub refs: Vec<String>,
    /// Why it was left for later or taken back.
    pub reason: Option<String>,
}

impl InterviewView {
    /// Shows an interview.
    #[must_use]
    pub fn of(interview: &Interview) -> Self {
        Self {
            commit: interview.commit.clone(),
            rounds: interview.rounds.iter().map(RoundView::of).collect(),
            open: open_round(interview).map(|round| round.number),
            restated: interview.restated.clone(),
            score: interview.score.clone(),
            contradictions: interview.contradictions.clone(),
            is_enough: interview.is_enough,
            spec: interview.spec.clone(),
        }
    }
}

impl RoundView {
    fn of(round: &Round) -> Self {
        let (answer, reason) = match &round.reply {
            Reply::Open => (None, None),
            Reply::Answered(answer) => (Some(answer), None),
            Reply::Deferred { reason } => (None, reason.clone()),
            Reply::Withdrawn { reason } => (None, Some(reason.clone())),
        };
        Self {
            round: round.number,
            question: round.question.text.clone(),
            dimension: dimension(round.question.dimension),
            proposed: round.question.proposed.clone(),
            state: match &round.reply {
                Reply::Open => "open",
                Reply::Answered(_) => "answered",
                Reply::Deferred { .. } => "deferred",
                Reply::Withdrawn { .. } => "withdrawn",
            },
            answer: answer.map(|answer| answer.text.clone()),
            provenance: answer.map(|answer| provenance(answer.provenance)),
            refs: answer.map(|answer| answer.refs.clone()).unwrap_or_default(),
            reason,
        }
    }
}

/// Returns the question that waits for the person.
#[must_use]
pub fn open_round(interview: &Interview) -> Option<&Round> {
    let mut rounds = interview.rounds.iter().rev();
    rounds.find(|round| round.reply == Reply::Open)
}

/// Returns the name of a dimension.
#[must_use]
pub const fn dimension(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Goal => "goal",
        Dimension::Constraints => "constraints",
        Dimension::Success => "success",
        Dimension::Context => "context",
    }
}

/// Returns the name of where an answer came from.
#[must_use]
pub const fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Person => "person",
        Provenance::PersonAccepted => "person_accepted",
        Provenance::AnswersFile => "answers_file",
        Provenance::Repository => "repository",
        Provenance::Assumption => "assumption",
    }
}
