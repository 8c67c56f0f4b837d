//! The options of `kapi run`: what a person says of a contract on the command line.
//!
//! Draws nothing up; what each means for a contract stands beside it. Other commands take the same
//! names for isolation, network and tests.

pub(crate) mod names;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use kapi_check::rules::proof::policy::{CheckPolicy, TestPolicy};
use kapi_core::isolation::NetworkMode;
use kapi_goal::rules::contract::{LANES_MAX, RaceEnd, Surface};
use kapi_workflow::rules::branch::BranchType;

use crate::amount;
use crate::contract::flags::names::{GoalTypeName, PhaseName, RemindersName, parse_surface};
use crate::error::Error;

/// Headings of the options that a contract is made of.
const PROOF: &str = "Proof";
const PARTIES: &str = "Agent and judge";
const LIMITS: &str = "Limits";
const ISOLATION: &str = "Isolation";
const MORE: &str = "More of the contract";

/// Options of `kapi run`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// The task, in your words; a contract file may say it instead
    #[arg(value_name = "TASK", default_value = "", hide_default_value = true)]
    pub(crate) intent: String,
    /// A contract.yaml, whole or in its short form; flags override it
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<PathBuf>,
    /// A shell command that must exit 0 in a clean checkout; may be given several times
    #[arg(help_heading = PROOF, long, value_name = "COMMAND")]
    pub(crate) verify: Vec<String>,
    /// Run without a verify command, also where the configuration names one
    #[arg(help_heading = PROOF, long, conflicts_with = "verify")]
    pub(crate) unverified: bool,
    /// What must hold for it to be done; default: the task itself and the verify commands
    #[arg(help_heading = PROOF, long, value_name = "TEXT")]
    pub(crate) criteria: Option<String>,
    /// Files the agent must not change, as git pathspecs with glob rules ('tests/**')
    #[arg(help_heading = PROOF, long, value_name = "GLOB")]
    pub(crate) protect: Vec<String>,
    /// Do not protect the test scripts that a verify command names
    #[arg(help_heading = PROOF, long)]
    pub(crate) no_auto_protect: bool,
    #[command(flatten)]
    pub(crate) checks: CheckFlags,
    /// A directory of checks the agent never sees, copied over the checkout for the last verify
    #[arg(help_heading = PROOF, long, value_name = "DIR")]
    pub(crate) hidden: Option<PathBuf>,
    /// The agent: claude, codex, gemini, pi, 'command:SHELL' or 'script:FILE.yaml'
    #[arg(help_heading = PARTIES, long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Who judges: another agent, provider/model, 'same' or 'none'; default: your preference, or
    /// another agent that is installed; for a command 'none'
    #[arg(help_heading = PARTIES, long, value_name = "JUDGE")]
    pub(crate) judge: Option<String>,
    /// What an unreachable judge means: 'closed' blocks the goal, 'open' lets it pass
    #[arg(help_heading = PARTIES, long, value_name = "RULE", value_enum)]
    pub(crate) judge_unavailable: Option<Openness>,
    /// The revision to start from; default: HEAD
    #[arg(help_heading = MORE, long, value_name = "REVISION")]
    pub(crate) base: Option<String>,
    /// The branch type; default: fix for a task that begins with "fix", feat otherwise
    #[arg(help_heading = MORE, long = "type", value_name = "TYPE", value_parser = branch_types())]
    pub(crate) branch_type: Option<BranchType>,
    /// The isolation: 'native' (default), 'podman', or 'none' for no isolation at all
    #[arg(help_heading = ISOLATION, long, value_name = "LEVEL", value_enum)]
    pub(crate) sandbox: Option<Sandbox>,
    /// What can be reached besides the model: 'none', 'filtered' (default) or 'open'
    #[arg(help_heading = ISOLATION, long, value_name = "MODE", value_enum)]
    pub(crate) network: Option<Network>,
    /// Agent turns at most [default: 20]
    #[arg(help_heading = LIMITS, long, value_name = "N")]
    pub(crate) turns: Option<u32>,
    /// Tokens at most, executor and judge together (500k, 2M)
    #[arg(help_heading = LIMITS, long, value_name = "N", value_parser = amount::parse_count)]
    pub(crate) tokens: Option<u64>,
    /// US dollars at most, for agents that report their cost or whose model's price is known
    #[arg(help_heading = LIMITS, long, value_name = "USD", value_parser = amount::parse_usd_micros)]
    pub(crate) usd: Option<u64>,
    /// Time at most (90s, 15m, 2h)
    #[arg(help_heading = LIMITS, long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    pub(crate) wall: Option<u64>,
    /// Time one agent turn may take [default: 1h]
    #[arg(help_heading = LIMITS, long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    pub(crate) turn_timeout: Option<u64>,
    /// Time one verify command may take [default: 30m]
    #[arg(help_heading = PROOF, long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    pub(crate) verify_timeout: Option<u64>,
    /// Let verify commands use the network
    #[arg(help_heading = PROOF, long)]
    pub(crate) verify_network: bool,
    /// Turns that may end in the same tree with the same verdict before it is stalled [default: 3]
    #[arg(help_heading = LIMITS, long, value_name = "N")]
    pub(crate) stall_after: Option<u32>,
    /// A command, or the beginning of one, that you are asked about first; may be given several times
    #[arg(help_heading = MORE, long, value_name = "TEXT")]
    pub(crate) ask_before: Vec<String>,
    /// How the agent decides where nothing was said
    #[arg(help_heading = MORE, long, value_name = "TEXT")]
    pub(crate) decision_style: Option<String>,
    /// Whether it ends with something shipped or with something found out [default: ticket]
    #[arg(help_heading = MORE, long, value_name = "TYPE", value_enum)]
    pub(crate) goal_type: Option<GoalTypeName>,
    /// What the agent can look at, as KIND=LOCATION or KIND=LOCATION;NOTES
    #[arg(help_heading = MORE, long, value_name = "SURFACE", value_parser = parse_surface)]
    pub(crate) surface: Vec<Surface>,
    /// The phase the work starts in [default: analysis]
    #[arg(help_heading = MORE, long, value_name = "PHASE", value_enum)]
    pub(crate) start_phase: Option<PhaseName>,
    /// Run verify commands through mise
    #[arg(help_heading = MORE, long)]
    pub(crate) mise: bool,
    /// How much the agent is reminded of in every turn [default: all]
    #[arg(help_heading = MORE, long, value_name = "HOW", value_enum)]
    pub(crate) reminders: Option<RemindersName>,
    /// Do not ask the agent to distil the journey once the goal is done
    #[arg(help_heading = MORE, long)]
    pub(crate) no_distill: bool,
    #[command(flatten)]
    pub(crate) race: RaceFlags,
    /// Approve the contract without being asked; the record says so
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// End when the goal is parked, instead of staying with it; `kapi up` goes on then
    #[arg(long)]
    pub(crate) park: bool,
    /// Show the effective settings and where each one comes from; nothing is started
    #[arg(long)]
    pub(crate) explain: bool,
}

