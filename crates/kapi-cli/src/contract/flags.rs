//! The options of `kapi run`: what a person says of a contract on the command line.
//!
//! Draws nothing up; what each means for a contract stands beside it. Other commands take the same
//! names for isolation, network and tests.

pub(crate) mod names;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use kapi_check::rules::proof::policy::{CheckPolicy, TestPolicy};
use kapi_core::isolation::NetworkMode;
use kapi_goal::rules::contract::{
    AgentSurface, GoalType, LANES_MAX, RaceEnd, TURNS_DEFAULT, TURNS_MAX,
};
use kapi_goal::rules::plan::task::TaskPhase;
use kapi_workflow::rules::branch::BranchType;

use crate::config::deliver::DeliverArgs;
use crate::config::grant::{LEVEL_DEFAULT, NETWORK_DEFAULT};
use crate::config::notify::NotifyArgs;
use crate::contract::flags::names::{GoalTypeName, PhaseName, RemindersName, parse_surface};
use crate::error::Error;
use crate::subdirectory::Subdirectory;
use crate::{amount, help};

/// Milliseconds one agent turn may take when nothing else was said.
pub(crate) const TURN_TIMEOUT_MS: u64 = 60 * 60 * 1000;
/// Milliseconds one verify command may take when nothing else was said.
pub(crate) const VERIFY_TIMEOUT_MS: u64 = 30 * 60 * 1000;
/// Turns without progress before a goal is stalled when nothing else was said.
pub(crate) const STALL_AFTER: u32 = 3;

/// Headings of the options that a contract is made of.
pub(crate) const PROOF: &str = "Proof";
const PARTIES: &str = "Agent and judge";
const LIMITS: &str = "Limits";
pub(crate) const ISOLATION: &str = "Isolation";
const MORE: &str = "More of the contract";

