//! `kapi loop guardrail list`: the lessons as they stand in the files, and lines that are none.

use kapi_sys::clock::Clock as _;
use kapi_task::rules::guardrail::{Domain, LessonState};
use kapi_wire::kernel::memory::EntryView;
use serde::Serialize;

use crate::commands::loops::guardrail::failed;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// Options of `kapi loop guardrail list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List only lessons of this domain
    domain: Option<String>,
    /// List only lessons in this state
    #[arg(long, value_name = "STATE", value_parser = ["proposed", "accepted", "rejected"])]
    state: Option<String>,
}

#[derive(Debug, Serialize)]
struct LessonListView {
    entries: Vec<EntryView>,
    /// Lines that look like lessons and are none.
    unread: Vec<UnreadView>,
}

#[derive(Debug, Serialize)]
struct UnreadView {
    file: String,
    line: usize,
    why: &'static str,
}

/// Lists lessons.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let domain = args.domain.as_deref().map(Domain::parse).transpose();
    let domain = domain.map_err(|error| Error::usage(error.to_string()))?;
    let state = args.state.as_deref().and_then(LessonState::parse);
    kernel::with(context, "kapi loop guardrail", |kernel| {
        let listing = kernel.memory().list(domain.as_ref());
        let listing = listing.map_err(|error| failed(&error))?;
        let now_ms = context.clock.now_ms();
        let wanted = listing.entries.iter();
        let wanted = wanted.filter(|entry| state.is_none_or(|state| entry.state == state));
        let view = LessonListView {
            entries: wanted.map(|entry| EntryView::of(entry, now_ms)).collect(),
            unread: listing
                .unread
                .iter()
                .map(|unread| UnreadView {
                    file: unread.file.display().to_string(),
                    line: unread.line,
                    why: unread.why,
                })
                .collect(),
        };
        match context.ui.format {
            Format::Json => context.ui.json(&view),
            Format::Human => human(context, &view),
        }
        Ok(Exit::Success)
    })
}

fn human(context: &Context, view: &LessonListView) {
    for entry in &view.entries {
        let state = if entry.is_expired {
            "expired"
        } else {
            entry.state
        };
        context.ui.line(&format!(
            "{}  {:<8}  {:<8}  {}: {}",
            entry.id, state, entry.severity, entry.domain, entry.lesson
        ));
    }
    if view.entries.is_empty() {
        context
            .ui
            .say("No lessons; add one with `kapi loop guardrail add <domain> \"<lesson>\"`.");
    }
    if view.entries.iter().any(|entry| entry.state == "proposed") {
        context.ui.say(
            "Proposed lessons have no effect until you run `kapi loop guardrail accept <id>`.",
        );
    }
    for unread in &view.unread {
        context.ui.say(&format!(
            "warning: {}:{}: {}",
            unread.file, unread.line, unread.why
        ));
    }
}
