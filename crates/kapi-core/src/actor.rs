//! Who asks: a person, an agent, or the engine itself.
//!
//! The rules of authority (founding design, section 4) live where commands are decided; this
//! file only names the parties.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The party behind a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Actor {
    /// A person at a terminal, or a command a person typed.
    Human {
        /// The account's name, as the system gives it.
        user: String,
    },
    /// An agent, named by the run it is part of.
    Agent {
        /// The run's id.
        run: String,
    },
    /// Kapi itself, reporting what the world did.
    Engine,
}

impl fmt::Display for Actor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Human { user } => write!(out, "human {user}"),
            Self::Agent { run } => write!(out, "agent {run}"),
            Self::Engine => write!(out, "engine"),
        }
    }
}
