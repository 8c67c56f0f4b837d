//! What an agent sees of its goal after a call, and when it asks.
//!
//! Built from the state; nothing in it decides anything.

use schemars::JsonSchema;
use serde::Serialize;

use crate::rules::plan::TaskCounts;
use crate::rules::plan::task::GoalPlanTask;
use crate::rules::state::Goal;
use crate::rules::words;

/// Where the goal stands, in few words: what every accepted call answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateView {
    /// The goal's id.
    pub goal: String,
    /// Where it stands.
    pub status: &'static str,
    /// The phase.
    pub phase: &'static str,
    /// The turn under way, from 1.
    pub turn: u32,
    /// How many turns there may be.
    pub max_turns: u32,
    /// How many tasks stand where, once there is a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "std::collections::BTreeMap<String, u32>")]
    pub tasks: Option<TaskCounts>,
    /// The task at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TaskLine")]
    pub current_task: Option<TaskLine>,
}

/// A task in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskLine {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// Where it stands.
    pub status: &'static str,
    /// What must have ended before.
    pub dependencies: Vec<String>,
}

/// Everything an agent may know of its goal: the answer to `until_done_status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// Where it stands.
    #[serde(rename = "state")]
    pub state: StateView,
    /// Why it stands there, where there is a reason.
    pub reason: Option<String>,
    /// What it is for.
    pub intent: String,
    /// What must hold for it to be done.
    pub done_criteria: String,
    /// The commands that Kapi runs.
    pub verify: Vec<String>,
    /// What a person is asked about first.
    pub ask_before: Vec<String>,
    /// Who judges.
    pub judge: String,
    /// What makes the contract this one.
    pub contract_hash: String,
    /// The plan.
    pub plan: Vec<TaskLine>,
    /// The last notes.
    pub notes: Vec<String>,
}

impl From<&GoalPlanTask> for TaskLine {
    fn from(task: &GoalPlanTask) -> Self {
        let dependencies = task.dependencies.iter();
        Self {
            id: task.id.as_str().to_owned(),
            title: task.title.clone(),
            status: task.status.as_str(),
            dependencies: dependencies.map(|id| id.as_str().to_owned()).collect(),
        }
    }
}

impl From<&Goal> for StateView {
    fn from(goal: &Goal) -> Self {
        let plan = goal.journey.plan.as_ref();
        Self {
            goal: goal.id.to_string(),
            status: goal.status.as_str(),
            phase: goal.journey.phase.as_str(),
            turn: goal.turn,
            max_turns: goal.budget.turns,
            tasks: plan.map(crate::rules::plan::Plan::counts),
            current_task: plan.and_then(|plan| plan.current()).map(TaskLine::from),
        }
    }
}

impl From<&Goal> for StatusView {
    fn from(goal: &Goal) -> Self {
        let contract = &goal.contract;
        let plan = goal.journey.plan.as_ref();
        let notes = goal.journey.notes.iter();
        Self {
            state: goal.into(),
            reason: words::reason(goal),
            intent: contract.intent.clone(),
            done_criteria: contract.done_criteria.clone(),
            verify: contract.verify.clone(),
            ask_before: contract.working.ask_before.clone(),
            judge: contract.judge.to_string(),
            contract_hash: goal.contract_hash.clone(),
            plan: plan.map_or_else(Vec::new, |plan| {
                plan.tasks().iter().map(TaskLine::from).collect()
            }),
            notes: notes.map(|note| note.text.clone()).collect(),
        }
    }
}
