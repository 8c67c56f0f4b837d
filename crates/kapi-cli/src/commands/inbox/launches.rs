//! Launches that wait for a person: killed, failed, or with changes that are only in their sandbox.
//!
//! Those of tasks are their tasks' own. An agent is shown none.

use kapi_core::text::counted;
use kapi_launch::event::LaunchHistory;
use kapi_launch::log;

use crate::commands::inbox::goals::damaged;
use crate::commands::inbox::item::{CommandLine, ItemContent, WaitingItem};
use crate::context::Context;
use crate::error::Error;
use crate::subject::launches::standing::{LaunchNeed, LaunchStanding, standings};

/// Returns what waits.
pub(super) fn waiting(context: &Context) -> Result<Vec<WaitingItem>, Error> {
    if context.require_human("see launches").is_err() {
        return Ok(Vec::new());
    }
    let mut items = Vec::new();
    for standing in standings(context)? {
        match log::at(&standing.location).history() {
            Ok(history) => items.extend(item(&standing, &history).map(WaitingItem::from)),
            Err(error) => {
                let name = format!("launch/{}", standing.record.id);
                items.push(WaitingItem::from(ItemContent {
                    kind: "launch_damaged",
                    ..damaged(&name, &name, &error.message)
                }));
            }
        }
    }
    Ok(items)
}

fn item(standing: &LaunchStanding, history: &LaunchHistory) -> Option<ItemContent> {
    let record = &standing.record;
    let name = format!("launch/{}", record.id);
    let resume = || CommandLine::of(&["resume", &name]);
    // What an earlier Kapi launched, or no person, has no command line to repeat.
    let resumable = history
        .request
        .as_ref()
        .filter(|request| !request.command.is_empty());
    let error = record.error.as_deref().unwrap_or("it failed");
    let (kind, what, on_yes, yes) = match standing.need {
        LaunchNeed::Running | LaunchNeed::Over => return None,
        LaunchNeed::Stopped => (
            "launch_stopped",
            "the process that launched it was killed".to_owned(),
            "its agent gets its task again, in the workspace as it stands",
            resumable.map(|_| resume()),
        ),
        LaunchNeed::Failed => (
            "launch_failed",
            match &record.advice {
                Some(advice) => format!("{error}; {advice}"),
                None => error.to_owned(),
            },
            "its agent is given its task again",
            resumable.map(|_| resume()),
        ),
        LaunchNeed::Unmerged => (
            "launch_unmerged",
            format!("it has ended with {}", counted(record.n_changed, "change")),
            "its changes are taken over into the project, unless something is in the way",
            Some(CommandLine::of(&["sandbox", "merge", &name])),
        ),
    };
    let look = match standing.need {
        LaunchNeed::Unmerged => "diff",
        _ => "show",
    };
    Some(ItemContent {
        kind,
        subject: name.clone(),
        since_ms: Some(record.updated_at_ms),
        what,
        risks: Vec::new(),
        on_yes: on_yes.to_owned(),
        yes,
        change: vec![format!("kapi sandbox discard {}", record.id)],
        look: Some(CommandLine::of(&[look, &name])),
    })
}
