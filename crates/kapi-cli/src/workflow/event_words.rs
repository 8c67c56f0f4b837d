//! One line for each event of a workflow that a person should see while it happens.
//!
//! Bookkeeping has no line. Text from agents is shortened to its first line.

use kapi_core::text::short_id;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::limits::LimitRaises;
use kapi_workflow::rules::pending::Means;

use crate::event_words::first_line;
use crate::{amount, modes};

/// Returns an event in words; `None` for what is only bookkeeping.
pub(crate) fn describe(event: &WorkflowEvent) -> Option<String> {
    Some(match event {
        WorkflowEvent::Started { id, by, .. } => format!("workflow {id} was started by {by}"),
        WorkflowEvent::DecisionAsked { pending } => {
            let is_one = pending.decision.artifacts().len() == 1;
            let verb = if is_one { "is" } else { "are" };
            format!(
                "{} {verb} waiting for you; hash {}",
                pending.decision.words(),
                short_id(&pending.sha256)
            )
        }
        WorkflowEvent::Approved { approval } => format!(
            "{} approved {} {}{}",
            approval.by,
            approval.decision.words(),
            means(approval.means),
            if approval.accepted.is_empty() {
                ""
            } else {
                ", and accepted its risks"
            }
        ),
        WorkflowEvent::Revised { text, .. } => format!("changes requested: {}", first_line(text)),
        WorkflowEvent::Blocked { reason, unblock } => {
            format!("blocked: {}; {}", first_line(reason), first_line(unblock))
        }
        WorkflowEvent::Unblocked {} => "it continues".to_owned(),
        WorkflowEvent::LimitsRaised { more, by, .. } => format!("{by} raised the limits: {}", raised(more)),
        WorkflowEvent::Abandoned { reason } => format!("abandoned: {}", first_line(reason)),
        WorkflowEvent::Failed { reason } => format!("failed: {}", first_line(reason)),
        WorkflowEvent::Completed {} => "completed".to_owned(),
        WorkflowEvent::Integrated { by, .. } => format!("integrated by {by}"),
        WorkflowEvent::ConflictSettled { what, settlement } => {
            format!("{what} no longer conflicts: {}", first_line(&settlement.why))
        }
        WorkflowEvent::EffectEnded {
            effect,
            failed: Some(why),
            ..
        } => format!("{effect} failed: {}", first_line(why)),
        WorkflowEvent::EvidenceRecorded { .. }
        | WorkflowEvent::WorkerPrepared { .. }
        | WorkflowEvent::WorkerDispatched { .. }
        | WorkflowEvent::WorkerRefreshed { .. }
        | WorkflowEvent::WorkerClosed { .. }
        | WorkflowEvent::EffectIntended { .. }
        | WorkflowEvent::EffectUsed { .. }
        | WorkflowEvent::GoalUsed { .. }
        | WorkflowEvent::TimeUsed { .. }
        // Said by the mode, with what it does about it.
        | WorkflowEvent::ConflictFound { .. }
        | WorkflowEvent::RunRecorded { .. }
        | WorkflowEvent::EffectEnded { failed: None, .. } => return None,
        WorkflowEvent::Mode(event) => {
            return modes::front(event.mode()).and_then(|it| (it.describe)(event));
        }
    })
}

/// Returns how an approval was given, in words.
pub(crate) const fn means(means: Means) -> &'static str {
    match means {
        Means::Terminal => "at a terminal",
        Means::YesFlag => "with --yes",
        Means::NamedHash => "by its hash",
        Means::InAdvance => "in advance",
    }
}

fn raised(more: &LimitRaises) -> String {
    let tokens = (more.tokens > 0).then(|| format!("{} tokens", amount::tokens(more.tokens)));
    let usd = (more.usd_micros > 0).then(|| amount::usd(more.usd_micros));
    let time = (more.wall_ms > 0).then(|| amount::duration(more.wall_ms));
    let parts: Vec<String> = [tokens, usd, time].into_iter().flatten().collect();
    parts.join(" and ")
}
