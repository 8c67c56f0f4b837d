//! What a supervisor shows: the live view at a terminal, one line for each change otherwise.
//!
//! With `--json` each change, and each event of a goal that is driven here, is one line on standard
//! output. Knows where goals stand, and not what is done about it.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::id::GoalId;
use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::text::counted;
use kapi_goal::record::drive::DriveObservation;
use kapi_goal::rules::effect::{GoalAction, GoalEffect};
use kapi_task::rules::admission::Waits;
use kapi_task::rules::loop_run::RunTrigger;
use kapi_task::rules::task::KernelTask;
use kapi_task::rules::task_state::KernelTaskState;
use kapi_wire::kernel::task::status_word;
use serde_json::json;

use crate::event_words::first_line;
use crate::progress::event_json;
use crate::ui::{Format, Ui};
use crate::{live_view, progress};

/// Where a goal stands, as a supervisor sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoardStatus {
    /// This process drives it.
    DrivenHere,
    /// Another process drives it.
    Driven,
    /// It is active, and is driven as soon as there is room.
    Due,
    /// It is parked, and somebody looks whether its wait is over.
    Parked,
    /// It rests until a person decides something.
    Person,
    /// It could not be driven or read; it is tried again.
    Failed,
    /// It has ended.
    Ended,
}

impl BoardStatus {
    const fn as_str(self) -> &'static str {
        match self {
            Self::DrivenHere => "driven_here",
            Self::Driven => "driven",
            Self::Due => "due",
            Self::Parked => "parked",
            Self::Person => "person",
            Self::Failed => "failed",
            Self::Ended => "ended",
        }
    }
}

/// One goal's row.
#[derive(Debug)]
struct BoardRow {
    state: BoardStatus,
    text: String,
}

/// The rows of all goals.
#[derive(Debug)]
pub(super) struct Board {
    ui: Ui,
    rows: BTreeMap<GoalId, BoardRow>,
    /// What tasks wait for, as it was told last.
    waits: BTreeSet<String>,
    /// What is wrong with files, as it was told last.
    faults: Vec<String>,
}

impl Board {
    pub(super) const fn new(ui: Ui) -> Self {
        Self {
            ui,
            rows: BTreeMap::new(),
            waits: BTreeSet::new(),
            faults: Vec::new(),
        }
    }

    /// Puts a goal where it stands, and says so if it stood elsewhere; tells whether it came there
    /// while it was watched.
    pub(super) fn put(&mut self, id: &GoalId, state: BoardStatus, text: String) -> bool {
        let known = self.rows.get(id);
        let is_new_word = match (known, state) {
            // What had ended before is not news.
            (None, BoardStatus::Ended) => return false,
            (Some(row), _) => row.state != state || row.text != text,
            (None, _) => true,
        };
        if !is_new_word {
            return false;
        }
        let has_come = known.is_some_and(|row| row.state != state);
        self.announce(id, state, &text);
        self.rows.insert(id.clone(), BoardRow { state, text });
        has_come
    }

    /// Returns what is said of a goal that is driven here.
    pub(super) fn driven_text(&self, id: &GoalId) -> String {
        let row = self.rows.get(id);
        let row = row.filter(|row| row.state == BoardStatus::DrivenHere);
        row.map_or_else(|| "begins".to_owned(), |row| row.text.clone())
    }

    /// Takes what happened to a goal that is driven here.
    pub(super) fn see(&mut self, id: &GoalId, seen: &DriveObservation) {
        progress::tell(id, seen);
        match seen {
            DriveObservation::Recorded(logged) => {
                if self.ui.format == Format::Json {
                    self.ui.json(&event_json("goal", id, logged));
                }
            }
            DriveObservation::Performing(effect) => {
                self.put(id, BoardStatus::DrivenHere, effect_words(effect));
            }
            DriveObservation::Activity(_) => {}
        }
    }

