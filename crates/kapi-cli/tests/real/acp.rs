//! A real CLI that speaks the Agent Client Protocol, `acp:gemini --acp`, asking a scripted model.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, Route, ToolUse};
use serde_json::json;

use crate::environment::{BRANCH, FIRST};
use crate::machine::{Machine, VERIFY_FAILED, activities};

/// What the contract asks about first.
const TRY: &str = "git tag one; echo 42 > answer.txt";

fn agent(machine: &Machine) -> String {
    format!("acp:{} --acp", machine.binary(Cli::Gemini).display())
}

#[test]
fn gemini_works_over_two_turns_to_a_proved_commit() {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::bash("echo 41 > answer.txt"),
        AssistantTurn::text("I believe that the answer is right now."),
    ]);
    scenario.routes = vec![Route::new(
        VERIFY_FAILED,
        vec![
            AssistantTurn::edit("answer.txt", "41", "42"),
            AssistantTurn::text("Now it is right."),
        ],
    )];
    let machine = Machine::new(scenario);
    let run = machine.env.run(&agent(&machine), &["--judge", "none"]);
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 2);
    assert_eq!(machine.env.show(BRANCH, "answer.txt"), "42");
    // Counted at the gateway, under the vendor whose agent it is.
    machine.assert_usage(&run, 4);
    let tools = activities(&run, "tool");
    assert_eq!(tools.len(), 2, "{tools:?}");
    assert!(
        tools[0].starts_with("execute ") && tools[0].contains("echo 41"),
        "{tools:?}"
    );
    assert!(tools[1].starts_with("edit "), "{tools:?}");
    let ended = run.events("agent_ended");
    assert_eq!(ended[1]["run"]["message"], "Now it is right.");
    // This version loads a session only if it was quick enough to save it; what a loaded one repeats is no
    // tool call of the turn. One that is gone begins anew, and says so.
    let is_new = ended[0]["run"]["session"] != ended[1]["run"]["session"];
    let notes = activities(&run, "note");
    let is_told = notes.iter().any(|note| note.contains("session is gone"));
    assert_eq!(is_told, is_new, "{notes:?}");
    let asked = machine.asked();
    let mut prompts = asked.iter().map(|it| &it.last_user);
    assert!(prompts.any(|it| it.contains(VERIFY_FAILED) && it.contains("41, not 42")));
    machine.assert_key_is_in_no_file();
    machine.env.await_no_process();
}

#[test]
fn gemini_asks_permission_for_what_the_contract_asks_about() {
    let scenario = ModelScenario::new(vec![
        AssistantTurn::bash(TRY),
        AssistantTurn::text("I was not let."),
    ]);
    let machine = Machine::new(scenario);
    let run = machine.env.run(
        &agent(&machine),
        &["--judge", "none", "--ask-before", "git tag"],
    );
    run.assert_status("blocked", 5);
    let events = machine.env.events(FIRST);
    assert!(
        events.iter().any(|event| event["type"] == "consent_asked"),
        "{events:#?}"
    );
    // Nothing of the call happened.
    assert_eq!(machine.env.git(&["tag"]), "");
}

#[test]
fn gemini_uses_the_tools_of_its_goal() {
    let scenario = ModelScenario::new(vec![
        AssistantTurn::tools(vec![ToolUse::Mcp {
            name: "until_done_progress".to_owned(),
            arguments: json!({"note": "it begins"}),
        }]),
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("Done."),
    ]);
    let machine = Machine::new(scenario);
    machine
        .env
        .run(&agent(&machine), &["--judge", "none"])
        .assert_status("done", 0);
    let events = machine.env.events(FIRST);
    let noted = events
        .iter()
        .find(|event| event["type"] == "progress_noted");
    assert!(
        noted.unwrap().to_string().contains("it begins"),
        "{events:#?}"
    );
}
