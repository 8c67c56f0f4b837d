//! Review, fixes, closeout.

use super::{
    Build, FindingCategory, RalphEvent, Weight, WorkflowCommand, WorkflowStatus, account, answered,
    facts, finding, findings, human, in_a_row, terms,
};
use crate::rules::effect::WorkflowAction;
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::ModeEvent;
use crate::rules::modes::ralph::answer::{Accounting, RalphAnswer};
use crate::rules::modes::ralph::role::RalphRole;

/// Returns a build whose tasks have all landed.
fn all_landed() -> Build {
    let mut build = Build::run(terms(), &in_a_row());
    for (task, commit, head) in [("T-001", "c1", "h1"), ("T-002", "c2", "h2")] {
        build.prove(task, commit);
        build.land(task, head, false);
    }
    build
}

#[test]
fn a_review_is_of_the_head_and_sorts_correctness_first() {
    let mut build = all_landed();
    let WorkflowAction::Ask(question) = build.effect("reviewer").action else {
        panic!("no question");
    };
    assert_eq!(
        (
            question.agent.as_str(),
            question.commit.as_deref(),
            question.since.as_deref()
        ),
        ("codex", Some("h2"), Some("base"))
    );
    assert_eq!(question.guidance, ["code-review", "code-simplifier"]);
    let events = build.review(findings(vec![
        finding(FindingCategory::Simplification, true),
        finding(FindingCategory::MissingTest, false),
        finding(FindingCategory::Correctness, true),
    ]));
    assert_eq!(facts(&events), ["reviewed", "fix_planned", "task_begun"]);
    let review = build.ralph().reviews[0].clone();
    assert_eq!(review.commit, "h2");
    let found: Vec<(FindingCategory, bool)> = review
        .findings
        .findings
        .iter()
        .map(|finding| (finding.category, finding.must_fix))
        .collect();
    assert_eq!(
        found,
        [
            (FindingCategory::Correctness, true),
            (FindingCategory::MissingTest, false),
            (FindingCategory::Simplification, false),
        ]
    );
    let WorkflowAction::Work(work) = build.effect("work-F-001").action else {
        panic!("no work");
    };
    assert_eq!(work.base, "h2");
    // What the closeout runs has to pass: a fix that leaves it as it is proves nothing.
    assert_eq!(work.verify, ["sh works.sh", "sh all.sh", "sh lint.sh"]);
    assert!(
        work.intent.contains("A case of correctness (src/a/x.rs:7)"),
        "{}",
        work.intent
    );
    assert!(!work.intent.contains("A case of simplification"));
}

#[test]
fn a_fix_is_reviewed_again() {
    let mut build = all_landed();
    build.review(findings(vec![finding(FindingCategory::Regression, true)]));
    build.prove("F-001", "c3");
    let events = build.land("F-001", "h3", false);
    assert_eq!(facts(&events), ["task_landed", "review_asked"]);
    let prompt = build.prompt(RalphRole::Reviewer);
    assert!(prompt.contains("A case of regression"), "{prompt}");
    build.review(findings(Vec::new()));
    assert_eq!(build.ralph().reviews[1].commit, "h3");
    assert_eq!(build.wanted(), ["t001-verify-all-a1"]);
}

