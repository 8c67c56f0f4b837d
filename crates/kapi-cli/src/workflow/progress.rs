//! What a person sees while a workflow is driven: lines for events, and the live view for what is
//! under way.
//!
//! With `--json` each event is one line on standard output instead.

use std::collections::BTreeMap;

use kapi_core::id::{EffectId, GoalId};
use kapi_machine::logged::EventRecord;
use kapi_machine::watch::Activity;
use kapi_workflow::rules::effect::WorkflowEffect;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::state::Workflow;
use serde_json::json;

use crate::event_words::first_line;
use crate::live_view::state::News;
use crate::progress::{event_json, news};
use crate::ui::{Format, Ui, harmless};
use crate::workflow::event_words::describe;
use crate::{live_view, modes};

/// Effects that are named in the live line at most.
const NAMED_MAX: usize = 3;

/// Progress of one workflow.
#[derive(Debug)]
pub(crate) struct WorkflowProgressLine {
    ui: Ui,
    id: GoalId,
    under_way: BTreeMap<EffectId, String>,
}

impl WorkflowProgressLine {
    /// Begins showing a workflow.
    pub(crate) fn new(ui: Ui, workflow: &Workflow) -> Self {
        Self {
            ui,
            id: workflow.id.clone(),
            under_way: BTreeMap::new(),
        }
    }

    /// Shows an event.
    pub(crate) fn recorded(&mut self, logged: &EventRecord<WorkflowEvent>) {
        if let WorkflowEvent::EffectEnded { effect, .. } = &logged.event {
            self.under_way.remove(effect);
            self.live();
        }
        let is_counted = matches!(
            logged.event,
            WorkflowEvent::EffectEnded { .. } | WorkflowEvent::EffectUsed { .. }
        );
        if is_counted {
            live_view::tell(&self.id.to_string(), News::Counted);
        }
        live_view::changed();
        match self.ui.format {
            Format::Json => self.ui.json(&event_json("workflow", &self.id, logged)),
            Format::Human => {
                let is_shown_next = self.ui.is_at_keyboard() && is_shown_next(&logged.event);
                if let Some(line) = describe(&logged.event).filter(|_| !is_shown_next) {
                    self.ui.say(&format!("  {line}"));
                }
            }
        }
    }

    /// Shows that an effect begins.
    pub(crate) fn performing(&mut self, effect: &WorkflowEffect) {
        let words = first_line(&effect.action.words());
        if self.ui.format == Format::Human {
            self.ui.say(&words);
        }
        self.under_way.insert(effect.id.clone(), words);
        self.live();
    }

    /// Shows what happens within an effect.
    pub(crate) fn activity(&self, effect: &EffectId, activity: &Activity) {
        if self.ui.format == Format::Json {
            self.activity_json(effect, activity);
            return;
        }
        match activity {
            Activity::Note { text } => self.note(&first_line(text)),
            // The answer itself is read and told when it is whole.
            Activity::Text { text } if text.trim_start().starts_with("```") => {
                let text = "answering".to_owned();
                live_view::tell(&self.id.to_string(), News::Said { text });
            }
            Activity::Tool { .. }
            | Activity::Text { .. }
            | Activity::Used(_)
            | Activity::Verifying { .. } => {
                if let Some(news) = news(activity) {
                    live_view::tell(&self.id.to_string(), news);
                }
            }
        }
    }

    /// Says something that is not recorded.
    pub(crate) fn note(&self, text: &str) {
        if self.ui.format == Format::Human {
            self.ui.say(&format!("  note: {text}"));
        }
    }

    fn activity_json(&self, effect: &EffectId, activity: &Activity) {
        let text = match activity {
            Activity::Tool { name, detail } => format!("{name} {detail}"),
            // The answer itself is read and told when it is whole.
            Activity::Text { text } if text.trim_start().starts_with("```") => {
                "answering".to_owned()
            }
            Activity::Text { text } => first_line(text),
            Activity::Verifying { command } => command.clone(),
            Activity::Used(_) => return,
            Activity::Note { text } => text.clone(),
        };
        self.ui.json(&json!({
            "type": "activity", "workflow": self.id.to_string(),
            "effect": effect.as_str(), "text": harmless(&text),
        }));
    }

    /// Tells the live view what is under way.
    fn live(&self) {
        let mut parts: Vec<String> = self.under_way.values().take(NAMED_MAX).cloned().collect();
        let n_more = self.under_way.len().saturating_sub(NAMED_MAX);
        if n_more > 0 {
            parts.push(format!("{n_more} more"));
        }
        let phase = parts.join(", ");
        let news = if phase.is_empty() {
            News::Waits { phase }
        } else {
            News::Began { phase }
        };
        live_view::tell(&self.id.to_string(), news);
    }
}

/// Tells whether an event is what a person at the keyboard is shown whole right after it.
fn is_shown_next(event: &WorkflowEvent) -> bool {
    if let WorkflowEvent::Mode(event) = event {
        modes::front(event.mode()).is_some_and(|front| (front.is_shown_next)(event))
    } else {
        false
    }
}
