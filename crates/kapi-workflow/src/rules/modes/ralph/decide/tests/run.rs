//! Tasks: proved, landed, in conflict, at rest, given up.

use super::{
    Actor, Build, GoalStatus, PlanTaskId, Stand, WorkflowCommand, WorkflowOutcome, WorkflowStatus,
    denied, facts, human, in_a_row, landed, parallel, reopen, rested, retry, revise, task_id,
    terms,
};
use crate::rules::effect::WorkflowAction;
use crate::rules::evidence::Weight;
use crate::rules::next_command::next_commands;

fn stand<'a>(build: &'a Build, task: &str) -> &'a Stand {
    &build.ralph().tasks[&task_id(task)].stand
}

fn conflict() -> WorkflowOutcome {
    WorkflowOutcome::Conflicted {
        paths: vec!["src/a/x.rs".to_owned()],
    }
}

#[test]
fn a_dependent_begins_on_what_landed() {
    let mut build = Build::run(terms(), &in_a_row());
    assert_eq!(build.wanted(), ["t001-work-T-001-a1"]);
    build.prove("T-001", "c1");
    assert_eq!(build.wanted(), ["t001-land-T-001-a1"]);
    let events = build.land("T-001", "h1", false);
    assert_eq!(facts(&events), ["task_landed", "task_begun"]);
    let WorkflowAction::Work(work) = build.effect("work-T-002").action else {
        panic!("no work");
    };
    assert_eq!(work.base, "h1");
    assert_eq!(work.verify, ["sh T-002.sh", "sh lint.sh"]);
    assert!(
        work.intent
            .contains("It builds on what is there already:\n- T-001")
    );
}

#[test]
fn a_merged_landing_is_verified_before_anything_begins_on_it() {
    let mut build = Build::run(terms(), &in_a_row());
    build.prove("T-001", "c1");
    build.land("T-001", "h1", true);
    let WorkflowAction::Verify(asked) = build.effect("verify-merged").action else {
        panic!("no verification");
    };
    assert_eq!(
        asked.commands,
        ["sh T-001.sh", "sh lint.sh"],
        "T-002 is not available yet"
    );
    assert_eq!(build.wanted().len(), 1);
    let events = build.verify(&["sh T-001.sh"]);
    assert_eq!(
        facts(&events),
        ["head_verified", "task_sent_back", "task_begun"]
    );
    let WorkflowAction::Work(work) = build.effect("work-T-001").action else {
        panic!("no work");
    };
    assert_eq!(
        (work.attempt, work.base.as_str(), work.goal),
        (2, "h1", None)
    );
    assert!(
        work.intent.contains("`sh T-001.sh` ended with exit code 1"),
        "{}",
        work.intent
    );
}

#[test]
fn a_conflict_goes_back_to_its_owner_and_the_fifth_to_a_person() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-002", "c2");
    build.land("T-002", "h2", false);
    for n in 1..=4_u32 {
        build.prove("T-001", "c1");
        let events = build.perform("land-T-001", conflict());
        assert_eq!(
            facts(&events),
            ["conflict_found", "task_conflicted", "task_begun"]
        );
        assert_eq!(build.wanted(), [format!("t001-work-T-001-a{}", n + 1)]);
    }
    let WorkflowAction::Work(work) = build.effect("work-T-001").action else {
        panic!("no work");
    };
    assert_eq!((work.attempt, work.base.as_str()), (5, "h2"));
    assert!(work.intent.contains("src/a/x.rs"));
    build.prove("T-001", "c1");
    let events = build.perform("land-T-001", conflict());
    assert_eq!(
        facts(&events),
        ["conflict_found", "task_given_up", "blocked"]
    );
    let blocked = build.workflow.blocked.clone().unwrap();
    assert!(
        blocked
            .reason
            .contains("conflicted with landed work 5 times"),
        "{blocked:?}"
    );
    assert_eq!(blocked.unblock, "kapi ralph resume 011");
    build.ask(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(build.wanted(), ["t001-work-T-001-a6"]);

    let found = build.workflow.conflicts.clone();
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|conflict| {
        conflict.is_open_of("T-001") && conflict.onto == "h2" && conflict.paths == ["src/a/x.rs"]
    }));
    build.prove("T-001", "c6");
    let events = build.land("T-001", "h3", true);
    assert_eq!(facts(&events), ["task_landed", "conflict_settled"]);
    let settled = &build.workflow.conflicts;
    assert!(settled.iter().all(|conflict| {
        let settled = conflict.settled.as_ref().unwrap();
        settled.commit.as_deref() == Some("h3") && settled.why.ends_with("in attempt 6")
    }));
    let report = build.document("decision-report.md");
    assert!(
        report.contains("T-001 conflicted with h2 in src/a/x.rs; settled as h3"),
        "{report}"
    );
}

