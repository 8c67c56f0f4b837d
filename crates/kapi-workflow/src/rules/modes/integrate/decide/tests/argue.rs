//! What is found in a result, and what is said for and against it.

use kapi_core::workflow_status::WorkflowStatus;

use super::{ASKS, document};
use crate::rules::command::WorkflowCommand;
use crate::rules::effect::combine::{CombineReport, Coverage, CoverageFault};
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::modes::integrate::answer::{
    IntegrateAnswer, IntegrationFindings, IntegrationProblem, JustifiedFinding, LandingVerdict,
    RevisionCause,
};
use crate::rules::modes::integrate::command::IntegrateCommand;
use crate::rules::modes::integrate::fixture::{
    Batch, finding, foresight, id, proposed_plan, ruling,
};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::scenario::human;

#[test]
fn every_finding_is_justified_or_a_problem() {
    let mut batch = Batch::approved(1, ASKS);
    batch.until("review");
    let head = batch.state().head().to_owned();
    batch.combined(CombineReport::Traced(Box::new(Coverage {
        head,
        findings: vec![
            finding(CoverageFault::Missed),
            finding(CoverageFault::Shared),
        ],
        ..Coverage::default()
    })));
    let nothing = IntegrationFindings {
        summary: "Fine.".to_owned(),
        justified: Vec::new(),
        problems: Vec::new(),
    };
    batch.answer(IntegrateAnswer::Review(nothing.clone()));
    assert_eq!(batch.phase(), "review");
    let refused = &batch.state().refused["reviewer"];
    assert_eq!(
        refused[0],
        "finding 1 (missed) is neither justified nor a problem"
    );
    let justified = IntegrationFindings {
        justified: vec![JustifiedFinding {
            finding: 1,
            why: "The other source removed the file.".to_owned(),
        }],
        ..nothing
    };
    batch.answer(IntegrateAnswer::Review(justified));
    assert_eq!(batch.phase(), "consensus/thesis");
    batch.finish();
    let text = document(&batch, "integration-report.md");
    assert!(
        text.contains("Finding 1: The other source removed the file."),
        "{text}"
    );
}

#[test]
fn a_problem_leads_back_as_far_as_the_widest_cause() {
    let mut batch = Batch::approved(1, ASKS);
    batch.until("review");
    batch.go_on();
    let problem = |cause| IntegrationProblem {
        cause,
        finding: None,
        source: Some(id("001-one")),
        title: "It is wrong".to_owned(),
        detail: "See line 1.".to_owned(),
    };
    batch.answer(IntegrateAnswer::Review(IntegrationFindings {
        summary: "Two things.".to_owned(),
        justified: Vec::new(),
        problems: vec![
            problem(RevisionCause::Verification),
            problem(RevisionCause::Scope),
        ],
    }));
    assert_eq!(batch.phase(), "inspect");
    batch.go_on();
    assert_eq!(batch.phase(), "plan/draft", "another plan is asked for");
    let mut short = proposed_plan(batch.state());
    short.steps.clear();
    batch.answer(IntegrateAnswer::Plan(short));
    assert!(batch.state().refused["planner"][0].contains("need each of these once"));
    batch.go_on();
    assert_eq!(batch.phase(), "plan/baseline", "its command is new");
    batch.go_on();
    assert_eq!(batch.phase(), "plan/approval");
    let plan = document(&batch, "merge-plan.md");
    assert!(plan.contains("`sh more.sh`: holds on `dev`"), "{plan}");
}

