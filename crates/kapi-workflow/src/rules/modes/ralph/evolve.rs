//! The fold of a Ralph workflow's facts: total, without rules.
//!
//! A fact about a task or an attempt that is not there changes nothing.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::branch::Branch;
use crate::rules::changed::LandedPaths;
use crate::rules::limits::Amounts;
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::plan::{Attempt, Consensus, PlanTask};
use crate::rules::modes::ralph::review::{Review, ReviewVerdict};
use crate::rules::modes::ralph::state::{
    Earlier, Ralph, RalphPhase, Stand, TaskState, WorkflowAccount,
};

/// The plan was approved: its tasks are what is to be done.
pub(crate) fn approved(ralph: &mut Ralph) {
    let Some(plan) = ralph.plan.clone() else {
        return;
    };
    keep_landed(ralph);
    let tasks = plan.tasks.into_iter();
    ralph.tasks = tasks.map(|task| fresh(task, ralph.cycle)).collect();
    ralph.phase = RalphPhase::Run;
    ralph.reopened = None;
    ralph.must_ask = false;
    ralph.unverified = None;
    ralph.verified = None;
    ralph.account = None;
    ralph.mends = 0;
}

/// What landed stays on the branch whatever is planned next, and is known.
fn keep_landed(ralph: &mut Ralph) {
    for state in ralph.tasks.values() {
        if let Stand::Landed { head } = &state.stand {
            ralph.earlier.push(Earlier {
                cycle: state.cycle,
                task: state.task.id.clone(),
                title: state.task.title.clone(),
                head: head.clone(),
            });
        }
    }
    let is_left = |state: &TaskState| !matches!(state.stand, Stand::Landed { .. });
    ralph.tasks.retain(|_, state| is_left(state));
    ralph.landed.clear();
    ralph.changes.clear();
}

/// A person lets it go on: what was counted is counted anew, and what came to rest takes its turn
/// again. The rules begin it in the same breath.
pub(crate) fn unblocked(ralph: &mut Ralph) {
    ralph.refused.clear();
    ralph.mends = 0;
    ralph.tasks.values_mut().for_each(go_on);
}

fn fresh(task: PlanTask, cycle: u32) -> (PlanTaskId, TaskState) {
    let state = TaskState {
        cycle,
        attempt: 1,
        base: None,
        goal: None,
        stand: Stand::Waiting,
        is_working: false,
        drives: 0,
        sent_back: 0,
        rested_at_ms: 0,
        because: None,
        allowance: None,
        verified_with: 0,
        strayed: None,
        may_stray: false,
        task,
    };
    (state.task.id.clone(), state)
}

fn with(ralph: &mut Ralph, id: &PlanTaskId, change: impl FnOnce(&mut TaskState)) {
    if let Some(state) = ralph.tasks.get_mut(id) {
        change(state);
    }
}

/// A goal that was begun keeps the commit it began with.
fn begun(state: &mut TaskState, base: &str, allowance: Option<&Amounts>) {
    state.allowance = allowance.copied();
    state.base.get_or_insert_with(|| base.to_owned());
    state.drives = state.drives.saturating_add(1);
    state.is_working = true;
}

/// Another try with another goal, on what the branch is then.
fn anew(state: &mut TaskState, because: Option<String>) {
    state.attempt = state.attempt.saturating_add(1);
    state.base = None;
    state.goal = None;
    state.stand = Stand::Waiting;
    state.is_working = false;
    state.because = because;
    state.allowance = None;
    state.verified_with = 0;
    state.strayed = None;
    state.may_stray = false;
}

fn sent_back(state: &mut TaskState, because: String) {
    state.sent_back = state.sent_back.saturating_add(1);
    anew(state, Some(because));
}

/// The same goal goes on where it can; where it has ended the task is done anew.
fn go_on(state: &mut TaskState) {
    state.sent_back = 0;
    if let Stand::Rested { status, reason } = state.stand.clone() {
        if status.is_terminal() {
            let because = reason.or_else(|| state.because.take());
            anew(state, because);
        } else {
            state.stand = Stand::Waiting;
        }
    }
}

