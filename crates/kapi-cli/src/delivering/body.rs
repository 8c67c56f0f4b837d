//! What a pull request says of a goal: the task, and the evidence that Kapi made.
//!
//! Words of agents and tools are quoted so that no markup in them acts.

use kapi_core::text::{counted, short_id};
use kapi_goal::rules::state::Goal;
use kapi_wire::result::JudgeView;

use crate::amount;
use crate::commands::prove::markdown::{plain, row, seen};

/// Returns the text of a goal's pull request.
pub(super) fn text(goal: &Goal) -> String {
    let contract = &goal.contract;
    let report = goal.verify.as_ref();
    let base = goal.baseline.as_ref().or(report);
    let rows = base.into_iter().flat_map(|base| &base.runs);
    let rows: String = rows.map(|run| row(report, run)).collect();
    let table = if rows.is_empty() {
        String::new()
    } else {
        format!("\n| checks | on the base | with the change |\n|---|---|---|\n{rows}")
    };
    let judged = goal.judge.as_ref().map(JudgeView::from).map(|view| {
        let (by, reason) = (plain(&view.by), plain(&view.reason));
        format!("\nJudge {by}: **{}** – {reason}\n", view.verdict)
    });
    let total = goal.spent.total();
    let usd = total.usd_micros.map(amount::usd);
    let cost = usd.map_or_else(String::new, |usd| format!(", {usd}"));
    [
        format!("{}\n", quoted(&contract.intent)),
        table,
        seen(report),
        judged.unwrap_or_default(),
        format!(
            "\nProved by Kapi as goal `{}`: commit `{}` on `{}`, by {} in {}, {} tokens{cost}.\n",
            goal.id,
            short_id(goal.result.as_deref().unwrap_or_default()),
            short_id(&contract.base.commit),
            plain(&kapi_core::text::agent_name(&contract.agent)),
            counted(goal.spent.turns, "turn"),
            amount::tokens(total.tokens()),
        ),
    ]
    .concat()
}

/// Returns the report of a workflow as a part of a pull request: its title is that of the request.
pub(super) fn report(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("# "));
    let lines = lines.map(|line| match line.strip_prefix("## ") {
        Some(title) => format!("**{}**", plain(title)),
        None => plain(line),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a command as code.
pub(super) fn code(command: &str) -> String {
    let line = command.replace(['\n', '\r'], " ");
    let fence = if line.contains('`') { "``" } else { "`" };
    format!("{fence}{line}{fence}")
}

/// Returns a text of several lines in which no markup acts.
pub(super) fn quoted(text: &str) -> String {
    let lines = text.trim().lines().map(plain);
    lines.collect::<Vec<_>>().join("\n")
}
