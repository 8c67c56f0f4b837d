//! The argument: attempts, identities, refusals, approval, revision.

use super::{
    Build, Consensus, FindingCategory, Means, PlanApproval, RalphPhase, WorkflowCommand,
    WorkflowEvent, WorkflowRule, WorkflowStatus, answered, denied, facts, finding, findings, human,
    in_a_row, objections, parallel, revise, synthesis, terms,
};
use crate::rules::branch::BranchType;
use crate::rules::effect::WorkflowAction;
use crate::rules::modes::ralph::answer::RalphAnswer;
use crate::rules::modes::ralph::plan::RalphPlan;
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::outcome::WorkflowOutcome;

/// Plays one attempt that ends without consensus.
fn attempt(build: &mut Build, dissent: &[&str]) -> Vec<WorkflowEvent> {
    build.answer(RalphRole::Thesis, RalphAnswer::Thesis(in_a_row()));
    build.answer(RalphRole::Antithesis, RalphAnswer::Antithesis(objections()));
    let found = synthesis(Consensus::Revise, dissent, in_a_row());
    build.answer(RalphRole::Synthesis, RalphAnswer::Synthesis(found))
}

#[test]
fn the_first_consensus_ends_the_argument() {
    let mut build = Build::start(terms());
    attempt(&mut build, &[]);
    assert_eq!(build.wanted(), ["t001-thesis-a2"]);
    build.agree(&in_a_row());
    assert_eq!(build.ralph().phase, RalphPhase::Approval);
    assert_eq!(build.ralph().attempts.len(), 2);
    let pending = build.workflow.pending.as_ref().unwrap();
    assert!(pending.risks.is_empty());
    assert!(build.wanted().is_empty());
}

#[test]
fn five_attempts_are_the_most_and_the_best_plan_needs_its_dissent_accepted() {
    let mut build = Build::start(terms());
    for dissent in [&["a", "b"][..], &["c"], &["d", "e"], &["f"]] {
        attempt(&mut build, dissent);
    }
    let events = attempt(&mut build, &["g", "h"]);
    let names = facts(&events);
    assert_eq!(
        names,
        ["synthesis_recorded", "consensus_missed", "plan_proposed"]
    );
    build.check_base(&[]);
    let pending = build.workflow.pending.clone().unwrap();
    let missed = "no consensus was reached in 5 attempts";
    assert_eq!(
        pending.risks,
        [missed, "dissent: f"],
        "attempt 4 is the best and latest"
    );
    assert!(
        build
            .document("plan.md")
            .contains("**No consensus was reached**")
    );
    let code = denied(&build, &human(), &build.approval(false));
    assert_eq!(code, "risks_not_accepted");
    let events = build.ask(&human(), &build.approval(true));
    assert_eq!(facts(&events), ["approved"]);
    assert_eq!(build.workflow.approvals[0].accepted, pending.risks);
    assert_eq!(build.wanted(), ["t001-prepare-a1"]);
}

#[test]
fn nobody_speaks_twice_in_an_attempt() {
    let mut build = Build::start(terms());
    build.perform("thesis", answered("run-x", RalphAnswer::Thesis(in_a_row())));
    let same = answered("run-x", RalphAnswer::Antithesis(objections()));
    let events = build.perform("antithesis", same);
    assert_eq!(facts(&events), ["answer_refused"]);
    assert_eq!(build.wanted(), ["t001-antithesis-a2"]);
    let prompt = build.prompt(RalphRole::Antithesis);
    assert!(
        prompt.contains("run run-x has already answered in this attempt"),
        "{prompt}"
    );
}

