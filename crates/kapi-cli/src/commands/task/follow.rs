//! What a person who looks on is told of a task: a line whenever it stands elsewhere.

use kapi_task::rules::task::{KernelTask, LoopPhase};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_wire::kernel::task::status_word;
use serde_json::json;

use crate::kernel::foreground::TaskSnapshot;
use crate::ui::{Format, Ui};

/// Tells how a task gets on.
#[derive(Debug)]
pub(crate) struct Follower {
    ui: Ui,
    reported: Option<FollowStatus>,
    n_phases: usize,
}

/// Where a task stands, as far as it is worth a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FollowStatus {
    state: KernelTaskState,
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
            reported: None,
            n_phases: 0,
        }
    }

    /// Tells whether nothing was told so far.
    pub(crate) const fn is_first(&self) -> bool {
        self.reported.is_none()
    }

    /// Tells where the task stands, if that has changed.
    pub(crate) fn show(&mut self, seen: &TaskSnapshot<'_>) {
        let task = seen.task;
        let state = FollowStatus {
            state: task.state,
            attempts: task.attempts,
            holder: task.lease.as_ref().map(|lease| lease.holder.to_string()),
            // How long a pause still is changes all the time.
            waits: seen.waits.clone().filter(|_| task.retry_cause.is_none()),
            is_unwanted: task.cancelling.is_some(),
            n_phases: task.phases.len(),
        };
        if self.reported.as_ref() == Some(&state) || task.state.is_ended() {
            return;
        }
        match self.ui.format {
            Format::Json => self.ui.json(&json!({
                "type": "task_changed",
                "id": task.id.to_string(),
                "status": status_word(task.state),
                "state": task.state.to_string(),
                "attempt": task.attempts,
                "holder": state.holder,
                "waits": seen.waits,
                "phase": task.phase().map(LoopPhase::name),
                "phases": task.phases,
                "retry_cause": task.retry_cause,
            })),
            Format::Human => self.announce(task, seen.waits.as_deref()),
        }
        self.n_phases = task.phases.len();
        self.reported = Some(state);
    }

    fn announce(&self, task: &KernelTask, waits: Option<&str>) {
        let id = task.id;
        for record in task.phases.iter().skip(self.n_phases) {
            let detail = record.detail.as_deref().unwrap_or("done");
            self.ui
                .say(&format!("{id}  {}: {detail}", record.phase.name()));
        }
        let has_moved = self.reported.as_ref().is_none_or(|reported| {
            reported.state != task.state
                || reported.attempts != task.attempts
                || reported.waits.as_deref() != waits
        });
        if task.cancelling.is_some() {
            self.ui.say(&format!("{id}  is being stopped"));
        } else if has_moved {
            self.ui.say(&format!("{id}  {}", words(task, waits)));
        }
    }
}

fn words(task: &KernelTask, waits: Option<&str>) -> String {
    let holder = task.lease.as_ref().map(|lease| lease.holder.to_string());
    let holder = holder.unwrap_or_default();
    match task.state {
        KernelTaskState::Pending => {
            let why = task.retry_cause.as_ref().map(|why| format!(" ({why})"));
            format!(
                "pending: {}{}",
                waits.unwrap_or("waiting for a worker"),
                why.unwrap_or_default()
            )
        }
        KernelTaskState::Leased => format!("is about to start on {holder}"),
        KernelTaskState::Running => format!("is running on {holder}, attempt {}", task.attempts),
        KernelTaskState::Completed | KernelTaskState::Failed | KernelTaskState::Cancelled => {
            "has ended".to_owned()
        }
    }
}
