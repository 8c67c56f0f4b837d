//! The screen: short, aligned, and what to type next.

use kapi_core::text::time_words;
use kapi_wire::kernel::dashboard::DashboardView;

use crate::amount;
use crate::commands::dashboard::whole::WholeDashboard;
use crate::commands::spend::today::SpentToday;
use crate::commands::task::short;
use crate::context::Context;

/// Shows everything.
pub(super) fn show(context: &Context, whole: &WholeDashboard) {
    let line = |text: String| context.ui.line(&text);
    alive(whole, &line);
    waiting(whole, &line);
    for spent in whole.spent.iter().flat_map(SpentToday::lines) {
        line(format!("spent      {spent}"));
    }
    let view = &whole.kernel;
    tasks(view, &line);
    workers(view, &line);
    loops(view, &line);
    sandboxes(whole, &line);
    guardrails(view, &line);
    line("settings".to_owned());
    for setting in &view.settings {
        line(format!(
            "  {:<22} {:<24} {}",
            setting.key, setting.value, setting.source
        ));
    }
    for warning in &view.warnings {
        line(format!("warning: {}", warning.what));
        if let Some(remedy) = &warning.remedy {
            line(format!("  hint: {remedy}"));
        }
    }
}

/// Shows goals and workflows; tasks and launches have lines of their own.
fn alive(whole: &WholeDashboard, line: &dyn Fn(String)) {
    let alive = whole.alive.iter();
    let shown = alive.filter(|facts| !matches!(facts.kind, "task" | "loop" | "launch"));
    for facts in shown {
        let kind = facts.kind;
        let title = short(&facts.title);
        line(format!(
            "{kind:<10} {}  {}  {title}",
            facts.id, facts.status
        ));
    }
}

fn waiting(whole: &WholeDashboard, line: &dyn Fn(String)) {
    let what = match whole.inbox.len() {
        0 => "nothing is waiting for you".to_owned(),
        n => format!("{n} waiting for you; next: kapi inbox"),
    };
    line(format!("inbox      {what}"));
}

fn sandboxes(whole: &WholeDashboard, line: &dyn Fn(String)) {
    let what = match whole.sandboxes.len() {
        0 => "none".to_owned(),
        n => format!("{n}; next: kapi sandbox list"),
    };
    line(format!("sandboxes  {what}"));
}

fn tasks(view: &DashboardView, line: &dyn Fn(String)) {
    let queue = &view.queue;
    line(format!(
        "tasks      {} running of {}, {} queued; {} completed, {} failed, {} cancelled",
        queue.running,
        queue.locations,
        queue.queued,
        queue.completed,
        queue.failed,
        queue.cancelled
    ));
    for task in &queue.tasks {
        let waits = task.waits.as_ref().map(|why| format!("  ({why})"));
        line(format!(
            "  {:<10} {:<8} {:<12} {:>8}  {}{}",
            task.id,
            task.status,
            task.agent,
            amount::duration(task.duration),
            short(&task.description),
            waits.unwrap_or_default()
        ));
    }
    let n_more = (queue.running + queue.queued).saturating_sub(queue.tasks.len());
    if n_more > 0 {
        line(format!("  and {n_more} more: kapi task list"));
    }
}

fn workers(view: &DashboardView, line: &dyn Fn(String)) {
    for worker in &view.workers {
        let leads = view
            .leader
            .as_ref()
            .is_some_and(|leader| leader.holder == worker.holder);
        let leads = if leads { ", triggers loops" } else { "" };
        line(format!(
            "worker     {} ({}){leads}",
            worker.holder, worker.owner
        ));
    }
    if view.workers.is_empty() {
        line("workers    none; next: kapi up".to_owned());
    }
}

fn loops(view: &DashboardView, line: &dyn Fn(String)) {
    if view.loops.is_empty() {
        line("loops      none".to_owned());
        return;
    }
    line(format!("loops      {}", view.loops.len()));
    for of in &view.loops {
        let status = if of.enabled { of.status } else { "off" };
        let next = of
            .next_at_ms
            .map(|at_ms| format!("next {}", time_words(at_ms)));
        let last = of
            .last_run_at_ms
            .map(|at_ms| format!("last {}", time_words(at_ms)));
        let times: Vec<String> = last.into_iter().chain(next).collect();
        line(format!(
            "  {:<20} {:<10} {:<7} {}",
            of.name,
            status,
            of.trigger,
            times.join(", ")
        ));
    }
}

fn guardrails(view: &DashboardView, line: &dyn Fn(String)) {
    if view.guardrails.is_empty() {
        line("guardrails none".to_owned());
        return;
    }
    line("guardrails".to_owned());
    for domain in &view.guardrails {
        line(format!(
            "  {:<20} {} accepted, {} proposed, {} rejected, {} expired",
            domain.domain, domain.accepted, domain.proposed, domain.rejected, domain.expired
        ));
    }
}
