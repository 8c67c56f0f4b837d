//! What could come back for an effect of an integration: what is hoped for, and what goes wrong.

use kapi_core::failure::Failure;
use kapi_core::usage::Usage;

use crate::rules::effect::combine::{CombineReport, CombineStep, Coverage, CoverageFault};
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::modes::integrate::answer::{
    IntegrateAnswer, IntegrationFindings, IntegrationProblem, LandingVerdict, RevisionCause,
};
use crate::rules::modes::integrate::fixture::{
    clash, combined, finding, foresight, good, id, left, lock_clash, of, regenerated, report,
    resolution, ruling, said,
};
use crate::rules::modes::integrate::model::Focus;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::state::IntegratePhase;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::scenario::identity;
use crate::rules::state::Workflow;

/// Returns what is no result: it failed, was called off, or is something else.
fn troubles(workflow: &Workflow) -> Vec<WorkflowOutcome> {
    let usage = Usage::default();
    let failed = |may_pass| WorkflowOutcome::Failed {
        failure: Failure {
            message: "reach the repository".to_owned(),
            hint: None,
        },
        may_pass,
        usage,
    };
    let wrong = report("elsewhere", &["sh all.sh".to_owned()], &[]);
    let mut all = vec![
        failed(true),
        failed(false),
        WorkflowOutcome::Cancelled { usage },
        WorkflowOutcome::Unreadable {
            by: identity("r2"),
            why: "answer in JSON".to_owned(),
            usage,
        },
        WorkflowOutcome::Conflicted { paths: Vec::new() },
        WorkflowOutcome::Verified(wrong),
        WorkflowOutcome::Advanced {
            at: "elsewhere".to_owned(),
            brought: None,
        },
        combined(CombineReport::Traced(Box::default())),
        combined(CombineReport::Inspected(Box::default())),
    ];
    if of(workflow).phase == IntegratePhase::Inspect {
        let reasons = vec!["it was moved".to_owned()];
        all.push(combined(CombineReport::Unfit { reasons }));
    }
    all
}

/// Returns everything that can come back for what is under way.
pub(super) fn outcomes(workflow: &Workflow, focus: Focus) -> Vec<WorkflowOutcome> {
    let mut all = if focus == Focus::Failing {
        troubles(workflow)
    } else {
        Vec::new()
    };
    let Some(effect) = next(workflow).into_iter().next() else {
        return all;
    };
    all.push(good(workflow));
    match (focus, effect.action) {
        (Focus::Merging, action) => all.extend(merging(workflow, &action)),
        (Focus::Arguing, WorkflowAction::Ask(question)) => {
            let role = IntegrateRole::of(question.role).unwrap();
            all.extend(arguing(workflow, role));
        }
        (Focus::Arguing, WorkflowAction::Combine(step)) => all.extend(traced(&step)),
        (Focus::Failing, WorkflowAction::Advance(_)) => {
            let found = Some("dev-1".to_owned());
            all.push(WorkflowOutcome::Moved { found });
        }
        (Focus::Failing, WorkflowAction::Combine(step)) => all.extend(moved(workflow, &step)),
        (Focus::Arguing | Focus::Failing, _) => {}
    }
    all
}

fn merging(workflow: &Workflow, action: &WorkflowAction) -> Vec<WorkflowOutcome> {
    match action {
        WorkflowAction::Combine(step) => match &**step {
            // The later source does not fit, and the earlier one cannot come by its method once.
            CombineStep::Apply(asked) if asked.source.id == id("002-two") => {
                let both = [clash(), lock_clash()].concat();
                let all = [lock_clash(), both].map(|paths| {
                    let at = format!("conflict-{}", asked.onto);
                    combined(CombineReport::Conflicted { at, paths })
                });
                all.into()
            }
            CombineStep::Regenerate(_) => vec![combined(regenerated(None))],
            CombineStep::Apply(_) if of(workflow).attempt == 1 => {
                vec![combined(CombineReport::MethodUnfit {
                    why: "it has a merge".to_owned(),
                })]
            }
            CombineStep::Apply(_) => Vec::new(),
            CombineStep::Settle { .. } => vec![combined(CombineReport::MarkersLeft {
                paths: vec!["src/a.rs".to_owned()],
            })],
            CombineStep::Try { .. } => vec![combined(CombineReport::Tried { commit: None })],
            CombineStep::Inspect { .. } | CombineStep::Trace { .. } | CombineStep::Mark { .. } => {
                Vec::new()
            }
        },
        WorkflowAction::Verify(asked) => {
            let fails = report(&asked.commit, &asked.commands, &["sh all.sh"]);
            vec![WorkflowOutcome::Verified(fails)]
        }
        WorkflowAction::Propose(_) => vec![
            left(workflow, resolution(false), None),
            left(workflow, resolution(true), None),
        ],
        _ => Vec::new(),
    }
}

fn arguing(workflow: &Workflow, role: IntegrateRole) -> Vec<WorkflowOutcome> {
    let all = match role {
        IntegrateRole::Reviewer => {
            let found = |problems| {
                IntegrateAnswer::Review(IntegrationFindings {
                    summary: "Read.".to_owned(),
                    justified: Vec::new(),
                    problems,
                })
            };
            let problem = IntegrationProblem {
                cause: RevisionCause::Verification,
                finding: None,
                source: None,
                title: "Wrong".to_owned(),
                detail: "See it.".to_owned(),
            };
            vec![found(Vec::new()), found(vec![problem])]
        }
        IntegrateRole::Synthesis => {
            let causes = [
                RevisionCause::Verification,
                RevisionCause::Resolution,
                RevisionCause::Scope,
                RevisionCause::Intent,
            ];
            let revise = causes.map(|cause| ruling(LandingVerdict::Revise, Some(cause)));
            let rest = [
                ruling(LandingVerdict::Revise, None),
                ruling(LandingVerdict::Block, None),
            ];
            let all = revise.into_iter().chain(rest);
            all.map(IntegrateAnswer::Synthesis).collect()
        }
        IntegrateRole::Planner
        | IntegrateRole::Resolver
        | IntegrateRole::Thesis
        | IntegrateRole::Antithesis => vec![IntegrateAnswer::Resolution(resolution(false))],
    };
    all.into_iter()
        .map(|answer| said(workflow, answer))
        .collect()
}

fn traced(step: &CombineStep) -> Vec<WorkflowOutcome> {
    let CombineStep::Trace { head, .. } = step else {
        return Vec::new();
    };
    let found = |n_more| {
        combined(CombineReport::Traced(Box::new(Coverage {
            head: head.clone(),
            findings: vec![finding(CoverageFault::Missed)],
            n_more,
            ..Coverage::default()
        })))
    };
    vec![found(0), found(1)]
}

/// Somebody moves the integration branch while nobody looks.
fn moved(workflow: &Workflow, step: &CombineStep) -> Vec<WorkflowOutcome> {
    let CombineStep::Inspect { .. } = step else {
        return Vec::new();
    };
    let seen = foresight(of(workflow), "dev-1");
    vec![combined(CombineReport::Inspected(Box::new(seen)))]
}
