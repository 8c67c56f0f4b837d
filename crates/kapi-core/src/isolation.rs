//! How far an agent is kept from the machine and from the network.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far the agent is kept from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// Namespaces with a minimal read-only root.
    Native,
    /// A container with the root of an image.
    Podman,
    /// A worktree only: no isolation.
    None,
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Native => "native",
            Self::Podman => "podman",
            Self::None => "none",
        })
    }
}

/// What a run can reach over the network, the least first. Its model is always reached through Kapi.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// Nothing.
    None,
    /// The hosts that the person and the agent's manifest name, through a proxy that decides.
    Filtered,
    /// Everything the host can reach.
    Open,
}

impl NetworkMode {
    /// Contracts from before there was a choice were carried out on the host's network.
    #[must_use]
    pub const fn of_old_contracts() -> Self {
        Self::Open
    }
}

impl fmt::Display for NetworkMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::None => "none",
            Self::Filtered => "filtered",
            Self::Open => "open",
        })
    }
}
