//! Every rule about a plan, each broken once.

use crate::rules::branch::BranchType;
use crate::rules::handover::{Boundaries, Spec, SuccessCriterion};
use crate::rules::modes::ralph::fixture::{in_a_row, parallel, plan, task, terms};
use crate::rules::modes::ralph::plan::RalphPlan;
use crate::rules::modes::ralph::plan::sound::{PlanFault, doubts, sound};

fn faults(plan: &RalphPlan) -> Vec<String> {
    match sound(plan, None, &terms(), None) {
        Ok(()) => Vec::new(),
        Err(faults) => faults.iter().map(PlanFault::to_string).collect(),
    }
}

fn broken(change: impl FnOnce(&mut RalphPlan)) -> Vec<String> {
    let mut plan = in_a_row();
    change(&mut plan);
    faults(&plan)
}

fn check(change: impl FnOnce(&mut RalphPlan), fault: &str) {
    assert_eq!(broken(change), [fault]);
}

#[test]
fn sound_plans_pass() {
    assert!(faults(&in_a_row()).is_empty());
    assert!(faults(&parallel()).is_empty());
    assert!(broken(|plan| plan.verify.clear()).is_empty());
    assert!(
        broken(|plan| {
            plan.options.truncate(1);
            plan.options[0].rejected = Some("Nothing else compiles.".to_owned());
        })
        .is_empty()
    );
}

#[test]
fn texts_are_there_and_fit() {
    check(|plan| plan.summary.clear(), "summary is empty");
    check(|plan| plan.context = " \n".to_owned(), "context is empty");
    check(
        |plan| plan.tasks[0].description = "x".repeat(9_000),
        "T-001.description has 9000 bytes; the maximum is 8192",
    );
    check(
        |plan| plan.excluded = vec!["x".to_owned(); 65],
        "excluded has 65 entries; the maximum is 64",
    );
    let long = broken(|plan| plan.risks = vec!["x".repeat(8_000); 20]);
    assert!(long[0].starts_with("the plan has 160"), "{long:?}");
}

#[test]
fn alternatives_are_considered() {
    let rule = "options needs at least two ways, exactly one of them without `rejected`; or one way whose `rejected` explains why there is no other";
    check(|plan| plan.options.clear(), rule);
    check(|plan| plan.options.truncate(1), rule);
    check(|plan| plan.options[1].rejected = None, rule);
    check(
        |plan| plan.options[0].rejected = Some("No.".to_owned()),
        rule,
    );
}

