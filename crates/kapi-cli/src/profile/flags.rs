//! The flags that choose how a launch is set up; `kapi launch` and `kapi launch --explain` have them.
//!
//! Only what is said; what follows from it is resolved elsewhere.

use std::path::PathBuf;

use kapi_core::isolation::SandboxLevel;

use crate::config::grant::{LEVEL_DEFAULT, NETWORK_DEFAULT};
use crate::contract::flags::{Network, Sandbox};
use crate::help;

/// The flags.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ProfileFlags {
    /// Read an agent-sandbox.yaml; an untrusted file inside the project can only restrict
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Profile, 'acp:COMMAND', 'command:SHELL' or 'script:FILE.yaml'
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(crate) agent: Option<String>,
    /// Model of the agent, in its own spelling; others are refused [default: the profile's]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Branch to work on
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// Push the branch after the work is committed
    #[arg(long, conflicts_with = "no_push")]
    pub(crate) push: bool,
    /// Push the branch and open a pull request, by gh, glab or the forge's page
    #[arg(long, requires = "branch", conflicts_with = "no_push")]
    pub(crate) pr: bool,
    /// Branch that the pull request is for [default: the forge's own]
    #[arg(long, value_name = "BRANCH", requires = "pr")]
    pub(crate) pr_base: Option<String>,
    /// Do not push, even if the profile does
    #[arg(long)]
    pub(crate) no_push: bool,
    /// Keep the agent's own commits and messages, instead of one commit of its work
    #[arg(long, requires = "branch")]
    pub(crate) keep_commits: bool,
    /// Work in a git worktree
    #[arg(long, conflicts_with = "overlay_mode")]
    pub(crate) worktree_mode: bool,
    /// Work in a copy-on-write view of the project
    #[arg(long)]
    pub(crate) overlay_mode: bool,
    /// Talk to the agent in this terminal
    #[arg(long)]
    pub(crate) interactive: bool,
    #[arg(help = help::with_default("Isolation level", LEVEL_DEFAULT), long, value_name = "LEVEL", value_enum)]
    pub(crate) sandbox: Option<Sandbox>,
    #[arg(help = help::with_default("Network access besides the model", NETWORK_DEFAULT), long, value_name = "MODE", value_enum)]
    pub(crate) network: Option<Network>,
}

impl ProfileFlags {
    /// Returns whether a push was asked for or forbidden.
    pub(crate) const fn pushes(&self) -> Option<bool> {
        match (self.push || self.pr, self.no_push) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

/// Returns the level of a name.
pub(crate) const fn level(sandbox: Sandbox) -> SandboxLevel {
    match sandbox {
        Sandbox::Native => SandboxLevel::Native,
        Sandbox::Podman => SandboxLevel::Podman,
        Sandbox::None => SandboxLevel::None,
    }
}
