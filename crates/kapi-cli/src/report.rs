//! How a goal came out, for a person: the account at the end of a run.

use std::path::Path;

use kapi_check::rules::proof::verify_report::proof_lines;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::isolation::SandboxLevel;
use kapi_core::text::{agent_name, counted, short_id};
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::words;
use kapi_launch::merge::gate;

use crate::amount;
use crate::context::Context;
use crate::contract::judge;
use crate::trust::Trust;
use crate::ui::Ui;

/// Lines of a failing command's output that are shown.
const OUTPUT_LINES_MAX: usize = 12;

fn work(ui: Ui, goal: &Goal) {
    match (&goal.result, &goal.candidate) {
        (Some(commit), _) => {
            ui.line(&format!(
                "  branch   {} at {}",
                goal.contract.branch,
                short_id(commit)
            ));
        }
        (None, Some(candidate)) => ui.line(&format!(
            "  work     {} (not proved; no branch points at it)",
            short_id(&candidate.commit)
        )),
        (None, None) => {}
    }
}

/// Prints what the checks showed, and what the work does to the checks themselves.
fn checks(ui: Ui, goal: &Goal) {
    let report = goal.verify.iter();
    for run in report.clone().flat_map(|report| &report.runs) {
        ui.line(&format!("  verify   {}", verify_line(run)));
    }
    for line in report.flat_map(proof_lines) {
        ui.line(&format!("  {line}"));
    }
    if goal.result.is_none() {
        failing_output(ui, goal);
    }
}

/// Prints how a goal came out and what to type next, with what speaks against relying on it where
/// that was looked at.
pub(crate) fn outcome(ui: Ui, goal: &Goal, trust: Option<&Trust>) {
    let status = match goal.status {
        GoalStatus::Unverified => "done (unverified)".to_owned(),
        GoalStatus::Setup
        | GoalStatus::Proposed
        | GoalStatus::Active
        | GoalStatus::Waiting
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused
        | GoalStatus::Impossible
        | GoalStatus::Cancelled
        | GoalStatus::Done => goal.status.to_string(),
    };
    ui.line(&format!("Goal {}: {status}", goal.id));
    if let Some(reason) = words::reason(goal) {
        ui.line(&format!("  because  {reason}"));
    }
    if let Some(hint) = words::hint(goal) {
        ui.line(&format!("  hint     {hint}"));
    }
    if goal.contract.sandbox == SandboxLevel::None {
        ui.line("  sandbox  none: NO ISOLATION");
    }
    if goal.judges_itself() {
        ui.line(&format!(
            "  judge    {}",
            judge::own_work(&goal.contract.agent)
        ));
    } else if let Some(judge) = &goal.changed_judge {
        ui.line(&format!(
            "  judge    {}, in place of {}",
            agent_name(judge),
            judge::words(&goal.contract)
        ));
    }
    work(ui, goal);
    checks(ui, goal);
    let total = goal.spent.total();
    let mut spent = vec![counted(goal.spent.turns, "turn")];
    if total.tokens() > 0 {
        spent.push(format!("{} tokens", amount::tokens(total.tokens())));
    }
    spent.extend(amount::cost(&total));
    spent.push(amount::duration(goal.spent.wall_ms));
    ui.line(&format!("  spent    {}", spent.join(", ")));
    if let Some(trust) = trust {
        trust.show(ui, goal);
    }
    let next = match trust {
        Some(trust) => trust.next_commands(goal),
        None => words::next_commands(goal),
    };
    for command in next {
        ui.line(&format!("  next     {command}"));
    }
}

/// Names the files of a goal's result that run by themselves where it is taken over.
///
/// Only a help to whoever merges it: what cannot be looked at now is not reported.
pub(crate) fn auto_run(context: &Context, project: &Path, goal: &Goal) {
    const SHOWN_MAX: usize = 5;
    let Some(commit) = &goal.result else { return };
    let Ok(config) = context.config(Some(project)) else {
        return;
    };
    let base = &goal.contract.base.commit;
    let Ok(found) = gate::of_commit(&context.grants(&config), project, base, commit) else {
        return;
    };
    for file in found.iter().take(SHOWN_MAX) {
        let path = file.path.escape_debug();
        context.ui.line(&format!(
            "  caution  {path} runs automatically: {}",
            file.why
        ));
    }
    if found.len() > SHOWN_MAX {
        let more = found.len() - SHOWN_MAX;
        context
            .ui
            .line(&format!("  caution  {more} more files run automatically"));
    }
}

/// Returns one verify command's run in one line.
pub(crate) fn verify_line(run: &VerifyRun) -> String {
    let end = match (run.timed_out, run.exit_code) {
        (true, _) => "killed at its time limit".to_owned(),
        (false, Some(code)) => format!("exit {code}"),
        (false, None) => "killed".to_owned(),
    };
    let checks = match run.checks {
        Checks::Visible => "",
        Checks::Hidden => " with hidden checks",
    };
    format!(
        "{}{checks} -> {end} ({})",
        run.command,
        amount::duration(run.duration_ms)
    )
}

fn failing_output(ui: Ui, goal: &Goal) {
    let Some(run) = goal
        .verify
        .iter()
        .flat_map(|report| &report.runs)
        .find(|run| !run.passed())
    else {
        return;
    };
    let lines: Vec<&str> = run.output_tail.lines().collect();
    let from = lines.len().saturating_sub(OUTPUT_LINES_MAX);
    for line in lines.get(from..).unwrap_or_default() {
        ui.line(&format!("    | {line}"));
    }
}
