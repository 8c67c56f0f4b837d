//! Workflows that wait for a person: a decision, a question, a goal said back, a hindrance.
//!
//! Which of them wait stands in the inventory; only those are loaded.

use kapi_core::failure::chain;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::project::Project;
use kapi_workflow::record::index::{WorkflowListingEntry, WorkflowSummary};
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::next_command::next_commands;
use kapi_workflow::rules::state::Workflow;

use crate::commands::inbox::goals::damaged;
use crate::commands::inbox::item::{CommandLine, ItemContent, WaitingItem};
use crate::error::Error;
use crate::event_words::first_line;
use crate::modes;
use crate::workflow::listing::updated_ms;

/// Returns the workflows that wait.
pub(super) fn waiting(
    project: &Project<'_>,
    workflows: &[WorkflowListingEntry],
) -> Result<Vec<WaitingItem>, Error> {
    let mut items = Vec::new();
    for listed in workflows {
        let key = &listed.key;
        let entry = match &listed.state {
            WorkflowSummary::Known(entry) => entry,
            WorkflowSummary::Damaged(error) => {
                let index = format!("{:03}", key.id.index());
                items.push(WaitingItem::from(ItemContent {
                    kind: "workflow_damaged",
                    ..damaged(&key.to_string(), &index, &chain(error))
                }));
                continue;
            }
        };
        if entry.waits.is_none() || entry.status.is_terminal() {
            continue;
        }
        let workflow = Workflows::of(project)
            .workflow(key)
            .map_err(|error| Error::workflow(&error))?;
        items.extend(item(&workflow, updated_ms(&entry.updated)));
    }
    Ok(items)
}

fn item(workflow: &Workflow, updated_ms: Option<i64>) -> Option<WaitingItem> {
    let mode = workflow.mode().as_str();
    let index = format!("{:03}", workflow.id.index());
    let resume = format!("kapi {mode} resume {index}");
    let of = |words: &[&str]| Some(CommandLine::of(words));
    let mut waiting = ItemContent {
        kind: "workflow_blocked",
        subject: format!("{mode} {}", workflow.id),
        since_ms: updated_ms,
        what: String::new(),
        risks: Vec::new(),
        on_yes: "it continues where it stopped".to_owned(),
        yes: of(&[mode, "resume", &index]),
        change: vec![format!("{resume} --abandon '<reason>'")],
        look: of(&["status", &index]),
    };
    if let Some(blocked) = workflow
        .blocked
        .as_ref()
        .filter(|_| workflow.status == WorkflowStatus::Blocked)
    {
        waiting.what = format!(
            "blocked: {}; {}",
            first_line(&blocked.reason),
            first_line(&blocked.unblock)
        );
        let first = next_commands(workflow).into_iter().next();
        let words = first.as_deref().and_then(|it| it.strip_prefix("kapi "));
        let words: Vec<&str> = words.unwrap_or_default().split(' ').collect();
        waiting.yes = of(&words);
    } else if let Some(pending) = &workflow.pending {
        let artifact = pending.decision.words();
        waiting.kind = pending.decision.spec().inbox;
        waiting.since_ms = Some(pending.since_ms);
        waiting.what = format!(
            "{artifact} is waiting for your approval (hash {})",
            pending.sha256
        );
        waiting.risks.clone_from(&pending.risks);
        waiting.on_yes = pending.decision.spec().on_yes.to_owned();
        waiting.yes = of(&[mode, "approve", &index]);
        waiting.change = vec![
            format!("{resume} --revise '<what should change>'"),
            format!("{resume} --abandon '<reason>'"),
        ];
    } else {
        let asked = modes::front(workflow.mode()).and_then(|it| (it.waits_for)(workflow))?;
        waiting.kind = asked.kind;
        waiting.what = asked.what;
        waiting.on_yes = asked.on_yes.to_owned();
        let change = asked.change.iter();
        waiting.change = change.map(|option| format!("{resume} {option}")).collect();
    }
    Some(waiting.into())
}
