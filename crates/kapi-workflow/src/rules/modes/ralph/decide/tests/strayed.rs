//! Tasks that change what the plan does not name for them, and what is verified after a merge.

use super::{Build, agent, denied, facts, human, landed, parallel, terms};
use crate::rules::command::WorkflowCommand;
use crate::rules::effect::WorkflowAction;
use crate::rules::evidence::{STRAYED, Weight};
use crate::rules::modes::ModeCommand;
use crate::rules::modes::ralph::command::RalphCommand;
use crate::rules::modes::ralph::fixture::{findings, plan, task};
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::next_command::next_commands;
use crate::rules::outcome::WorkflowOutcome;

fn strayed(build: &Build) -> Vec<&str> {
    let found = build.workflow.evidence.iter();
    let found = found.filter(|found| found.kind == STRAYED);
    found
        .map(|found| {
            assert_eq!(found.weight, Weight::Validation, "Kapi saw it");
            found.summary.as_str()
        })
        .collect()
}

#[test]
fn paths_beside_the_plan_are_named_with_whose_they_are() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-001", "c1");
    build.land_with("T-001", ("h1", false), &["src/a/x.rs", "src/b/y.rs", "LOG"]);
    let said = "T-001 changed paths that the plan does not assign to it: src/b/y.rs, LOG; the \
        plan assigns them to T-002, which started without this";
    assert_eq!(strayed(&build), [said]);
    let plan = build.document("plan.md");
    build.prove("T-002", "c2");
    build.land_with("T-002", ("h2", true), &["src/b/x.rs"]);
    assert_eq!(strayed(&build).len(), 1, "T-002 stayed where it should");
    assert_eq!(build.document("plan.md"), plan, "its bytes were approved");
    for document in ["verify.md", "decision-report.md"] {
        let text = build.document(document);
        assert!(text.contains(said), "{document}: {text}");
    }
    build.verify(&[]);
    let prompt = build.prompt(RalphRole::Reviewer);
    assert!(prompt.contains(said), "{prompt}");
    build.review(findings(Vec::new()));
    build.verify(&[]);
    assert!(build.prompt(RalphRole::Accountant).contains("src/b/y.rs"));
}

fn allow() -> WorkflowCommand {
    WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::AllowPaths))
}

/// A build whose first task changed paths beside its own, and whose second has landed.
fn held() -> Build {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-001", "c1");
    build.prove("T-002", "c2");
    let WorkflowAction::Land(landing) = build.effect("land-T-001").action else {
        panic!("no landing");
    };
    assert_eq!(landing.within, ["src/a/**"]);
    let paths = vec!["LOG".to_owned()];
    let events = build.perform("land-T-001", WorkflowOutcome::Strayed { paths });
    assert_eq!(facts(&events), ["task_strayed"]);
    build.land_with("T-002", ("h2", false), &["src/b/x.rs"]);
    build
}

#[test]
fn paths_beside_the_plan_land_only_after_a_persons_word() {
    let mut build = held();
    let blocked = build.workflow.blocked.clone().unwrap();
    assert!(
        blocked
            .reason
            .contains("it changes paths that the plan does not assign to it: LOG"),
        "{blocked:?}"
    );
    let lifts = "kapi ralph resume 011 --allow-paths";
    assert_eq!(next_commands(&build.workflow)[0], lifts);
    build.ask(&human(), &allow());
    let WorkflowAction::Land(landing) = build.effect("land-allowed-T-001").action else {
        panic!("no landing");
    };
    assert!(landing.within.is_empty(), "any path now");
    assert_eq!(landing.commit, "c1", "what was proved");
    let mut outcome = landed("h1", true);
    if let WorkflowOutcome::Landed { changed, .. } = &mut outcome {
        changed.paths.push("LOG".to_owned());
    }
    build.perform("land-allowed-T-001", outcome);
    assert!(
        strayed(&build)[0].contains("LOG"),
        "the report still names it"
    );
    assert_eq!(denied(&build, &human(), &allow()), "not_ready");
    assert_eq!(denied(&held(), &agent(), &allow()), "not_human");
}

