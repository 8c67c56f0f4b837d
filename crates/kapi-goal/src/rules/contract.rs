//! The contract: what done means, what may be used, who does and who judges.
//!
//! Approved once by a person against its hash and never changed afterwards; only the budget may
//! be raised later, by its own command.

use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::agent_models::AgentModels;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_core::id::GoalId;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use serde::{Deserialize, Serialize};

use crate::rules::budget::Budget;
use crate::rules::delivery::Delivery;
use crate::rules::plan::task::{PlanTaskId, TaskPhase};

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
    pub hidden: Option<HiddenCheckSet>,
    /// The limits at approval.
    pub budget: Budget,
    /// Turns that may end in the same tree with the same verdict before the goal is stalled.
    pub stall_after: u32,
    /// Milliseconds one agent turn may take.
    pub turn_timeout_ms: u64,
    /// The agent that does the work: `claude`, `command:<shell>`, `script:<file>`.
    pub agent: String,
    /// The models of the agents that work and judge, of those that may not ask any. Left out of the
    /// contract's JSON where there are none, so that contracts from before keep their hashes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<AgentModels>,
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
    /// How it is worked on. Left out of the contract's JSON while nothing was said, so that
    /// contracts from before keep their hashes.
    #[serde(default, skip_serializing_if = "Working::is_plain")]
    pub working: Working,
    /// What its checks are held to. Left out of the contract's JSON while nothing was said, so that
    /// contracts from before keep their hashes.
    #[serde(default, skip_serializing_if = "CheckPolicy::is_plain")]
    pub checks: CheckPolicy,
    /// Whose words it is made of. Left out of the contract's JSON while all are the person's.
    #[serde(default, skip_serializing_if = "Attribution::is_all_persons")]
    pub attribution: Attribution,
    /// The other attempts at the same contract, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
    /// Where the proved branch goes beyond this repository, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
}

/// How a goal is worked on, as pi-until-done's contract says it beside goal and proof.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Working {
    /// Whether it ends with something shipped or with something found out.
    pub goal_type: GoalType,
    /// What the agent can look at: logs, metrics, staging addresses, sandboxes.
    pub surfaces: Vec<AgentSurface>,
    /// Commands that a person is asked about first, as texts or beginnings of commands.
    pub ask_before: Vec<String>,
    /// How the agent decides where nothing was said.
    pub decision_style: Option<String>,
    /// The phase the work starts in.
    pub start_phase: TaskPhase,
    /// Whether commands go through `mise`.
    pub mise: bool,
    /// How much the agent is reminded of in every turn.
    pub reminders: Reminders,
    /// Whether the agent is asked to distil the journey once the goal is done.
    pub distill: Distillation,
    /// Where it is worked on. Left out of the contract's JSON where that is a workspace of Kapi's, so
    /// that contracts from before keep their hashes.
    #[serde(skip_serializing_if = "WorkPlace::is_workspace")]
    pub place: WorkPlace,
    /// Whether the branch gets the commits that the agent made by itself, instead of one commit of
    /// Kapi's. Left out of the contract's JSON where it does not, so that contracts from before keep
    /// their hashes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_commits: bool,
    /// The task of a workflow that it carries out. Left out of the contract's JSON where there is
    /// none, so that contracts from before keep their hashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<OfWorkflow>,
}

/// Where a goal is worked on, and who drives its turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkPlace {
    /// In a worktree of Kapi's, by an agent that Kapi starts in a sandbox.
    #[default]
    Workspace,
    /// In the person's own checkout, by the agent of the session that they sit at; Kapi starts none.
    Session,
}

impl WorkPlace {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands the field over by reference"
    )]
    fn is_workspace(&self) -> bool {
        *self == Self::Workspace
    }
}

/// The task of a workflow that a goal carries out, and the plan that says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfWorkflow {
    /// The workflow.
    pub id: GoalId,
    /// The task of its plan.
    pub task: PlanTaskId,
    /// The try at it, from 1.
    pub attempt: u32,
    /// SHA-256 of the plan that was approved, in hexadecimal.
    pub plan_sha256: String,
}

/// What a goal ends with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalType {
    /// Something is shipped.
    #[default]
    Ticket,
    /// Something is found out.
    Exploratory,
}

impl GoalType {
    /// Returns the type as it stands in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::Exploratory => "exploratory",
        }
    }
}