#[test]
fn conflicts_of_a_plan_that_is_given_up_are_settled_by_the_next() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-002", "c2");
    build.land("T-002", "h2", false);
    build.prove("T-001", "c1");
    build.perform("land-T-001", conflict());
    let events = build.ask(&human(), &reopen());
    assert_eq!(facts(&events)[..2], ["conflict_settled", "plan_reopened"]);
    let settled = build.workflow.conflicts[0].settled.clone().unwrap();
    assert_eq!(
        (settled.by.as_str(), settled.commit),
        ("another plan", None)
    );
}

#[test]
fn going_on_begins_every_task_at_once() {
    let mut build = Build::run(terms(), &parallel());
    for (task, goal) in [("T-001", "012-a"), ("T-002", "013-b")] {
        let outcome = rested(goal, GoalStatus::Paused, None);
        build.perform(&format!("work-{task}"), outcome);
    }
    assert_eq!(build.workflow.status, WorkflowStatus::Blocked);
    let events = build.ask(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(facts(&events), ["unblocked", "task_begun", "task_begun"]);
    assert_eq!(build.wanted(), ["t001-work-T-001-a2", "t001-work-T-002-a2"]);
}

#[test]
fn a_goal_at_rest_blocks_once_nothing_else_can_go_on() {
    let mut build = Build::run(terms(), &parallel());
    let events = build.perform("work-T-001", rested("012-a", GoalStatus::Paused, None));
    assert_eq!(facts(&events), ["task_rested"]);
    assert_eq!(build.workflow.status, WorkflowStatus::Active);
    build.prove("T-002", "c2");
    let events = build.land("T-002", "h2", false);
    assert_eq!(facts(&events), ["task_landed", "blocked"]);
    let blocked = build.workflow.blocked.clone().unwrap();
    assert_eq!(
        blocked.reason,
        "nothing can start: T-001: goal 012-a is paused (its budget is used up)"
    );
    assert_eq!(blocked.unblock, "kapi ralph resume 011");
    let events = build.ask(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(facts(&events), ["unblocked", "task_begun"]);
    let WorkflowAction::Work(work) = build.effect("work-T-001").action else {
        panic!("no work");
    };
    assert_eq!(
        work.goal.unwrap().to_string(),
        "012-a",
        "the same goal goes on"
    );
    assert_eq!((work.attempt, work.base.as_str()), (1, "base"));
    assert_eq!(build.wanted(), ["t001-work-T-001-a2"]);
}

#[test]
fn turns_that_are_used_up_are_added_by_the_command_that_goes_on() {
    let mut build = Build::run(terms(), &in_a_row());
    let mut outcome = rested("012-a", GoalStatus::Paused, None);
    if let WorkflowOutcome::Rested { reason, .. } = &mut outcome {
        *reason = Some("the turn budget is used up".to_owned());
    }
    build.perform("work-T-001", outcome);
    let blocked = build.workflow.blocked.clone().unwrap();
    assert_eq!(blocked.unblock, "kapi ralph resume 011 --turns +10");
    assert_eq!(
        next_commands(&build.workflow),
        ["kapi ralph resume 011 --turns +10", "kapi status 011"]
    );
}

#[test]
fn a_task_that_somebody_else_did_is_done_without_a_change() {
    for status in [GoalStatus::Done, GoalStatus::Unverified] {
        let mut build = Build::run(terms(), &in_a_row());
        build.prove("T-001", "c1");
        build.land("T-001", "h1", false);
        let events = build.perform("work-T-002", rested("013-b", status, Some("h1")));
        assert_eq!(
            facts(&events),
            ["task_rested", "task_already_done", "review_asked"],
            "{status:?}"
        );
        assert!(matches!(stand(&build, "T-002"), Stand::Landed { head } if head == "h1"));
        let evidence = build.workflow.evidence.last().unwrap();
        assert_eq!(evidence.weight, Weight::Validation);
        assert_eq!(
            evidence.summary,
            "T-002 needed no change: its checks pass on h1, as goal 013-b shows"
        );
    }
}

#[test]
fn what_landed_since_a_task_needed_no_change_is_verified_with_its_checks() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-002", "c2");
    build.land("T-002", "h2", false);
    let outcome = rested("012-a", GoalStatus::Unverified, Some("base"));
    build.perform("work-T-001", outcome);
    let WorkflowAction::Verify(asked) = build.effect("verify-merged").action else {
        panic!("no verification");
    };
    assert!(asked.commands.contains(&"sh T-001.sh".to_owned()));
}

#[test]
fn a_goal_that_ended_without_proof_is_another_try() {
    for status in [
        GoalStatus::Impossible,
        GoalStatus::Cancelled,
        GoalStatus::Unverified,
    ] {
        let mut build = Build::run(terms(), &in_a_row());
        let events = build.perform("work-T-001", rested("012-a", status, Some("c1")));
        assert_eq!(facts(&events), ["task_rested", "blocked"], "{status:?}");
        assert!(matches!(stand(&build, "T-001"), Stand::Rested { .. }));
        build.ask(&human(), &retry("T-001"));
        let WorkflowAction::Work(work) = build.effect("work-T-001").action else {
            panic!("no work");
        };
        assert_eq!((work.attempt, work.goal), (2, None));
    }
}

#[test]
fn one_task_is_retried_while_others_work() {
    let mut build = Build::run(terms(), &parallel());
    build.perform("work-T-001", rested("012-a", GoalStatus::Stalled, None));
    let events = build.ask(&human(), &retry("T-001"));
    assert_eq!(facts(&events), ["task_retried", "task_begun"]);
    assert_eq!(build.wanted(), ["t001-work-T-001-a2", "t001-work-T-002-a1"]);
}

#[test]
fn a_stopped_goal_is_asked_for_again_under_its_name() {
    let mut build = Build::run(terms(), &in_a_row());
    let before = build.wanted();
    let usage = kapi_core::usage::Usage::default();
    let events = build.perform("work-T-001", WorkflowOutcome::Cancelled { usage });
    assert!(facts(&events).is_empty());
    assert_eq!(build.wanted(), before);
}

#[test]
fn a_landing_that_was_begun_is_ended_even_when_planning_began_anew() {
    let mut build = Build::run(terms(), &in_a_row());
    build.prove("T-001", "c1");
    let effect = build.intend("land-T-001");
    build.ask(&human(), &revise());
    assert_eq!(build.wanted(), ["t002-thesis-a2", "t001-land-T-001-a1"]);
    build.report(effect, landed("h1", false));
    assert_eq!(build.ralph().branch.as_ref().unwrap().head, "h1");
    assert_eq!(build.wanted(), ["t002-thesis-a2"]);
}

#[test]
fn a_landing_under_way_is_not_overtaken() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-002", "c2");
    build.intend("land-T-002");
    build.prove("T-001", "c1");
    assert_eq!(build.wanted(), ["t001-land-T-002-a1"]);
}

