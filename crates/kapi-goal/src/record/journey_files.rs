//! `tasks.yaml` and `distilled.md`: the agent's plan as it stands, and the account of what is done.
//!
//! Derived from the state and never read back, except to see whether they are current. What they
//! look like is the core's affair.

use kapi_check::rules::proof::verify_run::VerifyRun;
use kapi_core::verdict::JudgeAnswer;
use kapi_store::layout::GoalLayout;
use kapi_store::timestamp::format_ms;
use kapi_sys::disk::{Disk, DiskError, replace_derived};

use crate::rules::journey::TurnDeclaration;
use crate::rules::plan::distilled::{CheckEvidence, DistilledPlan, WorkSurface};
use crate::rules::plan::tasks_file::{TasksFile, TurnBudget};
use crate::rules::state::Goal;

/// Writes both files where the state implies them and they are not current.
pub(crate) fn write(
    disk: &dyn Disk,
    layout: &GoalLayout,
    goal: &Goal,
    now_ms: i64,
) -> Result<(), DiskError> {
    if let Some(tasks) = tasks_yaml(goal, now_ms) {
        let file = layout.tasks();
        let there = disk.read(&file, 0)?.unwrap_or_default();
        // The first line is the time at which it was written.
        if after_first_line(&there) != after_first_line(tasks.as_bytes()) {
            replace_derived(disk, &file, tasks.as_bytes())?;
        }
    }
    if let Some(distilled) = distilled_md(goal) {
        let file = layout.distilled();
        if disk.read(&file, 0)?.as_deref() != Some(distilled.as_bytes()) {
            replace_derived(disk, &file, distilled.as_bytes())?;
        }
    }
    Ok(())
}

fn after_first_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    bytes.get(end.unwrap_or(bytes.len())..).unwrap_or_default()
}

/// Returns the task list, once there is one.
fn tasks_yaml(goal: &Goal, now_ms: i64) -> Option<String> {
    let plan = goal.journey.plan.as_ref()?;
    let (contract, generated) = (&goal.contract, format_ms(now_ms));
    let verify = contract.verify.join(" && ");
    let file = TasksFile {
        generated: &generated,
        goal_id: &goal.id.to_string(),
        goal: &contract.intent,
        done_criteria: &contract.done_criteria,
        verify_command: Some(verify.as_str()).filter(|command| !command.is_empty()),
        phase: goal.journey.phase,
        ask_before: &contract.working.ask_before,
        decision_style: contract.working.decision_style.as_deref(),
        budget: TurnBudget {
            used: goal.spent.turns,
            max: goal.budget.turns,
        },
        current_task_id: plan.current().map(|task| &task.id),
        tasks: plan.tasks(),
    };
    Some(file.to_yaml())
}

/// Returns the account of a goal, once it has a result.
fn distilled_md(goal: &Goal) -> Option<String> {
    let commit = goal.result.as_deref()?;
    let contract = &goal.contract;
    let problem = format!(
        "{}\n\nDone when: {}",
        contract.intent.trim(),
        contract.done_criteria.trim()
    );
    let runs = goal.verify.iter().flat_map(|report| &report.runs);
    let evidence: Vec<CheckEvidence<'_>> = runs.map(evidence).collect();
    let solution = match &goal.journey.declared {
        Some(TurnDeclaration::Complete {
            summary: Some(summary),
            ..
        }) => summary,
        Some(_) | None => "",
    };
    let surfaces: Vec<WorkSurface<'_>> = contract
        .working
        .surfaces
        .iter()
        .map(|surface| WorkSurface {
            kind: &surface.kind,
            location: &surface.location,
            notes: surface.notes.as_deref(),
        })
        .collect();
    let judge = goal.judge.as_ref().and_then(|run| match &run.answer {
        JudgeAnswer::Verdict { reason, .. } => Some((run.by.as_str(), reason.as_str())),
        JudgeAnswer::Malformed { .. } | JudgeAnswer::Unavailable(_) => None,
    });
    let distilled = DistilledPlan {
        goal_id: &goal.id.to_string(),
        title: contract.intent.lines().next().unwrap_or_default(),
        problem: &problem,
        solution,
        commit: Some(commit),
        evidence: &evidence,
        judge,
        plan: goal.journey.plan.as_ref(),
        surfaces: &surfaces,
        prd: goal.journey.distilled.as_deref().unwrap_or_default(),
    };
    Some(distilled.to_markdown())
}

fn evidence(run: &VerifyRun) -> CheckEvidence<'_> {
    CheckEvidence {
        command: &run.command,
        exit_code: run.exit_code,
        duration_ms: run.duration_ms,
        output_tail: &run.output_tail,
    }
}
