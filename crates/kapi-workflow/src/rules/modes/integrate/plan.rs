//! A merge plan: which sources come in which order by which method, and what has to hold in the end.
//!
//! Approved by the hash of its document, so it holds everything that the document shows.

use kapi_core::id::GoalId;
use serde::{Deserialize, Serialize};

use crate::rules::effect::combine::{Foresight, MergeMethod};

/// The most commands that a plan verifies the result with.
pub const VERIFY_MAX: usize = 40;
/// The most bytes of a reason in a plan.
pub const REASON_BYTES_MAX: usize = 4_000;

/// A merge plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergePlan {
    /// The commit of the integration branch that it was made for.
    pub target: String,
    /// The sources in their order.
    pub steps: Vec<MergeStep>,
    /// Sources that are left out, and why.
    pub left_out: Vec<LeftOut>,
    /// The commands that must hold on the result, as far as they do before it.
    pub verify: Vec<String>,
    /// Why it is so, as a whole.
    pub rationale: String,
    /// What was foreseen when it was made.
    pub foresight: Foresight,
    /// What its person said of unclear intents.
    pub clarified: Vec<Clarification>,
}

/// One source in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeStep {
    /// The source.
    pub source: GoalId,
    /// How its change comes onto the branch.
    pub method: MergeMethod,
    /// Why it comes here.
    pub why: String,
}

/// A source that a plan leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The source.
    pub source: GoalId,
    /// Why.
    pub why: String,
}

/// What a planner proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedPlan {
    /// The sources in their order.
    pub steps: Vec<MergeStep>,
    /// Sources that should be left out, and why.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Commands to verify the result with besides those that the sources were proved by.
    #[serde(default)]
    pub verify: Vec<String>,
    /// Why it should be so.
    pub rationale: String,
}

/// What a person said of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clarification {
    /// The source.
    pub source: GoalId,
    /// In their words.
    pub text: String,
}
