//! `tasks.yaml`: the specification's own example, byte for byte, and texts that want to be more
//! than text.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;
use serde_json::Value;

use super::{id, plan, task};
use crate::rules::plan::task::{
    ContextReference, GoalPlanTask, Prerequisite, TaskPhase, TaskStatus,
};
use crate::rules::plan::task_list::task_list;
use crate::rules::plan::tasks_file::{TasksFile, TurnBudget};

const EXAMPLE: &str = r#"generated: 2026-05-04T12:34:56.000Z
goalId: ud-abc123
goal: finish migrating auth tests to Vitest
doneCriteria: bun test exits 0 with all auth specs green
verifyCommand: bun test
phase: green
askBefore: [git push]
budget: { used: 7, max: 20 }
currentTaskId: T-005
tasks:
  - id: T-001
    title: Bootstrap Vitest config
    phase: bootstrap
    status: done
    dependencies: []
    blocks: [T-002]
    prerequisites: []
    validationSteps:
      - cat vitest.config.ts
      - bun test --version
    ciCommands: [bun test]
    styleguideRules: []
    guardrails: ["no new top-level deps without confirmation"]
    learnings: ["replan: discovered tsconfig conflict"]
    gotchas: ["forgot to update tsconfig include"]
    context:
      - path: package.json
        why: read existing test script
"#;

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn example_task() -> GoalPlanTask {
    GoalPlanTask {
        title: "Bootstrap Vitest config".to_owned(),
        phase: TaskPhase::Bootstrap,
        status: TaskStatus::Done,
        blocks: vec![id("T-002")],
        validation_steps: owned(&["cat vitest.config.ts", "bun test --version"]),
        ci_commands: owned(&["bun test"]),
        guardrails: owned(&["no new top-level deps without confirmation"]),
        learnings: owned(&["replan: discovered tsconfig conflict"]),
        gotchas: owned(&["forgot to update tsconfig include"]),
        context: vec![ContextReference {
            path: Some("package.json".to_owned()),
            url: None,
            why: "read existing test script".to_owned(),
        }],
        ..task("T-001", &[])
    }
}

#[test]
fn tasks_yaml_is_the_specifications_example() {
    let (tasks, ask_before, current) = ([example_task()], owned(&["git push"]), id("T-005"));
    let file = TasksFile {
        generated: "2026-05-04T12:34:56.000Z",
        goal_id: "ud-abc123",
        goal: "finish migrating auth tests to Vitest",
        done_criteria: "bun test exits 0 with all auth specs green",
        verify_command: Some("bun test"),
        phase: TaskPhase::Green,
        ask_before: &ask_before,
        decision_style: None,
        budget: TurnBudget { used: 7, max: 20 },
        current_task_id: Some(&current),
        tasks: &tasks,
    };
    assert_eq!(file.to_yaml(), EXAMPLE);
    let yaml: Value = serde_saphyr::from_str(EXAMPLE).unwrap();
    assert_eq!(serde_json::to_value(&file).unwrap(), yaml);
}

#[test]
fn tasks_yaml_shows_a_goal_without_a_plan() {
    let file = TasksFile {
        generated: "2026-05-04T12:34:56.000Z",
        goal_id: "007-fix-login",
        goal: "Fix the login:\n- and # the rest",
        done_criteria: "true",
        verify_command: None,
        phase: TaskPhase::Analysis,
        ask_before: &[],
        decision_style: Some("small steps, ask rarely"),
        budget: TurnBudget { used: 0, max: 20 },
        current_task_id: None,
        tasks: &[],
    };
    assert_eq!(
        file.to_yaml(),
        "generated: 2026-05-04T12:34:56.000Z\n\
         goalId: 007-fix-login\n\
         goal: |-\n  Fix the login:\n  - and # the rest\n\
         doneCriteria: \"true\"\n\
         verifyCommand: null\n\
         phase: analysis\n\
         askBefore: []\n\
         decisionStyle: small steps, ask rarely\n\
         budget: { used: 0, max: 20 }\n\
         currentTaskId: null\n\
         tasks: []\n"
    );
}

