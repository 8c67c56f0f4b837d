//! One surface: the same verbs for a goal, a workflow, a task and a launch, and what names them.
//!
//! Every kind stands in one project here, as a person has them.

use std::fs;

use serde_json::json;

use crate::environment::{Environment, await_some, for_each};
use crate::kernel_task::result;
use crate::launch::{launch, launch_on};
use crate::program::{Output, Running, parse};
use crate::workflow_support::Machine;

const GOAL: &str = "001-make-answer-right";
/// Makes the answer right.
const HONEST: &str = "command:echo 42 > answer.txt; echo it is right";

/// A machine with one thing of each kind: goal 1, workflow 2, `task_1` and launch 9.
fn one_of_each() -> Machine {
    let machine = Machine::new();
    machine.env.run(HONEST, &[]).assert_status("done", 0);
    let drafted = machine.drafted();
    assert_eq!(drafted.code, 5, "{drafted:?}");
    result(&machine.env, HONEST, &[], 0);
    let launched = launch(&machine.env, "9", "echo work; echo more > file.txt", &[]);
    assert_eq!(launched.code, 0, "{launched:?}");
    machine
}

fn workflow(machine: &Machine) -> String {
    let listed = machine.env.json(&["deep-interview", "status"]);
    listed["workflows"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_verb_answers_for_every_kind() {
    let machine = one_of_each();
    let env = &machine.env;
    let interview = workflow(&machine);
    for (reference, kind, id) in [
        ("1", "goal", GOAL),
        ("goal/make-answer-right", "goal", GOAL),
        ("2", "workflow", &interview),
        ("task_1", "task", "task_1"),
        ("9", "launch", "9"),
        ("launch/9", "launch", "9"),
    ] {
        let shown = env.json(&["show", reference]);
        assert_eq!((&shown["type"], &shown["id"]), (&json!(kind), &json!(id)));
        let reported = env.kapi(&["show", reference]);
        assert_eq!(reported.code, 0, "{reported:?}");
        assert!(reported.stdout.contains(id), "{reported:?}");
        assert_eq!(env.json(&["status", reference])["id"], *id);
        let logged = env.kapi(&["log", reference, "--json"]);
        assert_eq!(logged.code, 0, "{logged:?}");
        let first = parse(logged.stdout.lines().next().unwrap());
        let of = if kind == "launch" { "9" } else { id };
        assert_eq!(first[kind], of, "{first}");
        let spent = env.json(&["budget", reference]);
        assert_eq!(spent["id"], *id);
        assert!(spent["spent"]["tokens"].is_u64(), "{spent}");
        assert_eq!(env.kapi(&["budget", reference]).code, 0);
    }
    // What each changed.
    for reference in ["1", "task_1"] {
        let diff = env.json(&["diff", reference]);
        assert_eq!(diff["paths"], json!(["answer.txt"]), "{diff}");
        assert!(diff["patch"].as_str().unwrap().contains("+42"), "{diff}");
        let stat = env.kapi(&["diff", reference, "--stat"]);
        assert_eq!(stat.stdout, "answer.txt\n1 path changed.\n", "{stat:?}");
    }
    let diff = env.json(&["diff", "launch/9"]);
    assert_eq!(diff["changed"][0]["path"], "file.txt", "{diff}");
    let diff = env.kapi(&["diff", "2"]);
    assert!(diff.stderr.contains("no branch yet"), "{diff:?}");
    // All of it has ended or needs a person, so waiting ends at once, with the code of its own run.
    for (reference, code) in [("1", 0), ("2", 5), ("task_1", 0), ("launch/9", 0)] {
        assert_eq!(env.kapi(&["wait", reference]).code, code, "{reference}");
    }
}

#[test]
fn a_word_that_fits_several_things_names_each_of_them() {
    let machine = one_of_each();
    let env = &machine.env;
    let launched = launch(env, "make-answer-right", "true", &[]);
    assert_eq!(launched.code, 0, "{launched:?}");
    env.kapi(&["show", "make-answer-right"]).assert_error(
        2,
        &[
            "matches 2 things here",
            "001-make-answer-right     goal, done: make the answer right",
            "launch/make-answer-right  launch, finished: command",
        ],
    );
    // A number is a goal's or a workflow's first, and what it fits alone otherwise.
    assert_eq!(env.json(&["show", "1"])["type"], "goal");
    result(env, HONEST, &[], 0);
    assert_eq!(env.json(&["show", "2"])["type"], "workflow");
    let launched = launch(env, "3", "true", &[]);
    assert_eq!(launched.code, 0, "{launched:?}");
    assert_eq!(env.json(&["show", "3"])["type"], "launch");
    result(env, HONEST, &[], 0);
    env.kapi(&["show", "3"])
        .assert_error(2, &["2 things", "task_3", "launch/3"]);
}

#[test]
fn what_is_not_here_is_said_with_what_there_is() {
    let machine = one_of_each();
    let env = &machine.env;
    let interview = workflow(&machine);
    let cases: [(&str, i32, &[&str]); 9] = [
        (
            "nothing",
            6,
            &["nothing here matches \"nothing\"", GOAL, &interview],
        ),
        ("77", 6, &["nothing here matches", GOAL]),
        ("goal/77", 6, &["nothing here matches", GOAL]),
        (
            "goal/2",
            6,
            &[
                "there is no goal/2 here",
                "\"2\" is a workflow; use workflow/2",
            ],
        ),
        ("workflow/1", 6, &["is a goal; use goal/1"]),
        ("task_77", 6, &["task not found: task_77"]),
        ("task/x", 2, &["is not a task"]),
        (
            "launch/77",
            6,
            &["there is no sandbox 77", "kapi sandbox list"],
        ),
        ("launch/a b", 2, &["is not an id"]),
    ];
    for_each(&cases, |(reference, code, words)| {
        for verb in ["show", "log", "diff", "wait", "budget", "audit"] {
            env.kapi(&[verb, reference]).assert_error(*code, words);
        }
        env.kapi(&["cancel", reference, "--yes"])
            .assert_error(*code, words);
    });
    // A verb of goals alone says what it is instead.
    env.kapi(&["goal", "tasks", "task_1"])
        .assert_error(6, &["it is a task", "kapi show task_1"]);
    assert_eq!(env.json(&["goal", "tasks", "goal/1"])["id"], GOAL);
}

#[test]
fn a_launch_of_another_project_is_named_with_its_directory() {
    let machine = Machine::new();
    let env = &machine.env;
    let other = crate::launch::plain_project(env);
    let launched = launch_on(env, "7", &other, "echo more > file.txt", &[]);
    assert_eq!(launched.code, 0, "{launched:?}");
    // A bare word means what is here; a launch that is the only one of its id is found from anywhere.
    assert_eq!(env.kapi(&["show", "7"]).code, 6);
    assert_eq!(env.json(&["show", "launch/7"])["id"], "7");
    let launched = launch(env, "7", "true", &[]);
    assert_eq!(launched.code, 0, "{launched:?}");
    let dir = other.display().to_string();
    for (options, n) in [(&[][..], 0), (&["--project", &dir], 1)] {
        let diff = env.json(&[&["diff", "launch/7"][..], options].concat());
        assert_eq!(diff["changed"].as_array().unwrap().len(), n, "{diff}");
    }
    env.kapi_in(env.root(), &["show", "launch/7"])
        .assert_error(2, &["2 projects have a sandbox 7", "--project"]);
}

#[test]
fn without_a_reference_the_only_thing_under_way_is_meant() {
    let machine = Machine::new();
    let env = &machine.env;
    env.kapi(&["show"]).assert_error(6, &["there are no goals"]);
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    assert_eq!(env.json(&["show"])["id"], GOAL);
    let submitted = env.kapi(&["task", "run", "more", "--agent", "command:true", "--detach"]);
    assert_eq!(submitted.code, 0, "{submitted:?}");
    env.kapi(&["show"]).assert_error(
        2,
        &[
            "2 things are unfinished here",
            "001-make-answer-right  goal, paused",
            "task_1",
        ],
    );
    assert_eq!(env.kapi(&["cancel", "1", "--yes"]).code, 0);
    assert_eq!(env.json(&["show"])["id"], "task_1");
    assert_eq!(env.kapi(&["cancel", "--yes"]).code, 0);
    env.kapi(&["cancel", "--yes"])
        .assert_error(6, &["nothing here is unfinished", "kapi status --all"]);
    // Looking takes what was begun last.
    assert_eq!(env.json(&["show"])["id"], GOAL);
}

#[test]
fn a_refusal_says_what_does_the_job() {
    let machine = one_of_each();
    let env = &machine.env;
    let cases: [(&[&str], i32, &[&str]); 10] = [
        (
            &["resume", "task_1"],
            3,
            &["a task cannot be resumed", "kapi task retry task_1"],
        ),
        (
            &["resume", "2"],
            3,
            &["resumed through its mode", "kapi deep-interview resume 002"],
        ),
        (&["resume", "launch/9"], 3, &["kapi launch 9 <project>"]),
        (
            &["resume", "1"],
            3,
            &["cannot be resumed", "kapi goal reopen 001"],
        ),
        (
            &["budget", "task_1", "--tokens", "+1k"],
            3,
            &["after it was submitted", "kapi task run"],
        ),
        (
            &["budget", "launch/9", "--usd", "+1"],
            3,
            &["launch/9 has ended well", "kapi launch 9 <project>"],
        ),
        (
            &["budget", "2", "--turns", "+1"],
            2,
            &["only a goal has a turn limit"],
        ),
        (
            &["budget", "2", "--wall", "+1h"],
            2,
            &["the limit of time: the workflow has none"],
        ),
        (
            &["cancel", "launch/9", "--yes"],
            3,
            &["not running", "kapi sandbox discard 9"],
        ),
        (&["cancel", "task_1", "--yes"], 3, &["task_1 is completed"]),
    ];
    for (args, code, words) in cases {
        env.kapi(args).assert_error(code, words);
    }
}

#[test]
fn a_running_launch_is_followed_waited_for_and_stopped() {
    let machine = Machine::new();
    let env = &machine.env;
    let project = env.repository().display().to_string();
    let agent = "command:echo begun > here.txt; echo saying so; sleep 3000";
    let running = env.start(&[
        "launch", "5", &project, "--task", "more", "--agent", agent, "--json",
    ]);
    await_some("the launch to say so", || {
        let log = env.kapi(&["log", "5", "--transcript"]);
        log.stdout.contains("saying so").then_some(())
    });
    let shown = env.json(&["show", "5"]);
    assert_eq!(shown["state"], "running", "{shown}");
    assert!(shown["holder"].as_str().unwrap().contains("kapi launch"));
    // Without a reference it is meant as well, as long as it is under way.
    for words in [&["wait", "5"][..], &["wait"]] {
        env.kapi(&[words, &["--timeout", "50ms"]].concat())
            .assert_error(
                7,
                &[
                    "launch/5 has not ended within this time",
                    "kapi show launch/5",
                ],
            );
    }
    let following = env.start(&["log", "launch/5", "-f", "--json"]);
    let waiting = env.start(&["wait", "launch/5", "--json"]);
    let stopped = env.kapi(&["cancel", "launch/5", "--yes", "--json"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert_eq!(stopped.document()["state"], "failed", "{stopped:?}");
    let launched: Output = running.finish();
    let waited: Output = waiting.finish();
    assert_eq!(waited.code, launched.code, "{waited:?} {launched:?}");
    let followed: Output = following.finish();
    assert_eq!(followed.code, 0, "{followed:?}");
    assert!(followed.stdout.contains("saying so"), "{followed:?}");
    // Who reads it meanwhile makes it neither running nor unreadable for another reader.
    let readers: Vec<Running> = (0..4)
        .map(|_| env.start(&["show", "5", "--json"]))
        .collect();
    for reader in readers {
        let shown: Output = reader.finish();
        assert_eq!(shown.document()["state"], "failed", "{shown:?}");
        assert_eq!(shown.document()["paths"][0]["path"], "here.txt");
    }
    // Its work stays.
    let diff = env.json(&["diff", "launch/5", "--stat"]);
    assert_eq!(diff["changed"][0]["path"], "here.txt", "{diff}");
    assert!(fs::metadata(env.repository().join("here.txt")).is_err());
}

#[test]
fn a_workflow_is_given_up_and_allowed_more_by_the_same_verbs() {
    let machine = Machine::new();
    let env = &machine.env;
    let drafted = machine.interview(&["--tokens", "2M", "--answers", &{
        let answers = env.root().join("answers.yaml");
        answers.display().to_string()
    }]);
    assert_eq!(drafted.code, 5, "{drafted:?}");
    let raised = env.json(&["budget", "1", "--tokens", "+1M"]);
    assert_eq!(raised["budget"]["tokens"], 3_000_000, "{raised}");
    let reported = env.kapi(&["cancel", "1", "--reason", "not wanted", "--yes"]);
    assert_eq!(reported.code, 0, "{reported:?}");
    assert_eq!(env.json(&["show", "1"])["status"], "abandoned");
    assert!(
        env.kapi(&["log", "1"])
            .stdout
            .contains("abandoned: not wanted")
    );
    env.kapi(&["cancel", "1", "--yes"])
        .assert_error(3, &["abandoned"]);
    assert_eq!(env.kapi(&["wait", "1"]).code, 5);
}

#[test]
fn what_the_agents_of_a_goal_said_is_printed_turn_by_turn() {
    let env = Environment::new();
    let agent = env.script(
        "talker.yaml",
        "turns:\n\
         - steps: [{say: First words.}, {write: {path: answer.txt, content: \"41\\n\"}}]\n\
         - steps: [{say: Second words.}, {write: {path: answer.txt, content: \"42\\n\"}}]\n",
    );
    env.run(&agent, &[]).assert_status("done", 0);
    let printed = env.kapi(&["log", "1", "--transcript"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    assert_eq!(
        printed.stdout,
        "== t001-agent-a1\nFirst words.\n> write answer.txt\n\
         == t002-agent-a1\nSecond words.\n> write answer.txt\n"
    );
    let lines = env.kapi(&["log", "1", "--transcript", "--json"]);
    let first = parse(lines.stdout.lines().next().unwrap());
    assert_eq!(first["type"], "transcript");
    assert_eq!(first["run"], "t001-agent-a1");
    assert_eq!(first["line"]["text"], "First words.");
}

#[test]
fn a_shell_completes_commands_and_the_references_of_the_project() {
    let machine = one_of_each();
    let env = &machine.env;
    let completed = |words: &str, index: usize| {
        let kapi = env!("CARGO_BIN_EXE_kapi");
        let shell = format!(
            "PATH=\"$(dirname {kapi}):$PATH\"; source <(kapi completion bash)\n\
             COMP_WORDS=({words}); COMP_CWORD={index}; COMP_TYPE=9\n\
             _clap_complete_kapi kapi \"${{COMP_WORDS[COMP_CWORD]}}\" kapi; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut command = env.command("bash", &env.repository());
        command.args(["-c", &shell]);
        let output = crate::program::finish(command);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        output.stdout
    };
    assert!(completed("kapi sho", 1).contains("show"));
    let all = completed("kapi show ''", 2);
    assert!(all.contains(GOAL) && all.contains("002-"), "{all}");
    let goals = completed("kapi goal tasks ''", 3);
    assert!(goals.contains(GOAL) && !goals.contains("002-"), "{goals}");
    let begun = completed("kapi show 001", 2);
    assert_eq!(begun, format!("{GOAL}\n"));
}
