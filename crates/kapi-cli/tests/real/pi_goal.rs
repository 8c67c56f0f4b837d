//! A goal of a session in the real Pi: drafted in the conversation, approved in a dialog, worked on by
//! Pi's own model in the person's checkout, and proved by Kapi.

use std::fs;

use kapi_testkit::model_server::record::RecordedRequest;
use kapi_testkit::model_server::scenario::{AssistantTurn, Route, ToolUse};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::environment::{Environment, FIRST, TASK, write};
use crate::machine::JUDGE_REFUSED;
use crate::pi_goal_rig::{
    AT_THE_GATE, BEGIN, DISTILL, GO_ON, GoalRig, UNFINISHED, accepted, complete, done, drafting,
    drafting_with, says, scenario, tool, verdict, working,
};
use crate::pi_host::{PiVersion, pi};
use crate::program::finish;

/// A model that plans, does this, is refused by the judge, and does what was missing.
pub(crate) fn refused_once(first: Vec<AssistantTurn>) -> GoalRig {
    let plan = json!({"tasks": [
        {"id": "T-001", "title": "See it fail", "phase": "red"},
        {"id": "T-002", "title": "Make it right", "phase": "green", "dependencies": ["T-001"]},
    ]});
    let explained = json!({"id": "T-003", "title": "Say why", "phase": "cleanup"});
    let replan = json!({
        "operations": [{"op": "insert", "task": explained, "insertAfter": "T-002"}],
        "reason": "nobody would know why",
    });
    let red_is_done = json!({"id": "T-001", "patch": {"status": "done"}});
    let planned = vec![
        tool("plan", plan),
        tool("replan", replan),
        tool("task_update", red_is_done),
    ];
    GoalRig::new(scenario(
        vec![
            drafting(),
            working([planned, first, done()].concat()),
            Route::new(
                JUDGE_REFUSED,
                vec![
                    AssistantTurn::bash("echo why > reason.txt"),
                    complete(),
                    says("Now it is explained, too."),
                ],
            ),
            Route::new(
                DISTILL,
                vec![
                    tool(
                        "distill",
                        json!({"prdMarkdown": "# Problem\n\nIt was wrong."}),
                    ),
                    says("Distilled."),
                ],
            ),
        ],
        vec![
            verdict("continue", "the reason is not written down"),
            verdict("done", "now it is"),
        ],
    ))
}

/// Checks what a goal adds to requests, and that nothing of it is left after its end.
fn check_requests(rig: &GoalRig) {
    // The block stands in the system prompt as long as the goal does.
    let asked = rig.asked();
    let system = |request: &RecordedRequest| request.body["messages"][0]["content"].to_string();
    let first = asked
        .iter()
        .find(|it| it.last_user.contains(BEGIN))
        .unwrap();
    assert!(system(first).contains("Done when"), "{}", system(first));
    assert!(first.tools.iter().any(|tool| tool == "until_done_complete"));
    // What a request of a goal carries more than others: the original's tools alone are 24 KB.
    let last = asked.last().unwrap();
    let tools = |request: &RecordedRequest| request.body["tools"].to_string().len();
    let (added, block) = (
        tools(first) - tools(last),
        system(first).len() - system(last).len(),
    );
    assert!(
        added + block < 24_000 / 5,
        "{added} bytes of tools and {block} of the system prompt"
    );
    assert!(!system(last).contains(FIRST), "{}", system(last));
    assert!(!last.tools.iter().any(|tool| tool.starts_with("until_done")));
}

#[test]
fn a_goal_is_planned_refused_by_the_judge_and_proved_in_a_second_turn() {
    planned_and_refused_once(PiVersion::Pinned);
}

pub(crate) fn planned_and_refused_once(version: PiVersion) {
    let rig = refused_once(Vec::new()).in_pi(version);
    let env = &rig.env;
    // The person has work of their own here: staged, stashed, changed.
    env.write("stashed.txt", "stashed\n");
    env.git(&["add", "stashed.txt"]);
    env.git(&["stash", "--quiet"]);
    env.write("staged.txt", "staged\n");
    env.git(&["add", "staged.txt"]);
    env.write("mine.txt", "mine\n");
    let state = |env: &Environment| {
        let index = fs::read(env.repository().join(".git/index")).unwrap();
        let refs = ["rev-parse", "HEAD", "refs/stash"];
        (index, env.git(&refs), env.git(&["branch", "--list"]))
    };
    let before = state(env);

    let mut host = rig.begun();
    let told = host.reported("is done");
    assert!(told.contains("The proved commit is "), "{told}");
    let goal = rig.goal();
    assert_eq!(goal["status"], "done", "{goal:#}");
    assert_eq!(rig.verdicts(), ["judge_continue"]);
    let replans = env.kapi(&["goal", "replan-log", "1"]).stdout;
    assert!(replans.contains("nobody would know why"), "{replans}");
    let commit = goal["commit"].as_str().unwrap();
    assert!(told.contains(commit), "{told}");
    assert_eq!(env.show(commit, "reason.txt"), "why");
    assert_eq!(env.show(commit, "answer.txt"), "42");
    // What the person had changed before is where the goal began, and none of its work.
    let changed = env.git(&["diff", "--name-only", &format!("{commit}~"), commit]);
    assert_eq!(changed, "answer.txt\nreason.txt");
    assert_eq!(
        env.git(&["rev-parse", "refs/kapi/001-make-answer-right/turn-2"]),
        commit
    );
    assert_eq!(state(env), before);
    assert_eq!(env.read("mine.txt"), "mine\n");
    assert_eq!(env.read("answer.txt"), "42\n");
    let distilled = env.goal_dir(FIRST).join("distilled.md");
    let distilled = fs::read_to_string(distilled).unwrap();
    assert!(distilled.contains("It was wrong."), "{distilled}");

    host.prompt("hello");
    host.end();
    check_requests(&rig);
    env.await_no_process();
}