#[test]
fn a_refused_answer_is_told_and_the_third_in_a_row_is_a_persons_affair() {
    let mut build = Build::start(terms());
    let broken = RalphPlan {
        tasks: Vec::new(),
        ..in_a_row()
    };
    build.answer(RalphRole::Thesis, RalphAnswer::Thesis(broken));
    assert!(build.prompt(RalphRole::Thesis).contains("tasks is empty"));
    build.answer(RalphRole::Thesis, RalphAnswer::Review(findings(Vec::new())));
    let unreadable = WorkflowOutcome::Unreadable {
        by: crate::rules::identity::ReviewerIdentity {
            agent: "claude".to_owned(),
            run: "run-y".to_owned(),
        },
        why: "no JSON".to_owned(),
        usage: kapi_core::usage::Usage::default(),
    };
    let events = build.perform("thesis", unreadable);
    assert_eq!(facts(&events), ["answer_refused", "blocked"]);
    let blocked = build.workflow.blocked.clone().unwrap();
    assert_eq!(
        blocked.reason,
        "3 answers in a row from the thesis were refused: no JSON"
    );
    assert_eq!(blocked.unblock, "kapi ralph resume 011 to ask again");
    build.ask(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(build.wanted(), ["t001-thesis-a4"]);
    build.agree(&in_a_row());
    assert!(build.ralph().refused.is_empty());
}

#[test]
fn every_objection_is_answered() {
    let mut build = Build::start(terms());
    build.answer(RalphRole::Thesis, RalphAnswer::Thesis(in_a_row()));
    build.answer(RalphRole::Antithesis, RalphAnswer::Antithesis(objections()));
    let mut found = synthesis(Consensus::Consensus, &[], in_a_row());
    found.answers.clear();
    let events = build.answer(RalphRole::Synthesis, RalphAnswer::Synthesis(found));
    assert_eq!(facts(&events), ["answer_refused"]);
    assert!(
        build
            .prompt(RalphRole::Synthesis)
            .contains("answers needs 1 entries")
    );
}

#[test]
fn an_approval_names_what_was_shown() {
    let mut build = Build::start(terms());
    build.agree(&in_a_row());
    let sha256 = build.workflow.pending.as_ref().unwrap().sha256.clone();
    let approve = |shown: &str, found: &str| WorkflowCommand::Approve {
        sha256: shown.to_owned(),
        found: found.to_owned(),
        means: Means::NamedHash,
        accepts_risks: false,
    };
    for (shown, found) in [("other", sha256.as_str()), (&sha256, "edited")] {
        let command = approve(shown, found);
        assert_eq!(denied(&build, &human(), &command), "subject_changed");
    }
    let before = build.document("plan.md");
    build.ask(&human(), &approve(&sha256, &sha256));
    assert_eq!(
        build.document("plan.md"),
        before,
        "approving changes no byte of it"
    );
}

#[test]
fn a_revision_begins_another_cycle_and_the_approval_dies() {
    let mut build = Build::start(terms());
    build.agree(&in_a_row());
    let old = build.approval(false);
    let events = build.ask(&human(), &revise());
    assert_eq!(facts(&events), ["revised", "plan_reopened"]);
    assert_eq!(build.wanted(), ["t002-thesis-a2"]);
    assert!(build.prompt(RalphRole::Thesis).contains("In another way."));
    assert_eq!(denied(&build, &human(), &old), "no_pending_decision");
    build.agree(&parallel());
    assert_eq!(denied(&build, &human(), &old), "subject_changed");
    build.ask(&human(), &build.approval(false));
}

#[test]
fn what_answers_an_earlier_cycle_changes_nothing() {
    let mut build = Build::start(terms());
    let effect = build.intend("thesis");
    build.ask(&human(), &revise());
    let before = build.workflow.body.clone();
    let stale = answered("run-late", RalphAnswer::Thesis(in_a_row()));
    let events = build.report(effect, stale);
    assert!(facts(&events).is_empty());
    assert_eq!(build.workflow.body, before);
    assert!(build.workflow.in_flight.is_empty());
}

#[test]
fn an_approval_in_advance_covers_what_reached_consensus_without_dissent() {
    let mut own = terms();
    own.plan_approval = PlanApproval::InAdvance;
    let mut build = Build::start(own.clone());
    build.agree(&in_a_row());
    let approval = &build.workflow.approvals[0];
    assert_eq!(
        (approval.means, approval.by.as_str()),
        (Means::InAdvance, "somebody")
    );
    assert_eq!(build.wanted(), ["t001-prepare-a1"]);

    let mut build = Build::start(own);
    build.answer(RalphRole::Thesis, RalphAnswer::Thesis(in_a_row()));
    build.answer(RalphRole::Antithesis, RalphAnswer::Antithesis(objections()));
    let found = synthesis(Consensus::Consensus, &["It is ugly."], in_a_row());
    build.answer(RalphRole::Synthesis, RalphAnswer::Synthesis(found));
    build.check_base(&[]);
    assert!(build.workflow.approvals.is_empty());
    let pending = build.workflow.pending.as_ref().unwrap();
    assert_eq!(pending.risks, ["dissent: It is ugly."]);
}

#[test]
fn a_check_that_always_passes_is_a_persons_to_accept() {
    let mut own = terms();
    own.plan_approval = PlanApproval::InAdvance;
    let mut build = Build::start(own);
    let mut plan = parallel();
    plan.criteria[0].verify = Some("true".to_owned());
    build.agree(&plan);
    assert_eq!(build.ralph().phase, RalphPhase::Approval);
    let pending = build.workflow.pending.clone().unwrap();
    assert_eq!(
        pending.risks,
        ["AC-1 is verified by `true`, which always passes"]
    );
    let refused = build.try_ask(&human(), &build.approval(false)).unwrap_err();
    assert_eq!(refused.why.code(), "risks_not_accepted");
    build.ask(&human(), &build.approval(true));
    assert_eq!(build.ralph().phase, RalphPhase::Run);
}

#[test]
fn a_criterion_that_holds_before_the_work_is_told_at_approval() {
    let told =
        ["AC-1: `sh works.sh` passes before anything is done, so it shows nothing about the work"];
    let mut build = Build::start(terms());
    build.argue(&parallel());
    assert!(build.workflow.pending.is_none(), "nobody knows yet");
    assert_eq!(build.wanted(), ["t001-check-base-a1"]);
    // That the checks of everything pass is how it should be.
    build.check_base(&["sh works.sh", "sh all.sh", "sh lint.sh"]);
    assert_eq!(build.workflow.pending.clone().unwrap().risks, told);
    let code = denied(&build, &human(), &build.approval(false));
    assert_eq!(code, "risks_not_accepted");
    build.ask(&human(), &build.approval(true));
    let WorkflowAction::Prepare { checks, .. } = build.effect("prepare").action else {
        panic!("no branch is made");
    };
    assert!(checks.commands.is_empty(), "they were run once");
    let verified = build.document("verify.md");
    assert!(
        verified.contains("| base | base | sh works.sh | 0 |"),
        "{verified}"
    );
    // Whoever approves in advance is told in the record.
    let mut own = terms();
    own.plan_approval = PlanApproval::InAdvance;
    let mut build = Build::start(own);
    build.argue(&parallel());
    build.check_base(&["sh works.sh"]);
    assert_eq!(build.workflow.approvals[0].accepted, told);
}

#[test]
fn a_plan_that_a_review_threw_over_needs_a_person_again() {
    let mut own = terms();
    own.plan_approval = PlanApproval::InAdvance;
    let mut build = Build::run_in_advance(own, &in_a_row());
    for (task, commit, head) in [("T-001", "c1", "h1"), ("T-002", "c2", "h2")] {
        build.prove(task, commit);
        build.land(task, head, false);
    }
    let mut said = findings(vec![finding(FindingCategory::ArtifactAlignment, true)]);
    said.replan = Some("It mends another login.".to_owned());
    let events = build.review(said);
    assert_eq!(facts(&events), ["reviewed", "plan_reopened"]);
    let prompt = build.prompt(RalphRole::Thesis);
    for words in [
        "It mends another login.",
        "T-001 of plan 1",
        "The branch is at h2",
    ] {
        assert!(prompt.contains(words), "{words}: {prompt}");
    }
    build.agree(&parallel());
    assert!(build.workflow.pending.is_some());
    let mut other = Build::clone(&build);
    other.ask(&human(), &build.approval(false));
    assert_eq!(
        other.wanted(),
        ["t002-work-T-001-a1", "t002-work-T-002-a1"],
        "the branch is there, so the work begins"
    );
    assert_eq!(other.ralph().earlier.len(), 2);
    assert_eq!(
        other.ralph().tasks.values().next().unwrap().base.as_deref(),
        Some("h2")
    );
}

#[test]
fn a_second_plan_keeps_the_type_of_the_branch() {
    let mut build = Build::run(terms(), &in_a_row());
    build.ask(&human(), &revise());
    let other = RalphPlan {
        branch_type: BranchType::Docs,
        ..in_a_row()
    };
    let events = build.answer(RalphRole::Thesis, RalphAnswer::Thesis(other));
    assert_eq!(facts(&events), ["answer_refused"]);
}

#[test]
fn a_used_up_plan_cannot_be_approved_twice() {
    let build = Build::run(terms(), &in_a_row());
    let found = build.try_ask(&human(), &build.approval(false)).unwrap_err();
    assert_eq!(found.why, WorkflowRule::NoPendingDecision);
    assert_eq!(build.workflow.status, WorkflowStatus::Active);
}
