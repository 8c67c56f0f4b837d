//! What a person sees while a goal is driven: lines for events, and the live view for the rest.
//!
//! With `--json` each event and activity is one line on standard output instead.

use std::fmt;

use kapi_core::id::GoalId;
use kapi_core::text::agent_name;
use kapi_goal::record::drive::DriveObservation;
use kapi_goal::rules::effect::{AgentPurpose, GoalAction, GoalEffect};
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::state::Goal;
use kapi_machine::logged::EventRecord;
use kapi_machine::watch::Activity;
use serde::Serialize;
use serde_json::json;

use crate::event_words::{describe, first_line};
use crate::live_view;
use crate::live_view::state::News;
use crate::ui::{Format, Ui, harmless};

/// Progress of one goal.
#[derive(Debug)]
pub(crate) struct GoalProgressLine {
    ui: Ui,
    id: GoalId,
    /// What each line begins with where several goals are shown at once.
    lane: Option<String>,
}

impl GoalProgressLine {
    /// Begins showing a goal.
    pub(crate) fn new(ui: Ui, goal: &Goal) -> Self {
        let lane = goal.contract.race.as_ref().map(|race| {
            let agent = agent_name(&goal.contract.agent);
            format!("[lane {} {agent}] ", race.lane)
        });
        Self {
            ui,
            id: goal.id.clone(),
            lane,
        }
    }

    /// Shows one thing that happened.
    pub(crate) fn show(&self, seen: &DriveObservation) {
        match self.ui.format {
            Format::Json => self.show_json(seen),
            Format::Human => self.show_human(seen),
        }
    }

    /// Shows that the goal is parked.
    pub(crate) fn parked(&self, until: &str) {
        let phase = format!("parked until {until}");
        live_view::tell(&self.id.to_string(), News::Waits { phase });
    }

    fn show_json(&self, seen: &DriveObservation) {
        match seen {
            DriveObservation::Recorded(logged) => {
                self.ui.json(&event_json("goal", &self.id, logged));
            }
            DriveObservation::Performing(_) => {}
            DriveObservation::Activity(activity) => {
                self.ui.json(&activity_json(&self.id, activity));
            }
        }
    }

    fn show_human(&self, seen: &DriveObservation) {
        tell(&self.id, seen);
        match seen {
            DriveObservation::Recorded(logged) => self.recorded(&logged.event),
            DriveObservation::Performing(effect) => self.performing(effect),
            DriveObservation::Activity(activity) => self.activity(activity),
        }
    }

    fn recorded(&self, event: &GoalEvent) {
        match event {
            GoalEvent::GoalCreated { .. }
            | GoalEvent::ContractApproved { .. }
            | GoalEvent::EffectIntended { .. }
            | GoalEvent::EffectProgressed { .. }
            | GoalEvent::WaitEnded
            | GoalEvent::RunRecorded { .. }
            | GoalEvent::EffectCancelled { .. } => {}
            GoalEvent::WorkspaceCreated { .. }
            | GoalEvent::AgentEnded { .. }
            | GoalEvent::ProviderFailed { .. }
            | GoalEvent::CandidateCommitted { .. }
            | GoalEvent::BaselineEnded { .. }
            | GoalEvent::VerifyEnded { .. }
            | GoalEvent::JudgeEnded { .. }
            | GoalEvent::JudgeFailed { .. }
            | GoalEvent::TurnEnded { .. }
            | GoalEvent::GoalDone { .. }
            | GoalEvent::GoalStopped { .. }
            | GoalEvent::GoalResumed
            | GoalEvent::ContractDrafted { .. }
            | GoalEvent::SetupEnded { .. }
            | GoalEvent::GoalReopened { .. }
            | GoalEvent::PlanMade { .. }
            | GoalEvent::Replanned { .. }
            | GoalEvent::TaskUpdated { .. }
            | GoalEvent::ProgressNoted { .. }
            | GoalEvent::TurnDeclared { .. }
            | GoalEvent::JourneyDistilled { .. }
            | GoalEvent::DistillSkipped
            | GoalEvent::DistillEnded { .. }
            | GoalEvent::PersonSaid { .. }
            | GoalEvent::SideQuestionAnswered { .. }
            | GoalEvent::ConsentAsked { .. }
            | GoalEvent::ConsentGiven { .. }
            | GoalEvent::GoalParked { .. }
            | GoalEvent::GoalWoken { .. }
            | GoalEvent::TurnsSet { .. }
            | GoalEvent::JudgeChanged { .. }
            | GoalEvent::BudgetRaised { .. } => {
                self.say(&format!("  {}", describe(event)));
            }
        }
    }

