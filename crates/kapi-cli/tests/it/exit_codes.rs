//! Every exit code, each reached the way a person would.
//!
//! 0 and 5 are in almost every other module; the refusals of authority have one of their own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use rustix::process::Signal;

use crate::environment::{Environment, FIRST, await_some, for_each, usual};
use crate::program::{Run, finish};

const HONEST: &str = "command:echo 42 > answer.txt";

#[test]
fn a_wrong_command_line_or_configuration_is_2() {
    let env = Environment::new();
    for args in [
        &["run"][..],
        &["frobnicate"],
        &["status", "--nope"],
        &["budget", "1", "--wall", "1w"],
    ] {
        let output = env.kapi(args);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (2, ""),
            "{args:?}: {output:?}"
        );
        assert!(output.stderr.starts_with("error: "), "{output:?}");
    }
    env.kapi(&usual("nonsense", &[])).assert_error(
        2,
        &[
            "error: failed to find an agent called \"nonsense\"",
            "hint: ",
        ],
    );
    env.kapi(&usual(HONEST, &["--base", "nowhere"]))
        .assert_error(2, &["nowhere"]);
    env.kapi(&usual(HONEST, &["--hidden", "nowhere"]))
        .assert_error(2, &["nowhere"]);
    let path = env.configure("[goal]\nturns = 3\n\n[agents.claude]\nmodle = \"x\"\n");
    let location = format!("{}:5", path.display());
    env.kapi(&usual(HONEST, &[]))
        .assert_error(2, &[&location, "modle"]);
    env.configure("");
    env.write(
        ".ilchul/config.toml",
        "[goal]\nturns = 3\n[sandbox]\nmemory = \"1g\"\nread_only = [\"/\"]\n",
    );
    env.kapi(&usual(HONEST, &[]))
        .assert_error(2, &[".ilchul/config.toml:5", "read_only"]);
    assert!(
        !env.repository().join(".ilchul/goals").exists(),
        "no goal was made"
    );
}

#[test]
fn a_number_out_of_range_is_2_and_told_with_its_range() {
    let env = Environment::new();
    for (option, value, words) in [
        ("--turns", "-1", "-1 is not in 1..=20000"),
        ("--turns", "0", "0 is not in 1..=20000"),
        ("--turns", "20001", "20001 is not in 1..=20000"),
        ("--stall-after", "1", "1 is not in 2.."),
        ("--tokens", "-5", "\"-5\" is not a count"),
        ("--verify", " ", "it is empty"),
        ("--usd", "-0.5", "\"-0.5\" is not an amount"),
    ] {
        env.kapi(&usual(HONEST, &[option, value]))
            .assert_error(2, &[option, words]);
    }
    env.kapi(&["show", "-1"])
        .assert_error(6, &["there are no goals"]);
}

#[test]
fn a_word_that_is_no_text_is_2_and_no_defect() {
    let env = Environment::new();
    let word = OsStr::from_bytes(b"\xff");
    for before in [&[][..], &["show"], &["show", "--nope"], &["run"]] {
        let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
        command.args(before).arg(word);
        finish(command).assert_error(2, &[]);
    }
}

#[test]
fn a_home_that_is_no_absolute_path_is_2_with_a_remedy() {
    let mut env = Environment::new();
    for home in ["", "home"] {
        env.set("HOME", home);
        env.kapi(&["status"])
            .assert_error(2, &["HOME", "hint: set it to your home directory"]);
    }
}

#[test]
fn a_world_that_refuses_is_4() {
    let mut env = Environment::new();
    env.configure("[agents.claude]\ncommand = \"/nonexistent/claude\"\n");
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    env.kapi(&usual("claude", &[]))
        .assert_error(4, &["/nonexistent/claude", "hint: "]);
    // The other directories of a test lie below this repository.
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = env.kapi_in(elsewhere.path(), &usual(HONEST, &[]));
    outside.assert_error(4, &["hint: "]);
    env.set("PATH", "/nonexistent");
    env.kapi(&usual(HONEST, &[]))
        .assert_error(4, &["find git on PATH", "hint: install git"]);
    assert!(!env.repository().join(".ilchul").exists());
}