    /// Puts a task where it stands, and says so.
    pub(super) fn put_task(&self, task: &KernelTask) {
        let id = task.id;
        let of_loop = task.loop_run().map(|run| run.name().to_string());
        let text = task_words(task);
        live_view::changed();
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "task_changed",
                "id": id.to_string(),
                "status": status_word(task.state),
                "state": task.state.to_string(),
                "loop": of_loop,
                "text": text,
            })),
            Format::Human if live_view::is_open() && !task.state.is_ended() => {}
            // Said once for all that wait for the same.
            Format::Human if task.state == KernelTaskState::Pending => {}
            Format::Human if live_view::is_open() => self.say(&format!("{id}  {text}")),
            Format::Human => self.ui.line(&format!("{id}  {text}")),
        }
    }

    /// Says what tasks wait for, each reason once for as long as something waits for it.
    pub(super) fn put_waits(&mut self, waits: &BTreeMap<KernelTaskId, Waits>) {
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for why in waits.values() {
            *reasons.entry(why.to_string()).or_default() += 1;
        }
        for (why, n) in &reasons {
            let is_news = !self.waits.contains(why);
            if is_news && self.ui.format == Format::Human && !live_view::is_open() {
                let tasks = match n {
                    1 => "1 task is waiting".to_owned(),
                    n => format!("{n} tasks are waiting"),
                };
                self.ui.line(&format!("{tasks}: {why}"));
            }
        }
        self.waits = reasons.into_keys().collect();
    }

    /// Says what became of what sets a loop off.
    pub(super) fn set_off(&self, name: &LoopName, trigger: &RunTrigger, what: &str) {
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "loop_due",
                "loop": name.to_string(),
                "trigger": trigger.kind(),
                "source": trigger.source(),
                "text": what,
            })),
            Format::Human if live_view::is_open() => self.say(&format!("loop {name}  {what}")),
            Format::Human => self.ui.line(&format!("loop {name}  {what}")),
        }
    }

    /// Says where calls are taken.
    pub(super) fn listening(&self, address: &str) {
        match self.ui.format {
            Format::Json => self
                .ui
                .json(&json!({"type": "listening", "address": address})),
            Format::Human => self.say(&format!("listening for webhook calls on {address}")),
        }
    }

    /// Says that somebody called.
    pub(super) fn called(&self, name: &LoopName, n_loops: usize) {
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "webhook_called", "name": name, "loops": n_loops,
            })),
            Format::Human => {
                let loops = counted(n_loops, "loop");
                self.say(&format!("called: {name}, for {loops}"));
            }
        }
    }

    /// Says what is wrong with files, once.
    pub(super) fn faults(&mut self, faults: Vec<String>) {
        for fault in &faults {
            if !self.faults.contains(fault) {
                self.say(&format!("note: {fault}"));
            }
        }
        self.faults = faults;
    }

    /// Says something beside the changes.
    pub(super) fn say(&self, text: &str) {
        self.ui.say(text);
    }

    fn announce(&self, id: &GoalId, state: BoardStatus, text: &str) {
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "standing",
                "goal": id.to_string(),
                "standing": state.as_str(),
                "text": text,
            })),
            // The view shows the rest.
            Format::Human if live_view::is_open() => {
                if state == BoardStatus::Ended {
                    self.say(&format!("{id}  {text}"));
                }
            }
            Format::Human => self.ui.line(&format!("{id}  {text}")),
        }
    }
}

fn task_words(task: &KernelTask) -> String {
    let what = first_line(&task.request.description);
    let stands = match task.state {
        KernelTaskState::Pending => "waits",
        KernelTaskState::Leased | KernelTaskState::Running => "runs",
        KernelTaskState::Completed => "completed",
        KernelTaskState::Failed => "failed",
        KernelTaskState::Cancelled => "cancelled",
    };
    format!("{stands}: {what}")
}

fn effect_words(effect: &GoalEffect) -> String {
    let phase = effect.action.words();
    match &effect.action {
        GoalAction::RunAgent(task) => format!("turn {}: {phase}", task.turn),
        GoalAction::CreateWorkspace { .. }
        | GoalAction::Commit(_)
        | GoalAction::Baseline(_)
        | GoalAction::Verify(_)
        | GoalAction::Judge(_)
        | GoalAction::Publish { .. }
        | GoalAction::Wait { .. } => phase,
    }
}