#[test]
fn as_many_goals_run_as_the_person_allows() {
    let mut own = terms();
    own.jobs = 1;
    let build = Build::run(own, &parallel());
    assert_eq!(build.wanted(), ["t001-work-T-001-a1"]);
}

#[test]
fn a_verification_of_another_commit_is_denied() {
    let mut build = Build::run(terms(), &in_a_row());
    build.prove("T-001", "c1");
    build.land("T-001", "h1", true);
    let effect = build.intend("verify-merged");
    let report = crate::rules::modes::ralph::fixture::outcomes::report("other", &[], &[]);
    let outcome = Box::new(WorkflowOutcome::Verified(report));
    let command = WorkflowCommand::Report { effect, outcome };
    assert_eq!(denied(&build, &Actor::Engine, &command), "malformed");
}

#[test]
fn landings_keep_their_order() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-002", "c2");
    build.land("T-002", "h2", false);
    build.prove("T-001", "c1");
    build.land("T-001", "h1", true);
    let landed: Vec<&str> = build
        .ralph()
        .landed
        .iter()
        .map(PlanTaskId::as_str)
        .collect();
    assert_eq!(landed, ["T-002", "T-001"]);
}

#[test]
fn a_proved_goal_is_evidence() {
    let mut build = Build::run(terms(), &in_a_row());
    build.prove("T-001", "c1");
    let mut evidence = build.workflow.evidence.iter();
    let found = evidence.find(|found| found.kind == "goal").unwrap();
    assert!(found.reference.starts_with("goal:"), "{found:?}");
    let weighed = (found.weight, found.verdict.as_deref());
    assert_eq!(weighed, (Weight::Validation, Some("done")));
}

#[test]
fn a_worker_works_for_the_workflows_branch() {
    let mut build = Build::run(terms(), &in_a_row());
    build.prove("T-001", "c1");
    let branch = build.ralph().branch.as_ref().unwrap();
    let worker = build.workflow.workers.first().unwrap();
    assert_eq!(worker.workspace.as_deref(), Some(branch.worktree.as_str()));
    assert_eq!(worker.dispatches.len(), 1);
}