#[test]
fn what_the_contract_asks_about_first_waits_for_the_person() {
    asked_about_first(PiVersion::Pinned);
}

pub(crate) fn asked_about_first(version: PiVersion) {
    let steps = [vec![AssistantTurn::bash("git push origin main")], done()].concat();
    let rig = accepted(vec![working(steps)]).in_pi(version);
    let mut host = rig.begun();
    let asked = host.confirm(false);
    assert_eq!(asked["title"], "Allow \"git push\" for this goal?");
    assert!(
        asked["message"]
            .as_str()
            .unwrap()
            .contains("git push origin main")
    );
    host.reported("is done");
    assert!(rig.told("user denied \"git push\""));
    host.end();
    rig.env.await_no_process();
}

#[test]
fn without_its_child_no_tool_runs_until_it_is_started_again() {
    without_its_child(PiVersion::Pinned);
}

pub(crate) fn without_its_child(version: PiVersion) {
    let steps = [vec![AssistantTurn::bash(AT_THE_GATE)], done()].concat();
    let rig = accepted(vec![working(steps)]).in_pi(version);
    rig.gate();
    let mut host = rig.begun();
    // Its start is told before it may run.
    host.wait("a command", &|line| {
        line["type"] == "tool_execution_update" && line["toolName"] == "bash"
    });
    kill_process(child_of(host.pid()), Signal::KILL).unwrap();
    host.reported("Kapi has gone");
    rig.open_gate();
    host.wait("the end", &|line| line["type"] == "agent_end");
    assert!(rig.told("No tool runs"));
    assert_eq!(rig.env.read("answer.txt"), "wrong\n");
    host.command("/until-done resume");
    host.reported("continues");
    rig.open_gate();
    host.reported("is done");
    assert_eq!(rig.env.read("answer.txt"), "42\n");
    host.end();
    rig.env.await_no_process();
}

/// Returns the one child of a Pi that is Kapi's.
fn child_of(pi: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{pi}/task/{pi}/children")).unwrap();
    let mut children = children.split_whitespace();
    let child = children.find(|child| {
        let name = fs::read_to_string(format!("/proc/{child}/comm"));
        name.is_ok_and(|name| name.trim() == "kapi")
    });
    Pid::from_raw(child.unwrap().parse().unwrap()).unwrap()
}

#[test]
fn a_turn_of_the_person_is_theirs_and_a_compaction_loses_no_goal() {
    theirs_and_compacted(PiVersion::Pinned);
}

pub(crate) fn theirs_and_compacted(version: PiVersion) {
    let rig = accepted(vec![
        working(vec![AssistantTurn::bash("true"), says("I have looked.")]),
        Route::new(
            UNFINISHED,
            vec![AssistantTurn::bash(AT_THE_GATE), says("Well.")],
        ),
        Route::new("what is that?", vec![says("That is the answer.")]),
        Route::new(GO_ON, done()),
    ])
    .in_pi(version);
    rig.gate();
    // Whatever there is can be compacted.
    let settings = json!({ "compaction": { "keepRecentTokens": 1 } });
    let file = rig.env.home().join(".pi/agent/settings.json");
    write(&file, settings.to_string());
    let mut host = rig.begun();
    host.wait("the second turn", &|line| {
        line["type"] == "tool_execution_start" && line["args"]["command"] == AT_THE_GATE
    });
    host.send(
        &json!({ "type": "prompt", "message": "what is that?", "streamingBehavior": "steer" }),
    );
    host.wait("its answer", &|line| {
        line["type"] == "response" && line["command"] == "prompt"
    });
    rig.open_gate();
    host.reported("/until-done resume continues it");
    assert_eq!(rig.verdicts(), ["unfinished", "person_spoke"]);
    host.command("/until-done status");
    host.reported("001-make-answer-right active");
    // What the conversation is about outlives what was said in it.
    host.ask(&json!({ "type": "compact" }));
    host.command("/until-done resume");
    host.reported("is done");
    let asked = rig.asked();
    let first_after = asked
        .iter()
        .find(|it| it.last_user.contains(GO_ON))
        .unwrap();
    let said = first_after.body["messages"].to_string();
    assert!(said.contains("Done when: sh test.sh exits 0"), "{said}");
    assert!(!said.contains(UNFINISHED), "{said}");
    host.end();
    rig.env.await_no_process();
}