    fn performing(&self, effect: &GoalEffect) {
        if let GoalAction::RunAgent(task) = &effect.action {
            let agent = agent_name(&task.agent);
            self.say(&match task.purpose {
                AgentPurpose::Setup => format!("Setup: {agent} is drafting a contract"),
                AgentPurpose::Work => format!("Turn {}: {agent} is working", task.turn),
                AgentPurpose::Distill => format!("Done: {agent} is summarizing what it learned"),
            });
        }
    }

    fn activity(&self, activity: &Activity) {
        match activity {
            Activity::Note { text } => self.say(&format!("  note: {}", first_line(text))),
            Activity::Tool { name, detail } if !live_view::is_open() => {
                self.say(&format!("    {name} {detail}"));
            }
            Activity::Tool { .. }
            | Activity::Text { .. }
            | Activity::Used(_)
            | Activity::Verifying { .. } => {}
        }
    }

    fn say(&self, text: &str) {
        let lane = self.lane.as_deref().unwrap_or_default();
        self.ui.say(&format!("{lane}{text}"));
    }
}

/// Tells the live view, where one is open, what happened to a goal.
pub(crate) fn tell(id: &GoalId, seen: &DriveObservation) {
    let id = &id.to_string();
    match seen {
        DriveObservation::Recorded(logged) => {
            if let GoalEvent::ConsentAsked { asked } = &logged.event {
                let command = asked.command.clone();
                live_view::tell(id, News::Refused { command });
            }
            if is_counted(&logged.event) {
                live_view::tell(id, News::Counted);
            }
            live_view::changed();
        }
        DriveObservation::Performing(effect) => {
            let phase = effect.action.words();
            let news = match effect.action {
                GoalAction::Wait { .. } => News::Waits { phase },
                _ => News::Began { phase },
            };
            live_view::tell(id, news);
        }
        DriveObservation::Activity(activity) => {
            if let Some(news) = news(activity) {
                live_view::tell(id, news);
            }
        }
    }
}

/// Tells whether what was used up to an event is part of the goal's account with it.
const fn is_counted(event: &GoalEvent) -> bool {
    matches!(
        event,
        GoalEvent::EffectProgressed { .. }
            | GoalEvent::SetupEnded { .. }
            | GoalEvent::WorkspaceCreated { .. }
            | GoalEvent::BaselineEnded { .. }
            | GoalEvent::AgentEnded { .. }
            | GoalEvent::ProviderFailed { .. }
            | GoalEvent::CandidateCommitted { .. }
            | GoalEvent::VerifyEnded { .. }
            | GoalEvent::JudgeEnded { .. }
            | GoalEvent::JudgeFailed { .. }
            | GoalEvent::DistillEnded { .. }
            | GoalEvent::EffectCancelled { .. }
    )
}

/// Returns what the live view is told of an activity; `None` for what only lines tell.
pub(crate) fn news(activity: &Activity) -> Option<News> {
    Some(match activity {
        Activity::Tool { name, detail } => News::Call {
            name: name.clone(),
            detail: detail.clone(),
        },
        Activity::Text { text } => News::Said { text: text.clone() },
        Activity::Used(usage) => News::Used(*usage),
        Activity::Verifying { command } => News::Call {
            name: "verify".to_owned(),
            detail: command.clone(),
        },
        Activity::Note { .. } => return None,
    })
}

/// Returns an event of a goal or a workflow as one JSON object, which says by `kind` whose it is.
pub(crate) fn event_json<E: Serialize>(
    kind: &str,
    id: &impl fmt::Display,
    logged: &EventRecord<E>,
) -> serde_json::Value {
    let mut value = serde_json::to_value(&logged.event).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert(kind.to_owned(), json!(id.to_string()));
        object.insert("seq".to_owned(), json!(logged.seq));
        object.insert("at_ms".to_owned(), json!(logged.at_ms));
        object.insert("actor".to_owned(), json!(logged.actor));
    }
    value
}

fn activity_json(id: &GoalId, activity: &Activity) -> serde_json::Value {
    let (kind, text) = match activity {
        Activity::Tool { name, detail } => ("tool", format!("{name} {detail}")),
        Activity::Text { text } => ("text", text.clone()),
        Activity::Used(usage) => {
            return json!({"type": "activity", "goal": id.to_string(), "kind": "used",
                "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens});
        }
        Activity::Verifying { command } => ("verifying", command.clone()),
        Activity::Note { text } => ("note", text.clone()),
    };
    json!({"type": "activity", "goal": id.to_string(), "kind": kind, "text": harmless(&text)})
}
