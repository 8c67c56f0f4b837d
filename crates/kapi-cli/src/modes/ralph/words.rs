//! A build in words: a line for each of its facts, what was built on what evidence, and what one would
//! trust by taking it over.
//!
//! Everything here stands in the workflow's own documents. Text from agents is shortened to its first
//! line.

use kapi_check::rules::proof::verify_report::{VerifyReport, first_failure};
use kapi_core::id::GoalId;
use kapi_core::text::{agent_name, counted, short_id};
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;
use kapi_workflow::rules::evidence::{Weight, WorkflowEvidence};
use kapi_workflow::rules::identity::ReviewerIdentity;
use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::modes::ralph::event::RalphEvent;
use kapi_workflow::rules::modes::ralph::plan::{Consensus, PlanTask, RalphPlan};
use kapi_workflow::rules::modes::ralph::review::Review;
use kapi_workflow::rules::state::Workflow;

use crate::event_words::first_line;
use crate::modes::Front;
use crate::modes::ralph::page;
use crate::modes::ralph::phrases::{category, criterion, of, stand};
use crate::ui::Ui;

/// What the mode says.
pub(in crate::modes) static FRONT: Front = Front {
    describe,
    is_shown_next: |_| false,
    summary,
    details,
    live: |_| None,
    page: page::of,
    next,
    trusted,
    waits_for: |_| None,
};

/// Returns a fact in words; `None` for what is only bookkeeping.
fn describe(event: &ModeEvent) -> Option<String> {
    if let ModeEvent::Ralph(event) = event {
        ralph(event)
    } else {
        None
    }
}

/// Prints what was built so far, and on what evidence.
fn summary(ui: Ui, workflow: &Workflow) {
    let Some(ralph) = of(workflow) else {
        return;
    };
    if let Some(branch) = &ralph.branch {
        ui.line(&format!(
            "  branch   {} at {}",
            branch.name,
            short_id(&branch.head)
        ));
        ui.line(&format!("  worktree {}", branch.worktree));
    }
    if let Some(review) = ralph.reviews.last() {
        let findings = &review.findings.findings;
        ui.line(&format!(
            "  review   {} of {}: {}",
            review.cycle,
            short_id(&review.commit),
            first_line(&review.findings.summary)
        ));
        for finding in findings.iter().filter(|finding| finding.must_fix) {
            let about = category(finding.category);
            ui.line(&format!(
                "           {about}: {}",
                first_line(&finding.title)
            ));
        }
    }
    if let Some(account) = &ralph.account {
        for accepted in &account.acceptance {
            ui.line(&format!(
                "  holds    {}",
                criterion(ralph, &accepted.criterion)
            ));
            for number in &accepted.evidence {
                evidence(ui, workflow, *number);
            }
        }
        for risk in &account.risks {
            ui.line(&format!("  risk     {}", first_line(risk)));
        }
    }
}

fn evidence(ui: Ui, workflow: &Workflow, number: u32) {
    let location = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(evidence) = workflow.evidence.get(location) else {
        return;
    };
    ui.line(&format!(
        "           {number}: {}",
        evidence_words(evidence)
    ));
}

fn evidence_words(evidence: &WorkflowEvidence) -> String {
    let weight = match evidence.weight {
        Weight::Validation => "",
        Weight::Narrative => " (an agent's word)",
    };
    format!("{}{weight}", first_line(&evidence.summary))
}

/// Prints the tasks, each with where it stands.
fn details(ui: Ui, workflow: &Workflow) {
    let Some(ralph) = of(workflow) else {
        return;
    };
    for state in ralph.tasks.values() {
        let stand = stand(state);
        let goal = state
            .goal
            .as_ref()
            .map_or_else(String::new, |goal| format!("  goal {goal}"));
        ui.line(&format!(
            "  {:<8} {}: {stand}{goal}",
            state.task.id,
            first_line(&state.task.title)
        ));
    }
}

/// Returns how what was built is looked at and taken over.
fn next(workflow: &Workflow) -> Vec<String> {
    let built = of(workflow).and_then(|ralph| Some((ralph, ralph.branch.as_ref()?)));
    let (WorkflowStatus::Completed, Some((ralph, branch))) = (workflow.status, built) else {
        return Vec::new();
    };
    vec![
        format!("git diff {}...{}", short_id(&ralph.base), branch.name),
        format!("git merge {}", branch.name),
    ]
}

/// Returns what going on with it would carry out or rest on.
fn trusted(workflow: &Workflow) -> Vec<(&'static str, String)> {
    let Some(ralph) = of(workflow) else {
        return Vec::new();
    };
    let mut lines = vec![("base", ralph.base.clone())];
    if let Some(branch) = &ralph.branch {
        lines.push(("branch", format!("{} at {}", branch.name, branch.head)));
    }
    if let Some(plan) = &ralph.plan {
        lines.push(("plan", plan.summary.clone()));
        for task in &plan.tasks {
            lines.push(("task", format!("{}: {}", task.id, task.title)));
        }
        let of_tasks = plan.tasks.iter().flat_map(|task| &task.verify);
        let of_criteria = plan.criteria.iter().filter_map(|one| one.verify.as_ref());
        let all = of_tasks.chain(of_criteria).chain(&plan.verify);
        lines.extend(all.map(|command| ("runs", command.clone())));
    }
    lines
}

