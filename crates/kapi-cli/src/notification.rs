//! Telling a person who does not look on that work has ended, or that it waits for them.
//!
//! What is run are the person's own commands, on the host and outside every sandbox. A command that
//! fails or takes too long is a note: it changes nothing of the work and of the exit code.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use kapi_core::quote::visible_line;
use kapi_goal::rules::event::Stop;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::words;
use kapi_launch::plan::LaunchPlan;
use kapi_launch::result::LaunchResult;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};
use kapi_task::rules::task::KernelTask;
use kapi_workflow::rules::state::Workflow;
use serde::Serialize;

use crate::config::Config;
use crate::context::Context;
use crate::event_words::first_line;
use crate::workflow::words as workflow_words;

/// The longest that one command may take.
const DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of its output that a note shows.
const OUTPUT_BYTES_MAX: usize = 400;

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NotificationEvent {
    /// The work has ended, well or not.
    Done,
    /// It waits for its person.
    Waiting,
}

impl NotificationEvent {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Waiting => "waiting",
        }
    }
}

/// What a person is told; a command gets it as JSON on its standard input.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Notification {
    /// What has happened.
    pub(crate) event: NotificationEvent,
    /// What it happened to: `goal`, `workflow`, `task` or `launch`.
    pub(crate) kind: &'static str,
    /// Its whole name.
    pub(crate) id: String,
    /// How it is typed: `kapi show <reference>`.
    pub(crate) reference: String,
    /// Its status, as `kapi status --json` has it.
    pub(crate) status: String,
    /// Why, or what is waited for, in a line.
    pub(crate) text: String,
    /// The project.
    pub(crate) project: PathBuf,
    /// The branch that holds the result, if there is one.
    pub(crate) branch: Option<String>,
    /// The commit of the result, if there is one.
    pub(crate) commit: Option<String>,
}

/// Tells the person, by whatever they chose for this.
pub(crate) fn send(context: &Context, config: &Config, notification: &Notification) {
    let (flags, table) = (&context.notify, &config.notify);
    let command = match notification.event {
        NotificationEvent::Done => flags.on_done.as_ref().or(table.on_done.as_ref()),
        NotificationEvent::Waiting => flags.on_waiting.as_ref().or(table.on_waiting.as_ref()),
    };
    if let Some(command) = command {
        let args = vec!["-c".into(), command.into()];
        run(context, notification, "sh", args);
    }
    if table.desktop {
        let args = vec![
            "--app-name=kapi".into(),
            "--".into(),
            notification.title().into(),
            visible_line(&notification.text).into(),
        ];
        run(context, notification, "notify-send", args);
    }
}

/// Tells of a goal that came to rest; nothing of one that goes on by itself or that its person left.
pub(crate) fn of_goal(context: &Context, config: &Config, goal: &Goal, project: PathBuf) {
    let event = match goal.status {
        GoalStatus::Done
        | GoalStatus::Unverified
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => NotificationEvent::Done,
        GoalStatus::Waiting if !goal.waits_for_person() => return,
        GoalStatus::Setup | GoalStatus::Active => return,
        GoalStatus::Proposed
        | GoalStatus::Waiting
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused => NotificationEvent::Waiting,
    };
    if matches!(goal.stop, Some(Stop::Interrupted)) {
        return;
    }
    let notification = Notification {
        event,
        kind: "goal",
        id: goal.id.to_string(),
        reference: goal.id.reference(),
        status: goal.status.to_string(),
        text: words::reason(goal).unwrap_or_else(|| goal.contract.intent.clone()),
        project,
        branch: goal.result.as_ref().map(|_| goal.contract.branch.clone()),
        commit: goal.result.clone(),
    };
    send(context, config, &notification);
}

/// Tells of a workflow that came to rest.
pub(crate) fn of_workflow(
    context: &Context,
    config: &Config,
    workflow: &Workflow,
    project: PathBuf,
) {
    let rules = workflow.body.rules();
    let is_waiting =
        workflow.pending.is_some() || workflow.blocked.is_some() || rules.open_question().is_some();
    let event = match (workflow.status.is_terminal(), is_waiting) {
        (true, _) => NotificationEvent::Done,
        (false, true) => NotificationEvent::Waiting,
        (false, false) => return,
    };
    let blocked = workflow
        .blocked
        .as_ref()
        .map(|blocked| blocked.reason.clone());
    let notification = Notification {
        event,
        kind: "workflow",
        id: workflow.id.to_string(),
        reference: workflow.id.reference(),
        status: workflow.status.as_str().to_owned(),
        text: blocked.unwrap_or_else(|| workflow_words::state(workflow)),
        project,
        branch: rules.branch().map(|branch| branch.name.clone()),
        commit: None,
    };
    send(context, config, &notification);
}

