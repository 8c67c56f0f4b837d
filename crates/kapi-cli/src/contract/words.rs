//! A contract in words, for the person who approves it and for whoever looks at it later.
//!
//! Says what stands in it and nothing else.

use kapi_core::goal::budget::Budget;
use kapi_core::goal::contract::{Contract, Distill, JudgeUnavailable, Reminders, Surface, Working};
use kapi_core::goal::state::Goal;

use crate::amount;
use crate::context::Context;
use crate::contract::{judge, short};

/// Shows a contract and what to know beside it.
pub(crate) fn show(context: &Context, contract: &Contract, notes: &[String]) {
    show_rows(context, &rows(contract), notes);
}

/// Shows a contract with everything that stands in it, and what to know beside it.
pub(crate) fn show_whole(context: &Context, contract: &Contract, notes: &[String]) {
    show_rows(context, &whole(contract), notes);
}

/// Shows what a goal was given beyond its contract: whoever approves it gives that too.
pub(crate) fn show_given(context: &Context, goal: &Goal) {
    let ui = context.ui;
    if goal.budget != goal.contract.budget {
        let words = budget_words(&goal.budget);
        ui.say(&format!("  raised to {words}"));
    }
    for allowed in &goal.consent.allowed {
        ui.say(&format!("  allowed   {allowed}"));
    }
}

fn show_rows(context: &Context, rows: &[(&'static str, String)], notes: &[String]) {
    let ui = context.ui;
    ui.say("Contract");
    for line in lines(rows) {
        ui.say(&line);
    }
    for note in notes {
        ui.say(&format!("note: {note}"));
    }
}

/// Returns names and values as indented lines.
pub(crate) fn lines(rows: &[(&'static str, String)]) -> Vec<String> {
    let mut out = Vec::new();
    for (name, value) in rows {
        let mut lines = value.lines();
        out.push(format!("  {name:<9} {}", lines.next().unwrap_or_default()));
        out.extend(lines.map(|line| format!("  {:<9} {line}", "")));
    }
    out
}

/// Returns a contract as names and values for people; what is usual is left out.
pub(crate) fn rows(contract: &Contract) -> Vec<(&'static str, String)> {
    let verify = if contract.verify.is_empty() {
        "nothing: the result will be \"done (unverified)\"".to_owned()
    } else {
        list(&contract.verify)
    };
    let mut rows = vec![
        ("task", contract.intent.clone()),
        ("done when", contract.done_criteria.clone()),
        ("verify", verify),
        ("protect", list(&contract.protect)),
    ];
    if let Some(hidden) = &contract.hidden {
        rows.push((
            "hidden",
            format!("{} files from {}", hidden.files, hidden.source),
        ));
    }
    rows.push(("agent", contract.agent.clone()));
    rows.push(("judge", judge::words(contract)));
    let usual = working_rows(&Working::default());
    rows.extend(
        working_rows(&contract.working)
            .into_iter()
            .filter(|row| !usual.contains(row)),
    );
    rows.push((
        "base",
        format!(
            "{} ({})",
            contract.base.revision,
            short(&contract.base.commit)
        ),
    ));
    rows.push(("branch", contract.branch.clone()));
    rows.push(("budget", budget_words(&contract.budget)));
    rows.push(("sandbox", contract.sandbox.to_string()));
    rows.push(("network", contract.network.to_string()));
    rows
}

/// Returns everything that stands in a contract, the usual included.
pub(crate) fn whole(contract: &Contract) -> Vec<(&'static str, String)> {
    let mut rows = rows(contract);
    let shown: Vec<&'static str> = rows.iter().map(|(name, _)| *name).collect();
    let missing = working_rows(&contract.working);
    rows.extend(
        missing
            .into_iter()
            .filter(|(name, _)| !shown.contains(name)),
    );
    let network = if contract.verify_network {
        "with the network"
    } else {
        "without network"
    };
    rows.push((
        "checks",
        format!(
            "{network}, {} for each at most",
            amount::duration(contract.verify_timeout_ms)
        ),
    ));
    rows.push((
        "one turn",
        format!("{} at most", amount::duration(contract.turn_timeout_ms)),
    ));
    rows.push((
        "stalled",
        format!(
            "after {} turns that end in the same tree with the same verdict",
            contract.stall_after
        ),
    ));
    let unavailable = match contract.judge_unavailable {
        JudgeUnavailable::Closed => "the goal is blocked until one answers",
        JudgeUnavailable::Open => "the verify commands decide alone",
    };
    rows.push(("no judge", unavailable.to_owned()));
    if let Some(race) = &contract.race {
        rows.push((
            "race",
            format!("lane {} of {}, race {:03}", race.lane, race.lanes, race.of),
        ));
    }
    rows
}

fn working_rows(working: &Working) -> Vec<(&'static str, String)> {
    let surfaces: Vec<String> = working.surfaces.iter().map(surface_words).collect();
    let style = working.decision_style.as_deref();
    let distill = match working.distill {
        Distill::WhenPlanned => "by the agent once the goal is done, where it made a plan",
        Distill::Never => "by Kapi alone",
    };
    let reminders = match working.reminders {
        Reminders::All => "of everything that fits the goal",
        Reminders::Essential => "of proof and tools only",
    };
    let mise = if working.mise { "yes" } else { "no" };
    vec![
        ("type", working.goal_type.as_str().to_owned()),
        ("surfaces", list(&surfaces)),
        ("ask first", list(&working.ask_before)),
        ("decides", style.unwrap_or("as it sees fit").to_owned()),
        ("starts in", working.start_phase.to_string()),
        ("mise", mise.to_owned()),
        ("reminded", reminders.to_owned()),
        ("distilled", distill.to_owned()),
    ]
}

fn surface_words(surface: &Surface) -> String {
    let notes = surface.notes.as_ref();
    let notes = notes.map_or_else(String::new, |notes| format!(" ({notes})"));
    format!("{}: {}{notes}", surface.kind, surface.location)
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        "–".to_owned()
    } else {
        items.join("\n")
    }
}

/// Returns limits in words.
pub(crate) fn budget_words(budget: &Budget) -> String {
    let mut parts = vec![format!("{} turns", budget.turns)];
    parts.extend(
        budget
            .tokens
            .map(|count| format!("{} tokens", amount::tokens(count))),
    );
    parts.extend(budget.usd_micros.map(amount::usd));
    parts.extend(budget.wall_ms.map(amount::duration));
    parts.join(", ")
}