fn ralph(event: &RalphEvent) -> Option<String> {
    Some(match event {
        RalphEvent::ThesisRecorded {
            attempt, by, plan, ..
        } => format!("attempt {attempt}: {} proposes {}", who(by), tasks(plan)),
        RalphEvent::AntithesisRecorded { by, objections, .. } => {
            format!("{} objects: {}", who(by), first_line(&objections.strongest))
        }
        RalphEvent::SynthesisRecorded { by, synthesis, .. } => match synthesis.verdict {
            Consensus::Consensus => {
                format!("{} finds consensus on {}", who(by), tasks(&synthesis.plan))
            }
            Consensus::Revise => format!("{} requests another plan", who(by)),
        },
        RalphEvent::ConsensusMissed { cycle } => {
            format!("no consensus in cycle {cycle}; the last plan is shown with its objections")
        }
        RalphEvent::PlanProposed { plan, .. } => format!("a plan is proposed: {}", tasks(plan)),
        RalphEvent::PlanReopened { reason, .. } => {
            format!("planning starts over: {}", first_line(reason))
        }
        RalphEvent::BranchPrepared {
            branch, worktree, ..
        } => format!("branch {branch}, worktree {worktree}"),
        RalphEvent::TaskBegun { task, attempt, .. } if *attempt > 1 => {
            format!("{task} restarts, attempt {attempt}")
        }
        RalphEvent::TaskBegun { task, .. } => format!("{task} starts"),
        RalphEvent::TaskRested {
            task,
            goal,
            status,
            commit,
            reason,
            ..
        } => rested(task, goal, *status, commit.as_deref(), reason.as_deref()),
        RalphEvent::TaskLanded {
            task, head, merged, ..
        } => format!(
            "{task} landed{}: the branch is at {}",
            if *merged { ", merged" } else { "" },
            short_id(head)
        ),
        RalphEvent::TaskAlreadyDone { task, commit } => format!(
            "{task} is already done: its checks pass on {} without a change",
            short_id(commit)
        ),
        RalphEvent::TaskConflicted { task, paths } => format!(
            "{task} conflicts with landed work in {}; it restarts",
            paths.join(", ")
        ),
        RalphEvent::TaskSentBack { task, because } => {
            format!("{task} goes back to its agent: {}", first_line(because))
        }
        RalphEvent::TaskGivenUp { task, reason } => {
            format!("{task} is abandoned: {}", first_line(reason))
        }
        RalphEvent::BaseChecked { .. }
        | RalphEvent::TaskStrayed { .. }
        | RalphEvent::StrayingAllowed { .. } => return for_a_person(event),
        RalphEvent::HeadVerified { commit, report } => verified(commit, report),
        RalphEvent::FixPlanned { task, because } => added(task, because),
        RalphEvent::TaskRetried { task } => format!("{task} continues"),
        RalphEvent::Reviewed { review } => reviewed(review),
        RalphEvent::AnswerRefused { role, why } => {
            format!("asking the {role} again: {}", first_line(why))
        }
        RalphEvent::Accounted { acceptance, .. } => accounted(acceptance.len()),
        RalphEvent::ReviewAsked { .. } => return None,
    })
}

fn accounted(n_criteria: usize) -> String {
    match n_criteria {
        1 => "one criterion has its evidence".to_owned(),
        n_criteria => format!("{n_criteria} criteria have their evidence"),
    }
}

/// Says what a person decides by, or has decided.
fn for_a_person(event: &RalphEvent) -> Option<String> {
    if let RalphEvent::BaseChecked { report } = event {
        let n_passed = report.runs.iter().filter(|run| run.passed()).count();
        let n_checks = report.runs.len();
        Some(format!("on the base: {n_passed} of {n_checks} checks pass"))
    } else if let RalphEvent::TaskStrayed { task, reason, .. } = event {
        Some(format!("{task} is held: {}", first_line(reason)))
    } else if let RalphEvent::StrayingAllowed { task } = event {
        Some(format!("{task} may change paths outside the plan"))
    } else {
        None
    }
}

fn added(task: &PlanTask, because: &str) -> String {
    format!(
        "{} is added: {} ({})",
        task.id,
        first_line(&task.title),
        first_line(because)
    )
}

fn rested(
    task: &PlanTaskId,
    goal: &GoalId,
    status: GoalStatus,
    commit: Option<&str>,
    reason: Option<&str>,
) -> String {
    match (commit, reason) {
        (Some(commit), _) if status == GoalStatus::Done => {
            format!(
                "{task} is proved by goal {goal}: commit {}",
                short_id(commit)
            )
        }
        (_, Some(reason)) => format!("{task}: goal {goal} is {status}, {}", first_line(reason)),
        (_, None) => format!("{task}: goal {goal} is {status}"),
    }
}

fn who(by: &ReviewerIdentity) -> String {
    agent_name(&by.agent)
}

fn tasks(plan: &RalphPlan) -> String {
    let tasks = counted(plan.tasks.len(), "task");
    format!("{tasks}: {}", first_line(&plan.summary))
}

fn verified(commit: &str, report: &VerifyReport) -> String {
    match first_failure(report) {
        None => format!(
            "the combined work passes verification at {}",
            short_id(commit)
        ),
        Some(failure) => format!(
            "the combined work fails verification at {}: {failure}",
            short_id(commit)
        ),
    }
}

fn reviewed(review: &Review) -> String {
    let must = review
        .findings
        .findings
        .iter()
        .filter(|finding| finding.must_fix);
    let n_must = must.count();
    let by = who(&review.by);
    if let Some(reason) = &review.findings.replan {
        return format!(
            "{by} reports that the plan is wrong: {}",
            first_line(reason)
        );
    }
    match (review.findings.approve, n_must) {
        (true, 0) => format!("{by} approves {}", short_id(&review.commit)),
        (_, 1) => format!("{by} found one thing to fix"),
        (_, n_must) => format!("{by} found {n_must} things to fix"),
    }
}
