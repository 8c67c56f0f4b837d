//! What agents of an integration answer, each in a strict shape.
//!
//! Every answer is a proposal: nothing in it counts as evidence.

use kapi_core::id::GoalId;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::rules::modes::integrate::plan::ProposedPlan;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::role::RoleSpec;

/// An answer, in the shape that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntegrateAnswer {
    /// Another plan.
    Plan(ProposedPlan),
    /// How a conflict was resolved.
    Resolution(Resolution),
    /// What a review found.
    Review(IntegrationFindings),
    /// What speaks for the result.
    Thesis(Defence),
    /// What speaks against it.
    Antithesis(Attack),
    /// What follows.
    Synthesis(Ruling),
}

/// How a conflict was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// What could have been done.
    pub options: Vec<String>,
    /// What was done.
    pub choice: String,
    /// Why.
    pub rationale: String,
    /// Whether both cannot be had, so that the source has to be left out.
    #[serde(default)]
    pub unresolvable: bool,
}

/// What a review found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegrationFindings {
    /// What was looked at and how it came out, in a few sentences.
    pub summary: String,
    /// Findings of the coverage that are right as they are.
    pub justified: Vec<JustifiedFinding>,
    /// What must not be landed as it is.
    pub problems: Vec<IntegrationProblem>,
}

/// A finding of the coverage that is right as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JustifiedFinding {
    /// Its number in the coverage, from 1.
    pub finding: u32,
    /// What it is for.
    pub why: String,
}

/// Something that must not be landed as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegrationProblem {
    /// Where it comes from, which is where it is mended.
    pub cause: RevisionCause,
    /// The number of the coverage's finding that it is about, from 1.
    #[serde(default)]
    pub finding: Option<u32>,
    /// Whose change it is about.
    #[serde(default)]
    pub source: Option<GoalId>,
    /// What is wrong, in a line.
    pub title: String,
    /// How one sees it.
    pub detail: String,
}

/// Where a problem comes from, narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevisionCause {
    /// Something was not verified.
    Verification,
    /// A conflict was resolved wrongly.
    Resolution,
    /// What is brought together, or in which order.
    Scope,
    /// Nobody can tell what a source was meant to do.
    Intent,
}

impl RevisionCause {
    /// Returns where it leads back to.
    #[must_use]
    pub const fn leads_to(self) -> &'static str {
        match self {
            Self::Verification => "verify",
            Self::Resolution => "merge/conflict",
            Self::Scope => "plan",
            Self::Intent => "inspect",
        }
    }
}

/// What speaks for a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defence {
    /// Why it is right, as a whole.
    pub defence: String,
    /// What that rests on, one thing each.
    pub points: Vec<String>,
}

/// What speaks against a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// The strongest argument against it.
    pub strongest: String,
    /// Missed merges, wrong merges, gaps, risks.
    pub objections: Vec<IntegrationObjection>,
}

/// One objection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegrationObjection {
    /// Where it would be mended.
    pub cause: RevisionCause,
    /// What.
    pub text: String,
    /// Whether it speaks against landing.
    pub blocking: bool,
}

/// What follows from both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruling {
    /// Whether it may land.
    pub verdict: LandingVerdict,
    /// Where a revision begins.
    #[serde(default)]
    pub cause: Option<RevisionCause>,
    /// Whose change it is about.
    #[serde(default)]
    pub source: Option<GoalId>,
    /// Why.
    pub why: String,
    /// An answer to each objection, in their order.
    pub answers: Vec<String>,
    /// Commands that have to hold besides, where something was not verified.
    #[serde(default)]
    pub checks: Vec<String>,
}

/// Whether a result may land.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandingVerdict {
    /// It may.
    Approve,
    /// Something has to be done again first.
    Revise,
    /// It must not, and nothing that is done again would help.
    Block,
}

impl LandingVerdict {
    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Revise => "revise",
            Self::Block => "block",
        }
    }
}

impl IntegrateAnswer {
    /// Reads an answer in a role.
    pub(crate) fn read<'de, D: Deserializer<'de>>(
        role: &RoleSpec,
        from: D,
    ) -> Result<Self, D::Error> {
        match IntegrateRole::of(role) {
            Some(IntegrateRole::Planner) => ProposedPlan::deserialize(from).map(Self::Plan),
            Some(IntegrateRole::Resolver) => Resolution::deserialize(from).map(Self::Resolution),
            Some(IntegrateRole::Reviewer) => {
                IntegrationFindings::deserialize(from).map(Self::Review)
            }
            Some(IntegrateRole::Thesis) => Defence::deserialize(from).map(Self::Thesis),
            Some(IntegrateRole::Antithesis) => Attack::deserialize(from).map(Self::Antithesis),
            Some(IntegrateRole::Synthesis) => Ruling::deserialize(from).map(Self::Synthesis),
            None => Err(D::Error::custom(format!(
                "nobody is asked as {}",
                role.name
            ))),
        }
    }
}
