//! What agents of a build answer: one shape for each role.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::rules::modes::ralph::plan::{Objections, RalphPlan, Synthesis};
use crate::rules::modes::ralph::review::ReviewFindings;
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::role::RoleSpec;

/// An answer, in the shape that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RalphAnswer {
    /// A plan.
    Thesis(RalphPlan),
    /// What speaks against it.
    Antithesis(Objections),
    /// What came of the argument.
    Synthesis(Synthesis),
    /// What a review found.
    Review(ReviewFindings),
    /// Why it is right as it is.
    Account(Accounting),
}

/// Why the work is right as it is, in an agent's words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounting {
    /// Why.
    pub rationale: String,
    /// What may still go wrong.
    pub risks: Vec<String>,
    /// What comes next.
    pub follow_up: Vec<String>,
}

impl RalphAnswer {
    /// Reads an answer in a role.
    pub(crate) fn read<'de, D: Deserializer<'de>>(
        role: &RoleSpec,
        from: D,
    ) -> Result<Self, D::Error> {
        match RalphRole::of(role) {
            Some(RalphRole::Thesis) => RalphPlan::deserialize(from).map(Self::Thesis),
            Some(RalphRole::Antithesis) => Objections::deserialize(from).map(Self::Antithesis),
            Some(RalphRole::Synthesis) => Synthesis::deserialize(from).map(Self::Synthesis),
            Some(RalphRole::Reviewer) => ReviewFindings::deserialize(from).map(Self::Review),
            Some(RalphRole::Accountant) => Accounting::deserialize(from).map(Self::Account),
            None => Err(D::Error::custom(format!(
                "no agent has the role {}",
                role.name
            ))),
        }
    }
}
