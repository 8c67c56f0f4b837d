//! What of tasks and loops waits for a person: loops that fail or are denied, lessons that were proposed,
//! a queue from elsewhere.
//!
//! Outside a project, or where nothing of it was ever used, there is nothing.

use kapi_task::rules::guardrail::LessonState;

use crate::commands::inbox::item::{CommandLine, ItemContent, WaitingItem};
use crate::commands::loops::guardrail::failed;
use crate::commands::loops::loop_state::{LoopTrouble, troubles};
use crate::context::Context;
use crate::error::{Error, optional};
use crate::kernel::{self, ProjectKernel};

/// Returns what waits.
pub(super) fn waiting(context: &Context) -> Result<Vec<WaitingItem>, Error> {
    let items = kernel::with(context, "kapi inbox", gathered);
    Ok(optional(items)?.unwrap_or_default())
}

fn gathered(kernel: &ProjectKernel<'_>) -> Result<Vec<WaitingItem>, Error> {
    let mut items = Vec::new();
    if kernel.is_foreign()? {
        items.push(foreign().into());
    }
    let troubles = troubles(kernel)?.into_iter();
    items.extend(troubles.map(|trouble| trouble_item(trouble).into()));
    let listing = kernel.memory().list(None).map_err(|error| failed(&error))?;
    for entry in listing.entries {
        if entry.state != LessonState::Proposed {
            continue;
        }
        let (domain, lesson) = (entry.domain.to_string(), entry.lesson.as_str().to_owned());
        items.push(
            ItemContent {
                kind: "lesson",
                subject: format!("lesson {}", entry.id),
                since_ms: Some(entry.at_ms),
                what: format!("proposed about {domain}: {lesson}"),
                risks: Vec::new(),
                on_yes: "every later run in its domain gets the lesson".to_owned(),
                yes: Some(CommandLine::of(&["guardrail", "accept", &entry.id])),
                change: vec![format!("kapi loop guardrail reject {}", entry.id)],
                look: Some(CommandLine::of(&["guardrail", "list", &domain])),
            }
            .into(),
        );
    }
    Ok(items)
}

fn trouble_item(trouble: LoopTrouble) -> ItemContent {
    let name = trouble.name.as_str();
    ItemContent {
        kind: trouble.kind,
        subject: format!("loop {name}"),
        since_ms: Some(trouble.since_ms),
        what: trouble.what,
        risks: Vec::new(),
        on_yes: "the loop runs now; a run that ends well settles this".to_owned(),
        yes: Some(CommandLine::of(&["loop", "run", name, "--again"])),
        change: vec![format!("kapi loop disable {name}")],
        look: Some(CommandLine::of(&["loop", "history", name])),
    }
}

fn foreign() -> ItemContent {
    ItemContent {
        kind: "queue",
        subject: "tasks from elsewhere".to_owned(),
        since_ms: None,
        what: "the tasks in this project come from elsewhere; no worker runs them".to_owned(),
        risks: vec!["their author is unknown".to_owned()],
        on_yes: "the queue becomes yours, and workers here run its tasks".to_owned(),
        yes: Some(CommandLine::of(&["task", "adopt"])),
        change: Vec::new(),
        look: Some(CommandLine::of(&["task", "list", "--all"])),
    }
}
