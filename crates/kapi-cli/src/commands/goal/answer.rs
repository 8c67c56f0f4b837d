//! What a verb answers: where the goal stands now, as a document or in a line.
//!
//! The same document for every verb that changes something.

use kapi_goal::rules::plan::task::{PlanTaskId, TaskPhase};
use kapi_goal::rules::plan::{Plan, TaskCounts};
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::words;
use serde::Serialize;

use crate::context::Context;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Characters of a goal's text in a line.
const GOAL_CHARS_MAX: usize = 50;

/// Where a goal stands.
#[derive(Debug, Serialize)]
pub(crate) struct GoalAnswerView<'a> {
    /// Always `goal_status`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Its id.
    id: String,
    /// Where it stands.
    status: &'static str,
    /// What it is for.
    goal: &'a str,
    turns: Turns,
    /// The phase the agent says it is in.
    phase: TaskPhase,
    /// How many tasks stand where.
    tasks: Option<TaskCounts>,
    /// The task at hand.
    current_task: Option<&'a PlanTaskId>,
    /// Why it stands there.
    reason: Option<String>,
    /// What to do about it.
    hint: Option<String>,
    /// Who judges; `same_model` says whether that is the executor itself.
    judge: Option<&'a str>,
    same_model: bool,
    /// What a person can type next.
    next: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Turns {
    used: u32,
    max: u32,
}

impl<'a> GoalAnswerView<'a> {
    /// Builds the view of a goal.
    pub(crate) fn of(goal: &'a Goal) -> Self {
        let plan = goal.journey.plan.as_ref();
        Self {
            kind: "goal_status",
            id: goal.id.to_string(),
            status: goal.status.as_str(),
            goal: &goal.contract.intent,
            turns: Turns {
                used: goal.spent.turns,
                max: goal.budget.turns,
            },
            phase: goal.journey.phase,
            tasks: plan.map(Plan::counts),
            current_task: plan.and_then(Plan::current).map(|task| &task.id),
            reason: words::reason(goal),
            hint: words::hint(goal),
            judge: goal.judge_agent(),
            same_model: goal.judges_itself(),
            next: words::next_commands(goal),
        }
    }
}

/// Answers with where a goal stands: the document, or these lines.
pub(crate) fn give(context: &Context, goal: &Goal, lines: &[String]) -> Exit {
    match context.ui.format {
        Format::Json => context.ui.json(&GoalAnswerView::of(goal)),
        Format::Human => {
            for line in lines {
                context.ui.line(line);
            }
        }
    }
    Exit::Success
}

/// Returns where a goal stands in one line.
pub(crate) fn line(goal: &Goal) -> String {
    let mut parts = vec![format!(
        "{} {} {}",
        glyph(goal.status),
        goal.id,
        goal.status
    )];
    parts.push(format!("{}/{}", goal.spent.turns, goal.budget.turns));
    let phase = goal.journey.phase;
    if goal.journey.plan.is_some() || phase != TaskPhase::default() {
        parts.push(format!("[{} {phase}]", phase.glyph()));
    }
    if let Some(counts) = goal.journey.plan.as_ref().map(Plan::counts) {
        parts.push(format!("{}/{}", counts.done, counts.total));
    }
    if goal.judges_itself() {
        parts.push("judged by the same model".to_owned());
    }
    let line = format!("{}: {}", parts.join(" "), cut(&goal.contract.intent));
    match words::reason(goal) {
        Some(reason) => format!("{line} ({reason})"),
        None => line,
    }
}

const fn glyph(status: GoalStatus) -> char {
    match status {
        GoalStatus::Setup | GoalStatus::Proposed => '◇',
        GoalStatus::Active => '◴',
        GoalStatus::Paused => 'Ⅱ',
        GoalStatus::Waiting => '⏲',
        GoalStatus::Blocked | GoalStatus::Stalled => '?',
        GoalStatus::Done | GoalStatus::Unverified => '✓',
        GoalStatus::Impossible | GoalStatus::Cancelled => '×',
    }
}

/// Returns the first line of a goal's text, shortened.
fn cut(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= GOAL_CHARS_MAX {
        return line.to_owned();
    }
    let kept: String = line.chars().take(GOAL_CHARS_MAX - 3).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_goal_is_cut_at_47_characters() {
        assert_eq!(cut(&"ä".repeat(50)), "ä".repeat(50));
        assert_eq!(cut(&"ä".repeat(51)), format!("{}…", "ä".repeat(47)));
        assert_eq!(cut("fix it\nand more"), "fix it");
    }
}