/// Applies one fact.
pub(crate) fn evolve(ralph: &mut Ralph, event: &RalphEvent) {
    match event {
        RalphEvent::ThesisRecorded { .. } => thesis(ralph, event),
        RalphEvent::AntithesisRecorded { by, objections, .. } => {
            accepted(ralph, "antithesis");
            if let Some(attempt) = ralph.attempts.last_mut() {
                attempt.antithesis = Some((by.clone(), objections.clone()));
            }
            ralph.phase = RalphPhase::Synthesis;
        }
        RalphEvent::SynthesisRecorded { by, synthesis, .. } => {
            accepted(ralph, "synthesis");
            if let Some(attempt) = ralph.attempts.last_mut() {
                attempt.synthesis = Some((by.clone(), synthesis.clone()));
            }
            if synthesis.verdict == Consensus::Revise {
                ralph.phase = RalphPhase::Thesis;
            }
        }
        RalphEvent::ConsensusMissed { .. } => {}
        RalphEvent::PlanProposed { plan, .. } => {
            ralph.plan = Some(plan.clone());
            ralph.baseline = None;
            ralph.phase = RalphPhase::Approval;
        }
        RalphEvent::BaseChecked { report } => ralph.baseline = Some(report.clone()),
        RalphEvent::PlanReopened { reason, by_review } => reopened(ralph, reason, *by_review),
        RalphEvent::BranchPrepared { .. }
        | RalphEvent::TaskBegun { .. }
        | RalphEvent::TaskRested { .. }
        | RalphEvent::TaskLanded { .. }
        | RalphEvent::TaskAlreadyDone { .. }
        | RalphEvent::TaskConflicted { .. }
        | RalphEvent::TaskSentBack { .. }
        | RalphEvent::TaskGivenUp { .. }
        | RalphEvent::TaskStrayed { .. }
        | RalphEvent::StrayingAllowed { .. }
        | RalphEvent::TaskRetried { .. } => run(ralph, event),
        RalphEvent::HeadVerified { commit, report } => {
            ralph.unverified = None;
            ralph.verified = Some((commit.clone(), report.clone()));
            passed_with_all(ralph, report);
            ralph.verifications = ralph.verifications.saturating_add(1);
        }
        RalphEvent::FixPlanned { task, because } => {
            let (id, mut state) = fresh(task.as_ref().clone(), ralph.cycle);
            state.because = Some(because.clone());
            ralph.tasks.insert(id, state);
            ralph.mends = ralph.mends.saturating_add(1);
            ralph.phase = RalphPhase::Run;
        }
        RalphEvent::ReviewAsked { .. } => ralph.phase = RalphPhase::Review,
        RalphEvent::Reviewed { review } => reviewed(ralph, review),
        RalphEvent::AnswerRefused { role, why } => {
            answered(ralph, role);
            let refused = ralph.refused.entry(role.clone()).or_default();
            refused.push(why.clone());
        }
        RalphEvent::Accounted { .. } => accounted(ralph, event),
    }
}

fn thesis(ralph: &mut Ralph, event: &RalphEvent) {
    let RalphEvent::ThesisRecorded {
        cycle,
        attempt,
        by,
        plan,
    } = event
    else {
        return;
    };
    accepted(ralph, "thesis");
    ralph.attempts.push(Attempt {
        cycle: *cycle,
        number: *attempt,
        thesis: Some((by.clone(), plan.clone())),
        antithesis: None,
        synthesis: None,
    });
    ralph.phase = RalphPhase::Antithesis;
}

fn reopened(ralph: &mut Ralph, reason: &str, by_review: bool) {
    keep_landed(ralph);
    ralph.cycle = ralph.cycle.saturating_add(1);
    ralph.phase = RalphPhase::Thesis;
    ralph.reopened = Some(reason.to_owned());
    ralph.must_ask |= by_review;
    ralph.refused.clear();
    ralph.unverified = None;
    for state in ralph.tasks.values_mut() {
        state.is_working = false;
    }
}

/// Applies a fact about the branch or about a task of it.
fn run(ralph: &mut Ralph, event: &RalphEvent) {
    if let RalphEvent::BranchPrepared {
        branch,
        worktree,
        base,
    } = event
    {
        ralph.branch = Some(Branch {
            name: branch.clone(),
            worktree: worktree.clone(),
            head: base.clone(),
            tree: None,
        });
    } else if let RalphEvent::TaskBegun {
        task,
        base,
        allowance,
        ..
    } = event
    {
        with(ralph, task, |state| begun(state, base, allowance.as_ref()));
    } else if let RalphEvent::TaskRested { task, .. } = event {
        with(ralph, task, |state| rested(state, event));
    } else if let RalphEvent::TaskLanded { .. } = event {
        landed(ralph, event);
    } else if let RalphEvent::TaskAlreadyDone { task, commit } = event {
        already_done(ralph, task, commit);
    } else if let RalphEvent::TaskConflicted { task, paths } = event {
        let because = format!(
            "The work conflicts with what has landed meanwhile, in:\n{}",
            paths.join("\n")
        );
        with(ralph, task, |state| sent_back(state, because));
    } else if let RalphEvent::TaskSentBack { task, because } = event {
        with(ralph, task, |state| sent_back(state, because.clone()));
    } else if let RalphEvent::TaskGivenUp { task, reason } = event {
        with(ralph, task, |state| given_up(state, reason));
    } else if let RalphEvent::TaskStrayed {
        task,
        commit,
        reason,
    } = event
    {
        with(ralph, task, |state| {
            given_up(state, reason);
            state.strayed = Some(commit.clone());
        });
    } else if let RalphEvent::StrayingAllowed { task } = event {
        with(ralph, task, |state| {
            state.may_stray = true;
            if let Some(commit) = state.strayed.take() {
                state.stand = Stand::Proved { commit };
            }
        });
    } else if let RalphEvent::TaskRetried { task } = event {
        with(ralph, task, go_on);
    }
}

