//! What a person sees while a workflow is driven: lines for events, one live line for what is under
//! way.
//!
//! With `--json` each event is one line on standard output instead.

use std::collections::BTreeMap;
use std::time::Instant;

use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;
use kapi_machine::logged::EventRecord;
use kapi_machine::watch::Activity;
use kapi_workflow::rules::effect::WorkflowEffect;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::evolve::evolve;
use kapi_workflow::rules::state::Workflow;
use serde_json::json;

use crate::event_words::first_line;
use crate::progress::event_json;
use crate::ui::{Format, Ui, harmless};
use crate::workflow::event_words::describe;
use crate::{amount, modes};

/// Effects that are named in the live line at most.
const NAMED_MAX: usize = 3;

/// Progress of one workflow.
#[derive(Debug)]
pub(crate) struct WorkflowProgressLine {
    ui: Ui,
    id: GoalId,
    /// As far as its events were shown.
    workflow: Option<Workflow>,
    began: Instant,
    under_way: BTreeMap<EffectId, String>,
    detail: String,
    used: Usage,
}

impl WorkflowProgressLine {
    /// Begins showing a workflow.
    pub(crate) fn new(ui: Ui, workflow: &Workflow) -> Self {
        Self {
            ui,
            id: workflow.id.clone(),
            workflow: Some(workflow.clone()),
            began: Instant::now(),
            under_way: BTreeMap::new(),
            detail: String::new(),
            used: Usage::default(),
        }
    }

    /// Shows an event.
    pub(crate) fn recorded(&mut self, logged: &EventRecord<WorkflowEvent>) {
        evolve(&mut self.workflow, &logged.event);
        if let WorkflowEvent::EffectEnded { effect, usage, .. } = &logged.event {
            self.under_way.remove(effect);
            self.used.add(usage);
        }
        if let WorkflowEvent::EffectUsed { usage, .. } = &logged.event {
            self.used.add(usage);
        }
        match self.ui.format {
            Format::Json => self.ui.json(&event_json("workflow", &self.id, logged)),
            Format::Human => {
                let is_shown_next = self.ui.is_at_keyboard() && is_shown_next(&logged.event);
                if let Some(line) = describe(&logged.event).filter(|_| !is_shown_next) {
                    self.say(&format!("  {line}"));
                }
                self.live();
            }
        }
    }

    /// Shows that an effect begins.
    pub(crate) fn performing(&mut self, effect: &WorkflowEffect) {
        let words = first_line(&effect.action.words());
        if self.ui.format == Format::Human {
            self.say(&words);
        }
        self.under_way.insert(effect.id.clone(), words);
        self.live();
    }

    /// Shows what happens within an effect.
    pub(crate) fn activity(&mut self, effect: &EffectId, activity: &Activity) {
        let text = match activity {
            Activity::Tool { name, detail } => format!("{name} {detail}"),
            // The answer itself is read and told when it is whole.
            Activity::Text { text } if text.trim_start().starts_with("```") => {
                "answering".to_owned()
            }
            Activity::Text { text } => first_line(text),
            Activity::Verifying { command } => command.clone(),
            Activity::Used(_) => return,
            Activity::Note { text } => {
                if self.ui.format == Format::Human {
                    self.note(&first_line(text));
                    return;
                }
                text.clone()
            }
        };
        if self.ui.format == Format::Json {
            self.ui.json(&json!({
                "type": "activity", "workflow": self.id.to_string(),
                "effect": effect.as_str(), "text": harmless(&text),
            }));
            return;
        }
        self.detail = text;
        self.live();
    }

    /// Says something that is not recorded.
    pub(crate) fn note(&self, text: &str) {
        if self.ui.format == Format::Human {
            self.say(&format!("  note: {text}"));
            self.live();
        }
    }

    /// Removes the live line.
    pub(crate) fn end(&self) {
        self.ui.clear_live();
    }

    fn say(&self, text: &str) {
        self.ui.clear_live();
        self.ui.say(text);
    }

    fn live(&self) {
        if self.under_way.is_empty() {
            return;
        }
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let workflow = self.workflow.as_ref();
        let mut parts: Vec<String> = workflow.and_then(live_of).into_iter().collect();
        parts.extend(self.under_way.values().take(NAMED_MAX).cloned());
        let n_more = self.under_way.len().saturating_sub(NAMED_MAX);
        if n_more > 0 {
            parts.push(format!("{n_more} more"));
        }
        if !self.detail.is_empty() {
            parts.push(first_line(&self.detail));
        }
        if self.used.tokens() > 0 {
            parts.push(format!("{} tokens", amount::tokens(self.used.tokens())));
        }
        parts.push(amount::duration(elapsed));
        self.ui.live(&parts.join(" · "));
    }
}

/// Returns what its mode shows of it while it goes on.
fn live_of(workflow: &Workflow) -> Option<String> {
    modes::front(workflow.mode()).and_then(|front| (front.live)(workflow))
}

/// Tells whether an event is what a person at the keyboard is shown whole right after it.
fn is_shown_next(event: &WorkflowEvent) -> bool {
    if let WorkflowEvent::Mode(event) = event {
        modes::front(event.mode()).is_some_and(|front| (front.is_shown_next)(event))
    } else {
        false
    }
}