/// Options of `kapi run`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// The task, unless the contract file contains it
    #[arg(value_name = "TASK", default_value = "", hide_default_value = true)]
    pub(crate) intent: String,
    /// Read the contract from a YAML file; options override it
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<PathBuf>,
    /// Shell command that must exit 0 in a clean checkout (repeatable)
    #[arg(help_heading = PROOF, long, value_name = "COMMAND", value_parser = shell_command)]
    pub(crate) verify: Vec<String>,
    /// Run without verify commands, even if the configuration sets one
    #[arg(help_heading = PROOF, long, conflicts_with = "verify")]
    pub(crate) unverified: bool,
    /// Acceptance criteria [default: the task and the verify commands]
    #[arg(help_heading = PROOF, long, value_name = "TEXT")]
    pub(crate) criteria: Option<String>,
    /// Files the agent must not change, such as 'tests/**' (repeatable)
    #[arg(help_heading = PROOF, long, value_name = "GLOB")]
    pub(crate) protect: Vec<String>,
    /// Do not protect test scripts named in verify commands
    #[arg(help_heading = PROOF, long)]
    pub(crate) no_auto_protect: bool,
    #[command(flatten)]
    pub(crate) checks: CheckFlags,
    /// Directory of checks hidden from the agent, copied in for the last verify
    #[arg(help_heading = PROOF, long, value_name = "DIR")]
    pub(crate) hidden: Option<PathBuf>,
    /// Agent: claude, codex, gemini, pi, 'acp:COMMAND', 'command:SHELL' or 'script:FILE.yaml'
    #[arg(help_heading = PARTIES, long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Model of the agent, in its own spelling; others are refused [default: as configured]
    #[arg(help_heading = PARTIES, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Judge: another agent, provider/model, 'same' or 'none' [default: your preference, or another
    /// installed agent; 'none' for 'command:' agents]
    #[arg(help_heading = PARTIES, long, value_name = "JUDGE")]
    pub(crate) judge: Option<String>,
    /// What to do when the judge cannot be reached
    #[arg(help_heading = PARTIES, long, value_name = "RULE", value_enum)]
    pub(crate) judge_unavailable: Option<Openness>,
    /// Revision to start from [default: HEAD]
    #[arg(help_heading = MORE, long, value_name = "REVISION")]
    pub(crate) base: Option<String>,
    /// Branch type [default: fix if the task begins with "fix", otherwise feat]
    #[arg(help_heading = MORE, long = "type", value_name = "TYPE", value_parser = branch_types())]
    pub(crate) branch_type: Option<BranchType>,
    #[arg(help = help::with_default("Isolation level", LEVEL_DEFAULT), help_heading = ISOLATION, long, value_name = "LEVEL", value_enum)]
    pub(crate) sandbox: Option<Sandbox>,
    #[arg(help = help::with_default("Network access besides the model", NETWORK_DEFAULT), help_heading = ISOLATION, long, value_name = "MODE", value_enum)]
    pub(crate) network: Option<Network>,
    #[arg(help = help::with_default("Maximum number of agent turns", TURNS_DEFAULT), help_heading = LIMITS, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(TURNS_MAX)))]
    pub(crate) turns: Option<u32>,
    /// Token limit, agent and judge together (500k, 2M)
    #[arg(help_heading = LIMITS, long, value_name = "N", value_parser = amount::parse_count)]
    pub(crate) tokens: Option<u64>,
    /// Cost limit in US dollars; models of unknown price are refused
    #[arg(help_heading = LIMITS, long, value_name = "USD", value_parser = amount::parse_usd_micros)]
    pub(crate) usd: Option<u64>,
    /// Wall-clock limit (90s, 15m, 2h)
    #[arg(help_heading = LIMITS, long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    pub(crate) wall: Option<u64>,
    #[arg(help = help::with_default("Time limit of one agent turn", help::time(TURN_TIMEOUT_MS)), help_heading = LIMITS, long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    pub(crate) turn_timeout: Option<u64>,
    #[arg(help = help::with_default("Time limit of one verify command", help::time(VERIFY_TIMEOUT_MS)), help_heading = PROOF, long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    pub(crate) verify_timeout: Option<u64>,
    /// Give verify commands network access
    #[arg(help_heading = PROOF, long)]
    pub(crate) verify_network: bool,
    #[arg(help = help::with_default("Stop after this many turns with the same tree and verdict", STALL_AFTER), help_heading = LIMITS, long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) stall_after: Option<u32>,
    /// Keep the agent's own commits and messages, instead of one commit of its work
    #[arg(help_heading = MORE, long)]
    pub(crate) keep_commits: bool,
    /// Command prefix that needs your approval first (repeatable)
    #[arg(help_heading = MORE, long, value_name = "TEXT")]
    pub(crate) ask_before: Vec<String>,
    /// How the agent should decide open questions
    #[arg(help_heading = MORE, long, value_name = "TEXT")]
    pub(crate) decision_style: Option<String>,
    #[arg(help = help::with_default("Kind of result", GoalType::default().as_str()), help_heading = MORE, long, value_name = "TYPE", value_enum)]
    pub(crate) goal_type: Option<GoalTypeName>,
    /// Surface to inspect, as KIND=LOCATION or KIND=LOCATION;NOTES
    #[arg(help_heading = MORE, long, value_name = "SURFACE", value_parser = parse_surface)]
    pub(crate) surface: Vec<AgentSurface>,
    #[arg(help = help::with_default("Phase in which the work starts", TaskPhase::default()), help_heading = MORE, long, value_name = "PHASE", value_enum)]
    pub(crate) start_phase: Option<PhaseName>,
    /// Run verify commands through mise
    #[arg(help_heading = MORE, long)]
    pub(crate) mise: bool,
    /// How much guidance to repeat in every turn
    #[arg(help_heading = MORE, long, value_name = "HOW", value_enum)]
    pub(crate) reminders: Option<RemindersName>,
    /// Do not ask the agent to summarize what it learned
    #[arg(help_heading = MORE, long)]
    pub(crate) no_distill: bool,
    #[command(flatten)]
    pub(crate) race: RaceFlags,
    #[command(flatten)]
    pub(crate) deliver: DeliverArgs,
    #[command(flatten)]
    pub(crate) notify: NotifyArgs,
    /// Approve the contract without asking; the log records this
    #[arg(help_heading = None::<&str>, short, long)]
    pub(crate) yes: bool,
    /// Exit when the goal is parked and leave the rest to `kapi up`
    #[arg(help_heading = None::<&str>, long)]
    pub(crate) park: bool,
    /// Show the effective settings and where each comes from, without starting anything
    #[arg(help_heading = None::<&str>, long)]
    pub(crate) explain: bool,
}

