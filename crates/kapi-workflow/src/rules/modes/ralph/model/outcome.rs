//! What could come back for an effect, by its stage: first what is hoped for, then what goes wrong.

use kapi_core::id::EffectId;
use kapi_core::usage::Usage;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::effect::{WorkflowAction, next};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::ralph::answer::RalphAnswer;
use crate::rules::modes::ralph::fixture::outcomes::{answered, failed, landed, report, rested};
use crate::rules::modes::ralph::fixture::{account, finding, findings, objections, synthesis};
use crate::rules::modes::ralph::model::{Focus, Scope, stage};
use crate::rules::modes::ralph::plan::Consensus;
use crate::rules::modes::ralph::review::FindingCategory;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

/// Returns everything that could come back where the search looks, and elsewhere what is hoped for.
pub(super) fn outcomes(workflow: &Workflow, id: &EffectId, scope: &Scope) -> Vec<WorkflowOutcome> {
    let stage = stage(id);
    let is_fix = stage.contains("-F-");
    let (focus, mut all) = match stage {
        "thesis" | "antithesis" | "synthesis" | "prepare" => {
            (Focus::Planning, planning(stage, id, scope))
        }
        "check-base" => (Focus::Planning, verified(workflow, id)),
        "verify-merged" => (Focus::Running, verified(workflow, id)),
        "verify-all" => (Focus::Closing, verified(workflow, id)),
        "reviewer" | "accountant" => (Focus::Closing, closing(stage, id)),
        _ if is_fix => (Focus::Closing, running(stage, id)[..1].to_vec()),
        _ => (Focus::Running, running(stage, id)),
    };
    if scope.focus == focus {
        let usage = Usage::default();
        all.push(WorkflowOutcome::Cancelled { usage });
    } else {
        all.truncate(1);
    }
    all
}

fn unreadable(id: &EffectId) -> WorkflowOutcome {
    WorkflowOutcome::Unreadable {
        by: ReviewerIdentity {
            agent: "claude".to_owned(),
            run: format!("run-{id}"),
        },
        why: "no JSON".to_owned(),
        usage: Usage::default(),
    }
}

fn planning(stage: &str, id: &EffectId, scope: &Scope) -> Vec<WorkflowOutcome> {
    let (run, critic) = (format!("run-{id}"), format!("critic-{id}"));
    let said = |verdict, dissent: &[&str]| {
        let found = synthesis(verdict, dissent, scope.plan.clone());
        answered(&run, RalphAnswer::Synthesis(found))
    };
    let mut broken = scope.plan.clone();
    broken.tasks.clear();
    match stage {
        "thesis" => vec![
            answered(&run, RalphAnswer::Thesis(scope.plan.clone())),
            answered(&run, RalphAnswer::Thesis(broken)),
            unreadable(id),
            failed(true),
        ],
        "antithesis" => vec![
            answered(&critic, RalphAnswer::Antithesis(objections())),
            answered(&critic, account()),
        ],
        "synthesis" => vec![
            said(Consensus::Consensus, &[]),
            said(Consensus::Consensus, &["It is ugly."]),
            said(Consensus::Revise, &[]),
        ],
        _ => vec![
            WorkflowOutcome::Prepared {
                branch: "feat/ralph-fix-login".to_owned(),
                worktree: "wt".to_owned(),
                baseline: None,
            },
            failed(false),
        ],
    }
}

fn running(stage: &str, id: &EffectId) -> Vec<WorkflowOutcome> {
    let head = format!("head-{id}");
    let goal = if stage.contains("-F-") {
        "020-fix"
    } else {
        "012-a"
    };
    if stage == "land-T-001" {
        let paths = vec!["src/a/x.rs".to_owned()];
        return vec![
            landed(&head, false),
            landed(&head, true),
            WorkflowOutcome::Conflicted {
                paths: paths.clone(),
            },
            WorkflowOutcome::Strayed { paths },
        ];
    }
    if stage.starts_with("land-") {
        return vec![landed(&head, false)];
    }
    vec![
        rested(goal, GoalStatus::Done, Some(&head)),
        rested(goal, GoalStatus::Paused, None),
        rested(goal, GoalStatus::Impossible, None),
        failed(false),
    ]
}

fn closing(stage: &str, id: &EffectId) -> Vec<WorkflowOutcome> {
    if stage == "accountant" {
        return vec![answered(&format!("run-{id}"), account()), unreadable(id)];
    }
    let review = |said| answered(&format!("critic-{id}"), RalphAnswer::Review(said));
    let mut replan = findings(Vec::new());
    replan.approve = false;
    replan.replan = Some("It solves something else.".to_owned());
    vec![
        review(findings(Vec::new())),
        review(findings(vec![finding(FindingCategory::Correctness, true)])),
        review(replan),
        unreadable(id),
    ]
}

fn verified(workflow: &Workflow, id: &EffectId) -> Vec<WorkflowOutcome> {
    let wanted = next(workflow).into_iter().find(|effect| effect.id == *id);
    let Some(WorkflowAction::Verify(asked)) = wanted.map(|effect| effect.action) else {
        return Vec::new();
    };
    let failing: Vec<&str> = asked.commands.iter().take(1).map(String::as_str).collect();
    let fails = report(&asked.commit, &asked.commands, &failing);
    let passes = report(&asked.commit, &asked.commands, &[]);
    vec![
        WorkflowOutcome::Verified(passes),
        WorkflowOutcome::Verified(fails),
    ]
}
