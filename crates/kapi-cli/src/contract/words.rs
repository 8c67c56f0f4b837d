//! A contract in words, for the person who approves it and for whoever looks at it later.
//!
//! Says what stands in it and nothing else.

use kapi_check::rules::proof::attribution::CheckPart;
use kapi_check::rules::proof::policy::{CheckPolicy, TestPolicy};
use kapi_core::agent_models::AgentModels;
use kapi_core::judge::JudgeUnavailable;
use kapi_core::text::{counted, short_id};
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::contract::{AgentSurface, Contract, Distillation, Reminders, Working};
use kapi_goal::rules::state::Goal;

use crate::amount;
use crate::context::Context;
use crate::contract::judge;

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
        attributed(contract, CheckPart::Verify, &contract.verify)
    };
    let mut rows: Vec<_> = original(contract).into_iter().collect();
    rows.extend([
        ("task", contract.intent.clone()),
        ("done when", contract.done_criteria.clone()),
        ("verify", verify),
        (
            "protect",
            attributed(contract, CheckPart::Protect, &contract.protect),
        ),
    ]);
    rows.extend(policy_row(&contract.checks));
    if let Some(hidden) = &contract.hidden {
        rows.push((
            "hidden",
            format!("{} from {}", counted(hidden.files, "file"), hidden.source),
        ));
    }
    rows.push(("agent", contract.agent.clone()));
    let models = contract.models.iter().map(AgentModels::words);
    let models: Vec<String> = models.collect();
    rows.extend((!models.is_empty()).then(|| ("models", models.join("\n"))));
    rows.push(("judge", judged(contract)));
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
            short_id(&contract.base.commit)
        ),
    ));
    rows.push(("branch", contract.branch.clone()));
    rows.push(("budget", budget_words(&contract.budget)));
    rows.extend(others(contract));
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
            "{network}, at most {} each",
            amount::duration(contract.verify_timeout_ms)
        ),
    ));
    rows.push((
        "one turn",
        format!("at most {}", amount::duration(contract.turn_timeout_ms)),
    ));
    rows.push((
        "stalled",
        format!(
            "after {} with the same tree and the same verdict",
            counted(contract.stall_after, "turn")
        ),
    ));
    let unavailable = match contract.judge_unavailable {
        JudgeUnavailable::Closed => "the goal is blocked until a judge answers",
        JudgeUnavailable::Open => "the verify commands decide alone",
    };
    rows.push(("no judge", unavailable.to_owned()));
    if let Some(delivery) = &contract.delivery {
        rows.push(("deliver", delivery.words()));
    }
    if let Some(race) = &contract.race {
        rows.push((
            "race",
            format!("lane {} of {}, race {:03}", race.lane, race.lanes, race.of),
        ));
    }
    rows
}

/// Returns what the person said themselves, where an agent worded the goal.
fn original(contract: &Contract) -> Option<(&'static str, String)> {
    let attribution = &contract.attribution;
    let said = match &attribution.original {
        Some(original) => match &original.done_criteria {
            Some(criteria) => format!("{}\ndone when: {criteria}", original.task),
            None => original.task.clone(),
        },
        None => "nothing: an agent proposed all of this".to_owned(),
    };
    attribution.drafted.then_some(("your text", said))
}

/// Returns a list with who added what is not the person's.
fn attributed(contract: &Contract, part: CheckPart, items: &[String]) -> String {
    let items = items
        .iter()
        .map(|item| match contract.attribution.added_by(part, item) {
            Some(by) => format!("{item}  (added by {by})"),
            None => item.clone(),
        });
    list(&items.collect::<Vec<_>>())
}

fn judged(contract: &Contract) -> String {
    let words = judge::words(contract);
    let named = contract.judge.to_string();
    match contract.attribution.added_by(CheckPart::Judge, &named) {
        Some(by) => format!("{words}  (added by {by})"),
        None => words,
    }
}