#[test]
fn five_reviews_that_want_changes_are_a_persons_affair() {
    let mut build = all_landed();
    for n in 1..=4 {
        let events = build.review(findings(vec![finding(FindingCategory::Correctness, true)]));
        assert_eq!(facts(&events), ["reviewed", "fix_planned", "task_begun"]);
        build.prove(&format!("F-{n:03}"), "c");
        build.land(&format!("F-{n:03}"), &format!("f{n}"), false);
    }
    let events = build.review(findings(vec![finding(FindingCategory::Correctness, true)]));
    assert_eq!(facts(&events), ["reviewed", "blocked"]);
    let blocked = build.workflow.blocked.clone().unwrap();
    assert!(
        blocked
            .reason
            .starts_with("fixes were needed 5 times in a row. Review 5 found: correctness: ")
    );
    build.ask(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(build.wanted(), ["t001-reviewer-a6"]);
}

#[test]
fn a_review_that_contradicts_itself_is_refused() {
    let mut build = all_landed();
    let mut said = findings(vec![finding(FindingCategory::Correctness, true)]);
    said.approve = true;
    assert_eq!(facts(&build.review(said)), ["answer_refused"]);
    let mut said = findings(vec![finding(FindingCategory::Simplification, true)]);
    said.approve = false;
    assert_eq!(facts(&build.review(said)), ["answer_refused"]);
    assert!(
        build
            .prompt(RalphRole::Reviewer)
            .contains("name what prevents approval, or approve")
    );
}

#[test]
fn nobody_reviews_what_they_planned() {
    let mut build = all_landed();
    let said = answered("run-1", RalphAnswer::Review(findings(Vec::new())));
    assert_eq!(facts(&build.perform("reviewer", said)), ["answer_refused"]);
}

#[test]
fn the_agent_that_works_may_review_and_that_is_said() {
    let mut own = terms();
    own.reviewer = None;
    let mut build = Build::run(own, &in_a_row());
    for (task, commit, head) in [("T-001", "c1", "h1"), ("T-002", "c2", "h2")] {
        build.prove(task, commit);
        build.land(task, head, false);
    }
    let said = answered("run-own", RalphAnswer::Review(findings(Vec::new())));
    build.perform("reviewer", said);
    let found = build
        .workflow
        .evidence
        .iter()
        .find(|found| found.kind == "review");
    let found = found.unwrap();
    assert_eq!(found.role.as_deref(), Some("same-agent reviewer"));
    assert_eq!(found.weight, Weight::Narrative);
    assert_eq!(found.artifacts, ["review.md"]);
    assert_eq!(found.verdict.as_deref(), Some("approve"));
    let report = build.document("decision-report.md");
    assert!(report.contains("In 1 reviews the reviewer was the agent that also did the work."));
}

#[test]
fn a_closeout_that_fails_is_mended_and_reviewed_again() {
    let mut build = all_landed();
    build.review(findings(Vec::new()));
    let WorkflowAction::Verify(asked) = build.effect("verify-all").action else {
        panic!("no verification");
    };
    assert_eq!(asked.commands, ["sh works.sh", "sh all.sh", "sh lint.sh"]);
    assert_eq!((asked.commit.as_str(), asked.base.as_str()), ("h2", "base"));
    let events = build.verify(&["sh works.sh"]);
    assert_eq!(
        facts(&events),
        ["head_verified", "fix_planned", "task_begun"]
    );
    build.prove("F-001", "c3");
    build.land("F-001", "h3", false);
    build.review(findings(Vec::new()));
    build.verify(&[]);
    let events = build.answer(RalphRole::Accountant, account());
    assert_eq!(build.workflow.status, WorkflowStatus::Completed);
    let accounted = events.iter().find_map(|event| {
        if let WorkflowEvent::Mode(ModeEvent::Ralph(RalphEvent::Accounted { acceptance, .. })) =
            event
        {
            Some(acceptance.clone())
        } else {
            None
        }
    });
    for accepted in accounted.unwrap() {
        for number in accepted.evidence {
            let found = &build.workflow.evidence[number as usize - 1];
            assert_eq!(found.reference, "git:h3", "{found:?} is stale");
        }
    }
}

#[test]
fn an_account_without_a_reason_is_refused() {
    let mut build = all_landed();
    build.review(findings(Vec::new()));
    build.verify(&[]);
    let empty = RalphAnswer::Account(Accounting {
        rationale: String::new(),
        risks: Vec::new(),
        follow_up: Vec::new(),
    });
    assert_eq!(
        facts(&build.answer(RalphRole::Accountant, empty)),
        ["answer_refused"]
    );
    assert_eq!(build.workflow.status, WorkflowStatus::Active);
}
