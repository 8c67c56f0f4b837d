//! A durable mode by its name: of its directories, its command and its links.
//!
//! Knows no mode's table and no mode's types; those stand in one list, by these names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A durable mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Context creation: what a person wants, asked until it is clear.
    DeepInterview,
    /// Governed build: plan, approval, execution, review, closeout.
    Ralph,
    /// Governed optimisation of a metric.
    Autoresearch,
    /// Governed integration of branches.
    Integrate,
}

impl Mode {
    /// Every mode there is, those included that there are only by name yet.
    pub const ALL: [Self; 4] = [
        Self::DeepInterview,
        Self::Ralph,
        Self::Autoresearch,
        Self::Integrate,
    ];
    /// The mode that others take their context from.
    pub const CONTEXT: Self = Self::DeepInterview;
    /// The mode that takes the work of others over.
    pub const INTEGRATOR: Self = Self::Integrate;

    /// Returns the name, which is also the name of its directory and its command.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeepInterview => "deep-interview",
            Self::Ralph => "ralph",
            Self::Autoresearch => "autoresearch",
            Self::Integrate => "integrate",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