#[test]
fn tasks_have_names_edges_and_proofs() {
    check(|plan| plan.tasks.clear(), "tasks is empty");
    assert_eq!(
        broken(|plan| plan.tasks[1] = task("T-1", &["T-001"], &[])),
        [r#"tasks: "T-1" is not of the form T-001"#]
    );
    let twice = broken(|plan| plan.tasks[1] = task("T-001", &[], &[]));
    assert_eq!(twice, ["tasks: T-001 appears twice"]);
    check(
        |plan| plan.tasks[1] = task("T-002", &["T-009"], &[]),
        "task T-002 depends on T-009, which the plan does not have",
    );
    check(
        |plan| plan.tasks[0] = task("T-001", &["T-002"], &[]),
        "tasks depend on each other in a cycle: T-001 -> T-002",
    );
    check(
        |plan| plan.tasks[0] = task("T-001", &["T-001"], &[]),
        "tasks depend on each other in a cycle: T-001",
    );
    check(
        |plan| plan.tasks[0].verify.clear(),
        "task T-001 has no verify command",
    );
    check(
        |plan| plan.tasks[0].criteria = vec!["AC-7".to_owned()],
        "task T-001 serves criterion AC-7, which the plan does not have",
    );
    let tasks = (1..=65).map(|n| task(&format!("T-{n:03}"), &[], &[]));
    assert_eq!(
        faults(&plan(tasks.collect())),
        ["tasks has 65 entries; the maximum is 64"]
    );
}

#[test]
fn globs_stay_in_the_repository() {
    for (glob, rule) in [
        (
            "/etc/passwd",
            "it must be relative to the repository, with slashes",
        ),
        (
            r"src\a",
            "it must be relative to the repository, with slashes",
        ),
        ("src/../../x", "it must not leave the repository"),
        ("a\u{7}b", "it contains an invisible character"),
        (
            ".git/hooks/*",
            "a task must not change files of Kapi or git",
        ),
        ("a/.ilchul", "a task must not change files of Kapi or git"),
    ] {
        let found = broken(|plan| plan.tasks[0].touches = vec![glob.to_owned()]);
        assert_eq!(found, [format!("task T-001 touches {glob:?}: {rule}")]);
    }
}

#[test]
fn criteria_have_one_proof_each() {
    let rule = "criterion AC-1 needs either verify or exempt, and not both";
    check(|plan| plan.criteria[0].verify = None, rule);
    check(
        |plan| plan.criteria[0].exempt = Some("No.".to_owned()),
        rule,
    );
    check(
        |plan| plan.criteria[1].id = "AC-1".to_owned(),
        "criteria: AC-1 appears twice",
    );
    check(
        |plan| plan.criteria[1].id = "AC 2".to_owned(),
        r#"criteria: "AC 2" is not of the form AC-1"#,
    );
}

#[test]
fn the_whole_is_proved_by_somebody() {
    let mut plan = in_a_row();
    plan.verify.clear();
    let mut terms = terms();
    terms.verify.clear();
    assert_eq!(
        sound(&plan, None, &terms, None),
        Err(vec![PlanFault::WholeUnproved])
    );
}

#[test]
fn the_criteria_of_a_spec_are_covered_with_their_commands() {
    let criterion = |text: &str, verify: Option<&str>| SuccessCriterion {
        text: text.to_owned(),
        verify: verify.map(str::to_owned),
        exempt: None,
        rounds: vec![1],
    };
    let spec = Spec {
        goal: "It works.".to_owned(),
        intent: Vec::new(),
        constraints: Vec::new(),
        preferences: Vec::new(),
        success_criteria: vec![
            criterion("It works.", Some("sh other.sh")),
            criterion("It reads well.", None),
            criterion("It is quick.", None),
        ],
        methods: Vec::new(),
        boundaries: Boundaries::default(),
        open_questions: Vec::new(),
        non_goals: Vec::new(),
        answers: Vec::new(),
        context: Vec::new(),
    };
    let faults = sound(&in_a_row(), Some(&spec), &terms(), None).unwrap_err();
    let faults: Vec<String> = faults.iter().map(PlanFault::to_string).collect();
    assert_eq!(
        faults,
        [
            "criterion AC-1 must be verified by \"sh other.sh\", as in the approved spec",
            "criterion AC-3 is missing: the approved spec has it as \"It is quick.\"",
        ]
    );
}

#[test]
fn a_branch_keeps_its_type() {
    let found = sound(&in_a_row(), None, &terms(), Some(BranchType::Fix));
    assert_eq!(found, Err(vec![PlanFault::OtherType(BranchType::Fix)]));
    assert_eq!(
        sound(&in_a_row(), None, &terms(), Some(BranchType::Feat)),
        Ok(())
    );
}

#[test]
fn checks_that_cannot_fail_are_doubted() {
    let mut plan = in_a_row();
    assert!(doubts(&plan).is_empty());
    plan.tasks[0].verify = vec!["true".to_owned(), "echo ok && sh t.sh".to_owned()];
    plan.criteria[0].verify = Some("echo done".to_owned());
    assert_eq!(
        doubts(&plan),
        [
            "T-001 is verified by `true`, which always passes.",
            "AC-1 is verified by `echo done`, which always passes.",
        ]
    );
}

#[test]
fn a_branch_has_one_of_nine_types() {
    let names = [
        "feat", "fix", "perf", "refactor", "test", "docs", "chore", "build", "ci",
    ];
    for name in names {
        let kind: BranchType = serde_json::from_str(&format!("\"{name}\"")).unwrap();
        assert_eq!(kind.as_str(), name);
    }
    assert_eq!(BranchType::ALL.len(), names.len());
    assert!(serde_json::from_str::<BranchType>("\"style\"").is_err());
}
