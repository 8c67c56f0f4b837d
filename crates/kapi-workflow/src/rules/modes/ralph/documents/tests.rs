//! The artifacts of a build from its purpose to its end.

use crate::rules::modes::ralph::fixture::{
    Build, account, finding, findings, human, in_a_row, parallel, terms,
};
use crate::rules::modes::ralph::review::FindingCategory;
use crate::rules::modes::ralph::role::RalphRole;

fn names(build: &Build) -> Vec<String> {
    let documents = crate::rules::documents::documents(&build.workflow);
    documents.into_iter().map(|found| found.name).collect()
}

fn completed() -> Build {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-001", "c1");
    build.prove("T-002", "c2");
    build.land("T-001", "h1", false);
    build.land("T-002", "h2", true);
    build.verify(&[]);
    build.review(findings(vec![
        finding(FindingCategory::Correctness, true),
        finding(FindingCategory::Simplification, false),
    ]));
    build.prove("F-001", "c3");
    build.land("F-001", "h3", false);
    build.review(findings(vec![finding(
        FindingCategory::Simplification,
        false,
    )]));
    build.verify(&[]);
    build.answer(RalphRole::Accountant, account());
    build
}

#[test]
fn artifacts_come_as_there_is_something_to_say() {
    let mut build = Build::start(terms());
    assert_eq!(names(&build), ["context.md", "decision-report.md"]);
    build.agree(&in_a_row());
    assert_eq!(
        names(&build),
        [
            "context.md",
            "plan.md",
            "consensus.md",
            "verify.md",
            "decision-report.md"
        ]
    );
    assert_eq!(
        names(&completed()),
        [
            "context.md",
            "plan.md",
            "consensus.md",
            "review.md",
            "verify.md",
            "acceptance.md",
            "decision-report.md",
        ]
    );
}

#[test]
fn the_plan_is_readable_and_never_changes_once_proposed() {
    let mut build = Build::start(terms());
    build.agree(&in_a_row());
    let plan = build.document("plan.md");
    for words in [
        "# Plan of 011-fix-login",
        "> Fix the login.",
        "Branch: `feat/ralph-fix-login`, from `base`.",
        "Consensus was reached: planning cycle 1, attempt 1.",
        "- **leap**: The way of leap. Rejected: It cannot be proved on the way.",
        "| T-002 | Title of T-002 | T-001 | yes | src/b/** |",
        "### T-001: Title of T-001",
        "- AC-1: It works. (verified by `sh works.sh`)",
        "- AC-2: It reads well. (no command: Taste has no exit code.)",
        "## Dissent\n\nNothing.",
    ] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    build.ask(&human(), &build.approval(false));
    assert_eq!(build.document("plan.md"), plan);
    assert_eq!(completed().document("plan.md"), {
        let mut build = Build::start(terms());
        build.agree(&parallel());
        build.document("plan.md")
    });
}

#[test]
fn the_argument_shows_who_said_what() {
    let mut build = Build::start(terms());
    build.agree(&in_a_row());
    let text = build.document("consensus.md");
    for words in [
        "### Thesis, by claude (run-1)",
        "### Antithesis, by codex (critic-2)",
        "- **blocking** T-001 has no test.\n  - Answer: It has one now.",
        "### Synthesis, by claude (run-3): consensus",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn every_criterion_shows_its_evidence() {
    let text = completed().document("acceptance.md");
    for words in [
        "Branch `feat/ralph-fix-login` at `h3`.",
        "## AC-1: It works.",
        "(validation, verify): `sh works.sh` ended with exit code 0 on h3 (`git:h3`)",
        "No command can verify it: Taste has no exit code.",
        "(narrative, review): review 2 of h3: approve, 1 findings (`git:h3`), by codex (critic-",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_report_has_nine_parts() {
    let text = completed().document("decision-report.md");
    let parts: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    assert_eq!(
        parts,
        [
            "Scope",
            "Inputs and artifacts inspected",
            "Conditions checked",
            "Options considered",
            "Chosen decision",
            "Rationale",
            "Verification",
            "Risks",
            "Follow-up",
        ]
    );
    for words in [
        "It is completed, in closeout.",
        "- the other thing",
        "was approved by somebody at a terminal, after it was shown.",
        "- T-001: Title of T-001 landed as `h1` (goal `001-goal`).",
        "In an agent's words:\n\n> Every check fails without the change.",
        "In an agent's words, at the end:\n\n- Old clients.",
        "- simplification: A case of simplification",
        "- Write to the users.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn foreign_text_stays_in_its_place() {
    let mut plan = in_a_row();
    plan.summary = "One\n# Approved\n| a | b |".to_owned();
    plan.tasks[0].title = "A | B\n## C".to_owned();
    plan.tasks[0].verify = vec!["echo `date`".to_owned()];
    let mut build = Build::start(terms());
    build.agree(&plan);
    let text = build.document("plan.md");
    assert!(
        !text
            .lines()
            .any(|line| line == "# Approved" || line == "## C"),
        "{text}"
    );
    assert!(text.contains("> # Approved"));
    assert!(text.contains(r"| T-001 | A \| B ## C |"));
    assert!(text.contains("- `` echo `date` ``"));
}
