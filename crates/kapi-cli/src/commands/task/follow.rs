//! What a person who looks on is told of a task: a line whenever it stands elsewhere.

use kapi_task::rules::task::{Phase, Task};
use kapi_task::rules::task_state::State;
use kapi_wire::kernel::task::status_word;
use serde_json::json;

use crate::kernel::foreground::Seen;
use crate::ui::{Format, Ui};

/// Tells how a task gets on.
#[derive(Debug)]
pub(crate) struct Follower {
    ui: Ui,
    told: Option<Standing>,
    n_phases: usize,
}

/// Where a task stands, as far as it is worth a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    state: State,
    attempts: u32,
    holder: Option<String>,
    waits: Option<String>,
    is_unwanted: bool,
    n_phases: usize,
}

impl Follower {
    /// Begins with nothing told.
    pub(crate) const fn new(ui: Ui) -> Self {
        Self {
            ui,
            told: None,
            n_phases: 0,
        }
    }

    /// Tells whether nothing was told so far.
    pub(crate) const fn is_first(&self) -> bool {
        self.told.is_none()
    }

    /// Tells where the task stands, if that has changed.
    pub(crate) fn show(&mut self, seen: &Seen<'_>) {
        let task = seen.task;
        let standing = Standing {
            state: task.state,
            attempts: task.attempts,
            holder: task.lease.as_ref().map(|lease| lease.holder.to_string()),
            // How long a pause still is changes all the time.
            waits: seen.waits.clone().filter(|_| task.setback.is_none()),
            is_unwanted: task.cancelling.is_some(),
            n_phases: task.phases.len(),
        };
        if self.told.as_ref() == Some(&standing) || task.state.is_ended() {
            return;
        }
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "task_changed",
                "id": task.id.to_string(),
                "status": status_word(task.state),
                "state": task.state.to_string(),
                "attempt": task.attempts,
                "holder": standing.holder,
                "waits": seen.waits,
                "phase": task.phase().map(Phase::name),
                "phases": task.phases,
                "setback": task.setback,
            })),
            Format::Human => self.tell(task, seen.waits.as_deref()),
        }
        self.n_phases = task.phases.len();
        self.told = Some(standing);
    }

    fn tell(&self, task: &Task, waits: Option<&str>) {
        let id = task.id;
        for record in task.phases.iter().skip(self.n_phases) {
            let detail = record.detail.as_deref().unwrap_or("done");
            self.ui
                .say(&format!("{id}  {}: {detail}", record.phase.name()));
        }
        let has_moved = self.told.as_ref().is_none_or(|told| {
            told.state != task.state
                || told.attempts != task.attempts
                || told.waits.as_deref() != waits
        });
        if task.cancelling.is_some() {
            self.ui.say(&format!("{id}  is being stopped"));
        } else if has_moved {
            self.ui.say(&format!("{id}  {}", words(task, waits)));
        }
    }
}

fn words(task: &Task, waits: Option<&str>) -> String {
    let holder = task.lease.as_ref().map(|lease| lease.holder.to_string());
    let holder = holder.unwrap_or_default();
    match task.state {
        State::Pending => {
            let why = task.setback.as_ref().map(|why| format!(" ({why})"));
            format!(
                "pending: {}{}",
                waits.unwrap_or("waiting for a worker"),
                why.unwrap_or_default()
            )
        }
        State::Leased => format!("is about to start on {holder}"),
        State::Running => format!("is running on {holder}, attempt {}", task.attempts),
        State::Completed | State::Failed | State::Cancelled => "has ended".to_owned(),
    }
}