#[test]
fn a_turn_without_work_blocks_the_goal_and_a_side_question_does_not() {
    let rig = accepted(vec![
        working(vec![says("I will think about it.")]),
        Route::new("A side question", vec![says("Because it is 41.")]),
        Route::new(GO_ON, done()),
        Route::new(UNFINISHED, done()),
    ]);
    let mut host = rig.begun();
    host.reported("spin guard");
    assert_eq!(rig.goal()["status"], "blocked");
    host.command("/until-done ask why is it wrong?");
    host.wait("the answer", &|line| line["type"] == "agent_end");
    assert_eq!(rig.goal()["status"], "blocked");
    let turns = rig.verdicts();
    host.command("/until-done resume");
    host.reported("is done");
    assert_eq!(rig.verdicts(), turns, "the question was no turn");
    host.end();
    rig.env.await_no_process();
}

#[test]
fn a_used_up_budget_pauses_and_a_resume_gives_the_first_number_of_turns_again() {
    let routes = vec![
        drafting_with(&json!({"maxTurns": 1})),
        working(vec![AssistantTurn::bash("true"), says("I have looked.")]),
        Route::new(UNFINISHED, done()),
    ];
    let rig = GoalRig::new(scenario(routes, vec![verdict("done", "it says 42")]));
    let mut host = rig.begun();
    host.reported("the turn budget is used up");
    assert_eq!(rig.goal()["status"], "paused");
    host.command("/until-done resume");
    host.reported("with 1 turn more");
    host.reported("is done");
    host.end();
    rig.env.await_no_process();
}

#[test]
fn a_contract_that_is_turned_down_ends_there_and_nothing_is_activated_without_it() {
    let rig = accepted(vec![working(done())]);
    let mut host = rig.host();
    host.command("/until-done resume");
    host.reported("this session has no goal");
    host.command(&format!("/until-done {TASK}"));
    host.confirm(false);
    host.reported("The contract was rejected");
    assert_eq!(rig.goal()["status"], "cancelled");
    host.prompt("hello");
    let asked = rig.asked();
    let tools = &asked.last().unwrap().tools;
    assert!(
        !tools.iter().any(|tool| tool.starts_with("until_done")),
        "{tools:?}"
    );
    host.end();
    rig.env.await_no_process();
}

#[test]
fn without_anybody_at_it_pi_stays_until_the_goal_rests() {
    printed(PiVersion::Pinned);
}

pub(crate) fn printed(version: PiVersion) {
    let rig = accepted(vec![working(done())]).in_pi(version);
    let print = |line: &str| {
        let mut command = pi(&rig.env, &rig.options());
        command.args(["-p", line]);
        finish(command)
    };
    // Nobody approves a contract by being absent.
    let output = print(&format!("/until-done {TASK}"));
    assert!(
        output.stderr.contains("waits for your approval"),
        "{output:?}"
    );
    assert_eq!(rig.goal()["status"], "proposed");
    assert_eq!(rig.env.kapi(&["goal", "reject", "1"]).code, 0);
    // Their own preference does.
    assert_eq!(rig.env.kapi(&["goal", "autopilot", "on"]).code, 0);
    let output = print("/until-done make the answer right");
    assert!(
        output.stderr.contains("Goal 002-make-answer-right is done"),
        "{output:?}"
    );
    assert_eq!(rig.env.json(&["show", "2"])["status"], "done");
    rig.env.await_no_process();
}

#[test]
fn the_kernel_s_tools_are_the_model_s_where_the_person_says_so() {
    let rig = accepted(vec![Route::new(
        "run it beside",
        vec![
            AssistantTurn::tools(vec![ToolUse::Named {
                name: "background_task".to_owned(),
                arguments: json!({
                    "description": "say it",
                    "prompt": "say it",
                    "agent": "nobody-at-all",
                }),
            }]),
            says("It was refused."),
        ],
    )]);
    let mut host = rig.host();
    host.command("/creampi-health");
    host.reported("pi");
    host.command("/creampi-loops");
    host.shown("notify");
    host.prompt("hello");
    host.command("/creampi tools");
    host.reported("has the kernel's tools");
    host.prompt("run it beside");
    assert!(rig.told("nobody-at-all"), "the kernel answers");
    host.command("/creampi tools");
    host.reported("are taken away again");
    host.prompt("hello again");
    host.end();
    let asked = rig.asked();
    let has_tools = |request: &RecordedRequest| {
        request
            .tools
            .iter()
            .filter(|tool| tool.contains("background_") || tool.contains("loop_"))
            .count()
    };
    let counts: Vec<usize> = asked.iter().map(has_tools).collect();
    assert_eq!((counts.first(), counts.last()), (Some(&0), Some(&0)));
    assert_eq!(
        counts.iter().max(),
        Some(&5),
        "three of tasks and two of loops"
    );
    rig.env.await_no_process();
}
