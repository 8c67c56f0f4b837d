//! Pi-until-done, edge case 18: a person at the terminal is asked, and silence is a no.
//!
//! What is asked about, and where nobody can be asked, has tests of its own.

use std::time::{Duration, Instant};

use crate::environment::{Environment, FIRST, usual};
use crate::program::{Output, finish};

/// Starts a program on a terminal, types an answer when the question stands there, and prints what
/// was on the screen.
const DRIVER: &str = "import os, pty, select, sys
pid, fd = pty.fork()
if pid == 0: os.execv(sys.argv[2], sys.argv[2:])
said, answer = b'', sys.argv[1].encode()
while select.select([fd], [], [], 120)[0]:
    try: more = os.read(fd, 1024)
    except OSError: break
    if not more: break
    said += more
    if answer and b'within 30 s]' in said:
        os.write(fd, answer + b'\\n')
        answer = b''
os.close(fd)
sys.stdout.write(said.decode(errors='replace'))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// Runs a goal whose agent's only act is a listed command.
fn run_at_terminal(env: &Environment, answer: &str) -> Output {
    let script = "turns:\n  - steps:\n      - bash: rm -rf nothing && echo 42 > answer.txt\n";
    let agent = env.script("agent.yaml", script);
    let mut command = env.command("python3", &env.repository());
    command.args(["-c", DRIVER, answer, env!("CARGO_BIN_EXE_kapi")]);
    command.args(usual(&agent, &["--ask-before", "rm -rf"]));
    finish(command)
}

fn kinds(env: &Environment) -> Vec<String> {
    let events = env.events(FIRST);
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    kinds.map(str::to_owned).collect()
}

#[test]
fn edge_18_a_yes_at_the_terminal_lets_the_command_run() {
    let env = Environment::new();
    let output = run_at_terminal(&env, "y");
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("Allowed."), "{output:?}");
    let events = env.events(FIRST);
    let given = events.iter().find(|event| event["type"] == "consent_given");
    let given = given.unwrap_or_else(|| panic!("no consent is recorded: {events:?}"));
    assert_eq!(given["actor"]["kind"], "human");
    assert_eq!(given["data"]["what"], "rm -rf");
}

#[test]
fn edge_18_a_no_at_the_terminal_keeps_the_command_from_running() {
    let env = Environment::new();
    let output = run_at_terminal(&env, "n");
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stdout.contains("Denied."), "{output:?}");
    assert!(!kinds(&env).iter().any(|kind| kind == "consent_given"));
}

/// The one test that has to take as long as the specification says a person is waited for.
#[test]
fn edge_18_no_answer_within_30_seconds_is_a_denial() {
    let env = Environment::new();
    let began = Instant::now();
    let output = run_at_terminal(&env, "");
    assert!(began.elapsed() >= Duration::from_secs(30), "{output:?}");
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stdout.contains("Denied."), "{output:?}");
    let kinds = kinds(&env);
    assert!(
        kinds.iter().any(|kind| kind == "consent_asked"),
        "{kinds:?}"
    );
    assert!(
        !kinds.iter().any(|kind| kind == "consent_given"),
        "{kinds:?}"
    );
    let status = env.json(&["show", "1"]);
    assert_eq!(status["status"], "blocked", "{status}");
}
