//! What is known of a goal: its contract, account and plan, as its log folds them.
//!
//! Reads no file: what it changed is looked up by the caller, who knows the repository.

use kapi_core::isolation::SandboxLevel;
use kapi_core::text::{agent_name, one_line};
use kapi_goal::rules::plan::Plan;
use kapi_goal::rules::plan::task::TaskStatus;
use kapi_goal::rules::state::{Goal, GoalStage, GoalStatus};
use kapi_goal::rules::words;

use crate::live_view::facts::{
    Account, ChangeFacts, Mood, RefusedFacts, SubjectFacts, SubjectVerbs, TaskFacts, TaskMark,
    TurnFacts, command_line,
};

/// Returns what is known of a goal; `driver` is who drives it, and `changes` what it changed.
pub(crate) fn facts(
    goal: &Goal,
    driver: Option<&str>,
    changes: Option<ChangeFacts>,
) -> SubjectFacts {
    let asked = goal.consent.asked.iter();
    let (budget, spent) = (&goal.budget, &goal.spent);
    SubjectFacts {
        id: goal.id.to_string(),
        reference: goal.id.reference(),
        kind: "goal",
        title: one_line(&goal.contract.intent),
        status: match (goal.status, driver) {
            (GoalStatus::Active, None) => "active, not driven".to_owned(),
            (status, _) => status.to_string(),
        },
        mood: mood(goal.status),
        phase: phase(goal).to_owned(),
        why: words::reason(goal),
        details: details(goal, driver),
        account: Account {
            turn: Some(TurnFacts {
                // Out of turns, it stands before one that it may not take.
                at: goal.turn.min(budget.turns),
                max: budget.turns,
            }),
            used: spent.total(),
            tokens_max: budget.tokens,
            usd_micros_max: budget.usd_micros,
            worked_ms: spent.wall_ms,
            work_max_ms: budget.wall_ms,
        },
        tasks: goal.journey.plan.as_ref().map(tasks).unwrap_or_default(),
        changes,
        refused: asked
            .map(|asked| RefusedFacts {
                pattern: asked.pattern.clone(),
                command: asked.command.clone(),
            })
            .collect(),
        verbs: verbs(goal),
    }
}

const fn mood(status: GoalStatus) -> Mood {
    match status {
        GoalStatus::Setup | GoalStatus::Active => Mood::Working,
        GoalStatus::Waiting => Mood::Waiting,
        GoalStatus::Proposed | GoalStatus::Blocked | GoalStatus::Stalled | GoalStatus::Paused => {
            Mood::Person
        }
        GoalStatus::Done | GoalStatus::Unverified => Mood::Good,
        GoalStatus::Impossible | GoalStatus::Cancelled => Mood::Bad,
    }
}

/// Returns the stage in words, for whoever has not heard of stages.
pub(crate) const fn phase(goal: &Goal) -> &'static str {
    if !goal.is_driven() {
        return "";
    }
    match goal.stage {
        GoalStage::Setup => "drafting the contract",
        GoalStage::Workspace => "creating the worktree",
        GoalStage::Baseline => "checking the base",
        GoalStage::Agent => "working",
        GoalStage::Commit => "recording the work",
        GoalStage::Verify => "verifying",
        GoalStage::Judge => "asking the judge",
        GoalStage::Publish => "publishing",
        GoalStage::Distill => "summing up what was learned",
        GoalStage::Ended => "",
    }
}

fn details(goal: &Goal, driver: Option<&str>) -> Vec<(&'static str, String)> {
    let contract = &goal.contract;
    let mut details = vec![("agent", agent_name(&contract.agent))];
    if let Some(judge) = goal.judge_agent() {
        details.push(("judge", agent_name(judge)));
    }
    details.push(("branch", contract.branch.clone()));
    if contract.sandbox == SandboxLevel::None {
        details.push(("sandbox", "none: NO ISOLATION".to_owned()));
    }
    if let Some(driver) = driver {
        details.push(("driver", driver.to_owned()));
    }
    details
}

/// Returns the parts of a plan, the one at hand marked.
fn tasks(plan: &Plan) -> Vec<TaskFacts> {
    let current = plan.current().map(|task| &task.id);
    let tasks = plan.tasks().iter();
    tasks
        .map(|task| TaskFacts {
            mark: match task.status {
                TaskStatus::Done => TaskMark::Done,
                TaskStatus::Blocked => TaskMark::Blocked,
                TaskStatus::Skipped => TaskMark::Skipped,
                TaskStatus::InProgress => TaskMark::Current,
                TaskStatus::Pending if current == Some(&task.id) => TaskMark::Current,
                TaskStatus::Pending => TaskMark::Open,
            },
            text: one_line(&task.title),
        })
        .collect()
}

fn verbs(goal: &Goal) -> SubjectVerbs {
    let reference = goal.id.reference();
    let diff = Some(reference.clone());
    if goal.status.is_terminal() {
        return SubjectVerbs {
            diff,
            ..SubjectVerbs::default()
        };
    }
    let mut verbs = SubjectVerbs {
        diff,
        cancel: command_line(&["cancel", &reference, "--yes"]),
        ..SubjectVerbs::default()
    };
    if goal.approval.is_some() {
        verbs.say = command_line(&["say", &reference, "--"]);
    }
    match goal.status {
        GoalStatus::Setup | GoalStatus::Active | GoalStatus::Waiting => {
            verbs.pause = command_line(&["pause", &reference]);
        }
        GoalStatus::Paused | GoalStatus::Blocked | GoalStatus::Stalled => {
            verbs.resume = command_line(&["resume", &reference]);
            verbs.resume_beside = command_line(&["resume", &reference, "--no-run"]);
        }
        GoalStatus::Proposed
        | GoalStatus::Impossible
        | GoalStatus::Cancelled
        | GoalStatus::Unverified
        | GoalStatus::Done => {}
    }
    verbs
}