/// What was proved does not land, for a reason that a person has to know.
fn given_up(state: &mut TaskState, reason: &str) {
    state.is_working = false;
    state.stand = Stand::Rested {
        status: GoalStatus::Done,
        reason: Some(reason.to_owned()),
    };
}

fn rested(state: &mut TaskState, event: &RalphEvent) {
    let RalphEvent::TaskRested {
        goal,
        status,
        commit,
        reason,
        at_ms,
        ..
    } = event
    else {
        return;
    };
    state.is_working = false;
    state.goal = Some(goal.clone());
    state.rested_at_ms = *at_ms;
    state.stand = match commit {
        Some(commit) if *status == GoalStatus::Done => Stand::Proved {
            commit: commit.clone(),
        },
        Some(_) | None => Stand::Rested {
            status: *status,
            reason: reason.clone(),
        },
    };
}

fn landed(ralph: &mut Ralph, event: &RalphEvent) {
    let RalphEvent::TaskLanded {
        task,
        head,
        tree,
        merged,
        changed,
    } = event
    else {
        return;
    };
    with(ralph, task, |state| {
        state.stand = Stand::Landed { head: head.clone() };
    });
    if let Some(branch) = &mut ralph.branch {
        branch.head.clone_from(head);
        branch.tree = Some(tree.clone());
    }
    ralph.landed.push(task.clone());
    ralph.changes.push(changed.clone());
    if *merged {
        ralph.unverified = Some(task.clone());
    } else {
        // Its goal proved this very tree.
        let n_landed = ralph.landed.len();
        with(ralph, task, |state| state.verified_with = n_landed);
    }
}

/// Its checks passed on a commit of the branch; what landed after that is verified with them.
fn already_done(ralph: &mut Ralph, task: &PlanTaskId, commit: &str) {
    with(ralph, task, |state| {
        state.stand = Stand::Landed {
            head: commit.to_owned(),
        };
    });
    ralph.landed.push(task.clone());
    ralph.changes.push(Some(LandedPaths::default()));
    let is_head = ralph.branch.as_ref().is_some_and(|it| it.head == commit);
    if is_head {
        let n_landed = ralph.landed.len();
        with(ralph, task, |state| state.verified_with = n_landed);
    } else {
        ralph.unverified = Some(task.clone());
    }
}

/// Remembers whose commands passed on the branch with all that has landed.
fn passed_with_all(ralph: &mut Ralph, report: &VerifyReport) {
    let n_landed = ralph.landed.len();
    let passed = |command: &String| {
        let mut runs = report.runs.iter();
        runs.any(|run| run.command == *command && run.passed())
    };
    for state in ralph.tasks.values_mut() {
        let has_landed = matches!(state.stand, Stand::Landed { .. });
        if has_landed && report.tampered.is_empty() && state.task.verify.iter().all(passed) {
            state.verified_with = n_landed;
        }
    }
}

fn reviewed(ralph: &mut Ralph, review: &Review) {
    accepted(ralph, "reviewer");
    match review.findings.verdict() {
        ReviewVerdict::Approve => {
            ralph.phase = RalphPhase::Closeout;
            ralph.verified = None;
        }
        ReviewVerdict::Changes | ReviewVerdict::Replan => {}
    }
    ralph.reviews.push(review.clone());
}

fn accounted(ralph: &mut Ralph, event: &RalphEvent) {
    let RalphEvent::Accounted {
        acceptance,
        rationale,
        risks,
        follow_up,
    } = event
    else {
        return;
    };
    accepted(ralph, "accountant");
    ralph.account = Some(WorkflowAccount {
        acceptance: acceptance.clone(),
        rationale: rationale.clone(),
        risks: risks.clone(),
        follow_up: follow_up.clone(),
    });
}

/// Counts an answer of a role.
fn answered(ralph: &mut Ralph, role: &str) {
    let n = ralph.answers.entry(role.to_owned()).or_default();
    *n = n.saturating_add(1);
}

/// Counts an answer of a role that was taken.
fn accepted(ralph: &mut Ralph, role: &str) {
    answered(ralph, role);
    ralph.refused.remove(role);
}
