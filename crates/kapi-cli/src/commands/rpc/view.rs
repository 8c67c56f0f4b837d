//! A goal in the words and shapes that its session's host shows.

use std::path::PathBuf;

use kapi_core::id::GoalId;
use kapi_core::text::shortened;
use kapi_goal::rules::plan::task::TaskStatus;
use kapi_goal::rules::state::{Goal, GoalStage, GoalStatus};
use kapi_goal::rules::words;
use kapi_goal::tools::GoalTool;
use kapi_wire::rpc::{PersonReply, ReplyLevel, SessionGoalView};

use crate::commands::goal::answer;
use crate::error::Error;
use crate::ui::harmless;

/// Characters of a line of the widget.
const LINE_CHARS_MAX: usize = 100;
/// Characters of the title.
const TITLE_CHARS_MAX: usize = 40;
/// Tasks of the plan that the widget shows.
const TASKS_MAX: usize = 5;
/// Files that a message names.
const FILES_MAX: usize = 5;

/// Returns where a goal stands.
pub(super) fn of(goal: &Goal) -> SessionGoalView {
    let is_active = goal.status == GoalStatus::Active;
    let intent = goal.contract.intent.trim();
    let short = shortened(intent.lines().next().unwrap_or_default(), TITLE_CHARS_MAX);
    SessionGoalView {
        id: goal.id.to_string(),
        status: goal.status.as_str().to_owned(),
        line: answer::line(goal),
        title: is_active.then(|| format!("kapi {}: {short}", goal.id.reference())),
        working: is_active.then(|| format!("pursuing: {short}")),
        widget: widget(goal),
        tools: tools(goal),
        is_going_on: matches!(goal.status, GoalStatus::Setup | GoalStatus::Active),
        is_over: is_over(goal),
    }
}

/// Returns what stands for a goal whose state cannot be read and that the session lets go of.
pub(super) fn lost(id: &GoalId) -> SessionGoalView {
    SessionGoalView {
        id: id.to_string(),
        status: "damaged".to_owned(),
        line: String::new(),
        title: None,
        working: None,
        widget: Vec::new(),
        tools: Vec::new(),
        is_going_on: false,
        is_over: true,
    }
}

/// Tells whether nothing more is asked of the session.
pub(super) fn is_over(goal: &Goal) -> bool {
    goal.status.is_terminal() && !goal.is_driven()
}

/// Returns the tools that mean something now. Not every Pi takes notice of others before the next run, so
/// they are the same for as long as the goal is worked on.
fn tools(goal: &Goal) -> Vec<String> {
    let tools: &[GoalTool] = match goal.status {
        GoalStatus::Setup | GoalStatus::Proposed => &[GoalTool::Set],
        GoalStatus::Active => &[
            GoalTool::Plan,
            GoalTool::Replan,
            GoalTool::TaskUpdate,
            GoalTool::Progress,
            GoalTool::Complete,
            GoalTool::Block,
            GoalTool::Wait,
        ],
        GoalStatus::Done | GoalStatus::Unverified if goal.stage == GoalStage::Distill => {
            &[GoalTool::Distill]
        }
        GoalStatus::Waiting
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused
        | GoalStatus::Done
        | GoalStatus::Unverified
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => &[],
    };
    tools.iter().map(|tool| tool.name().to_owned()).collect()
}

fn widget(goal: &Goal) -> Vec<String> {
    if is_over(goal) || goal.status == GoalStatus::Setup {
        return Vec::new();
    }
    let contract = &goal.contract;
    let line =
        |name: &str, text: &str| shortened(&format!("{name:<10} {}", text.trim()), LINE_CHARS_MAX);
    let mut lines = vec![
        line(&format!("Goal {}", goal.id.reference()), &contract.intent),
        line("done when", &contract.done_criteria),
    ];
    if contract.is_verified() {
        lines.push(line("verify", &contract.verify.join(" && ")));
    }
    if !contract.working.ask_before.is_empty() {
        lines.push(line("ask first", &contract.working.ask_before.join(", ")));
    }
    if let Some(plan) = &goal.journey.plan {
        let open = plan.tasks().iter().filter(|task| !task.status.has_ended());
        lines.extend(open.take(TASKS_MAX).map(|task| {
            let mark = if task.status == TaskStatus::InProgress {
                ">"
            } else {
                "·"
            };
            line(mark, &format!("{} {}", task.id, task.title))
        }));
    }
    lines
}

/// How the person's files stand to what was proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CheckoutFiles {
    /// They are the same.
    Same,
    /// These are others.
    Others(Vec<PathBuf>),
    /// Nobody knows.
    Unknown,
}

impl CheckoutFiles {
    /// Says it behind a proved commit.
    fn words(&self) -> String {
        match self {
            Self::Same => "; your files hold the same.".to_owned(),
            Self::Unknown => ".".to_owned(),
            Self::Others(paths) => {
                let names = paths.iter().take(FILES_MAX);
                let mut names: Vec<String> = names
                    .map(|path| harmless(&path.display().to_string()))
                    .collect();
                let n_more = paths.len().saturating_sub(FILES_MAX);
                if n_more > 0 {
                    names.push(format!("{n_more} more"));
                }
                format!(
                    ".\nYour files are no longer the same: {} changed after Kapi had taken them.",
                    names.join(", ")
                )
            }
        }
    }
}

/// Returns what the person is told of a goal that goes no further by itself.
pub(super) fn rest(goal: &Goal, files: &CheckoutFiles) -> (String, ReplyLevel) {
    let reason = words::reason(goal).map_or_else(String::new, |reason| format!(": {reason}"));
    let id = &goal.id;
    match goal.status {
        GoalStatus::Done => {
            let commit = goal.result.as_deref().unwrap_or_default();
            let text = format!(
                "Goal {id} is done{reason}.\nThe proved commit is {commit}{}",
                files.words()
            );
            let level = if matches!(files, CheckoutFiles::Others(_)) {
                ReplyLevel::Warning
            } else {
                ReplyLevel::Info
            };
            (text, level)
        }
        GoalStatus::Unverified => (
            format!("Goal {id} is done (unverified){reason}."),
            ReplyLevel::Warning,
        ),
        GoalStatus::Setup => (
            format!(
                "Goal {id} is being set up: answer the model, or drop it with /until-done cancel."
            ),
            ReplyLevel::Info,
        ),
        GoalStatus::Proposed => (
            format!(
                "Goal {id} waits for your approval: /until-done detail shows its contract, \
                 /until-done approve approves it."
            ),
            ReplyLevel::Warning,
        ),
        GoalStatus::Active => (
            format!("Goal {id} waits for you: /until-done resume continues it."),
            ReplyLevel::Info,
        ),
        GoalStatus::Waiting => (format!("Goal {id} waits{reason}."), ReplyLevel::Info),
        GoalStatus::Paused | GoalStatus::Blocked | GoalStatus::Stalled => (
            format!(
                "Goal {id} is {}{reason}.\nContinue with /until-done resume, or end it with /until-done \
                 cancel.",
                goal.status
            ),
            ReplyLevel::Warning,
        ),
        GoalStatus::Impossible | GoalStatus::Cancelled => (
            format!("Goal {id} is {}{reason}.", goal.status),
            ReplyLevel::Warning,
        ),
    }
}

/// Returns an answer that only tells something.
pub(super) fn told(text: &str) -> PersonReply {
    PersonReply {
        text: Some(text.trim_end().to_owned()),
        ..PersonReply::default()
    }
}

/// Returns an error in the words of a person's screen.
pub(super) fn error_text(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{}\n{hint}", error.message),
        None => error.message.clone(),
    }
}