#[test]
fn a_world_that_refuses_in_the_middle_is_4_and_can_be_resumed() {
    let env = Environment::new();
    let agent = env.script(
        "agent.yaml",
        "turns: [{steps: [{bash: echo 42 > answer.txt}]}]\n",
    );
    let script = env.root().join("agent.yaml");
    let judge = format!("command:rm -f {}; echo nonsense", script.display());
    // Not isolated, so that the judge can take the agent's script away for the second turn.
    let judge = format!("{judge} >&2; echo '{{\"verdict\":\"continue\",\"reason\":\"more\"}}'");
    let run = env.run(&agent, &["--judge", &judge, "--sandbox", "none"]);
    run.assert_status("blocked", 4);
    assert!(run.reason().contains("agent.yaml"), "{}", run.reason());
    env.script(
        "agent.yaml",
        "turns: [{steps: []}, {steps: [{bash: echo more > more.txt}]}]\n",
    );
    let run = env.resume("1");
    assert_eq!(
        run.events("agent_ended").len(),
        1,
        "it went on: {}",
        run.result
    );
}

#[test]
fn an_unknown_goal_is_6() {
    let env = Environment::new();
    env.kapi(&["show", "1"]).assert_error(6, &["hint: "]);
    env.run("command:true", &["--turns", "1"]);
    for args in [
        &["show", "9"][..],
        &["log", "nothing"],
        &["diff", "9"],
        &["resume", "9"],
        &["cancel", "9"],
        &["budget", "9", "--turns", "+1"],
        &["audit", "9"],
    ] {
        env.kapi(args).assert_error(6, &[FIRST]);
        let json = [args, &["--json"]].concat();
        env.kapi(&json).assert_error(6, &[FIRST]);
    }
}

#[test]
fn a_goal_that_is_driven_is_busy_and_7() {
    let env = Environment::new();
    let running = env.start_run("command:sleep 3000", &[]);
    env.await_event(FIRST, &|event| event["data"]["effect"] == "t001-agent-a1");
    env.kapi(&["resume", "1"])
        .assert_error(7, &["kapi run", "kapi log 001 -f"]);
    assert_eq!(env.kapi(&["cancel", "1"]).code, 0);
    Run::from(running.finish()).assert_status("cancelled", 5);
}

#[test]
fn an_interrupt_saves_and_prints_the_line_that_resumes() {
    for_each(&[Signal::INT, Signal::TERM, Signal::HUP], |&signal| {
        let env = Environment::new();
        let agent = "command:case $KAPI_RUN_ID in *-a1) sleep 3000;; esac; echo 42 > answer.txt";
        let running = env.start(&usual(agent, &[]));
        env.await_event(FIRST, &|event| event["data"]["effect"] == "t001-agent-a1");
        running.signal(signal);
        let output = running.finish();
        assert_eq!(output.code, 130, "{signal:?}: {output:?}");
        assert!(
            output.stdout.contains("\n  next     kapi resume 001\n"),
            "{output:?}"
        );
        assert_eq!(env.json(&["status"])["goals"][0]["status"], "paused");
        env.await_no_process();
        env.resume("1").assert_status("done", 0);
    });
}

#[test]
fn a_defect_is_1_and_loses_nothing() {
    let mut env = Environment::new();
    // No thread can have a stack of this size, so the drive cannot begin its first effect.
    env.set("RUST_MIN_STACK", "1000000000000000");
    let output = env.kapi(&usual(HONEST, &[]));
    assert_eq!(output.code, 1, "{output:?}");
    assert!(
        output.stderr.contains("error: this is a bug in Kapi"),
        "{output:?}"
    );
    env.set("RUST_MIN_STACK", "2097152");
    env.resume("1").assert_status("done", 0);
}

#[test]
fn a_follower_of_the_log_can_be_interrupted() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"]);
    let mut follower = env.start(&["log", "1", "-f"]);
    follower.await_line(&|line| line.contains("stopped"));
    follower.signal(Signal::INT);
    assert_eq!(
        await_some("its end", || follower.has_ended().then_some(())),
        ()
    );
    assert_eq!(follower.finish().code, 130);
}
