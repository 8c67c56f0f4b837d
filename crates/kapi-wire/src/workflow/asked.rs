//! What a workflow asks its person, as others see it.

use schemars::JsonSchema;
use serde::Serialize;

/// What a person is asked, with everything that helps them to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AskedView {
    /// `question`, or `goal` where the goal was said back.
    pub kind: &'static str,
    /// The round that an answer belongs to.
    pub round: u32,
    /// The question, or the goal.
    pub text: String,
    /// What an empty answer accepts.
    pub proposed: Option<String>,
    /// Why it is asked, in words.
    pub why: String,
    /// How clear it is so far, in words; empty while there is no score.
    pub clarity: Vec<String>,
}