/// Something the agent can look at while it works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSurface {
    /// What it is: `logs`, `metrics`, `staging`, `sandbox`.
    pub kind: String,
    /// Where it is.
    pub location: String,
    /// What to know about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// Whether the journey is distilled by the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distillation {
    /// Where the agent made a plan, and so knows the tools.
    #[default]
    WhenPlanned,
    /// Never: Kapi's own account stands alone.
    Never,
}

/// How much of the standing reminder an agent is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reminders {
    /// Everything that fits the goal.
    #[default]
    All,
    /// Proof and tools; the shape of the work is the agent's.
    Essential,
}

/// One of several goals with the same contract and other agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Race {
    /// The index of the race's first goal, which names the race.
    pub of: u32,
    /// This attempt, from 1.
    pub lane: u32,
    /// How many attempts there are.
    pub lanes: u32,
    /// When it is over.
    #[serde(default, skip_serializing_if = "RaceEnd::is_first_proved")]
    pub ends: RaceEnd,
}

/// When a race is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RaceEnd {
    /// When one lane is proved; the others are stopped then.
    #[default]
    FirstProved,
    /// When every lane has come to rest; they are ranked then.
    Compare,
}

/// The most lanes of a race.
pub const LANES_MAX: u32 = 16;

impl RaceEnd {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands the field over by reference"
    )]
    fn is_first_proved(&self) -> bool {
        *self == Self::FirstProved
    }
}

impl Race {
    fn fault(&self, is_verified: bool) -> Option<(&'static str, &'static str)> {
        if self.lanes == 0 || self.lanes > LANES_MAX || self.lane == 0 || self.lane > self.lanes {
            return Some((
                "race",
                "it must have 1 to 16 lanes, and this must be one of them",
            ));
        }
        if self.ends == RaceEnd::FirstProved && !is_verified {
            return Some((
                "race",
                "the first proved lane wins, so the race needs a verify command; or use `--compare`",
            ));
        }
        None
    }
}

impl Working {
    fn is_plain(&self) -> bool {
        *self == Self::default()
    }
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

impl Contract {
    /// Tells whether a proof is possible at all.
    #[must_use]
    pub const fn is_verified(&self) -> bool {
        !self.verify.is_empty()
    }

    /// Tells whether the session that a person sits at works on it, in their own checkout.
    #[must_use]
    pub fn is_session(&self) -> bool {
        self.working.place == WorkPlace::Session
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
        if let Some(fault) = self.working.fault() {
            return Some(fault);
        }
        let race = self.race.as_ref();
        if let Some(fault) = race.and_then(|race| race.fault(self.is_verified())) {
            return Some(fault);
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

/// The most surfaces, and the most patterns to ask about, in one contract.
pub const ENTRIES_MAX: usize = 100;
/// The longest entry of a list, in bytes.
pub const ENTRY_BYTES_MAX: usize = 4 * 1024;

impl Working {
    fn fault(&self) -> Option<(&'static str, &'static str)> {
        let is_bad = |text: &str| text.trim().is_empty() || text.len() > ENTRY_BYTES_MAX;
        if self.ask_before.len() > ENTRIES_MAX || self.ask_before.iter().any(|text| is_bad(text)) {
            return Some((
                "ask_before",
                "it must have at most 100 entries, none of them empty or longer than 4 KiB",
            ));
        }
        let surface_is_bad = |surface: &AgentSurface| {
            is_bad(&surface.kind)
                || is_bad(&surface.location)
                || surface
                    .notes
                    .as_ref()
                    .is_some_and(|notes| notes.len() > ENTRY_BYTES_MAX)
        };
        if self.surfaces.len() > ENTRIES_MAX || self.surfaces.iter().any(surface_is_bad) {
            return Some((
                "surfaces",
                "it must have at most 100 entries with a kind and a location of at most 4 KiB",
            ));
        }
        let style = self.decision_style.as_deref();
        if style.is_some_and(is_bad) {
            return Some((
                "decision_style",
                "it must not be empty or longer than 4 KiB",
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Working;

    #[test]
    fn how_a_goal_is_worked_on_reads_as_before_there_were_workflows() {
        let mise = Working {
            mise: true,
            ..Working::default()
        };
        let json = serde_json::to_string(&mise).unwrap();
        let golden = r#"{"goal_type":"ticket","surfaces":[],"ask_before":[],"decision_style":null,"start_phase":"analysis","mise":true,"reminders":"all","distill":"when_planned"}"#;
        assert_eq!(json, golden);
        assert_eq!(serde_json::from_str::<Working>(golden).unwrap(), mise);
    }
}