#[test]
fn a_revision_returns_to_the_narrowest_phase() {
    let check = |cause: RevisionCause, has_conflict: bool, phase: &str| {
        let mut batch = Batch::approved(1, ASKS);
        if has_conflict {
            batch.conflicts();
        }
        batch.until("consensus/synthesis");
        let mut revise = ruling(LandingVerdict::Revise, Some(cause));
        revise.checks = vec!["sh both.sh".to_owned()];
        batch.answer(IntegrateAnswer::Synthesis(revise));
        assert_eq!(batch.phase(), phase, "{cause:?}");
        assert_eq!(batch.state().attempt, 2);
        batch
    };
    let verify = check(RevisionCause::Verification, false, "verify/head");
    let WorkflowAction::Verify(asked) = next(verify.workflow()).remove(0).action else {
        panic!("it is verified with more");
    };
    assert!(asked.commands.contains(&"sh both.sh".to_owned()));
    check(RevisionCause::Resolution, true, "merge/apply");
    check(RevisionCause::Resolution, false, "inspect");
    check(RevisionCause::Scope, false, "inspect");
    let mut unclear = check(RevisionCause::Intent, false, "inspect");
    let blocked = unclear.workflow().blocked.clone().unwrap();
    assert!(blocked.unblock.contains("--clarify 001-one"), "{blocked:?}");
    unclear.0.send(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(unclear.workflow().status, WorkflowStatus::Blocked);
    unclear.ask(IntegrateCommand::Clarify {
        source: id("001-one"),
        text: "It is for speed.".to_owned(),
    });
    unclear.go_on();
    assert!(document(&unclear, "merge-plan.md").contains("It is for speed."));
    unclear.finish();
}

#[test]
fn three_attempts_and_a_block_wait_for_a_person() {
    let mut batch = Batch::approved(1, ASKS);
    for attempt in 1..=3 {
        batch.until("consensus/synthesis");
        assert_eq!(batch.state().attempt, attempt);
        let revise = ruling(LandingVerdict::Revise, Some(RevisionCause::Verification));
        batch.answer(IntegrateAnswer::Synthesis(revise));
    }
    assert_eq!(batch.workflow().status, WorkflowStatus::Blocked);
    batch.0.send(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(
        (batch.phase().as_str(), batch.state().cycle),
        ("inspect", 2)
    );
    assert_eq!(batch.state().attempt, 1);
    batch.go_on();
    batch.go_on();
    batch.until("plan/approval");
    batch.0.approve();
    batch.until("consensus/synthesis");
    batch.answer(IntegrateAnswer::Synthesis(ruling(
        LandingVerdict::Block,
        None,
    )));
    assert_eq!(batch.workflow().status, WorkflowStatus::Blocked);
    assert!(
        batch
            .workflow()
            .blocked
            .as_ref()
            .unwrap()
            .reason
            .contains("blocks it")
    );
}

#[test]
fn nobody_speaks_twice_of_one_head_and_verdicts_die_with_it() {
    let mut batch = Batch::approved(1, ASKS);
    batch.until("consensus/antithesis");
    let spoke = batch.state().said().next().unwrap().by.clone();
    let answer = crate::rules::modes::integrate::fixture::good_answer(
        batch.state(),
        crate::rules::modes::integrate::role::IntegrateRole::Antithesis,
    );
    batch.perform(WorkflowOutcome::Answered {
        by: spoke,
        answer: Box::new(crate::rules::modes::ModeAnswer::Integrate(answer)),
        usage: kapi_core::usage::Usage::default(),
    });
    assert!(batch.state().refused["antithesis"][0].contains("has spoken of this head"));
    batch.until("land");
    assert!(batch.state().is_agreed());
    // dev moved: nothing of what was said holds for what comes.
    let found = Some("dev-1".to_owned());
    batch.perform(WorkflowOutcome::Moved { found });
    assert_eq!(batch.phase(), "inspect");
    let seen = foresight(batch.state(), "dev-1");
    batch.combined(CombineReport::Inspected(Box::new(seen)));
    batch.until("plan/approval");
    batch.0.approve();
    batch.until("review");
    assert!(!batch.state().is_agreed());
    batch.finish();
    let landed = batch.state().landed.clone().unwrap();
    assert_eq!(
        (landed.from.as_str(), landed.to.as_str()),
        ("dev-1", "dev-1+1")
    );
}
