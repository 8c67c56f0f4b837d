//! A goal by its tools, with each real CLI: a plan that is refused and one that is not, tasks, a
//! claim, the journey distilled, and another CLI as the judge.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{
    AssistantTurn, JudgeRule, ModelScenario, Route, ToolUse,
};
use serde_json::{Value, json};

use crate::environment::{BRANCH, FIRST};
use crate::machine::{JUDGE_MARK, Machine};

/// Words that only the prompt of the run after the end holds.
const DISTILL_MARK: &str = "The goal is done: ";
/// What the agent claims; nothing but its claim says so.
const CLAIM: &str = "test.sh printed: the answer is right";

/// Who judges whom, so that each CLI judges once.
const fn judge_of(cli: Cli) -> Cli {
    match cli {
        Cli::Claude => Cli::Gemini,
        Cli::Codex => Cli::Claude,
        Cli::Gemini => Cli::Pi,
        Cli::Pi => Cli::Codex,
    }
}

fn tool(name: &str, arguments: Value) -> AssistantTurn {
    AssistantTurn::tools(vec![ToolUse::Mcp {
        name: format!("until_done_{name}"),
        arguments,
    }])
}

fn plan(dependency: &str) -> AssistantTurn {
    tool(
        "plan",
        json!({"tasks": [
            {"id": "T-001", "title": "See it fail", "phase": "red"},
            {"id": "T-002", "title": "Make it right", "phase": "green",
             "dependencies": [dependency], "validationSteps": ["sh test.sh"]},
        ]}),
    )
}

fn update(id: &str, patch: &Value) -> AssistantTurn {
    tool("task_update", json!({"id": id, "patch": patch}))
}

fn scenario() -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![
        plan("T-404"),
        plan("T-001"),
        update(
            "T-001",
            &json!({"status": "done", "addLearning": "it says wrong"}),
        ),
        AssistantTurn::bash("echo 42 > answer.txt"),
        tool(
            "progress",
            json!({"note": "the answer is written", "phase": "green"}),
        ),
        update("T-002", &json!({"status": "done"})),
        tool(
            "complete",
            json!({"evidence": CLAIM, "summary": "42 it is"}),
        ),
        AssistantTurn::text("It is done."),
    ]);
    scenario.routes = vec![Route::new(
        DISTILL_MARK,
        vec![
            tool(
                "distill",
                json!({"prdMarkdown": "# Problem\n\nThe answer was wrong."}),
            ),
            AssistantTurn::text("Distilled."),
        ],
    )];
    let verdict =
        json!({ "verdict": "done", "reason": "answer.txt says 42", "token": "{{token}}" });
    scenario.judges = vec![JudgeRule::new(JUDGE_MARK, vec![verdict])];
    scenario
}

fn check_goal_by_tools(cli: Cli) {
    let machine = Machine::new(scenario());
    let judge = judge_of(cli).name();
    let run = machine.run(cli, judge, &[]);
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1, "{:#?}", run.verdicts());
    assert_eq!(run.result["judge"]["by"], judge);
    assert_eq!(machine.env.show(BRANCH, "answer.txt"), "42");
    let kinds: Vec<String> = machine
        .env
        .events(FIRST)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .filter(|kind| REPORTED.contains(&kind.as_str()))
        .collect();
    assert_eq!(
        kinds,
        [
            "plan_made",
            "task_updated",
            "progress_noted",
            "task_updated",
            "turn_declared",
            "goal_done",
            "journey_distilled",
        ],
        "{:#?}",
        machine.env.events(FIRST)
    );
    check_answers(&machine);
}

/// The events that tools lead to, and the one that ends the goal.
const REPORTED: &[&str] = &[
    "plan_made",
    "replanned",
    "task_updated",
    "progress_noted",
    "turn_declared",
    "goal_done",
    "journey_distilled",
];

/// The model has read what its tools answered: the refusal with its code, and then the state.
fn check_answers(machine: &Machine) {
    let asked = machine.asked();
    let bodies: Vec<String> = asked
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    for words in ["unknown_dep", "T-404", "currentTask"] {
        let is_read = bodies.iter().any(|body| body.contains(words));
        assert!(is_read, "the model never read {words:?}");
    }
}

#[test]
fn claude() {
    check_goal_by_tools(Cli::Claude);
}

#[test]
fn codex() {
    check_goal_by_tools(Cli::Codex);
}

#[test]
fn gemini() {
    check_goal_by_tools(Cli::Gemini);
}

#[test]
fn pi() {
    check_goal_by_tools(Cli::Pi);
}