/// Texts that YAML may take for something else, and any others.
fn text() -> impl Strategy<Value = String> {
    let traps = [
        "",
        " ",
        "-",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "null",
        "NULL",
        "~",
        "true",
        "No",
        "1",
        "1.5",
        "0x1f",
        "1e3",
        "12:30",
        "2026-05-04",
        "2026-05-04T12:34:56Z",
        ".inf",
        "007-fix",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a`",
        "{a: b}",
        "[a]",
        "a, b",
        "a]",
        "'a'",
        "\"a\"",
        "a\\b",
        "a\nb",
        "a\n",
        "\na",
        "a\n b",
        "a\r\nb",
        "a\tb",
        "a\u{0}b",
        "a\u{85}b",
        "a\u{2028}b",
        "a\u{feff}b",
        "\u{202e}a",
        "---",
        "...",
        "a:",
        "a ",
        "=",
        "<<",
        "?",
        "? a",
        "a\n---\nb",
        "é",
        "任务",
        "a\u{10ffff}",
        "y",
        "a\n\nb",
    ];
    prop_oneof![
        prop::sample::select(traps.to_vec()).prop_map(str::to_owned),
        any::<String>(),
        "[a-c:#,\\-\\[\\]{} \n'\"]{0,12}",
    ]
}

fn wild_task() -> impl Strategy<Value = GoalPlanTask> {
    let list = || prop::collection::vec(text(), 0..4);
    let location = || prop_oneof![Just(None), text().prop_map(Some)];
    let context = (location(), location(), text()).prop_map(|(path, url, why)| ContextReference {
        path,
        url,
        why,
    });
    let prerequisite = (text(), any::<bool>()).prop_map(|(description, cleared)| Prerequisite {
        description,
        cleared,
    });
    let ids = [
        "1", "null", "a:", "[", "#", "-", "007-a", "é", "\"", "'", "T-1", "{}", ",", "1.0",
    ];
    let name = prop::sample::select(ids.to_vec());
    let lists = (list(), list(), list(), list(), list(), list());
    let rest = (
        prop::collection::vec(context, 0..3),
        prop::collection::vec(prerequisite, 0..3),
    );
    (name, text(), lists, rest, location()).prop_map(|(name, title, lists, rest, notes)| {
        let (context, prerequisites) = rest;
        let (validation_steps, ci_commands, styleguide_rules, guardrails, learnings, gotchas) =
            lists;
        GoalPlanTask {
            title,
            prerequisites,
            validation_steps,
            ci_commands,
            styleguide_rules,
            guardrails,
            learnings,
            gotchas,
            context,
            notes,
            ..task(name, &[name])
        }
    })
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]
    #[test]
    fn tasks_yaml_says_what_the_tasks_say(
        tasks in prop::collection::vec(wild_task(), 0..3),
        texts in prop::collection::vec(text(), 5),
    ) {
        let names: Vec<&str> = texts.iter().map(String::as_str).collect();
        let [goal_id, goal, done_criteria, verify, style] = names[..] else { unreachable!() };
        let current = tasks.first().map(|task| &task.id);
        let file = TasksFile {
            generated: "2026-05-04T12:34:56.000Z",
            goal_id,
            goal,
            done_criteria,
            verify_command: Some(verify),
            phase: TaskPhase::None,
            ask_before: &texts,
            decision_style: Some(style),
            budget: TurnBudget { used: 1, max: 2 },
            current_task_id: current,
            tasks: &tasks,
        };
        let text = file.to_yaml();
        let read: Value = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, serde_json::to_value(&file).unwrap(), "{text}");
        assert!(!text.chars().any(|char| char.is_control() && char != '\n'));
    }
}

#[test]
fn the_task_list_shows_where_every_task_stands() {
    let text = task_list(&plan("A! B*<A C~ D<A,B"));
    assert_eq!(
        text,
        "currentTaskId: B\n\
         counts: { total: 4, done: 1, in_progress: 1, blocked: 0, pending: 1, skipped: 1 }\n\
         tasks:\n  \
         - id: A\n    title: Title of A\n    phase: green\n    status: done\n    deps: []\n  \
         - id: B\n    title: Title of B\n    phase: green\n    status: in_progress\n    deps: [A]\n  \
         - id: C\n    title: Title of C\n    phase: green\n    status: skipped\n    deps: []\n  \
         - id: D\n    title: Title of D\n    phase: green\n    status: pending\n    deps: [A, B]\n"
    );
    let read: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(
        read["counts"],
        serde_json::to_value(plan("A! B*<A C~ D").counts()).unwrap()
    );
}
