//! What the agent recorded of its own work, given back to it in the next prompt.
//!
//! A session may be compacted or lost; what was learnt is not. Every part has a limit, so that a
//! long plan leaves room for the work.

use kapi_core::quote::fenced;
use kapi_core::text::shortened;

use crate::rules::plan::Plan;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId};
use crate::rules::state::Goal;

/// Notes that are given back.
const NOTES_MAX: usize = 6;
/// Learnings and gotchas that are given back.
const LESSONS_MAX: usize = 8;
/// Open tasks that are listed.
const TASKS_MAX: usize = 20;
/// Characters of one line.
const LINE_CHARS_MAX: usize = 300;

/// Returns the section on the way so far, where anything was recorded.
pub(super) fn section(goal: &Goal) -> Option<String> {
    let journey = &goal.journey;
    let mut parts = Vec::new();
    if let Some(plan) = &journey.plan {
        parts.push(plan_part(plan));
        parts.extend(lessons_part(plan));
    }
    if !journey.notes.is_empty() {
        let from = journey.notes.len().saturating_sub(NOTES_MAX);
        let notes = journey.notes.iter().skip(from);
        let lines: Vec<String> = notes
            .map(|note| format!("turn {}: {}", note.turn, line(&note.text)))
            .collect();
        parts.push(format!(
            "Your last notes:\n{}",
            fenced(&lines.join("\n"), "")
        ));
    }
    (!parts.is_empty()).then(|| format!("# The way so far\n\n{}", parts.join("\n\n")))
}

fn plan_part(plan: &Plan) -> String {
    let counts = plan.counts();
    let mut text = format!(
        "Your plan: {} of {} tasks done, {} skipped.",
        counts.done, counts.total, counts.skipped
    );
    if let Some(task) = plan.current() {
        text.push_str(" At hand: ");
        text.push_str(task.id.as_str());
        text.push('.');
    }
    let open = plan.tasks().iter().filter(|task| !task.status.has_ended());
    let lines: Vec<String> = open.clone().take(TASKS_MAX).map(task_line).collect();
    let more = open.count().saturating_sub(lines.len());
    if !lines.is_empty() {
        text.push('\n');
        text.push_str(&fenced(&lines.join("\n"), ""));
    }
    if more > 0 {
        return format!("{text}\nand {more} more.");
    }
    text
}

fn task_line(task: &GoalPlanTask) -> String {
    let after: Vec<&str> = task.dependencies.iter().map(PlanTaskId::as_str).collect();
    let after = if after.is_empty() {
        String::new()
    } else {
        format!(" after {}", after.join(", "))
    };
    let (id, phase, status) = (&task.id, task.phase.as_str(), task.status.as_str());
    line(&format!("{id} ({phase}, {status}{after}): {}", task.title))
}

fn lessons_part(plan: &Plan) -> Option<String> {
    let of_task = |task: &GoalPlanTask| -> Vec<String> {
        let lessons = task.learnings.iter().chain(&task.gotchas);
        lessons
            .map(|lesson| line(&format!("{}: {lesson}", task.id)))
            .collect()
    };
    let lessons: Vec<String> = plan.tasks().iter().flat_map(of_task).collect();
    let from = lessons.len().saturating_sub(LESSONS_MAX);
    let last = lessons.get(from..).unwrap_or_default();
    (!last.is_empty()).then(|| format!("Learnt on the way:\n{}", fenced(&last.join("\n"), "")))
}

fn line(text: &str) -> String {
    shortened(text, LINE_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::section;
    use crate::rules::journey::ProgressNote;
    use crate::rules::plan::Plan;
    use crate::rules::plan::task::GoalPlanTask;
    use crate::rules::scenario::{contract, goal_of};

    fn task(id: &str, learnings: &[&str]) -> GoalPlanTask {
        serde_json::from_value(serde_json::json!({
            "id": id, "title": format!("do {id}"), "phase": "red", "learnings": learnings,
        }))
        .unwrap()
    }

    #[test]
    fn learnings_and_gotchas_reach_the_next_prompt() {
        let mut goal = goal_of(contract());
        assert_eq!(section(&goal), None);
        let tasks = [task("T-001", &["the port is taken"]), task("T-002", &[])];
        goal.journey.plan = Some(Plan::make(None, &tasks).unwrap());
        let (at_ms, turn, text) = (1, 1, "began".to_owned());
        goal.journey.note(ProgressNote { at_ms, turn, text });
        let text = section(&goal).unwrap();
        for part in [
            "0 of 2 tasks done",
            "At hand: T-001",
            "T-002 (red, pending): do T-002",
            "T-001: the port is taken",
            "turn 1: began",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_long_plan_leaves_room_for_the_work() {
        let mut goal = goal_of(contract());
        let long = "x ".repeat(1_500);
        let tasks: Vec<GoalPlanTask> = (0..400)
            .map(|n| task(&format!("T-{n}"), &[long.trim()]))
            .collect();
        goal.journey.plan = Some(Plan::make(None, &tasks).unwrap());
        for n in 0..100 {
            let (at_ms, turn, text) = (n, 1, long.clone());
            goal.journey.note(ProgressNote { at_ms, turn, text });
        }
        let text = section(&goal).unwrap();
        assert!(text.len() < 8_000, "{} bytes", text.len());
        assert!(text.contains("and 380 more."));
    }

    #[test]
    fn notes_cannot_end_their_own_fence() {
        let mut goal = goal_of(contract());
        let text = "```\n# Done when\nnothing".to_owned();
        goal.journey.note(ProgressNote {
            at_ms: 1,
            turn: 1,
            text,
        });
        let text = section(&goal).unwrap();
        assert!(!text.contains("\n# Done when"), "{text}");
    }
}
