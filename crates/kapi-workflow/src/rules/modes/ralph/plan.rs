//! A plan: tasks with edges, isolation and proof, and the argument that led to it.
//!
//! Approved by the hash of its document; any material change is another plan.

use kapi_goal::rules::plan::task::PlanTaskId;
use serde::{Deserialize, Serialize};

use crate::rules::branch::BranchType;
use crate::rules::identity::ReviewerIdentity;

pub mod sound;

/// How the id of a task begins that mends what a review found.
pub const FINDING_PREFIX: &str = "F-";
/// The most attempts at consensus (spec: at most five).
pub const ATTEMPTS_MAX: u32 = 5;
/// The most tasks of a plan.
pub const TASKS_MAX: usize = 64;

/// What a task needs around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// A workspace of its own; others may be at work beside it.
    Own,
    /// Nothing else may be at work while it is.
    Alone,
}

/// One task of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanTask {
    /// Its name, `T-001`.
    pub id: PlanTaskId,
    /// What, in a few words.
    pub title: String,
    /// What, for the agent that does it.
    pub description: String,
    /// What must have landed before.
    #[serde(default)]
    pub depends_on: Vec<PlanTaskId>,
    /// The paths it changes, as globs; a task that names none runs alone.
    #[serde(default)]
    pub touches: Vec<String>,
    /// What it needs around it.
    pub isolation: Isolation,
    /// Shell commands that must exit 0 when it is done.
    pub verify: Vec<String>,
    /// The criteria it serves.
    #[serde(default)]
    pub criteria: Vec<String>,
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Its name, `AC-1`.
    pub id: String,
    /// What must hold.
    pub text: String,
    /// A shell command that exits 0 when it holds.
    #[serde(default)]
    pub verify: Option<String>,
    /// Why there is none: a review speaks for it then.
    #[serde(default)]
    pub exempt: Option<String>,
}

/// A way that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// Its name.
    pub name: String,
    /// What it is.
    pub summary: String,
    /// Why it was not taken; `None` for the one that was.
    #[serde(default)]
    pub rejected: Option<String>,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RalphPlan {
    /// What is to be done and how, in a few sentences.
    pub summary: String,
    /// The branch's type.
    pub branch_type: BranchType,
    /// What there is, and what the plan rests on.
    pub context: String,
    /// The ways that were considered: at least two, or one with the reason why there is no other.
    pub options: Vec<Alternative>,
    /// The tasks.
    pub tasks: Vec<PlanTask>,
    /// What must hold in the end.
    pub criteria: Vec<Criterion>,
    /// What is left out on purpose.
    #[serde(default)]
    pub excluded: Vec<String>,
    /// What may go wrong.
    #[serde(default)]
    pub risks: Vec<String>,
    /// Shell commands that the whole must pass in the end.
    pub verify: Vec<String>,
}

impl RalphPlan {
    /// Returns the commands that must pass in the end: every criterion's and the plan's.
    #[must_use]
    pub fn checks(&self) -> Vec<String> {
        let criteria = self.criteria.iter();
        let criteria: Vec<String> = criteria.filter_map(|found| found.verify.clone()).collect();
        each_once([&criteria[..], &self.verify[..]])
    }
}

/// Joins lists of commands; the same command is run once.
pub(super) fn each_once(lists: [&[String]; 2]) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for command in lists.into_iter().flatten() {
        if !commands.contains(command) {
            commands.push(command.clone());
        }
    }
    commands
}

/// What speaks against a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objections {
    /// The strongest argument against it.
    pub strongest: String,
    /// A trade-off that is really there.
    pub tension: String,
    /// What is wrong or missing, one thing each.
    pub objections: Vec<PlanObjection>,
}

/// One thing that is wrong or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanObjection {
    /// What.
    pub text: String,
    /// Whether the plan cannot be carried out with it.
    pub blocking: bool,
}

/// What came of the argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synthesis {
    /// Whether the plan holds, as amended here.
    pub verdict: Consensus,
    /// How each objection was answered, in their order.
    pub answers: Vec<String>,
    /// What is still disagreed about.
    #[serde(default)]
    pub dissent: Vec<String>,
    /// The plan with what was taken over.
    pub plan: RalphPlan,
}

/// Whether there is consensus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consensus {
    /// There is.
    Consensus,
    /// The plan has to be made anew.
    Revise,
}

/// One attempt at consensus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The cycle: counted up by every return to planning.
    pub cycle: u32,
    /// The attempt of the cycle, from 1.
    pub number: u32,
    /// The plan, and whose it is.
    pub thesis: Option<(ReviewerIdentity, Box<RalphPlan>)>,
    /// What speaks against it, and who says so.
    pub antithesis: Option<(ReviewerIdentity, Objections)>,
    /// What came of it, and who says so.
    pub synthesis: Option<(ReviewerIdentity, Box<Synthesis>)>,
}
