//! A durable mode by its name: of its directories, its command and its links.
//!
//! Knows no mode's table and no mode's types; those stand in one list, by these names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Makes the names of the list, one line for each mode.
macro_rules! names {
    ($($mode:ident $name:literal $about:literal;)+) => {
        /// A durable mode.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Mode {
            $(#[doc = $about] #[serde(rename = $name)] $mode,)+
            /// No mode of the product, and read from nowhere: the one that the tests of what all modes
            /// share bring along, so that none of it is written for a mode that there is.
            #[serde(skip)]
            Toy,
        }

        impl Mode {
            /// Every mode there is, those included that there are only by name yet.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$mode),+];

            /// Returns the name, which is also the name of its directory and its command.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$mode => $name,)+
                    Self::Toy => "toy",
                }
            }
        }
    };
}

names! {
    DeepInterview "deep-interview" "Context creation: what a person wants, asked until it is clear.";
    Ralph "ralph" "Governed build: plan, approval, execution, review, closeout.";
    Autoresearch "autoresearch" "Governed optimisation of a metric.";
    Integrate "integrate" "Governed integration of branches.";
}

impl Mode {
    /// The mode that others take their context from.
    pub const CONTEXT: Self = Self::DeepInterview;
    /// The mode that takes the work of others over.
    pub const INTEGRATOR: Self = Self::Integrate;

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
