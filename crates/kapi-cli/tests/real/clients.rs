//! The CLIs with Kapi set up in them: each sees the server, and uses the tools of goal and kernel in
//! one session; what they check of answers, schemas and names, they check here.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::record::RecordedRequest;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, ToolUse};
use serde_json::{Value, json};

use crate::environment::{FIRST, write};
use crate::machine::Machine;
use crate::person;
use crate::program::finish;

fn tool(name: &str, arguments: Value) -> AssistantTurn {
    AssistantTurn::tools(vec![ToolUse::Mcp {
        name: name.to_owned(),
        arguments,
    }])
}

/// Six tools, each with an answer that is told apart from the others'.
fn scenario() -> ModelScenario {
    ModelScenario::new(vec![
        tool(
            "until_done_set",
            json!({
                "goal": "make the answer right", "doneCriteria": "it is 42", "askBefore": [],
                "decisionStyle": "decide", "goalType": "ticket", "surfaces": [],
                "verifyCommand": "sh test.sh",
            }),
        ),
        tool("until_done_status", json!({})),
        tool(
            "background_task",
            json!({"description": "d", "prompt": "p"}),
        ),
        tool(
            "background_status",
            json!({"taskId": "task_1", "waitSec": 600}),
        ),
        tool("loop_status", json!({})),
        tool(
            "guardrail_add",
            json!({"domain": "sisyphus", "lesson": "look twice"}),
        ),
        AssistantTurn::text("That is all."),
    ])
}

fn check(cli: Cli) {
    let machine = Machine::new(scenario());
    let env = &machine.env;
    let config = env.home().join(".config/kapi/config.toml");
    let profile = "---\nname: sisyphus\ndescription: a shell\nbackend: 'command:echo done-by-the-worker'\n---\nWork.\n";
    write(&config.with_file_name("agents/sisyphus.md"), profile);
    let said = std::fs::read_to_string(&config).unwrap();
    env.configure(&format!("[goal]\nagent = \"command:true\"\n{said}"));
    person::setup(&machine, cli);
    let listed = finish(person::servers(&machine, cli));
    assert_eq!(listed.code, 0, "{listed:?}");
    let shown = format!("{}{}", listed.stdout, listed.stderr);
    assert!(shown.contains("kapi"), "{shown}");
    if cli != Cli::Codex {
        assert!(shown.contains("Connected"), "{shown}");
    }
    let output = finish(person::started(&machine, cli, "Try the tools."));
    assert_eq!(output.code, 0, "{output:?}");
    let asked = machine.asked();
    let bodies: Vec<String> = asked.iter().map(|it| it.body.to_string()).collect();
    let read = bodies.join("\n");
    for words in [
        "not_confirmed",
        "doneCriteria",
        "this server while it runs",
        "done-by-the-worker",
        "loops",
        "kapi loop guardrail accept",
    ] {
        // Codex shows its model the data, and the others the text.
        let is_text = words.starts_with("kapi loop");
        let is_read = read.contains(words) || (is_text && read.contains("proposed"));
        assert!(
            is_read,
            "the model never read {words:?}: {output:?}\n{read}"
        );
    }
    if cli == Cli::Codex {
        check_searched(&asked);
    }
    let goal = env.json(&["show", FIRST]);
    assert_eq!(goal["status"], "proposed", "{goal}");
    let task = env.json(&["show", "task_1"]);
    assert_eq!(task["status"], "completed", "{task}");
    let undone = env.kapi(&["setup", cli.name(), "--undo", "--yes"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    let listed = finish(person::servers(&machine, cli));
    assert!(!listed.stdout.contains("kapi"), "{listed:?}");
}

/// Checks that the tools were kept back until the model searched for them.
fn check_searched(asked: &[RecordedRequest]) {
    let has_tool = |request: &RecordedRequest| {
        let mut tools = request.tools.iter();
        tools.any(|tool| tool.ends_with("until_done_set"))
    };
    let first = asked.first().unwrap();
    assert!(!has_tool(first), "{:?}", first.tools);
    assert!(
        first.tools.iter().any(|tool| tool == "tool_search"),
        "{:?}",
        first.tools
    );
    let found: Vec<&Value> = asked
        .iter()
        .flat_map(|request| request.body["input"].as_array().into_iter().flatten())
        .filter(|item| item["type"] == "tool_search_output")
        .collect();
    let words = found.iter().map(ToString::to_string);
    let words = words.collect::<Vec<String>>().join("\n");
    assert!(words.contains("until_done_set"), "{words}");
    assert!(words.contains("doneCriteria"), "with its schema: {words}");
}

#[test]
fn claude() {
    check(Cli::Claude);
}

#[test]
fn codex() {
    check(Cli::Codex);
}

#[test]
fn gemini() {
    check(Cli::Gemini);
}
