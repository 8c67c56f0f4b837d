//! Everything one launch needs, resolved: what stands on the command line and in profiles.
//!
//! Pure data. What depends on the repository, such as the mode, is decided later.

use std::path::PathBuf;

use kapi_agent::agent::AgentKind;
use kapi_agent::settings::AgentSettings;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_run::spending::usage_meter::UsageLimits;
use serde::{Deserialize, Serialize};

use super::paths::SandboxPaths;

/// One launch.
#[derive(Debug, Clone)]
pub struct LaunchPlan {
    /// The sandbox.
    pub location: SandboxPaths,
    /// The project: a resolved path.
    pub project: PathBuf,
    /// The project's name, for the status.
    pub project_name: String,
    /// The agent.
    pub agent: AgentKind,
    /// How the person wants it.
    pub settings: AgentSettings,
    /// What it is to do; empty only for an interactive launch.
    pub prompt: String,
    /// The branch and where it comes from and goes to.
    pub branch: Option<BranchPlan>,
    /// The mode that was forced, if one was.
    pub mode: ModeChoice,
    /// The isolation.
    pub level: SandboxLevel,
    /// What can be reached.
    pub network: NetworkMode,
    /// With or without a person at a terminal.
    pub conduct: Conduct,
    /// The commit's message.
    pub commit_message: String,
    /// The longest the agent may take, in milliseconds.
    pub deadline_ms: u64,
    /// The most it may use.
    pub limits: UsageLimits,
    /// The words of the command line that launches it again, without the task; none where it was not
    /// a command line that launched it.
    pub command: Vec<String>,
}

/// A branch, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchPlan {
    /// Its name here; the whole name of one that is held back.
    pub name: String,
    /// The revision a new one begins at; the checked-out commit when none is named.
    pub base: Option<String>,
    /// The remote.
    pub remote: String,
    /// Its name there.
    pub remote_name: String,
    /// Whether it is pushed.
    pub push: Push,
    /// The revision that is merged into it first.
    pub merge: Option<String>,
    /// Whether it gets the commits that the agent made by itself, before one of what is left.
    pub keep_commits: bool,
}

/// Whether a branch is pushed when it is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Push {
    /// It is, if the agent ends well.
    Yes,
    /// It is, however the agent ends.
    Always,
    /// It stays here.
    No,
}

/// The mode a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeChoice {
    /// What the table says.
    Auto,
    /// A real worktree.
    Worktree,
    /// A view of the project.
    Overlay,
}

/// How an agent is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// By its prompt alone.
    Headless,
    /// By a person at a terminal.
    Interactive,
}
