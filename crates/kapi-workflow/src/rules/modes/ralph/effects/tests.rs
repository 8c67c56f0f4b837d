//! What is handed to the world: complete, and the same after a crash.

use std::collections::BTreeSet;

use crate::rules::effect::{WorkflowAction, next};
use crate::rules::modes::ralph::fixture::{Build, in_a_row, parallel, terms};
use crate::rules::state::Workflow;

#[test]
fn the_branch_is_named_after_the_plan() {
    let mut build = Build::start(terms());
    build.argue(&in_a_row());
    let WorkflowAction::Verify(checks) = build.effect("check-base").action else {
        panic!("the base is looked at before the approval");
    };
    assert_eq!(
        (checks.commit.as_str(), checks.base.as_str()),
        ("base", "base")
    );
    assert_eq!(checks.commands, ["sh works.sh", "sh all.sh", "sh lint.sh"]);
    build.check_base(&[]);
    build.ask(
        &crate::rules::modes::ralph::fixture::human(),
        &build.approval(false),
    );
    let WorkflowAction::Prepare { branch, base, .. } = build.effect("prepare").action else {
        panic!("the branch is made first");
    };
    assert_eq!(
        (branch.as_str(), base.as_str()),
        ("feat/ralph-fix-login", "base")
    );
}

#[test]
fn a_landing_says_everything() {
    let mut build = Build::run(terms(), &in_a_row());
    build.prove("T-001", "c1");
    let WorkflowAction::Land(landing) = build.effect("land").action else {
        panic!("no landing");
    };
    assert_eq!(
        (
            landing.commit.as_str(),
            landing.base.as_str(),
            landing.head.as_str()
        ),
        ("c1", "base", "base")
    );
    assert_eq!(
        (
            landing.branch.as_str(),
            landing.worktree.as_str(),
            landing.at_s
        ),
        ("feat/ralph-fix-login", "wt", 1_760_000_000)
    );
    assert_eq!(
        landing.message,
        "feat: Title of T-001\n\nProved as c1.\n\nKapi-Workflow: 011-fix-login\nKapi-Task: T-001\n"
    );
}

#[test]
fn the_last_merged_landing_is_verified_with_the_whole() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-001", "c1");
    build.prove("T-002", "c2");
    build.land("T-001", "h1", false);
    build.land("T-002", "h2", true);
    let WorkflowAction::Verify(asked) = build.effect("verify-merged").action else {
        panic!("no verification");
    };
    assert_eq!(
        asked.commands,
        ["sh T-002.sh", "sh all.sh", "sh lint.sh"],
        "nothing that T-001 changed has changed since its goal proved it"
    );
}

#[test]
fn effects_are_the_same_from_the_state_read_back() {
    let mut build = Build::run(terms(), &parallel());
    build.intend("work-T-001");
    let json = serde_json::to_string(&build.workflow).unwrap();
    let read: Workflow = serde_json::from_str(&json).unwrap();
    assert_eq!(next(&read), next(&build.workflow));
}

#[test]
fn no_name_is_used_for_two_things() {
    let mut build = Build::run(terms(), &in_a_row());
    let mut seen = BTreeSet::new();
    for head in ["h1", "h2", "h3", "h4"] {
        assert!(seen.insert(build.wanted()[0].clone()));
        build.prove("T-001", "c1");
        assert!(seen.insert(build.wanted()[0].clone()));
        build.land("T-001", head, true);
        assert!(seen.insert(build.wanted()[0].clone()));
        build.verify(&["sh T-001.sh"]);
    }
    assert_eq!(seen.len(), 12);
}
