//! The questions that are put at a terminal, at a real one: typed answers, Ctrl-C, end of input.
//!
//! A small driver of ours types when it reads; what it typed into is the built binary.

use serde_json::Value;

use crate::environment::{Environment, TASK};
use crate::program::{Output, finish, parse};

const HONEST: &str = "command:echo 42 > answer.txt";
const CTRL_C: &str = "\u{3}";
const END_OF_INPUT: &str = "\u{4}";

/// Waits for each text after the one before it and types the answer to it; tells what was shown and how it ended.
const DRIVER: &str = "import json, os, pty, select, signal, sys
steps, args = json.loads(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0: os.execv(args[0], args)
said, after = b'', 0
while select.select([fd], [], [], 60)[0]:
	try: more = os.read(fd, 4096)
	except OSError: break
	if not more: break
	said += more
	while steps and (place := said.find(steps[0][0].encode(), after)) >= 0:
		after = place + len(steps[0][0].encode())
		os.write(fd, steps.pop(0)[1].encode())
os.close(fd)
status = os.waitpid(pid, 0)[1]
sys.stdout.write(said.decode(errors='replace'))
sys.stderr.write(json.dumps([step[0] for step in steps]))
sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
";

/// Runs `kapi` at a terminal: what is waited for, and what is typed then.
pub(crate) fn at_terminal(env: &Environment, args: &[&str], answers: &[(&str, &str)]) -> Output {
    let program = [env!("CARGO_BIN_EXE_kapi")];
    program_at_terminal(env, &[&program[..], args].concat(), answers)
}

/// Does the same where something was typed before `kapi` began.
pub(crate) fn typed_ahead(
    env: &Environment,
    typed: &str,
    args: &[&str],
    answers: &[(&str, &str)],
) -> Output {
    let script = "echo ready; read -r line; exec \"$0\" \"$@\"";
    let program = ["/bin/sh", "-c", script, env!("CARGO_BIN_EXE_kapi")];
    let typed = format!("go\n{typed}");
    let answers = [&[("ready", typed.as_str())], answers].concat();
    program_at_terminal(env, &[&program[..], args].concat(), &answers)
}

/// Does the same at a terminal of so many columns, where nothing is asked.
pub(crate) fn at_narrow_terminal(env: &Environment, columns: u32, args: &[&str]) -> Output {
    let script = format!("stty cols {columns} rows 24; exec \"$0\" \"$@\"");
    let program = ["/bin/sh", "-c", &script, env!("CARGO_BIN_EXE_kapi")];
    program_at_terminal(env, &[&program[..], args].concat(), &[])
}

fn program_at_terminal(env: &Environment, words: &[&str], answers: &[(&str, &str)]) -> Output {
    let steps = serde_json::to_string(answers).unwrap();
    let mut command = env.command("python3", &env.repository());
    command.args(["-c", DRIVER, &steps]).args(words);
    let output = finish(command);
    assert_eq!(output.stderr, "[]", "every question was put: {output:?}");
    output
}

fn new(options: &[&'static str]) -> Vec<&'static str> {
    let usual = [
        "goal",
        "new",
        TASK,
        "--agent",
        HONEST,
        "--verify",
        "sh test.sh",
    ];
    [&usual[..], options].concat()
}

fn statuses(env: &Environment) -> Vec<String> {
    let listed = env.json(&["status", "--all"]);
    let goals = listed["goals"].as_array().unwrap();
    let status = |goal: &Value| goal["status"].as_str().unwrap().to_owned();
    goals.iter().map(status).collect()
}

const APPROVE: &str = "Approve this contract and start? [y/N] ";

#[test]
fn a_contract_is_approved_by_typing_yes_and_by_nothing_else() {
    let env = Environment::new();
    for (answer, code) in [("\n", 3), ("n\n", 3), ("yess\n", 3), (END_OF_INPUT, 3)] {
        let output = at_terminal(&env, &new(&[]), &[(APPROVE, answer)]);
        assert_eq!(output.code, code, "{answer:?}: {output:?}");
        assert!(output.stdout.contains("was not approved"), "{output:?}");
    }
    let cut_off = at_terminal(&env, &new(&[]), &[(APPROVE, CTRL_C)]);
    assert_eq!(cut_off.code, 130, "{cut_off:?}");
    assert!(
        !env.repository().join(".ilchul/goals").exists(),
        "no goal was made"
    );
    let output = at_terminal(&env, &new(&[]), &[(APPROVE, "YES\n")]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(statuses(&env), ["done"]);
    assert_eq!(env.json(&["show", "1", "--all"])["approval"], "terminal");
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let env = Environment::new();
    let output = typed_ahead(&env, "y\ny\n", &new(&[]), &[(APPROVE, "n\n")]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stdout.contains("was not approved"), "{output:?}");
}

#[test]
fn a_proposed_goal_is_approved_at_a_terminal_after_it_was_shown() {
    let env = Environment::new();
    assert_eq!(env.kapi(&new(&[])).code, 5);
    let question = "Approve this contract? [y/N] ";
    let approve = ["goal", "approve", "1"];
    for (answer, code) in [("no\n", 3), (END_OF_INPUT, 3), (CTRL_C, 130)] {
        let output = at_terminal(&env, &approve, &[(question, answer)]);
        assert_eq!(output.code, code, "{answer:?}: {output:?}");
        assert_eq!(statuses(&env), ["proposed"], "{answer:?}");
    }
    let output = at_terminal(&env, &approve, &[(question, "y\n")]);
    assert_eq!(output.code, 0, "{output:?}");
    let shown = output.stdout.find("  done when").unwrap();
    assert!(shown < output.stdout.find(question).unwrap(), "{output:?}");
    assert_eq!(statuses(&env), ["done"]);
}

const UNFINISHED: &str = "[replace/keep/cancel] ";

fn with_unfinished() -> Environment {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    env
}

#[test]
fn an_unfinished_goal_is_replaced_kept_or_the_new_one_dropped_as_was_typed() {
    for (typed, code, left) in [
        ("replace\n", 0, &["cancelled", "done"][..]),
        ("r\n", 0, &["cancelled", "done"]),
        ("keep\n", 0, &["paused", "done"]),
        ("cancel\n", 3, &["paused"]),
        ("what?\n", 3, &["paused"]),
        ("\n", 3, &["paused"]),
        (END_OF_INPUT, 3, &["paused"]),
        (CTRL_C, 130, &["paused"]),
    ] {
        let env = with_unfinished();
        let mut answers = vec![(UNFINISHED, typed)];
        if code == 0 {
            answers.push((APPROVE, "y\n"));
        }
        let output = at_terminal(&env, &new(&[]), &answers);
        assert_eq!(output.code, code, "{typed:?}: {output:?}");
        assert_eq!(statuses(&env), left, "{typed:?}: {output:?}");
    }
}

#[test]
fn a_goal_is_not_replaced_by_one_that_is_then_turned_down() {
    for (answer, code) in [("n\n", 3), (END_OF_INPUT, 3), (CTRL_C, 130)] {
        let env = with_unfinished();
        let answers = [(UNFINISHED, "replace\n"), (APPROVE, answer)];
        let output = at_terminal(&env, &new(&[]), &answers);
        assert_eq!(output.code, code, "{answer:?}: {output:?}");
        assert_eq!(statuses(&env), ["paused"], "{answer:?}: {output:?}");
    }
}

#[test]
fn more_than_500_turns_are_set_only_by_somebody_who_says_yes() {
    let env = with_unfinished();
    let question = "501 turns may cost much time and money. Set them? [y/N] ";
    let max = |env: &Environment| env.json(&["show", "1"])["standing"]["turns"]["max"].clone();
    for (answer, code) in [("\n", 3), ("no\n", 3), (END_OF_INPUT, 3), (CTRL_C, 130)] {
        let output = at_terminal(
            &env,
            &["budget", "1", "--set-turns", "501"],
            &[(question, answer)],
        );
        assert_eq!(output.code, code, "{answer:?}: {output:?}");
        assert_eq!(max(&env), 1, "{answer:?}");
    }
    let output = at_terminal(&env, &["budget", "1", "--set-turns", "500"], &[]);
    assert_eq!((output.code, max(&env)), (0, 500.into()), "{output:?}");
    let output = at_terminal(
        &env,
        &["budget", "1", "--set-turns", "501"],
        &[(question, "y\n")],
    );
    assert_eq!((output.code, max(&env)), (0, 501.into()), "{output:?}");
    assert_eq!(
        parse(&env.kapi(&["show", "1", "--json"]).stdout)["standing"]["turns"]["max"],
        501
    );
}
