//! What comes of an effect in the simulated world: a function of the effect alone, so that doing it again
//! does the same.
//!
//! Knows no mode; what goes wrong under one is told in its own file.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;
use kapi_goal::rules::state::GoalStatus;
use kapi_store::hash::sha256_hex;
use kapi_workflow::rules::changed::LandedPaths;
use kapi_workflow::rules::effect::{
    Advancing, GoalWork, Verification, WorkflowEffect, WorkflowLanding,
};
use kapi_workflow::rules::outcome::WorkflowOutcome;

/// Returns the goal of a task: the same one whenever it is asked for.
pub(super) fn goal_of(workflow: &GoalId, work: &GoalWork) -> GoalId {
    let goal = GoalId::part_of(workflow, work.task.as_str(), work.attempt);
    work.goal.clone().or(goal.ok()).unwrap_or(workflow.clone())
}

/// A goal is done.
pub(super) fn done(effect: &WorkflowEffect, work: &GoalWork) -> WorkflowOutcome {
    WorkflowOutcome::Rested {
        goal: goal_of(&effect.workflow, work),
        worktree: None,
        status: GoalStatus::Done,
        commit: Some(oid(&[work.task.as_str(), &work.base, effect.id.as_str()])),
        reason: None,
    }
}

/// A commit lands.
pub(super) fn landed(landing: &WorkflowLanding) -> WorkflowOutcome {
    let merged = landing.base != landing.head;
    let head = if merged {
        oid(&[&landing.head, &landing.commit])
    } else {
        landing.commit.clone()
    };
    WorkflowOutcome::Landed {
        tree: oid(&["tree", &head]),
        head,
        merged,
        changed: LandedPaths::of(vec![format!("src/{}.rs", landing.task)]),
    }
}

/// The branch moves.
pub(super) fn advanced(step: &Advancing) -> WorkflowOutcome {
    WorkflowOutcome::Advanced {
        at: step.to.clone(),
        brought: None,
    }
}

/// Every command ends with an exit code.
pub(super) fn verified(asked: &Verification, exit_code: i32) -> WorkflowOutcome {
    let run = |command: &String| VerifyRun {
        command: command.clone(),
        checks: Checks::Visible,
        exit_code: Some(exit_code),
        timed_out: false,
        duration_ms: 3,
        output_tail: "output".to_owned(),
        output_bytes: 6,
        tally: None,
    };
    WorkflowOutcome::Verified(VerifyReport {
        commit: asked.commit.clone(),
        tree: oid(&["tree", &asked.commit]),
        tampered: Vec::new(),
        runs: asked.commands.iter().map(run).collect(),
        inspection: Box::default(),
    })
}

/// Returns the name of a made-up object.
pub(super) fn oid(parts: &[&str]) -> String {
    let hash = sha256_hex(parts.join(" ").as_bytes());
    hash.chars().take(40).collect()
}

/// The world refused.
pub(super) fn failed(message: &str, may_pass: bool) -> WorkflowOutcome {
    WorkflowOutcome::Failed {
        failure: Failure {
            message: message.to_owned(),
            hint: None,
        },
        may_pass,
        usage: Usage::default(),
    }
}