/// Tells of a task that has ended.
pub(crate) fn of_task(context: &Context, config: &Config, task: &KernelTask, project: PathBuf) {
    let notification = Notification {
        event: NotificationEvent::Done,
        kind: "task",
        id: task.id.to_string(),
        reference: task.id.to_string(),
        status: task.state.to_string(),
        text: first_line(&task.request.description),
        project,
        branch: None,
        commit: None,
    };
    send(context, config, &notification);
}

/// Tells of a launch that has ended.
pub(crate) fn of_launch(
    context: &Context,
    config: &Config,
    plan: &LaunchPlan,
    launched: &LaunchResult,
) {
    let id = plan.location.id().as_str();
    let error = launched.error.as_ref().map(|error| error.message.clone());
    let notification = Notification {
        event: NotificationEvent::Done,
        kind: "launch",
        id: id.to_owned(),
        reference: format!("launch/{id}"),
        status: format!("exit code {}", launched.exit_code),
        text: error.unwrap_or_else(|| first_line(&launched.message)),
        project: plan.project.clone(),
        branch: plan.branch.as_ref().map(|branch| branch.name.clone()),
        commit: launched.commit.clone(),
    };
    send(context, config, &notification);
}

impl Notification {
    fn title(&self) -> String {
        format!("{} {}: {}", self.kind, self.reference, self.status)
    }

    /// Returns what a command finds in its environment.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        let text = |name: &str, value: &str| (name.into(), value.into());
        vec![
            text("KAPI_EVENT", self.event.as_str()),
            text("KAPI_KIND", self.kind),
            text("KAPI_ID", &self.id),
            text("KAPI_REFERENCE", &self.reference),
            text("KAPI_STATUS", &self.status),
            text("KAPI_TITLE", &self.title()),
            text("KAPI_TEXT", &visible_line(&self.text)),
            text("KAPI_BRANCH", self.branch.as_deref().unwrap_or_default()),
            text("KAPI_COMMIT", self.commit.as_deref().unwrap_or_default()),
            ("KAPI_PROJECT".into(), self.project.clone().into_os_string()),
        ]
    }
}

/// Runs a program with the notification, and says what went wrong.
fn run(context: &Context, notification: &Notification, name: &str, args: Vec<OsString>) {
    let say = |what: &str| {
        context.ui.clear_live();
        let event = notification.event.as_str();
        context.ui.say(&format!(
            "note: the notification of `{event}` failed: {what}"
        ));
    };
    let path = context.env.get(OsStr::new("PATH")).cloned();
    let Some(program) = process::find_in_path(OsStr::new(name), &path.unwrap_or_default()) else {
        return say(&format!("there is no {name} in PATH"));
    };
    let mut env = context.env.clone();
    env.extend(notification.variables());
    let finished = process::run_quiet(Program {
        path: program,
        args,
        env,
        cwd: notification.project.clone(),
        stdin: serde_json::to_vec(notification).unwrap_or_default(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: DEADLINE,
            idle: None,
            tail_bytes_max: OUTPUT_BYTES_MAX,
            line_bytes_max: OUTPUT_BYTES_MAX,
        },
    });
    match finished {
        Err(error) => say(&format!("failed to {error}")),
        Ok(finished) => match finished.end {
            ProcessEnd::Exited(0) => {}
            ProcessEnd::DeadlinePassed => {
                say(&format!("it took more than {} s", DEADLINE.as_secs()));
            }
            ProcessEnd::Exited(code) => {
                let said = visible_line(finished.stderr.text().trim());
                say(&format!("exit code {code} {said}"));
            }
            ProcessEnd::Signaled(_) | ProcessEnd::IdlePassed | ProcessEnd::Cancelled => {
                say("it was ended by a signal");
            }
        },
    }
}
