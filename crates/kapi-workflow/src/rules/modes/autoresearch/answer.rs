//! What agents of a search answer: a contract to propose, or what was tried and why.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::rules::modes::autoresearch::contract::Contract;
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::role::RoleSpec;

/// An answer, in the shape that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoresearchAnswer {
    /// A contract.
    Contract(Box<Contract>),
    /// What was changed, and why it may help.
    Experiment(Experiment),
}

/// What an agent says of a change that it made; nothing in it is a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Why the change should make the metric better.
    #[serde(default)]
    pub hypothesis: String,
    /// What was changed, in a line.
    #[serde(default)]
    pub description: String,
    /// The number of the idea in the backlog that it tries.
    #[serde(default)]
    pub idea: Option<u32>,
    /// Ideas for later.
    #[serde(default)]
    pub ideas: Vec<String>,
    /// Whether nothing is left that is worth trying; nothing was changed then.
    #[serde(default)]
    pub exhausted: bool,
}

impl AutoresearchAnswer {
    /// Reads an answer in a role.
    pub(crate) fn read<'de, D: Deserializer<'de>>(
        role: &RoleSpec,
        from: D,
    ) -> Result<Self, D::Error> {
        match AutoresearchRole::of(role) {
            Some(AutoresearchRole::Drafter) => {
                Box::<Contract>::deserialize(from).map(Self::Contract)
            }
            Some(AutoresearchRole::Researcher) => {
                Experiment::deserialize(from).map(Self::Experiment)
            }
            None => Err(D::Error::custom(format!(
                "nobody is asked as {}",
                role.name
            ))),
        }
    }
}
