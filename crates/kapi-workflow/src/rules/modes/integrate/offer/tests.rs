//! What is read of a build and of a search that are complete.

use kapi_check::rules::measure::number::Number;
use kapi_core::mode::Mode;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::plan::task::PlanTaskId;

use super::unfinished;
use crate::rules::branch::{Branch, BranchType};
use crate::rules::changed::LandedPaths;
use crate::rules::context_begin::ContextBegin;
use crate::rules::evidence::{BASELINE, Weight, WorkflowEvidence};
use crate::rules::modes::Body;
use crate::rules::modes::autoresearch::contract::{Contract, Direction, Metric, Rule};
use crate::rules::modes::autoresearch::run::{Run, RunStatus};
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::integrate::source::Source;
use crate::rules::modes::ralph::plan::{Alternative, Criterion, Isolation, PlanTask, RalphPlan};
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::scenario::{WorkflowTestScenario, start_interview, terms};
use crate::rules::state::Workflow;

fn branch(name: &str) -> Option<Branch> {
    Some(Branch {
        name: name.to_owned(),
        worktree: "/wt".to_owned(),
        head: "head".to_owned(),
        tree: Some("tree".to_owned()),
    })
}

fn completed(body: Body) -> Workflow {
    let begun = WorkflowTestScenario::begin(&start_interview(terms(), Some("base")));
    let mut workflow = begun.workflow().clone();
    workflow.body = body;
    workflow.status = WorkflowStatus::Completed;
    workflow
}

fn baseline(command: &str, exit_code: i32) -> WorkflowEvidence {
    WorkflowEvidence {
        weight: Weight::Narrative,
        kind: BASELINE.to_owned(),
        summary: String::new(),
        reference: "git:base".to_owned(),
        command: Some(command.to_owned()),
        exit_code: Some(exit_code),
        role: None,
        verdict: None,
        phase: None,
        artifacts: Vec::new(),
        worker: None,
        verifier: None,
        at_ms: 0,
    }
}

fn plan() -> RalphPlan {
    RalphPlan {
        summary: "Greet.".to_owned(),
        context: "A script.".to_owned(),
        branch_type: BranchType::Feat,
        options: vec![Alternative {
            name: "one".to_owned(),
            summary: "One script.".to_owned(),
            rejected: None,
        }],
        tasks: vec![PlanTask {
            id: PlanTaskId::parse("T-001").unwrap(),
            title: "the word".to_owned(),
            description: "Write it.".to_owned(),
            depends_on: Vec::new(),
            touches: Vec::new(),
            isolation: Isolation::Own,
            verify: vec!["test -s word".to_owned()],
            criteria: Vec::new(),
        }],
        criteria: vec![Criterion {
            id: "AC-1".to_owned(),
            text: "Ada is greeted.".to_owned(),
            verify: Some("sh greet.sh Ada".to_owned()),
            exempt: None,
        }],
        verify: vec!["sh all.sh".to_owned()],
        excluded: vec!["No other language.".to_owned()],
        risks: Vec::new(),
    }
}

#[test]
fn a_build_is_what_its_plan_says() {
    let begin = ContextBegin {
        base: "base".to_owned(),
        interview: None,
        spec: None,
    };
    let mut ralph = Ralph::begun(&begin);
    ralph.plan = Some(Box::new(plan()));
    assert_eq!(
        Source::of_workflow(&completed(Body::Ralph(Box::new(ralph.clone())))),
        None
    );
    ralph.branch = branch("feat/ralph-greet");
    let mut workflow = completed(Body::Ralph(Box::new(ralph)));
    workflow.evidence = vec![baseline("sh greet.sh Ada", 1), baseline("sh all.sh", 0)];
    let source = Source::of_workflow(&workflow).unwrap();
    assert_eq!(source.mode, Some(Mode::Ralph));
    assert_eq!(
        (source.base.as_str(), source.commit.as_str()),
        ("base", "head")
    );
    let intents: Vec<String> = source
        .intents
        .iter()
        .map(|it| format!("{}: {}", it.name, it.text))
        .collect();
    assert_eq!(
        intents,
        ["T-001: the word: Write it.", "AC-1: Ada is greeted."]
    );
    assert_eq!(source.excluded, ["No other language."]);
    let checks: Vec<(&str, bool)> = source
        .checks
        .iter()
        .map(|it| (it.command.as_str(), it.failed_before))
        .collect();
    assert_eq!(checks, [("sh greet.sh Ada", true), ("sh all.sh", false)]);
}

fn run(number: u32, status: RunStatus) -> Run {
    Run {
        number,
        segment: 0,
        is_baseline: number == 1,
        commit: format!("c{number}"),
        tree: format!("tree-{number}"),
        status,
        metric: Number::new(f64::from(number)),
        samples: Vec::new(),
        parent: None,
        lines: 1,
        rule: None,
        metrics: Vec::new(),
        description: format!("change {number}"),
        hypothesis: "It is done twice.".to_owned(),
        reason: String::new(),
        changed: LandedPaths::default(),
        benchmark_ms: 0,
        at_ms: 0,
    }
}

#[test]
fn a_search_is_what_it_kept() {
    let begin = ContextBegin {
        base: "base".to_owned(),
        interview: None,
        spec: None,
    };
    let mut search = Autoresearch::begun(&begin);
    search.contract = Some(Box::new(Contract {
        objective: "Fewer operations.".to_owned(),
        metric: Metric {
            name: "ops".to_owned(),
            unit: String::new(),
            direction: Direction::Lower,
        },
        secondary: Vec::new(),
        benchmark: "sh bench.sh".to_owned(),
        checks: Some("sh check.sh".to_owned()),
        no_checks: None,
        benchmark_seconds: 1,
        checks_seconds: 1,
        scope: vec!["src/**".to_owned()],
        off_limits: vec!["bench/**".to_owned()],
        constraints: vec!["No new dependency.".to_owned()],
        runs: 9,
        failures: 9,
        rule: Rule::default(),
        warmups: 0,
        processors: Vec::new(),
        held_back: None,
        parallel: 1,
    }));
    search.branch = branch("perf/autoresearch-sum");
    search.runs = vec![run(1, RunStatus::Keep), run(2, RunStatus::Discard)];
    let nothing = completed(Body::Autoresearch(Box::new(search.clone())));
    assert_eq!(Source::of_workflow(&nothing), None, "nothing was kept");
    search.runs.push(run(3, RunStatus::Keep));
    let workflow = completed(Body::Autoresearch(Box::new(search)));
    let source = Source::of_workflow(&workflow).unwrap();
    let names: Vec<&str> = source.intents.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["objective", "run 3"]);
    assert_eq!(source.excluded, ["bench/**", "No new dependency."]);
    assert_eq!(source.checks[0].command, "sh check.sh");
    assert!(
        !source.checks[0].failed_before,
        "they hold before the first experiment"
    );
}

#[test]
fn only_what_is_complete_is_finished() {
    let begun = WorkflowTestScenario::begin(&start_interview(terms(), Some("base")));
    let mut workflow = begun.workflow().clone();
    assert_eq!(unfinished(&workflow).unwrap(), "is not completed (active)");
    workflow.status = WorkflowStatus::Integrated;
    assert_eq!(unfinished(&workflow).unwrap(), "is integrated already");
    workflow.status = WorkflowStatus::Completed;
    assert_eq!(unfinished(&workflow), None);
    assert_eq!(
        Source::of_workflow(&workflow),
        None,
        "an interview has no branch"
    );
}
