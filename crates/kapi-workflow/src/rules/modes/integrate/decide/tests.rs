//! An integration from its sources to dev, and each way back.

mod argue;
mod regenerate;

use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::effect::combine::{CombineReport, CombineStep, OrderedSource};
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::modes::integrate::answer::IntegrateAnswer;
use crate::rules::modes::integrate::command::IntegrateCommand;
use crate::rules::modes::integrate::fixture::{
    Batch, foresight, id, left, proposed_plan, resolution,
};
use crate::rules::modes::integrate::leave::IntegrateLeave;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::scenario::human;

const ASKS: IntegrateLeave = IntegrateLeave {
    evicts: false,
    brings_checkout: false,
};
const EVICTS: IntegrateLeave = IntegrateLeave {
    evicts: true,
    brings_checkout: true,
};

fn document(batch: &Batch, name: &str) -> String {
    let all = crate::rules::documents::documents(batch.workflow());
    all.into_iter().find(|it| it.name == name).unwrap().text
}

#[test]
fn a_clean_batch_lands_as_it_was_approved() {
    let mut batch = Batch::begin(2, ASKS);
    assert_eq!(batch.phase(), "inspect");
    batch.go_on();
    assert_eq!(batch.phase(), "plan/baseline");
    assert!(batch.workflow().pending.is_none());
    batch.go_on();
    assert_eq!(batch.phase(), "plan/approval");
    let plan = document(&batch, "merge-plan.md");
    for part in [
        "- `sh 001-one.sh`: fails on `dev` (exited with 1), as it did before 001-one",
        "- `sh all.sh`: holds on `dev`",
    ] {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
    assert!(
        next(batch.workflow()).is_empty(),
        "nothing before the approval"
    );
    batch.0.approve();
    assert_eq!(batch.phase(), "merge/prepare");
    batch.finish();
    let state = batch.state();
    assert_eq!(batch.workflow().status, WorkflowStatus::Completed);
    let landed = state.landed.as_ref().unwrap();
    assert_eq!(
        (landed.from.as_str(), landed.to.as_str()),
        ("dev-0", "dev-0+1+2")
    );
    let report = document(&batch, "integration-report.md");
    assert!(
        report.contains("git update-ref refs/heads/dev dev-0 dev-0+1+2"),
        "{report}"
    );
    let names: Vec<String> = crate::rules::documents::documents(batch.workflow())
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(
        names,
        [
            "merge-plan.md",
            "conflict-matrix.md",
            "verify.md",
            "integration-report.md",
            "decision-report.md"
        ]
    );
}

#[test]
fn a_source_s_own_check_is_run_where_the_source_is() {
    let batch = Batch::approved(2, ASKS);
    let always = Vec::new();
    let of = |names: &[&str]| {
        let ids: Vec<_> = names.iter().map(|name| id(name)).collect();
        batch.state().commands(&ids, &always)
    };
    assert_eq!(of(&["001-one"]), ["sh 001-one.sh", "sh all.sh"]);
    assert_eq!(of(&["001-one", "002-two"]).len(), 3);
    assert!(of(&[]).is_empty());
}

#[test]
fn what_fails_on_dev_without_any_source_blames_nobody() {
    let mut batch = Batch::begin(2, ASKS);
    batch.until("plan/baseline");
    let failing = ["sh all.sh", "sh 001-one.sh", "sh 002-two.sh"];
    batch.fails(&failing);
    let plan = document(&batch, "merge-plan.md");
    let part = "- `sh all.sh`: fails on `dev` already (exited with 1)";
    assert!(plan.contains(part), "{plan}");
    batch.0.approve();
    batch.until("verify/head");
    let WorkflowAction::Verify(asked) = next(batch.workflow()).remove(0).action else {
        panic!("the head is verified");
    };
    assert_eq!(asked.commands, ["sh 001-one.sh", "sh 002-two.sh"]);
    assert!(document(&batch, "verify.md").contains("Fails on dev without any source"));
}

#[test]
fn nothing_is_begun_where_no_check_could_show_anything() {
    let mut batch = Batch::begin(1, ASKS);
    batch.until("plan/baseline");
    let mut body = batch.state().clone();
    body.sources[0].checks[0].failed_before = false;
    let workflow = batch.0.workflow.as_mut().unwrap();
    workflow.body = crate::rules::modes::Body::Integrate(Box::new(body));
    batch.fails(&["sh all.sh", "sh 001-one.sh"]);
    assert_eq!(batch.workflow().status, WorkflowStatus::Blocked);
    assert!(batch.workflow().pending.is_none());
    // The person mends dev, and everything is looked at again.
    batch.0.send(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(batch.phase(), "inspect");
    assert_eq!(batch.state().wanted, None);
    batch.go_on();
    assert_eq!(batch.phase(), "plan/baseline");
}

#[test]
fn a_conflict_is_resolved_with_its_reasons_on_record() {
    let mut batch = Batch::approved(2, ASKS);
    batch.go_on();
    batch.conflicts();
    assert_eq!(batch.phase(), "merge/conflict");
    let WorkflowAction::Propose(asked) = next(batch.workflow()).remove(0).action else {
        panic!("a resolver is asked");
    };
    assert_eq!(asked.question.commit.as_deref(), Some("conflict-1"));
    assert!(
        asked
            .question
            .prompt
            .contains("src/a.rs: base b, branch o, source t")
    );
    // Nothing changed, then markers left, then a resolution.
    let nothing = left(batch.workflow(), resolution(false), None);
    batch.perform(nothing);
    let restored = next(batch.workflow()).remove(0).action;
    assert!(
        matches!(restored, WorkflowAction::Restore(_)),
        "{restored:?}"
    );
    batch.go_on();
    batch.go_on();
    let paths = vec!["src/a.rs".to_owned()];
    batch.combined(CombineReport::MarkersLeft { paths });
    batch.go_on();
    batch.go_on();
    batch.go_on();
    assert_eq!(batch.phase(), "verify/head");
    let state = batch.state();
    assert_eq!(state.resolutions.len(), 1);
    assert_eq!(state.applied[1].resolved, ["src/a.rs"]);
    let conflict = &batch.workflow().conflicts[0];
    assert_eq!(conflict.settled.as_ref().unwrap().why, "Both");
    let matrix = document(&batch, "conflict-matrix.md");
    for part in [
        "- Both\n- Neither",
        "> Both are wanted.",
        "settled as dev-0+1*+2",
    ] {
        assert!(matrix.contains(part), "{part}\n{matrix}");
    }
    batch.finish();
    assert_eq!(batch.workflow().status, WorkflowStatus::Completed);
}

#[test]
fn refused_resolutions_wait_for_a_person_who_may_go_on_without_the_source() {
    let mut batch = Batch::approved(2, ASKS);
    batch.go_on();
    batch.conflicts();
    for _ in 0..3 {
        if matches!(next(batch.workflow())[0].action, WorkflowAction::Restore(_)) {
            batch.go_on();
        }
        let nothing = left(batch.workflow(), resolution(false), None);
        batch.perform(nothing);
    }
    let blocked = batch.workflow().blocked.clone().unwrap();
    assert!(blocked.unblock.contains("--evict 002-two"), "{blocked:?}");
    batch.ask(IntegrateCommand::Evict {
        source: id("002-two"),
        why: "Later.".to_owned(),
    });
    assert_eq!(batch.phase(), "plan/approval");
    assert!(document(&batch, "merge-plan.md").contains("002-two: somebody left it out: Later."));
    batch.until("plan/approval");
    batch.0.approve();
    assert_eq!(
        batch.phase(),
        "verify/head",
        "the first source stays on the branch"
    );
    batch.finish();
    assert_eq!(batch.state().landed.as_ref().unwrap().to, "dev-0+1");
}

#[test]
fn an_unresolvable_conflict_leaves_its_source_out() {
    let mut batch = Batch::approved(2, EVICTS);
    batch.go_on();
    batch.conflicts();
    let gives_up = left(batch.workflow(), resolution(true), None);
    batch.perform(gives_up);
    assert_eq!(batch.phase(), "verify/head");
    assert_eq!(batch.state().evicted[0].source, id("002-two"));
    batch.finish();
    assert_eq!(batch.workflow().status, WorkflowStatus::Completed);
}

#[test]
fn a_pair_that_fails_together_is_found_and_the_later_one_goes() {
    let mut batch = Batch::approved(3, ASKS);
    batch.until("verify/head");
    batch.fails(&["sh all.sh"]);
    assert_eq!(batch.phase(), "verify/bisect");
    // one alone, one and two, three alone, then three with one.
    for _ in 0..20 {
        if batch.phase() != "verify/bisect" {
            break;
        }
        match next(batch.workflow()).remove(0).action {
            WorkflowAction::Verify(asked) => {
                let has = |n: &str| asked.commit.contains(n);
                let fails = has("+1") && has("+3");
                batch.fails(if fails { &["sh all.sh"] } else { &[] });
            }
            _ => drop(batch.go_on()),
        }
    }
    assert_eq!(batch.phase(), "plan/approval", "eviction is approved anew");
    let gone = &batch.state().evicted[0];
    assert_eq!(
        (&gone.source, &gone.with),
        (&id("003-three"), &Some(id("001-one")))
    );
    assert!(
        gone.evidence.contains("`sh all.sh` exited with 1"),
        "{}",
        gone.evidence
    );
    let plan = document(&batch, "merge-plan.md");
    assert!(!plan.contains("sh 003-three.sh"), "{plan}");
    batch.until("plan/approval");
    batch.0.approve();
    batch.finish();
    assert_eq!(batch.state().landed.as_ref().unwrap().to, "dev-0+1+2");
    let report = document(&batch, "integration-report.md");
    assert!(report.contains("Left out: 003-three"), "{report}");
}

#[test]
fn a_source_that_fails_alone_goes_without_asking_where_that_is_allowed() {
    let mut batch = Batch::approved(2, EVICTS);
    batch.until("verify/head");
    batch.fails(&["sh 001-one.sh"]);
    batch.fails(&["sh 001-one.sh"]);
    assert_eq!(
        batch.phase(),
        "merge/apply",
        "the rest is applied again on dev"
    );
    let WorkflowAction::Combine(step) = next(batch.workflow()).remove(0).action else {
        panic!("the second source is applied");
    };
    let CombineStep::Apply(asked) = *step else {
        panic!("{step:?}");
    };
    assert_eq!(
        (asked.at.as_str(), asked.onto.as_str()),
        ("dev-0+1+2", "dev-0")
    );
    batch.finish();
    assert_eq!(batch.state().landed.as_ref().unwrap().to, "dev-0+2");
}

#[test]
fn what_builds_on_a_source_goes_with_it_and_nothing_left_is_the_end() {
    let mut batch = Batch::begin(2, EVICTS);
    let mut seen = foresight(batch.state(), "dev-0");
    seen.order[1] = OrderedSource {
        after: vec![id("001-one")],
        ..seen.order[1].clone()
    };
    batch.combined(CombineReport::Inspected(Box::new(seen)));
    batch.until("plan/approval");
    batch.0.approve();
    batch.until("verify/head");
    batch.fails(&["sh 001-one.sh"]);
    batch.fails(&["sh 001-one.sh"]);
    assert_eq!(batch.workflow().status, WorkflowStatus::Failed);
    assert_eq!(batch.state().evicted.len(), 2);
}

#[test]
fn a_resolution_that_breaks_the_checks_is_made_again_before_its_source_goes() {
    let mut batch = Batch::approved(2, EVICTS);
    batch.go_on();
    for _ in 0..3 {
        batch.conflicts();
        batch.until("verify/head");
        batch.fails(&["sh all.sh"]);
        for _ in 0..10 {
            if batch.phase() != "verify/bisect" {
                break;
            }
            match next(batch.workflow()).remove(0).action {
                WorkflowAction::Verify(asked) if asked.commit == "dev-0+1" => {
                    batch.fails(&[]);
                }
                WorkflowAction::Verify(_) => drop(batch.fails(&["sh all.sh"])),
                _ => drop(batch.combined(CombineReport::Tried { commit: None })),
            }
        }
        if batch.state().redo.len() < 2 {
            assert_eq!(batch.phase(), "merge/apply");
        }
    }
    assert_eq!(batch.state().redo.len(), 2);
    assert_eq!(batch.state().evicted[0].source, id("002-two"));
}

#[test]
fn only_the_approved_head_lands() {
    let mut batch = Batch::approved(1, ASKS);
    batch.until("land");
    let effect = next(batch.workflow()).remove(0).id;
    let intend = WorkflowCommand::Intend {
        effect: effect.clone(),
    };
    let engine = kapi_core::actor::Actor::Engine;
    batch.0.send(&engine, &intend);
    let other = WorkflowCommand::Report {
        effect,
        outcome: Box::new(WorkflowOutcome::Advanced {
            at: "something else".to_owned(),
            brought: None,
        }),
    };
    assert!(batch.0.ask(&engine, &other).is_err());
    assert!(batch.state().landed.is_none());
}

#[test]
fn sources_that_are_not_as_they_were_wait_for_a_person() {
    let mut batch = Batch::begin(2, ASKS);
    let reasons = vec!["002-two was moved".to_owned()];
    batch.combined(CombineReport::Unfit { reasons });
    let blocked = batch.workflow().blocked.clone().unwrap();
    assert!(blocked.reason.contains("002-two was moved"), "{blocked:?}");
    batch.0.send(&human(), &WorkflowCommand::Unblock {});
    batch.finish();
    assert_eq!(batch.workflow().status, WorkflowStatus::Completed);
}

#[test]
fn a_method_that_cannot_be_used_asks_for_another_plan() {
    let mut batch = Batch::approved(1, ASKS);
    let why = "001-one conflicts by rebase in src/a.rs".to_owned();
    batch.combined(CombineReport::MethodUnfit { why });
    batch.go_on();
    assert_eq!(batch.phase(), "plan/draft");
    batch.finish();
    assert_eq!(batch.workflow().status, WorkflowStatus::Completed);
}

#[test]
fn a_person_s_change_plans_anew_in_another_cycle() {
    let mut batch = Batch::approved(2, ASKS);
    batch.until("review");
    let revise = WorkflowCommand::Revise {
        text: "Two before one.".to_owned(),
    };
    batch.0.send(&human(), &revise);
    batch.go_on();
    let WorkflowAction::Ask(asked) = next(batch.workflow()).remove(0).action else {
        panic!("a planner is asked");
    };
    assert!(asked.prompt.contains("Two before one."), "{}", asked.prompt);
    let mut other = proposed_plan(batch.state());
    other.steps.reverse();
    batch.answer(IntegrateAnswer::Plan(other));
    batch.until("plan/approval");
    batch.0.approve();
    assert_eq!(batch.phase(), "merge/apply", "the branch begins again");
    batch.finish();
    assert_eq!(batch.state().landed.as_ref().unwrap().to, "dev-0+2+1");
}
