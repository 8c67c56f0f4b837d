//! Goals that wait for a person: a contract, a consent, an approval, a limit, a hindrance.
//!
//! The words and the commands are the goals' own.

use kapi_core::failure::chain;
use kapi_goal::record::goal_listing::{GoalListingEntry, ListingStatus};
use kapi_goal::record::project::Project;
use kapi_goal::rules::event::Stop;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::wait::WaitFor;
use kapi_goal::rules::words;

use crate::commands::inbox::item::{CommandLine, ItemContent, WaitingItem};
use crate::error::Error;
use crate::workflow::listing::updated_ms;

/// Returns the goals that wait.
pub(super) fn waiting(
    project: &Project<'_>,
    goals: &[GoalListingEntry],
) -> Result<Vec<WaitingItem>, Error> {
    let mut items = Vec::new();
    for listed in goals {
        let entry = match &listed.state {
            ListingStatus::Known(entry) => entry,
            ListingStatus::Damaged(error) => {
                let index = listed.id.reference();
                items.push(damaged(&listed.id.to_string(), &index, &chain(error)).into());
                continue;
            }
        };
        if !can_wait(entry.status) {
            continue;
        }
        let goal = project
            .load(&listed.id)
            .map_err(|error| Error::engine(&error, &listed.id.to_string()))?;
        items.extend(item(&goal, updated_ms(&entry.updated)));
    }
    Ok(items)
}

const fn can_wait(status: GoalStatus) -> bool {
    match status {
        GoalStatus::Proposed
        | GoalStatus::Waiting
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused => true,
        GoalStatus::Setup
        | GoalStatus::Active
        | GoalStatus::Impossible
        | GoalStatus::Cancelled
        | GoalStatus::Unverified
        | GoalStatus::Done => false,
    }
}

/// Returns something whose log cannot be trusted.
pub(super) fn damaged(subject: &str, index: &str, fault: &str) -> ItemContent {
    ItemContent {
        kind: "goal_damaged",
        subject: subject.to_owned(),
        since_ms: None,
        what: format!("its log cannot be trusted: failed to {fault}"),
        risks: Vec::new(),
        on_yes: "Kapi lists the damage; nothing changes".to_owned(),
        yes: Some(CommandLine::of(&["audit", index])),
        change: Vec::new(),
        look: None,
    }
}

/// Returns something of which the last audit found that it cannot be trusted.
pub(super) fn audited(subject: &str, findings: &[String]) -> WaitingItem {
    let finding = findings.first().map_or("trust it", String::as_str);
    ItemContent {
        kind: "audit_finding",
        subject: subject.to_owned(),
        since_ms: None,
        what: format!("the last audit failed to {finding}"),
        risks: Vec::new(),
        on_yes: "Kapi checks it again and lists the damage; nothing changes".to_owned(),
        yes: Some(CommandLine::of(&["audit"])),
        change: Vec::new(),
        look: None,
    }
    .into()
}

fn item(goal: &Goal, updated_ms: Option<i64>) -> Option<WaitingItem> {
    let index = goal.id.reference();
    let is_of_workflow = goal.contract.working.workflow.is_some();
    if is_of_workflow && matches!(goal.stop, Some(Stop::BudgetUsedUp { .. })) {
        // Its workflow says so, with the one command that helps both.
        return None;
    }
    let of = |words: &[&str]| Some(CommandLine::of(words));
    let (kind, on_yes, yes) = match (&goal.status, &goal.stop, wanted(goal)) {
        (GoalStatus::Proposed, _, _) => (
            "contract",
            "the contract is approved by its hash, and the goal starts at once",
            of(&["goal", "approve", &index]),
        ),
        (GoalStatus::Waiting, _, Some(what)) => (
            "approval",
            "the agent is informed and continues when the goal runs",
            of(&["goal", "allow", &index, what]),
        ),
        (GoalStatus::Waiting, _, None) if goal.lacks_a_judge() => (
            "judge_unreachable",
            "Kapi asks the judge now and retries if there is no answer",
            of(&["resume", &index]),
        ),
        // Other waits end by themselves.
        (GoalStatus::Waiting, _, None) => return None,
        (_, Some(Stop::ConsentNeeded { pattern, .. }), _) => (
            "consent",
            "the agent may run matching commands for the rest of this goal; continue with `kapi resume`",
            of(&["goal", "allow", &index, pattern]),
        ),
        (GoalStatus::Paused, Some(Stop::BudgetUsedUp { .. } | Stop::CapReached { .. }), _) => (
            "budget",
            "the goal continues once its limit is raised",
            None,
        ),
        (_, _, _) => (
            "goal_blocked",
            "the goal continues where it stopped",
            of(&["resume", &index]),
        ),
    };
    let own = yes.as_ref().map(CommandLine::typed);
    let next = words::next_commands(goal).into_iter();
    Some(
        ItemContent {
            kind,
            subject: format!("goal {}", goal.id),
            since_ms: goal.wait.as_ref().map(|wait| wait.since_ms).or(updated_ms),
            what: what(goal),
            risks: Vec::new(),
            on_yes: on_yes.to_owned(),
            yes,
            change: next.filter(|line| Some(line) != own.as_ref()).collect(),
            look: of(&["show", &index]),
        }
        .into(),
    )
}

fn wanted(goal: &Goal) -> Option<&str> {
    match goal.wait.as_ref().map(|wait| &wait.until) {
        Some(WaitFor::Approval { what }) => Some(what),
        Some(
            WaitFor::Time { .. }
            | WaitFor::File { .. }
            | WaitFor::Process { .. }
            | WaitFor::Command { .. }
            | WaitFor::Judge { .. }
            | WaitFor::Quota { .. },
        )
        | None => None,
    }
}

fn what(goal: &Goal) -> String {
    let reason = words::reason(goal).unwrap_or_else(|| format!("it is {}", goal.status));
    match words::hint(goal) {
        Some(hint) => format!("{}: {reason} ({hint})", goal.status),
        None => format!("{}: {reason}", goal.status),
    }
}
