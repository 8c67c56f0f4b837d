//! One round of an interview: a question and what became of it.
//!
//! Where an answer came from is part of it: only a person's word becomes a requirement.

use serde::{Deserialize, Serialize};

use crate::rules::modes::interview::score::Dimension;

/// From which side a question is put (ouroboros: perspectives).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Perspective {
    /// Keeps every thread alive.
    Breadth,
    /// What is there already.
    Researcher,
    /// What could be left out.
    Simplifier,
    /// What the parts are.
    Architect,
    /// What if the opposite holds; cause or symptom.
    Contrarian,
    /// Whether it is complete.
    Closer,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterviewQuestion {
    /// The question, in one or two sentences.
    pub text: String,
    /// What it is to make clearer.
    pub dimension: Dimension,
    /// From which side it is put.
    pub perspective: Perspective,
    /// An answer to accept or to correct, so that nobody starts from nothing.
    pub proposed: Option<String>,
}

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// A person said it.
    Person,
    /// A person accepted what was proposed.
    PersonAccepted,
    /// A file that the person handed over says it.
    AnswersFile,
    /// The repository says it.
    Repository,
    /// Nobody said it; it is local, reversible and marked as what it is.
    Assumption,
}

impl Provenance {
    /// Tells whether a person stands behind it.
    #[must_use]
    pub const fn is_persons(self) -> bool {
        match self {
            Self::Person | Self::PersonAccepted | Self::AnswersFile => true,
            Self::Repository | Self::Assumption => false,
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterviewAnswer {
    /// The answer.
    pub text: String,
    /// Where it came from.
    pub provenance: Provenance,
    /// For a repository fact: the files that say it.
    pub refs: Vec<String>,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QuestionReply {
    /// It waits for the person.
    Open,
    /// It was answered.
    Answered(InterviewAnswer),
    /// The person leaves it for later, which counts neither for nor against clarity.
    Deferred {
        /// Why, if they said.
        reason: Option<String>,
    },
    /// It was taken back.
    Withdrawn {
        /// Why.
        reason: String,
    },
}

/// A question and what became of it. Its number is its place, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Its number.
    pub number: u32,
    /// The question.
    pub question: InterviewQuestion,
    /// What became of it.
    pub reply: QuestionReply,
    /// The numbers of the contradictions that an answer settles.
    pub settles: Vec<u32>,
}

/// Two answers that cannot both hold. Its number is its place, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contradiction {
    /// The rounds.
    pub rounds: Vec<u32>,
    /// What does not fit, in a sentence.
    pub text: String,
    /// The round in which the person settled it.
    pub settled_by: Option<u32>,
}