/// What checks are held to, as options.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = PROOF)]
pub(crate) struct CheckFlags {
    /// What the agent may do to tests: 'additive' (default) adds and keeps, 'locked' changes
    /// nothing, 'free' changes them and every difference is named
    #[arg(long, value_name = "RULE", value_enum)]
    pub(crate) tests: Option<TestsName>,
    /// Take checks that already pass on the base as proof enough
    #[arg(long)]
    pub(crate) already_green: bool,
    /// Let the proof rest on test scripts and runner settings that the change itself edited
    #[arg(long)]
    pub(crate) allow_changed_setup: bool,
    /// Take each hunk of the change back in turn, and say which of them the checks notice
    #[arg(long)]
    pub(crate) prove_diff: bool,
}

/// What may happen to tests, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TestsName {
    /// No test is added, changed or removed
    Locked,
    /// Tests are added, and existing ones stay
    Additive,
    /// Tests change, and every difference is named
    Free,
}

impl From<TestsName> for TestPolicy {
    fn from(name: TestsName) -> Self {
        match name {
            TestsName::Locked => Self::Locked,
            TestsName::Additive => Self::Additive,
            TestsName::Free => Self::Free,
        }
    }
}

impl CheckFlags {
    /// Returns the policy that the flags ask for.
    pub(crate) fn policy(self) -> CheckPolicy {
        CheckPolicy {
            tests: self.tests.map(TestPolicy::from).unwrap_or_default(),
            already_green: self.already_green,
            changed_steering: self.allow_changed_setup,
            strength: self.prove_diff,
        }
    }
}

