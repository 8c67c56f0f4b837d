//! What a task update asks for, and how it changes a task.
//!
//! Knows one task only: whether it may be changed at all is decided against its plan.

use serde::{Deserialize, Serialize};

use crate::rules::plan::task::{
    ContextReference, GoalPlanTask, Prerequisite, TaskFault, TaskPhase, TaskStatus,
};

/// Changes to one task; what is not named stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskPatch {
    /// Where the task stands from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// Its phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<TaskPhase>,
    /// All of its prerequisites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prerequisites: Option<Vec<Prerequisite>>,
    /// All of its validation steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_steps: Option<Vec<String>>,
    /// All of its commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_commands: Option<Vec<String>>,
    /// All of its rules of style.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub styleguide_rules: Option<Vec<String>>,
    /// All of its guardrails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Vec<String>>,
    /// One more learning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_learning: Option<String>,
    /// One more gotcha.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_gotcha: Option<String>,
    /// One more thing to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_context: Option<ContextReference>,
    /// Its notes; an empty text removes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

impl TaskPatch {
    /// Applies the patch to a task, which must not be used when it fails.
    pub(crate) fn apply(&self, task: &mut GoalPlanTask) -> Result<(), TaskFault> {
        if let Some(status) = self.status {
            task.status = status;
        }
        if let Some(phase) = self.phase {
            task.phase = phase;
        }
        if let Some(prerequisites) = &self.prerequisites {
            task.prerequisites.clone_from(prerequisites);
        }
        let lists = [
            (&mut task.validation_steps, &self.validation_steps),
            (&mut task.ci_commands, &self.ci_commands),
            (&mut task.styleguide_rules, &self.styleguide_rules),
            (&mut task.guardrails, &self.guardrails),
        ];
        for (list, new) in lists {
            if let Some(new) = new {
                list.clone_from(new);
            }
        }
        let additions = [
            ("addLearning", &mut task.learnings, &self.add_learning),
            ("addGotcha", &mut task.gotchas, &self.add_gotcha),
        ];
        for (field, list, addition) in additions {
            let Some(line) = addition else { continue };
            if line.trim().is_empty() {
                return Err(TaskFault::Blank { field });
            }
            // A call that is repeated says nothing new.
            if !list.contains(line) {
                list.push(line.clone());
            }
        }
        task.context.extend(self.add_context.clone());
        if let Some(notes) = &self.notes {
            task.notes = (!notes.is_empty()).then(|| notes.clone());
        }
        task.fault().map_or(Ok(()), Err)
    }
}
