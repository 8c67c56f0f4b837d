//! The contract: what done means, what may be used, who does and who judges.
//!
//! Approved once by a person against its hash and never changed afterwards; only the budget may
//! be raised later, by its own command.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::goal::budget::Budget;

/// The only contract layout there is so far.
pub const CONTRACT_VERSION: u32 = 1;
/// Turns a goal may take when nothing else was said (pi-until-done: default 20).
pub const TURNS_DEFAULT: u32 = 20;
/// The most turns a goal may be given (pi-until-done: hard ceiling 20000).
pub const TURNS_MAX: u32 = 20_000;
/// The longest intent or criteria, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// What a goal is held to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// The layout of this document.
    pub version: u32,
    /// What the person wants, in their words.
    pub intent: String,
    /// What must hold for it to be done.
    pub done_criteria: String,
    /// Shell commands that must all exit 0 in a clean checkout; empty means unverified.
    pub verify: Vec<String>,
    /// Milliseconds one verify command may take.
    pub verify_timeout_ms: u64,
    /// Whether verify commands may use the network.
    pub verify_network: bool,
    /// Git pathspecs (`:(glob)` rules) whose files must stay exactly as they are at the base.
    pub protect: Vec<String>,
    /// Checks the agent never sees, copied over the checkout before the last verify.
    pub hidden: Option<Hidden>,
    /// The limits at approval.
    pub budget: Budget,
    /// Turns that may end in the same tree with the same verdict before the goal is stalled.
    pub stall_after: u32,
    /// Milliseconds one agent turn may take.
    pub turn_timeout_ms: u64,
    /// The agent that does the work: `claude`, `command:<shell>`, `script:<file>`.
    pub agent: String,
    /// Who judges.
    pub judge: Judge,
    /// What happens when no judge can be reached.
    pub judge_unavailable: JudgeUnavailable,
    /// Where the work starts.
    pub base: Base,
    /// The branch that receives the proved commit.
    pub branch: String,
    /// The isolation around the agent, the verify commands and the judge.
    pub sandbox: SandboxLevel,
    /// What the agent can reach besides its model.
    #[serde(default = "NetworkMode::of_old_contracts")]
    pub network: NetworkMode,
}

/// The commit a goal starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// The revision as the person named it.
    pub revision: String,
    /// The commit it resolved to.
    pub commit: String,
    /// That commit's tree.
    pub tree: String,
}

/// Checks kept away from the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hidden {
    /// The directory they were copied from at approval.
    pub source: String,
    /// SHA-256 over their names, modes and contents.
    pub sha256: String,
    /// How many files there are.
    pub files: u32,
}

/// Who confirms that the criteria are met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "by",
    content = "agent",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum Judge {
    /// Nobody: the verify commands decide alone.
    None,
    /// The executor's own agent, in a fresh session.
    Same,
    /// Another agent.
    Agent(String),
}

impl fmt::Display for Judge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("none"),
            Self::Same => out.write_str("same"),
            Self::Agent(name) => out.write_str(name),
        }
    }
}

/// What an unreachable or unreadable judge means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeUnavailable {
    /// The goal is blocked until a judge answers.
    Closed,
    /// The verify commands decide alone, and the record says so.
    Open,
}

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

/// What a run can reach over the network. Its model is always reached through Kapi.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    const fn of_old_contracts() -> Self {
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

impl Contract {
    /// Tells whether a proof is possible at all.
    #[must_use]
    pub const fn is_verified(&self) -> bool {
        !self.verify.is_empty()
    }

    /// Returns the agent that judges, if anyone does.
    #[must_use]
    pub fn judge_agent(&self) -> Option<&str> {
        match &self.judge {
            Judge::None => None,
            Judge::Same => Some(&self.agent),
            Judge::Agent(name) => Some(name),
        }
    }

    /// Returns what is wrong with the contract, as the field and the rule it breaks.
    #[must_use]
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        let text_is_bad = |text: &str| text.trim().is_empty() || text.len() > TEXT_BYTES_MAX;
        if self.version != CONTRACT_VERSION {
            return Some(("version", "it must be 1"));
        }
        if text_is_bad(&self.intent) {
            return Some(("intent", "it must not be empty or longer than 64 KiB"));
        }
        if text_is_bad(&self.done_criteria) {
            return Some((
                "done_criteria",
                "it must not be empty or longer than 64 KiB",
            ));
        }
        if self.verify.iter().any(|command| text_is_bad(command)) {
            return Some((
                "verify",
                "a command must not be empty or longer than 64 KiB",
            ));
        }
        if self.hidden.is_some() && self.verify.is_empty() {
            return Some((
                "hidden",
                "hidden checks need a verify command that runs them",
            ));
        }
        if self.budget.turns == 0 || self.budget.turns > TURNS_MAX {
            return Some(("budget.turns", "it must be 1 to 20000"));
        }
        if self.stall_after < 2 {
            return Some(("stall_after", "it must be 2 or more"));
        }
        if self.verify_timeout_ms == 0 || self.turn_timeout_ms == 0 {
            return Some(("timeouts", "they must be longer than zero"));
        }
        None
    }
}
