//! The spec: what an interview found out, in the seven parts of the specification and two more.
//!
//! Frozen by its approval; until then every draft replaces the one before.

use serde::{Deserialize, Serialize};

/// One thing that was found out, with the rounds it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoverItem {
    /// What.
    pub text: String,
    /// The rounds it rests on; 0 is the purpose, as the person gave it.
    #[serde(default)]
    pub rounds: Vec<u32>,
}

/// How one sees that the work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuccessCriterion {
    /// The outcome, not a step.
    pub text: String,
    /// A shell command that exits 0 when it holds.
    #[serde(default)]
    pub verify: Option<String>,
    /// Why there is no command.
    #[serde(default)]
    pub exempt: Option<String>,
    /// The rounds it rests on.
    #[serde(default)]
    pub rounds: Vec<u32>,
}

/// What an agent may decide, must ask, must never do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boundaries {
    /// What it may decide alone.
    #[serde(default)]
    pub may: Vec<HandoverItem>,
    /// What it must ask first.
    #[serde(default)]
    pub must_ask: Vec<HandoverItem>,
    /// What it must never do.
    #[serde(default)]
    pub never: Vec<HandoverItem>,
}

/// Something that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoverQuestion {
    /// What.
    pub text: String,
    /// Whether nothing can begin before it is known.
    pub blocking: bool,
}

/// What a person answered, in their own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoverAnswer {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
}

/// A spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The goal in one sentence, as the person confirmed it.
    pub goal: String,
    /// The person's intent: why, and what they value.
    pub intent: Vec<HandoverItem>,
    /// What must hold.
    pub constraints: Vec<HandoverItem>,
    /// What would be liked.
    pub preferences: Vec<HandoverItem>,
    /// How one sees that it is done.
    pub success_criteria: Vec<SuccessCriterion>,
    /// How it is to be done, where the person said so.
    pub methods: Vec<HandoverItem>,
    /// What an agent may decide.
    pub boundaries: Boundaries,
    /// What is not known.
    pub open_questions: Vec<HandoverQuestion>,
    /// What is not wanted.
    pub non_goals: Vec<HandoverItem>,
    /// What is there already.
    pub context: Vec<HandoverItem>,
    /// What the person answered: taken from the interview's record, whatever a draft says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<HandoverAnswer>,
}
