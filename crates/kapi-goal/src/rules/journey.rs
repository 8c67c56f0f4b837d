//! What an agent recorded of its work by its tools: plan, phase, notes, claims.
//!
//! The agent's own word throughout. It shapes the next prompt and what people can read; it proves
//! nothing.

use serde::{Deserialize, Serialize};

use crate::rules::plan::Plan;
use crate::rules::plan::task::TaskPhase;
use crate::rules::wait::WaitFor;

/// How many notes are kept; the oldest are forgotten first.
pub const NOTES_MAX: usize = 32;

/// What was recorded by tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journey {
    /// The phase the agent says it is in.
    pub phase: TaskPhase,
    /// The task list, once there is one.
    pub plan: Option<Plan>,
    /// Whether a task was done since the last turn that was counted.
    pub has_moved: bool,
    /// The last notes.
    pub notes: Vec<ProgressNote>,
    /// What the agent declared in the turn under way.
    pub declared: Option<TurnDeclaration>,
    /// The journey in the agent's words, once the goal is done.
    pub distilled: Option<String>,
}

/// One line of progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgressNote {
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The turn, from 1.
    pub turn: u32,
    /// The line.
    pub text: String,
}

/// What an agent declared of its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "declared", rename_all = "snake_case", deny_unknown_fields)]
pub enum TurnDeclaration {
    /// The goal is reached.
    Complete {
        /// What it quotes for it.
        evidence: String,
        /// In a sentence.
        summary: Option<String>,
    },
    /// It needs an answer.
    Blocked {
        /// The question.
        question: String,
        /// Why it cannot go on without.
        reason: String,
    },
    /// It has to wait.
    Wait {
        /// What for.
        until: WaitFor,
        /// Why.
        reason: String,
        /// When it goes on all the same, in milliseconds since the epoch.
        deadline_ms: Option<i64>,
    },
}

impl Journey {
    /// Adds a note and forgets the oldest beyond [`NOTES_MAX`].
    pub fn note(&mut self, note: ProgressNote) {
        self.notes.push(note);
        let excess = self.notes.len().saturating_sub(NOTES_MAX);
        self.notes.drain(..excess);
    }

    /// Returns the plan, where it has tasks that have not ended.
    #[must_use]
    pub fn open_plan(&self) -> Option<&Plan> {
        self.plan.as_ref().filter(|plan| !plan.all_ended())
    }

    /// Tells whether there is a plan and all of its tasks have ended.
    #[must_use]
    pub fn is_worked_off(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::all_ended)
    }
}
