//! What goals may use: shares of what is left of the whole, known before each begins.

use kapi_core::usage::Usage;

use super::{
    Actor, Build, GoalStatus, WorkflowCommand, WorkflowStatus, facts, human, parallel, rested,
    terms,
};
use crate::rules::effect::WorkflowAction;
use crate::rules::limits::{GoalAccount, LimitRaises};
use crate::rules::modes::ralph::fixture::{findings, goal_id, task_id};
use crate::rules::terms::WorkflowTerms;

/// Terms that allow so many tokens, beside what planning takes: three questions of 11 tokens.
fn allowing(tokens: u64) -> WorkflowTerms {
    let mut terms = terms();
    terms.tokens = Some(tokens + 33);
    terms.budget.tokens = terms.tokens;
    terms
}

fn allowed(build: &Build, task: &str) -> Option<u64> {
    let WorkflowAction::Work(work) = build.effect(&format!("work-{task}")).action else {
        panic!("no work");
    };
    work.budget.tokens
}

fn uses(build: &mut Build, (goal, task): (&str, &str), tokens: u64) {
    let command = WorkflowCommand::RecordGoalUse {
        goal: goal_id(goal),
        account: GoalAccount {
            task: task_id(task),
            attempt: 1,
            used: Usage {
                input_tokens: tokens,
                output_tokens: 0,
                usd_micros: None,
                ..Usage::ZERO
            },
        },
    };
    build.ask(&Actor::Engine, &command);
    assert_eq!(build.ask(&Actor::Engine, &command), [], "said twice");
}

fn raise(tokens: u64) -> WorkflowCommand {
    let usd_micros = 0;
    WorkflowCommand::RaiseLimits {
        more: LimitRaises {
            tokens,
            usd_micros,
            wall_ms: 0,
        },
    }
}

#[test]
fn goals_begin_with_equal_shares_of_what_is_left() {
    let build = Build::run(allowing(1_000), &parallel());
    assert_eq!(allowed(&build, "T-001"), Some(500));
    assert_eq!(allowed(&build, "T-002"), Some(500));
    let build = Build::run(terms(), &parallel());
    assert_eq!(allowed(&build, "T-001"), None, "nothing is limited");
}

#[test]
fn what_one_goal_leaves_is_there_for_the_next() {
    let mut own = allowing(1_000);
    own.jobs = 1;
    let mut build = Build::run(own, &parallel());
    assert_eq!(allowed(&build, "T-001"), Some(1_000));
    uses(&mut build, ("001-goal", "T-001"), 300);
    assert_eq!(
        allowed(&build, "T-001"),
        Some(1_000),
        "said at its beginning"
    );
    build.prove("T-001", "c1");
    assert_eq!(allowed(&build, "T-002"), Some(700));
}

#[test]
fn a_goal_that_used_up_its_share_goes_on_with_what_others_left() {
    let mut build = Build::run(allowing(1_000), &parallel());
    uses(&mut build, ("002-goal", "T-002"), 520);
    build.perform("work-T-002", rested("002-goal", GoalStatus::Paused, None));
    assert_eq!(
        build.wanted().len(),
        1,
        "480 are left, and all of it is set aside for T-001: {:?}",
        build.wanted()
    );
    uses(&mut build, ("001-goal", "T-001"), 100);
    let events = build.prove("T-001", "c1");
    assert_eq!(
        facts(&events),
        ["task_rested", "task_retried", "task_begun"]
    );
    assert_eq!(allowed(&build, "T-002"), Some(520 + 380));
}

#[test]
fn a_goal_that_rests_with_its_share_unused_waits_for_a_person() {
    let mut build = Build::run(allowing(1_000), &parallel());
    uses(&mut build, ("002-goal", "T-002"), 20);
    build.perform("work-T-002", rested("002-goal", GoalStatus::Paused, None));
    build.prove("T-001", "c1");
    build.land("T-001", "h1", false);
    assert_eq!(
        build.workflow.status,
        WorkflowStatus::Blocked,
        "its turns are used up"
    );
    let events = build.ask(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(facts(&events), ["unblocked", "task_begun"]);
}

#[test]
fn a_used_up_limit_holds_up_until_it_is_raised() {
    let mut build = Build::run(allowing(1_000), &parallel());
    for (goal, task) in [("001-goal", "T-001"), ("002-goal", "T-002")] {
        uses(&mut build, (goal, task), 500);
        let outcome = rested(goal, GoalStatus::Paused, None);
        if build.workflow.status == WorkflowStatus::Active {
            build.perform(&format!("work-{task}"), outcome);
        }
    }
    assert_eq!(build.workflow.status, WorkflowStatus::Blocked);
    let blocked = build.workflow.blocked.clone().unwrap();
    assert!(blocked.reason.contains("used up"), "{blocked:?}");
    assert!(
        blocked
            .unblock
            .contains("kapi ralph resume 011 --tokens +1000000"),
        "{blocked:?}"
    );
    let denied = build
        .try_ask(&human(), &WorkflowCommand::Unblock {})
        .unwrap_err();
    assert_eq!(denied.why.code(), "not_ready");
    build.ask(&human(), &raise(200));
    build.ask(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(build.workflow.status, WorkflowStatus::Active);
    let of_one = allowed(&build, "T-001");
    assert!(of_one > Some(500), "{of_one:?}");
}

#[test]
fn the_account_counts_against_the_questions_that_follow() {
    let mut build = Build::run(allowing(1_000), &parallel());
    for (goal, task, head) in [("001-goal", "T-001", "h1"), ("002-goal", "T-002", "h2")] {
        uses(&mut build, (goal, task), 500);
        if build.workflow.status == WorkflowStatus::Blocked {
            // What was proved still lands: that uses nothing.
            build.ask(&human(), &raise(1));
            build.ask(&human(), &WorkflowCommand::Unblock {});
        }
        build.prove(task, &format!("c{task}"));
        build.land(task, head, false);
    }
    assert_eq!(build.workflow.status, WorkflowStatus::Active);
    let events = build.review(findings(Vec::new()));
    assert_eq!(facts(&events), ["reviewed"], "verifying costs nothing");
    build.perform(
        "verify-all",
        crate::rules::outcome::WorkflowOutcome::Verified(
            crate::rules::modes::ralph::fixture::outcomes::report(
                "h2",
                &["sh works.sh".to_owned(), "sh all.sh".to_owned()],
                &[],
            ),
        ),
    );
    assert_eq!(
        build.workflow.status,
        WorkflowStatus::Blocked,
        "the account would"
    );
}