/// Returns what the checks are held to, where that is not the usual.
fn policy_row(policy: &CheckPolicy) -> Option<(&'static str, String)> {
    let usual = CheckPolicy::default();
    let mut parts = Vec::new();
    if policy.tests != usual.tests {
        parts.push(match policy.tests {
            TestPolicy::Locked => "tests locked: none may be added, changed or removed",
            TestPolicy::Additive => "tests additive: every statement of an existing test must stay",
            TestPolicy::Free => "tests free: they may change; Kapi reports every difference",
        });
    }
    let switches = [
        (
            policy.already_green,
            "checks that already pass on the base count as proof",
        ),
        (
            policy.changed_steering,
            "the proof may rely on test setup that the change edits",
        ),
        (
            policy.flagged_code,
            "the proof may rely on code that looks like faking a pass",
        ),
        (policy.strength, "each hunk is reverted in turn"),
    ];
    parts.extend(
        switches
            .into_iter()
            .filter(|(is_on, _)| *is_on)
            .map(|(_, words)| words),
    );
    (!parts.is_empty()).then(|| ("held to", parts.join("\n")))
}

/// Returns what others narrowed, and what they asked for and did not get.
fn others(contract: &Contract) -> Option<(&'static str, String)> {
    let attribution = &contract.attribution;
    let narrowed = attribution
        .additions
        .iter()
        .filter_map(|added| match added.part {
            CheckPart::Verify | CheckPart::Protect | CheckPart::Judge => None,
            part => Some(format!(
                "{part} {}: restricted by {}",
                value(part, &added.value),
                added.by
            )),
        });
    let refused = attribution.refusals.iter().map(|refused| {
        let part = refused.part;
        format!(
            "{part} {}: requested by {}, but {} takes precedence",
            value(part, &refused.value),
            refused.by,
            value(part, &refused.kept)
        )
    });
    let lines: Vec<String> = narrowed.chain(refused).collect();
    (!lines.is_empty()).then(|| ("others", lines.join("\n")))
}

/// Returns the value of a part as people write it.
fn value(part: CheckPart, text: &str) -> String {
    let number = text.parse::<u64>().ok();
    match (part, number) {
        (CheckPart::UsdMicros, Some(micros)) => amount::usd(micros),
        (CheckPart::WallMs, Some(ms)) => amount::duration(ms),
        (CheckPart::Tokens, Some(tokens)) => amount::tokens(tokens),
        (_, _) => text.to_owned(),
    }
}

fn working_rows(working: &Working) -> Vec<(&'static str, String)> {
    let surfaces: Vec<String> = working.surfaces.iter().map(surface_words).collect();
    let style = working.decision_style.as_deref();
    let distill = match working.distill {
        Distillation::WhenPlanned => "by the agent once the goal is done, if it made a plan",
        Distillation::Never => "by Kapi alone",
    };
    let reminders = match working.reminders {
        Reminders::All => "all guidance that fits the goal",
        Reminders::Essential => "only proof and tools",
    };
    let mise = if working.mise { "yes" } else { "no" };
    let commits = if working.keep_commits {
        "the agent's own, with their messages"
    } else {
        "one for all of the work"
    };
    vec![
        ("type", working.goal_type.as_str().to_owned()),
        ("surfaces", list(&surfaces)),
        ("ask first", list(&working.ask_before)),
        ("decides", style.unwrap_or("up to the agent").to_owned()),
        ("starts in", working.start_phase.to_string()),
        ("mise", mise.to_owned()),
        ("commits", commits.to_owned()),
        ("reminded", reminders.to_owned()),
        ("distilled", distill.to_owned()),
    ]
}

fn surface_words(surface: &AgentSurface) -> String {
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
    let mut parts = vec![counted(budget.turns, "turn")];
    parts.extend(
        budget
            .tokens
            .map(|count| format!("{} tokens", amount::tokens(count))),
    );
    parts.extend(budget.usd_micros.map(amount::usd));
    parts.extend(budget.wall_ms.map(amount::duration));
    parts.join(", ")
}