#[test]
fn without_that_word_it_is_done_again_and_told_why() {
    let mut build = held();
    build.ask(&human(), &WorkflowCommand::Unblock {});
    let WorkflowAction::Work(work) = build.effect("work-T-001").action else {
        panic!("no work");
    };
    assert_eq!(work.attempt, 2);
    assert!(work.intent.contains("LOG"), "{}", work.intent);
}

#[test]
fn nothing_is_said_where_everything_is_in_its_place() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-001", "c1");
    build.land_with("T-001", ("h1", false), &["src/a/x.rs"]);
    assert!(strayed(&build).is_empty());
    build.prove("T-002", "c2");
    build.land_with("T-002", ("h2", false), &["src/b/x.rs"]);
    assert!(
        !build
            .prompt(RalphRole::Reviewer)
            .contains("beside the plan")
    );
}

#[test]
fn many_paths_are_named_in_part() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-001", "c1");
    let paths: Vec<String> = (0..25).map(|n| format!("docs/{n}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    build.land_with("T-001", ("h1", false), &paths);
    assert!(
        strayed(&build)[0].ends_with("docs/19 and 5 more"),
        "{:?}",
        strayed(&build)
    );
}

#[test]
fn a_merge_verifies_what_it_may_have_broken_and_the_closeout_everything() {
    let names = ["T-001", "T-002", "T-003", "T-004"];
    let mut tasks = Vec::new();
    for (name, path) in names
        .iter()
        .zip(["src/a/**", "src/b/**", "src/c/**", "src/d/**"])
    {
        tasks.push(task(name, &[], &[path]));
    }
    let mut own = terms();
    (own.jobs, own.verify) = (4, Vec::new());
    let mut build = Build::run(own, &plan(tasks));
    for name in names {
        build.prove(name, &format!("c{name}"));
    }
    let asked = |build: &Build| {
        let WorkflowAction::Verify(asked) = build.effect("verify-").action else {
            panic!("no verification");
        };
        asked.commands
    };
    build.land_with("T-001", ("h1", false), &["src/a/x"]);
    build.land_with("T-002", ("h2", true), &["src/b/x"]);
    assert_eq!(
        asked(&build),
        ["sh T-002.sh"],
        "T-001 was proved as it stands"
    );
    build.verify(&[]);
    build.land_with("T-003", ("h3", true), &["src/c/x", "src/a/x"]);
    assert_eq!(asked(&build), ["sh T-001.sh", "sh T-003.sh"]);
    build.verify(&[]);
    build.land_with("T-004", ("h4", true), &["src/d/x"]);
    assert_eq!(
        asked(&build),
        ["sh T-004.sh", "sh all.sh"],
        "nothing is left"
    );
    build.verify(&[]);
    build.review(findings(Vec::new()));
    assert_eq!(asked(&build), ["sh works.sh", "sh all.sh"]);
}

#[test]
fn what_failed_stays_due() {
    let tasks = vec![
        task("T-001", &[], &["src/a/**"]),
        task("T-002", &[], &["src/b/**"]),
    ];
    let mut build = Build::run(terms(), &plan(tasks));
    build.prove("T-001", "c1");
    build.prove("T-002", "c2");
    build.land_with("T-001", ("h1", false), &["src/a/x"]);
    build.land_with("T-002", ("h2", true), &["src/b/x", "src/a/x"]);
    build.verify(&["sh T-001.sh"]);
    build.prove("T-002", "c3");
    build.land_with("T-002", ("h3", true), &["src/b/x"]);
    let WorkflowAction::Verify(asked) = build.effect("verify-merged").action else {
        panic!("no verification");
    };
    assert!(
        asked.commands.contains(&"sh T-001.sh".to_owned()),
        "{:?}",
        asked.commands
    );
}
