//! Work that others do for a session: a task that another agent does in the background, a loop that is set
//! off by Pi's own model, and a task that the person hands to a sandbox.

use kapi_testkit::model_server::scenario::{AssistantTurn, Route, ToolUse};
use serde_json::{Value, json};

use crate::environment::write;
use crate::pi_goal_rig::{GoalRig, says, scenario};
use crate::pi_host::PiVersion;

/// What the agent of the task says, and only it.
const SAID: &str = "the-worker-was-here";
const KAPI: &str = env!("CARGO_BIN_EXE_kapi");

fn call(name: &str, arguments: Value) -> AssistantTurn {
    AssistantTurn::tools(vec![ToolUse::Named {
        name: name.to_owned(),
        arguments,
    }])
}

#[test]
fn a_task_is_handed_to_a_sandbox_after_its_contract_was_shown() {
    handed_over(PiVersion::Pinned);
}

pub(crate) fn handed_over(version: PiVersion) {
    let rig = GoalRig::new(scenario(Vec::new(), Vec::new())).in_pi(version);
    let env = &rig.env;
    let mut host = rig.host();
    let line = "/kapi-run make the answer right --agent 'command:echo 42 > answer.txt' --judge none \
                --verify 'sh test.sh'";
    host.command(line);
    let shown = host.confirm(false);
    assert!(
        shown["message"].as_str().unwrap().contains("sh test.sh"),
        "{shown:#}"
    );
    host.reported("was rejected");
    assert_eq!(rig.goal()["status"], "cancelled");
    host.command(line);
    host.confirm(true);
    // The person works on meanwhile.
    host.prompt("hello");
    let reported = host.reported("Goal 002-make-answer-right is done");
    assert!(reported.contains("git merge feat/"), "{reported}");
    let goal = env.json(&["show", "2"]);
    let branch = goal["branch"].as_str().unwrap();
    assert_eq!(env.show(branch, "answer.txt"), "42");
    assert_eq!(env.read("answer.txt"), "wrong\n");
    host.end();
    env.await_no_process();
}

#[test]
fn a_task_in_the_background_and_a_loop_are_done_while_the_session_lives() {
    task_and_loop(PiVersion::Pinned);
}

pub(crate) fn task_and_loop(version: PiVersion) {
    let task = json!({"description": "write it", "prompt": "write the answer"});
    let set_off = json!({"loopName": "look", "triggerSource": "the user"});
    let rig = GoalRig::new(scenario(
        vec![
            Route::new(
                "have it written",
                vec![
                    call("background_task", task),
                    AssistantTurn::bash(&format!("{KAPI} wait task_1")),
                    call("background_status", json!({"taskId": "task_1"})),
                    says("It is written."),
                ],
            ),
            Route::new(
                "look around",
                vec![
                    call("loop_trigger", set_off),
                    AssistantTurn::bash(&format!("{KAPI} wait task_2")),
                    call("loop_status", json!({"loopName": "look"})),
                    says("It was looked."),
                ],
            ),
        ],
        Vec::new(),
    ))
    .in_pi(version);
    let env = &rig.env;
    let shell = format!("command:echo {SAID}; echo 42 > answer.txt");
    let profile =
        format!("---\nname: sisyphus\ndescription: a shell\nbackend: {shell:?}\n---\nWork.\n");
    write(&env.home().join(".config/kapi/agents/sisyphus.md"), profile);
    write(
        &env.repository().join(".ilchul/loops/look.md"),
        "---\nname: look\nagent: oracle\nworkspace: read_only\nbackend: \"command:echo looked\"\n---\n\
         Look around.\n",
    );

    let mut host = rig.host();
    host.command("/creampi-loops");
    host.reported("look");
    host.command("/creampi tools");
    host.reported("has the kernel's tools");
    host.prompt("have it written");
    let read: Vec<String> = rig
        .asked()
        .iter()
        .map(|it| it.last_tool_result.clone())
        .collect();
    assert!(
        rig.told(SAID),
        "the output of the task never reaches the model: {read:?}"
    );
    let task = env.json(&["show", "task_1"]);
    assert_eq!(task["status"], "completed", "{task:#}");
    let branch = task["work"]["branch"].as_str().unwrap();
    assert_eq!(env.show(branch, "answer.txt"), "42");
    assert_eq!(env.read("answer.txt"), "wrong\n");

    host.prompt("look around");
    let history = env.json(&["loop", "history", "look"]);
    assert_eq!(history["runs"][0]["status"], "completed", "{history:#}");
    assert!(rig.told("\"lastRun\""), "{history:#}");
    host.command("/creampi-loops");
    host.reported("completed");
    host.end();
    env.await_no_process();
}
