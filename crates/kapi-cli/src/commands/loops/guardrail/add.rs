//! `kapi loop guardrail add`: note a lesson for later runs.

use kapi_core::actor::Actor;
use kapi_sys::clock::Clock as _;
use kapi_task::record::guardrails::{LessonOutcome, NewLesson};
use kapi_task::rules::guardrail::{LessonSource, LessonState, Severity};
use kapi_wire::kernel::memory::EntryView;
use serde_json::json;

use crate::commands::loops::guardrail::failed;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::{amount, kernel};

/// Options of `kapi loop guardrail add`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Domain: an agent, a loop, or any other word
    domain: String,
    /// The lesson, in one line
    lesson: String,
    /// Severity
    #[arg(long, value_name = "SEVERITY", default_value = "warning", value_parser = ["info", "warning", "critical"])]
    severity: String,
    /// Expire the lesson after this time, such as 30d
    #[arg(long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    expires: Option<u64>,
}

/// Adds a lesson.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop guardrail", |kernel| {
        kernel.prepare()?;
        let now_ms = context.clock.now_ms();
        let severity = Severity::parse(&args.severity);
        let expires = args.expires.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        let new = NewLesson {
            domain: &args.domain,
            lesson: &args.lesson,
            severity: severity.ok_or_else(|| Error::usage("unknown severity"))?,
            source: source(&context.actor),
            expires_at_ms: expires.map(|ms| now_ms.saturating_add(ms)),
        };
        let memory = kernel.memory();
        let added = memory.add(&new).map_err(|error| failed(&error))?;
        let (entry, is_new) = match added {
            LessonOutcome::New(entry) => (entry, true),
            LessonOutcome::Repeated(entry) => (entry, false),
        };
        let file = memory.file(&entry.domain);
        match context.ui.format {
            Format::Json => context.ui.json(&json!({
                "type": "guardrail",
                "new": is_new,
                "file": file.display().to_string(),
                "entry": EntryView::of(&entry, now_ms),
            })),
            Format::Human => {
                let word = if is_new { "noted" } else { "already known" };
                let line = format!(
                    "{} {word} in {}, {}.",
                    entry.id,
                    file.display(),
                    entry.state.word()
                );
                context.ui.line(&line);
                if entry.state == LessonState::Proposed {
                    context.ui.line(&format!(
                        "  next     kapi loop guardrail accept {}",
                        entry.id
                    ));
                }
            }
        }
        Ok(Exit::Success)
    })
}

/// Returns who says it.
fn source(actor: &Actor) -> LessonSource {
    match actor {
        Actor::Human { user } => LessonSource::person(user),
        Actor::Agent { run } => LessonSource::agent(run),
        Actor::Engine => LessonSource::agent("kapi"),
    }
}
