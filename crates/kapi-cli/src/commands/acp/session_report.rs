//! What an editor is told of a goal while it is followed: messages, tool calls, the plan.

use std::cell::Cell;

use kapi_goal::record::drive::DriveObservation;
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::plan::Plan;
use kapi_goal::rules::plan::task::TaskStatus;
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::words;
use kapi_machine::watch::Activity;
use serde_json::{Value, json};

use crate::commands::acp::editor::Editor;
use crate::commands::acp::session::EditorSession;
use crate::event_words::describe;
use crate::report::verify_line;
use crate::ui::harmless;

/// What one session of an editor is told.
pub(super) struct SessionReport<'a> {
    editor: &'a Editor,
    session: &'a EditorSession,
    n_calls: Cell<u64>,
}

impl<'a> SessionReport<'a> {
    /// Begins with nothing told.
    pub(super) const fn new(editor: &'a Editor, session: &'a EditorSession) -> Self {
        Self {
            editor,
            session,
            n_calls: Cell::new(0),
        }
    }

    /// Says a paragraph.
    pub(super) fn say(&self, text: &str) {
        self.chunk("agent_message_chunk", &format!("{}\n\n", harmless(text)));
    }

    /// Tells one thing that happened; `load` is asked for the goal as it is now.
    pub(super) fn show(&self, seen: &DriveObservation, load: &dyn Fn() -> Option<Goal>) {
        match seen {
            DriveObservation::Recorded(logged) => self.recorded(&logged.event, load),
            DriveObservation::Performing(_) => {}
            DriveObservation::Activity(activity) => self.activity(activity),
        }
    }

    fn recorded(&self, event: &GoalEvent, load: &dyn Fn() -> Option<Goal>) {
        if is_of_plan(event) {
            load().iter().for_each(|goal| self.plan(goal));
        } else if is_told(event) {
            self.say(&describe(event));
        }
    }

    /// Says how a goal came out, with the evidence.
    pub(super) fn outcome(&self, goal: &Goal) {
        let mut lines = vec![format!("**Goal {}: {}**", goal.id, goal.status)];
        if let Some(reason) = words::reason(goal) {
            lines.push(format!("- because {reason}"));
        }
        if let Some(commit) = &goal.result {
            lines.push(format!("- commit `{commit}` on `{}`", goal.contract.branch));
        }
        let runs = goal.verify.iter().flat_map(|report| &report.runs);
        lines.extend(runs.map(|run| format!("- {}", verify_line(run))));
        if let Some(hint) = words::hint(goal) {
            lines.push(format!("- hint: {hint}"));
        }
        let next = words::next_commands(goal);
        lines.extend(next.iter().map(|command| format!("- next: `{command}`")));
        self.say(&lines.join("\n"));
    }

    fn activity(&self, activity: &Activity) {
        match activity {
            Activity::Tool { name, detail } => {
                let title = format!("{name} {detail}");
                self.call(title.trim_end(), kind_of(name));
            }
            Activity::Verifying { command } => self.call(&format!("verify: {command}"), "execute"),
            Activity::Text { text } => self.say(text),
            Activity::Note { text } => {
                self.chunk("agent_thought_chunk", &format!("{}\n", harmless(text)));
            }
            Activity::Used(_) => {}
        }
    }

    /// Tells a call of which only the beginning is known.
    fn call(&self, title: &str, kind: &str) {
        let number = self.n_calls.get() + 1;
        self.n_calls.set(number);
        self.update(&json!({
            "sessionUpdate": "tool_call",
            "toolCallId": format!("call-{number}"),
            "title": harmless(title),
            "kind": kind,
            "status": "completed",
        }));
    }

    fn plan(&self, goal: &Goal) {
        let tasks = goal.journey.plan.as_ref().map(Plan::tasks);
        let entries = tasks.into_iter().flatten().map(|task| {
            let status = match task.status {
                TaskStatus::Pending | TaskStatus::Blocked => "pending",
                TaskStatus::InProgress => "in_progress",
                TaskStatus::Done | TaskStatus::Skipped => "completed",
            };
            json!({"content": harmless(&task.title), "priority": "medium", "status": status})
        });
        let entries: Vec<Value> = entries.collect();
        self.update(&json!({"sessionUpdate": "plan", "entries": entries}));
    }

    fn chunk(&self, kind: &str, text: &str) {
        self.update(&json!({
            "sessionUpdate": kind,
            "content": {"type": "text", "text": text},
        }));
    }

    fn update(&self, update: &Value) {
        self.editor.update(self.session.id(), update);
    }
}

/// Tells whether an event changes the plan.
const fn is_of_plan(event: &GoalEvent) -> bool {
    matches!(
        event,
        GoalEvent::PlanMade { .. } | GoalEvent::Replanned { .. } | GoalEvent::TaskUpdated { .. }
    )
}

/// Tells whether an event is worth a line in a conversation.
const fn is_told(event: &GoalEvent) -> bool {
    matches!(
        event,
        GoalEvent::WorkspaceCreated { .. }
            | GoalEvent::ProviderFailed { .. }
            | GoalEvent::CandidateCommitted { .. }
            | GoalEvent::VerifyEnded { .. }
            | GoalEvent::JudgeEnded { .. }
            | GoalEvent::JudgeFailed { .. }
            | GoalEvent::TurnEnded { .. }
            | GoalEvent::ProgressNoted { .. }
            | GoalEvent::ConsentAsked { .. }
            | GoalEvent::GoalParked { .. }
            | GoalEvent::GoalWoken { .. }
    )
}

/// Returns what the protocol calls the kind of a tool.
fn kind_of(name: &str) -> &'static str {
    match name.to_ascii_lowercase().as_str() {
        "bash" | "shell" | "run_shell_command" | "execute" => "execute",
        "edit" | "multiedit" | "write" | "write_file" | "replace" | "apply_patch" => "edit",
        "read" | "read_file" | "read_many_files" | "ls" | "list_directory" => "read",
        "grep" | "glob" | "find" | "search" | "search_file_content" => "search",
        _ => "other",
    }
}
