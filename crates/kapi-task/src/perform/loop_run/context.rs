//! What the agent of a run is told: the body with its values, what the last run left if that is
//! still true, and what becomes of its last words.
//!
//! Strict: a place that nothing is known for is an error. Looks at the project, and changes nothing.

use kapi_run::failure;

use super::LoopExecution;
use crate::perform::ending::not_launched;
use crate::perform::facts;
use crate::perform::prompt::PromptParts;
use crate::record::freshness;
use crate::record::freshness::Freshness;
use crate::record::template::{PreviousRun, Template, TemplateScope};
use crate::rules::definition::Learn;
use crate::rules::definition::eval::EvalCheck;
use crate::rules::handoff::{Handoff, handoff_words, stale_words};
use crate::rules::state::LastRun;
use crate::rules::task::End;
use crate::rules::task_state::KernelTaskState;

/// What begins the line with what should be done next.
pub(super) const NEXT: &str = "NEXT:";
/// What begins a line with a lesson.
pub(super) const LESSON: &str = "LESSON:";

/// What a run's agent is told.
pub(super) struct LoopPrompt {
    prompt: String,
    handoff: String,
    checks: Vec<String>,
    /// Why the last run's handoff is left out, if it is.
    pub(super) stale: Option<String>,
}

impl LoopPrompt {
    pub(super) fn words(&self) -> PromptParts<'_> {
        PromptParts {
            prompt: &self.prompt,
            handoff: &self.handoff,
            checks: &self.checks,
        }
    }
}

impl LoopExecution<'_> {
    /// Fills the body and looks whether the last handoff is fresh.
    pub(super) fn reported(&self) -> Result<LoopPrompt, End> {
        let known = self.known();
        let left = known.and_then(|known| known.handoff.as_ref());
        let fresh = left.map(|handoff| self.freshness(handoff)).transpose()?;
        let (handoff, stale) = match (left, fresh) {
            (Some(handoff), Some(Freshness::Fresh)) => (Some(handoff), None),
            (Some(handoff), Some(Freshness::Stale { reasons })) => {
                (None, Some((handoff.task, reasons)))
            }
            (_, _) => (None, None),
        };
        let status = status(known.and_then(|known| known.last_run.as_ref()));
        let last = PreviousRun {
            summary: handoff.map_or("", |handoff| handoff.summary.as_str()),
            next_action: handoff.map_or("", |handoff| handoff.next_action.as_str()),
            status,
        };
        let inputs = self.inputs()?;
        let source = self.run.trigger.source().unwrap_or_default();
        let scope = TemplateScope {
            inputs: &inputs,
            payload: &self.run.payload,
            trigger_type: self.run.trigger.kind(),
            trigger_source: &source,
            last,
        };
        let definition = &self.run.definition;
        let body = Template::parse(&definition.body).render(&scope);
        let body = body.map_err(|error| not_launched(format!("failed to {error}")))?;
        // A body that names the handoff is given it where it wants it.
        let names_it = definition.body.contains("{last.summary}");
        let words = match (handoff, &stale) {
            (Some(handoff), _) if !names_it => handoff_words(handoff),
            (_, Some((task, reasons))) => stale_words(*task, reasons),
            (_, _) => String::new(),
        };
        Ok(LoopPrompt {
            prompt: format!("{body}\n\n{}", self.after()),
            handoff: words,
            checks: self.checks(),
            stale: stale.map(|(task, reasons)| {
                let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                format!("the handoff of {task} is stale: {}", reasons.join(", "))
            }),
        })
    }

    fn freshness(&self, handoff: &Handoff) -> Result<Freshness, End> {
        let project = self.performer.project;
        let root = project.layout.root();
        let head = facts::head(self.performer, self.handle);
        let failed = |error| not_launched(format!("failed to {}", failure::chain(&error)));
        let now = freshness::look(project.disk, root, handoff, head).map_err(failed)?;
        freshness::verify(handoff, &now).map_err(failed)
    }

    /// Returns what the agent is told of the time after it.
    fn after(&self) -> String {
        let mut text = format!(
            "# After you\n\nThe next run of this loop receives your last message. A line that \
             starts with `{NEXT}` tells it what to do next."
        );
        if self.run.definition.learn != Learn::Never {
            text.push_str(&format_lesson());
        }
        text
    }

    /// Returns what the work is held to, one line each.
    fn checks(&self) -> Vec<String> {
        let definition = &self.run.definition;
        let evals = definition.evals.iter().map(|eval| {
            let what = match &eval.check {
                EvalCheck::Command { run, .. } | EvalCheck::Metric { run, .. } => {
                    format!(": `{run}`")
                }
                EvalCheck::Judge { criteria, .. } => format!(": {}", criteria.join("; ")),
                EvalCheck::ExitCode { .. }
                | EvalCheck::Regex { .. }
                | EvalCheck::JsonSchema { .. } => String::new(),
            };
            format!("{} ({}){what}", eval.name, eval.check.kind())
        });
        let verify = definition
            .verify
            .iter()
            .map(|command| format!("`{command}`"));
        evals.chain(verify).collect()
    }
}

fn format_lesson() -> String {
    format!(
        " A line that starts with `{LESSON}` and describes in one sentence what would have \
         saved you time is proposed to the user as a lesson for later runs."
    )
}

/// Returns how the last run came out, in the words of templates.
const fn status(last: Option<&LastRun>) -> &'static str {
    match last {
        None => "none",
        Some(last) if last.was_skipped => "skipped",
        Some(last) => match last.state {
            KernelTaskState::Completed => "completed",
            KernelTaskState::Failed => "failed",
            KernelTaskState::Cancelled => "cancelled",
            KernelTaskState::Pending | KernelTaskState::Leased | KernelTaskState::Running => "none",
        },
    }
}
