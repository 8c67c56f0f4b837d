//! A whole goal of a session in Pi's other modes: on its screen in a terminal, where the person decides with
//! keys, and as JSON, where nobody is there.

use kapi_testkit::model_server::scenario::AssistantTurn;
use serde_json::{Value, json};

use crate::environment::{FIRST, TASK, await_some};
use crate::pi_goal::refused_once;
use crate::pi_goal_rig::{accepted, done, says, tool, working};
use crate::pi_host::{Host, Options, PiVersion, pi};
use crate::pi_screen;
use crate::program::finish;

#[test]
fn on_the_screen_a_goal_is_approved_asked_about_refused_and_proved() {
    on_the_screen(PiVersion::Pinned);
}

pub(crate) fn on_the_screen(version: PiVersion) {
    let push = AssistantTurn::bash("git push origin main");
    let rig = refused_once(vec![push]).in_pi(version);
    let screen = pi_screen::open(&rig.env, &rig.options());
    screen.types(&format!("/until-done {TASK}"));
    screen.awaits("Approve this contract and start?");
    screen.awaits("sh test.sh exits 0");
    screen.press("Enter");
    screen.awaits("Allow \"git push\" for this goal?");
    // The line under the editor says where the goal stands meanwhile.
    screen.awaits(&format!("{FIRST} active"));
    screen.press("Escape");
    screen.awaits(&format!("Goal {FIRST} is done"));
    assert!(rig.told("user denied \"git push\""));
    assert_eq!(rig.verdicts(), ["judge_continue"]);
    let goal = rig.goal();
    assert_eq!(goal["status"], "done", "{goal:#}");
    let commit = goal["commit"].as_str().unwrap();
    assert_eq!(rig.env.show(commit, "reason.txt"), "why");
    // A goal that is over leaves nothing on the screen but what was said.
    screen.types("/until-done status");
    screen.awaits("No active goal");
    drop(screen);
    rig.env.await_no_process();
}

#[test]
fn as_json_pi_stays_until_the_goal_is_proved() {
    as_json(PiVersion::Pinned);
}

pub(crate) fn as_json(version: PiVersion) {
    let rig = accepted(vec![working(done())]).in_pi(version);
    assert_eq!(rig.env.kapi(&["goal", "autopilot", "on"]).code, 0);
    let mut command = pi(&rig.env, &rig.options());
    command.args(["--mode", "json"]);
    command.arg(format!("/until-done {TASK}"));
    let output = finish(command);
    assert_eq!(output.code, 0, "{output:?}");
    let lines = output.stdout.lines();
    let events: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let types = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(types("session"), 1);
    assert!(types("agent_end") >= 2, "a draft and a turn: {output:?}");
    let goal = await_some("the end of the goal", || {
        let goal = rig.goal();
        (goal["status"] == "done").then_some(goal)
    });
    assert!(goal["commit"].is_string(), "{goal:#}");
    rig.env.await_no_process();
}

#[test]
fn the_flag_sets_a_goal_up_as_pi_starts_and_leaving_its_session_asks_first() {
    flag_and_switch(PiVersion::Pinned);
}

pub(crate) fn flag_and_switch(version: PiVersion) {
    let ask = json!({"question": "Which answer?", "reason": "there are several"});
    let rig = accepted(vec![working(vec![
        tool("block", ask),
        says("I have to ask."),
    ])])
    .in_pi(version);
    let args = ["--until-done", TASK];
    let options = Options {
        args: &args,
        ..rig.options()
    };
    let mut host = Host::start(&rig.env, &options);
    host.confirm(true);
    host.wait("the title", &|line| {
        let title = line["title"].as_str().unwrap_or_default();
        line["method"] == "setTitle" && title.contains("kapi 001")
    });
    let widget = host.widget().join("\n");
    assert!(widget.contains("sh test.sh exits 0"), "{widget}");
    host.reported("the agent is blocked: Which answer?");
    // Another session is begun only where the person says so, and the goal stays with its own.
    let new_session = json!({ "type": "new_session" });
    host.send(&new_session);
    let shown = host.confirm(false);
    assert_eq!(shown["title"], format!("Leave goal {FIRST}?"));
    let answered = |line: &Value| line["type"] == "response" && line["command"] == "new_session";
    let kept = host.wait("the session that is kept", &answered);
    assert_eq!(kept["data"]["cancelled"], true, "{kept:#}");
    host.command("/until-done status");
    host.reported(&format!("{FIRST} blocked"));
    host.send(&new_session);
    host.confirm(true);
    host.wait("the new session", &answered);
    host.command("/until-done status");
    host.reported("No active goal");
    assert_eq!(rig.goal()["status"], "blocked");
    host.end();
    rig.env.await_no_process();
}
