//! `kapi loop guardrail accept`, `reject` and `remove`: what becomes of a lesson. A person's to say.

use kapi_sys::clock::Clock as _;
use kapi_wire::kernel::memory::EntryView;
use serde_json::json;

use crate::commands::loops::guardrail::failed;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// Options of the three verbs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Lesson id, or its first four characters
    id: String,
}

/// What becomes of a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LessonSettlement {
    /// It is told.
    Accepted,
    /// It is not.
    Rejected,
    /// It is gone.
    Removed,
}

/// Settles a lesson.
pub(super) fn run(context: &Context, args: &Args, to: LessonSettlement) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop guardrail", |kernel| {
        kernel.prepare()?;
        let (memory, actor) = (kernel.memory(), &context.actor);
        let (settled, words) = match to {
            LessonSettlement::Accepted => (memory.accept(actor, &args.id), "is now accepted"),
            LessonSettlement::Rejected => (memory.reject(actor, &args.id), "is now rejected"),
            LessonSettlement::Removed => (memory.remove(actor, &args.id), "is removed"),
        };
        let entry = settled.map_err(|error| failed(&error))?;
        match context.ui.format {
            Format::Json => context.ui.json(&json!({
                "type": "guardrail",
                "removed": to == LessonSettlement::Removed,
                "entry": EntryView::of(&entry, context.clock.now_ms()),
            })),
            Format::Human => {
                let line = format!(
                    "{} {words}: {}: {}",
                    entry.id,
                    entry.domain,
                    entry.lesson.as_str()
                );
                context.ui.line(&line);
            }
        }
        Ok(Exit::Success)
    })
}