/// What an unreachable judge means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Openness {
    /// The goal is blocked until a judge answers
    Closed,
    /// The verify commands decide alone
    Open,
}

/// The isolation, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sandbox {
    /// Namespaces with a minimal read-only root
    Native,
    /// A rootless container with the root of an image
    Podman,
    /// A worktree only: the agent can read and write what you can
    None,
}

/// What can be reached, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Network {
    /// Nothing but the model
    None,
    /// The hosts your configuration allows
    Filtered,
    /// Whatever this machine can reach
    Open,
}

impl From<Network> for NetworkMode {
    fn from(network: Network) -> Self {
        match network {
            Network::None => Self::None,
            Network::Filtered => Self::Filtered,
            Network::Open => Self::Open,
        }
    }
}

/// What makes a run a race.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Races")]
pub(crate) struct RaceFlags {
    /// Agents that race each other in workspaces of their own (claude,codex,gemini); may be given
    /// several times, and 'command:SHELL' or 'script:FILE.yaml' then stands alone
    #[arg(long, value_name = "AGENTS", conflicts_with = "agent")]
    pub(crate) race: Vec<String>,
    /// Attempts of each agent, in workspaces of their own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(LANES_MAX)))]
    pub(crate) attempts: Option<u32>,
    /// Lanes of a race that are driven at once [default: all of them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(LANES_MAX)))]
    pub(crate) jobs: Option<u32>,
    /// Let every lane of a race come to its end, and rank them, instead of stopping the others
    /// when the first is proved
    #[arg(long)]
    pub(crate) compare: bool,
}

impl RaceFlags {
    /// Tells whether a race is wanted.
    pub(crate) const fn is_race(&self) -> bool {
        !self.race.is_empty() || self.attempts.is_some()
    }

    /// Refuses what only a race has, where there is none.
    pub(crate) fn check_no_race(&self) -> Result<(), Error> {
        if self.is_race() {
            return Err(Error::usage(
                "`--race` and `--attempts` belong to `kapi run`",
            ));
        }
        if self.compare || self.jobs.is_some() {
            return Err(Error::usage("`--compare` and `--jobs` belong to a race")
                .with_hint("name its agents with `--race`, or add `--attempts <N>`."));
        }
        Ok(())
    }

    /// Returns when the race is over.
    pub(crate) const fn ends(&self) -> RaceEnd {
        if self.compare {
            RaceEnd::Compare
        } else {
            RaceEnd::FirstProved
        }
    }
}

/// Reads a branch type, and lets clap list them all.
pub(crate) fn branch_types() -> impl TypedValueParser<Value = BranchType> {
    let names = BranchType::ALL.map(BranchType::as_str);
    PossibleValuesParser::new(names).try_map(|name| parse_branch_type(&name))
}

/// Reads a branch type.
pub(crate) fn parse_branch_type(text: &str) -> Result<BranchType, String> {
    BranchType::ALL
        .into_iter()
        .find(|kind| kind.as_str() == text)
        .ok_or_else(|| format!("{text:?} is not a branch type"))
}