/// What checks are held to, as options.
impl Args {
    /// Returns the same with commands and patterns that were typed in a subdirectory said from the
    /// project's top.
    pub(super) fn said_from_top(&self, here: &Subdirectory) -> Self {
        Self {
            verify: here.commands(&self.verify),
            protect: here.patterns(&self.protect),
            ..self.clone()
        }
    }
}

#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = PROOF)]
pub(crate) struct CheckFlags {
    /// How the agent may change tests
    #[arg(long, value_name = "RULE", value_enum)]
    pub(crate) tests: Option<TestsName>,
    /// Accept checks that already pass on the base as proof
    #[arg(long)]
    pub(crate) already_green: bool,
    /// Accept a proof that relies on test setup edited by the change
    #[arg(long)]
    pub(crate) allow_changed_setup: bool,
    /// Accept a proof that relies on code that looks like faking a pass, or tests that cannot fail
    #[arg(long)]
    pub(crate) allow_flagged_code: bool,
    /// Revert each hunk in turn and report which ones the checks notice
    #[arg(long)]
    pub(crate) prove_diff: bool,
}

/// What may happen to tests, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TestsName {
    /// Add, change or remove no tests
    Locked,
    /// Add tests, but keep existing ones unchanged (the default)
    Additive,
    /// Change tests freely; Kapi reports every difference
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
            flagged_code: self.allow_flagged_code,
            strength: self.prove_diff,
        }
    }
}

/// What an unreachable judge means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Openness {
    /// Park the goal until a judge answers (the default)
    Closed,
    /// Let the verify commands decide alone
    Open,
}

/// The isolation, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sandbox {
    /// Linux namespaces with a minimal read-only root
    Native,
    /// A rootless Podman container
    Podman,
    /// No isolation: the agent can read and write what you can
    None,
}

/// What can be reached, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Network {
    /// The model only
    None,
    /// The hosts your configuration allows
    Filtered,
    /// Everything this machine can reach
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
    /// Race these agents against each other, each in its own workspace
    ///
    /// Takes a list such as claude,codex,gemini and is repeatable. Give 'acp:COMMAND', 'command:SHELL'
    /// and 'script:FILE.yaml' one at a time.
    #[arg(long, value_name = "AGENTS", conflicts_with = "agent")]
    pub(crate) race: Vec<String>,
    /// Number of attempts per agent, each in its own workspace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(LANES_MAX)))]
    pub(crate) attempts: Option<u32>,
    /// Number of attempts to run in parallel [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(LANES_MAX)))]
    pub(crate) jobs: Option<u32>,
    /// Let all attempts finish and rank them, instead of stopping at the first proved one
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

    /// Refuses to deliver what nobody picked: a comparison has no winner.
    pub(crate) fn check_delivery(&self, deliver: &DeliverArgs) -> Result<(), Error> {
        if self.compare && (deliver.push || deliver.pr) {
            return Err(
                Error::usage("a comparison has no winner to deliver").with_hint(
                    "leave out `--compare`, or pick a result and run `kapi deliver <GOAL> --pr`.",
                ),
            );
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

/// Reads a shell command, which an empty text is none of: it would pass.
pub(crate) fn shell_command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(text.to_owned())
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
