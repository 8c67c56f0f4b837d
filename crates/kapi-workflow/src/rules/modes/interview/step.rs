//! A step an interviewer proposes: what it looked up, how clear things are, and what comes next.
//!
//! The answer of one run of an agent, or of one call by a host that interviews itself. A proposal
//! only: the rules decide what of it is recorded.

use serde::{Deserialize, Deserializer, Serialize};

use crate::rules::handover::Spec;
use crate::rules::modes::interview::round::InterviewQuestion;
use crate::rules::modes::interview::score::Clarity;
use crate::rules::role::RoleSpec;

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterviewStep {
    /// Questions that the repository answered, so that nobody has to be asked.
    #[serde(default)]
    pub facts: Vec<Fact>,
    /// How clear it is now.
    #[serde(default)]
    pub clarity: Option<Clarity>,
    /// Why it is not clearer.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Answers that cannot both hold.
    #[serde(default)]
    pub contradictions: Vec<Contradictions>,
    /// What comes next.
    pub next: InterviewIntent,
}

impl InterviewStep {
    /// Reads an answer in a role: there is one only.
    pub(crate) fn read<'de, D: Deserializer<'de>>(_: &RoleSpec, from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)
    }
}

/// Something the repository says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// The question it answers.
    pub question: InterviewQuestion,
    /// The answer.
    pub answer: String,
    /// The files that say it, relative to the repository.
    pub refs: Vec<String>,
}

/// A contradiction that was noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contradictions {
    /// The rounds.
    pub rounds: Vec<u32>,
    /// What does not fit.
    pub text: String,
}

/// What an interviewer wants to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum InterviewIntent {
    /// Ask the person.
    Ask {
        /// What.
        question: InterviewQuestion,
        /// The numbers of the contradictions that an answer will settle.
        #[serde(default)]
        settles: Vec<u32>,
    },
    /// Say the goal back in one sentence and ask whether that is it.
    Restate {
        /// The goal.
        goal: String,
    },
    /// Draft the spec.
    Draft {
        /// The spec.
        spec: Box<Spec>,
    },
}
