//! What a supervisor shows: a live table on a terminal, one line for each change otherwise.
//!
//! With `--json` each change, and each event of a goal that is driven here, is one line on standard
//! output. Knows where goals stand, and not what is done about it.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::id::GoalId;
use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_goal::record::drive::DriveObservation;
use kapi_goal::rules::effect::{GoalAction, GoalEffect};
use kapi_machine::watch::Activity;
use kapi_status::file::timestamp;
use kapi_task::rules::admission::Waits;
use kapi_task::rules::loop_run::RunTrigger;
use kapi_task::rules::task::KernelTask;
use kapi_task::rules::task_state::KernelTaskState;
use kapi_wire::kernel::task::status_word;
use serde_json::json;

use crate::event_words::first_line;
use crate::progress::event_json;
use crate::ui::{Format, Ui};

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
    /// What a goal that is driven here does right now; only on the live table.
    detail: String,
}

/// The rows of all goals.
#[derive(Debug)]
pub(super) struct Board {
    ui: Ui,
    rows: BTreeMap<GoalId, BoardRow>,
    /// Tasks that have not ended, a line each.
    tasks: BTreeMap<KernelTaskId, String>,
    /// What tasks wait for, as it was told last.
    waits: BTreeSet<String>,
    /// The loops that are due next.
    upcoming: Vec<(i64, String)>,
    /// What is wrong with files, as it was told last.
    faults: Vec<String>,
    /// Lines of the table that stands on the terminal.
    shown: Vec<String>,
}

impl Board {
    pub(super) const fn new(ui: Ui) -> Self {
        Self {
            ui,
            rows: BTreeMap::new(),
            tasks: BTreeMap::new(),
            waits: BTreeSet::new(),
            upcoming: Vec::new(),
            faults: Vec::new(),
            shown: Vec::new(),
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
        let detail = String::new();
        let row = BoardRow {
            state,
            text,
            detail,
        };
        self.rows.insert(id.clone(), row);
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
        match seen {
            DriveObservation::Recorded(logged) => {
                if self.ui.format == Format::Json {
                    self.ui.json(&event_json("goal", id, logged));
                }
            }
            DriveObservation::Performing(effect) => {
                self.put(id, BoardStatus::DrivenHere, effect_words(effect));
            }
            DriveObservation::Activity(activity) => {
                if let (Some(row), Some(detail)) = (self.rows.get_mut(id), detail(activity)) {
                    row.detail = detail;
                }
            }
        }
    }

    /// Puts a task where it stands, and says so.
    pub(super) fn put_task(&mut self, task: &KernelTask) {
        let id = task.id;
        let of_loop = task.loop_run().map(|run| run.name().to_string());
        if task.state.is_ended() {
            self.tasks.remove(&id);
        }
        let text = task_words(task);
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "task_changed",
                "id": id.to_string(),
                "status": status_word(task.state),
                "state": task.state.to_string(),
                "loop": of_loop,
                "text": text,
            })),
            Format::Human if self.ui.is_live() && !task.state.is_ended() => {}
            // Said once for all that wait for the same.
            Format::Human if task.state == KernelTaskState::Pending => {}
            Format::Human if self.ui.is_live() => self.say(&format!("{id}  {text}")),
            Format::Human => self.ui.line(&format!("{id}  {text}")),
        }
        if !task.state.is_ended() {
            self.tasks.insert(id, format!("{id}  {text}"));
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
            if is_news && self.ui.format == Format::Human && !self.ui.is_live() {
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
    pub(super) fn set_off(&mut self, name: &LoopName, trigger: &RunTrigger, what: &str) {
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "loop_due",
                "loop": name.to_string(),
                "trigger": trigger.kind(),
                "source": trigger.source(),
                "text": what,
            })),
            Format::Human if self.ui.is_live() => self.say(&format!("loop {name}  {what}")),
            Format::Human => self.ui.line(&format!("loop {name}  {what}")),
        }
    }

    /// Puts the loops that are due next.
    pub(super) fn put_upcoming(&mut self, upcoming: Vec<(i64, String)>) {
        self.upcoming = upcoming;
    }

    /// Says where calls are taken.
    pub(super) fn listening(&mut self, address: &str) {
        match self.ui.format {
            Format::Json => self
                .ui
                .json(&json!({"type": "listening", "address": address})),
            Format::Human => self.say(&format!("listening for webhook calls on {address}")),
        }
    }

    /// Says that somebody called.
    pub(super) fn called(&mut self, name: &LoopName, n_loops: usize) {
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "webhook_called", "name": name, "loops": n_loops,
            })),
            Format::Human => self.say(&format!("called: {name}, for {n_loops} loops")),
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

    /// Brings the table on the terminal up to date.
    pub(super) fn show(&mut self) {
        if !self.ui.is_live() {
            return;
        }
        let width = self.rows.keys().map(|id| id.to_string().len()).max();
        let width = width.unwrap_or(0);
        let rows = self.rows.iter();
        let rows = rows.filter(|(_, row)| row.state != BoardStatus::Ended);
        let mut lines: Vec<String> = rows
            .map(|(id, row)| {
                let id = id.to_string();
                let detail = if row.detail.is_empty() {
                    String::new()
                } else {
                    format!(" · {}", row.detail)
                };
                format!("{id:width$}  {}{detail}", row.text)
            })
            .collect();
        lines.extend(self.tasks.values().cloned());
        lines.extend(
            self.upcoming
                .iter()
                .map(|(at_ms, name)| format!("loop {name}  due {}", timestamp(*at_ms))),
        );
        if lines != self.shown {
            self.ui.live_table(&lines, self.shown.len());
            self.shown = lines;
        }
    }

    /// Says something beside the table.
    pub(super) fn say(&mut self, text: &str) {
        self.clear();
        self.ui.say(text);
    }

    /// Takes the table from the terminal.
    pub(super) fn clear(&mut self) {
        if self.ui.is_live() {
            self.ui.live_table(&[], self.shown.len());
        }
        self.shown.clear();
    }

    fn announce(&mut self, id: &GoalId, state: BoardStatus, text: &str) {
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "standing",
                "goal": id.to_string(),
                "standing": state.as_str(),
                "text": text,
            })),
            // The table shows the rest.
            Format::Human if self.ui.is_live() => {
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

fn detail(activity: &Activity) -> Option<String> {
    match activity {
        Activity::Tool { name, detail } => Some(format!("{name} {}", first_line(detail))),
        Activity::Text { text } | Activity::Note { text } => Some(first_line(text)),
        Activity::Verifying { command } => Some(first_line(command)),
        Activity::Used(_) => None,
    }
}
