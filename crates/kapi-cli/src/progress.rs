//! What a person sees while a goal is driven: lines for events, one live line for the rest.
//!
//! With `--json` each event and activity is one line on standard output instead.

use std::time::Instant;

use kapi_core::id::GoalId;
use kapi_core::text::agent_name;
use kapi_core::usage::Usage;
use kapi_goal::record::drive::DriveObservation;
use kapi_goal::rules::effect::{AgentPurpose, GoalAction, GoalEffect};
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::state::Goal;
use kapi_machine::logged::EventRecord;
use kapi_machine::watch::Activity;
use serde::Serialize;
use serde_json::json;

use crate::amount;
use crate::event_words::{describe, first_line};
use crate::ui::{Format, Ui, harmless};

/// Progress of one goal.
#[derive(Debug)]
pub(crate) struct GoalProgressLine {
    ui: Ui,
    id: GoalId,
    /// What each line begins with where several goals are shown at once.
    lane: Option<String>,
    began: Instant,
    turn: u32,
    phase: String,
    detail: String,
    used: Usage,
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
            began: Instant::now(),
            turn: 0,
            phase: String::new(),
            detail: String::new(),
            used: Usage::default(),
        }
    }

    /// Shows one thing that happened.
    pub(crate) fn show(&mut self, seen: DriveObservation) {
        match self.ui.format {
            Format::Json => self.show_json(&seen),
            Format::Human => self.show_human(seen),
        }
    }

    /// Shows that the goal is parked.
    pub(crate) fn parked(&mut self, until: &str) {
        "parked".clone_into(&mut self.phase);
        self.detail = format!("until {until}");
        self.live();
    }

    /// Removes the live line.
    pub(crate) fn end(&self) {
        self.ui.clear_live();
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

    fn show_human(&mut self, seen: DriveObservation) {
        match seen {
            DriveObservation::Recorded(logged) => self.recorded(&logged.event),
            DriveObservation::Performing(effect) => self.performing(&effect),
            DriveObservation::Activity(activity) => self.activity(&activity),
        }
        self.live();
    }

    fn recorded(&mut self, event: &GoalEvent) {
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
                self.ui.clear_live();
                self.say(&format!("  {}", describe(event)));
            }
        }
    }

    fn performing(&mut self, effect: &GoalEffect) {
        self.detail.clear();
        if let GoalAction::RunAgent(task) = &effect.action {
            self.turn = task.turn;
            self.ui.clear_live();
            let agent = agent_name(&task.agent);
            self.say(&match task.purpose {
                AgentPurpose::Setup => format!("Setup: {agent} is drafting a contract"),
                AgentPurpose::Work => format!("Turn {}: {agent} is working", task.turn),
                AgentPurpose::Distill => format!("Done: {agent} is summarizing what it learned"),
            });
        }
        self.phase = effect.action.words();
    }

    fn activity(&mut self, activity: &Activity) {
        match activity {
            Activity::Tool { name, detail } => self.detail = format!("{name} {detail}"),
            Activity::Text { text } => self.detail = first_line(text),
            Activity::Used(usage) => self.used.add(usage),
            Activity::Verifying { command } => self.detail.clone_from(command),
            Activity::Note { text } => {
                self.ui.clear_live();
                self.say(&format!("  note: {}", first_line(text)));
            }
        }
        if !self.ui.is_live()
            && let Activity::Tool { name, detail } = activity
        {
            self.say(&format!("    {name} {detail}"));
        }
    }

    fn say(&self, text: &str) {
        let lane = self.lane.as_deref().unwrap_or_default();
        self.ui.say(&format!("{lane}{text}"));
    }

    fn live(&self) {
        // Lanes of a race would take each other's line.
        if self.lane.is_some() {
            return;
        }
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut parts = vec![format!("turn {}", self.turn), self.phase.clone()];
        if !self.detail.is_empty() {
            parts.push(first_line(&self.detail));
        }
        if self.used.tokens() > 0 {
            parts.push(format!("{} tokens", amount::tokens(self.used.tokens())));
        }
        parts.extend(amount::cost(&self.used));
        parts.push(amount::duration(elapsed));
        self.ui.live(&parts.join(" · "));
    }
}

/// Returns an event of a goal or a workflow as one JSON object, which says by `kind` whose it is.
pub(crate) fn event_json<E: Serialize>(
    kind: &str,
    id: &GoalId,
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
