//! What an agent asks of its goal by a tool, under the names of pi-until-done.
//!
//! Shapes only. The rules are in `decide`; who carries a call here is not known.

use crate::rules::plan::operation::Operation;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskPhase};
use crate::rules::wait::WaitFor;

/// One call of a tool by the agent whose turn it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCall {
    /// `until_done_plan`: the task list.
    Plan {
        /// The tasks.
        tasks: Vec<GoalPlanTask>,
    },
    /// `until_done_replan`: another task list, with the reason.
    Replan {
        /// What is changed, as one batch.
        operations: Vec<Operation>,
        /// Why.
        reason: String,
    },
    /// `until_done_task_update`: a change of one task.
    TaskUpdate {
        /// The task.
        id: PlanTaskId,
        /// The change.
        patch: Box<TaskPatch>,
    },
    /// `until_done_progress`: a note, and perhaps another phase.
    Progress {
        /// One line.
        note: String,
        /// The phase from now on.
        phase: Option<TaskPhase>,
    },
    /// `until_done_complete`: the claim that the goal is reached.
    Complete {
        /// What the agent quotes for it; a claim, never evidence.
        evidence: String,
        /// In a sentence.
        summary: Option<String>,
    },
    /// `until_done_block`: a question to the person.
    Block {
        /// The question.
        question: String,
        /// Why it cannot go on without an answer.
        reason: String,
    },
    /// `until_done_wait`: park the goal when this turn ends.
    Wait {
        /// What for.
        until: WaitFor,
        /// Why.
        reason: String,
        /// Milliseconds after which it goes on all the same.
        timeout_ms: Option<u64>,
    },
    /// `until_done_distill`: the journey in the agent's words.
    Distill {
        /// Markdown.
        markdown: String,
    },
}

impl ToolCall {
    /// Returns the tool's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plan { .. } => "until_done_plan",
            Self::Replan { .. } => "until_done_replan",
            Self::TaskUpdate { .. } => "until_done_task_update",
            Self::Progress { .. } => "until_done_progress",
            Self::Complete { .. } => "until_done_complete",
            Self::Block { .. } => "until_done_block",
            Self::Wait { .. } => "until_done_wait",
            Self::Distill { .. } => "until_done_distill",
        }
    }
}
