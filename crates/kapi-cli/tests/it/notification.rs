//! Who is told that work has ended or waits: commands of the person's, and what they are given.

use serde_json::Value;

use crate::dialogs::at_terminal;
use crate::environment::{Environment, TASK, write};

const HONEST: &str = "command:echo 42 > answer.txt";
const LAZY: &str = "command:true";

/// Appends the notification and some of its variables to a file beside the repository.
fn told(env: &Environment, name: &str) -> String {
    let file = env.root().join(name);
    format!(
        "cat >> {0}; echo >> {0}; echo \"$KAPI_EVENT|$KAPI_KIND|$KAPI_STATUS|$KAPI_BRANCH\" >> {0}",
        file.display()
    )
}

/// One notification as a command got it.
#[derive(Debug)]
struct Heard {
    json: Value,
    variables: String,
}

fn heard(env: &Environment, name: &str) -> Vec<Heard> {
    let text = std::fs::read_to_string(env.root().join(name)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks(2);
    pairs
        .map(|pair| Heard {
            json: serde_json::from_str(pair[0]).unwrap(),
            variables: pair[1].to_owned(),
        })
        .collect()
}

fn run<'a>(agent: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let usual = [
        "run",
        TASK,
        "--agent",
        agent,
        "--verify",
        "sh test.sh",
        "--yes",
    ];
    [&usual[..], options].concat()
}

#[test]
fn a_command_is_told_of_the_end_and_another_of_what_waits() {
    let env = Environment::new();
    let (done, waiting) = (told(&env, "done"), told(&env, "waiting"));
    let options = ["--on-done", &done, "--on-waiting", &waiting];
    assert_eq!(env.kapi(&run(HONEST, &options)).code, 0);
    let all = heard(&env, "done");
    let [one] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(one.json["event"], "done");
    assert_eq!(one.json["kind"], "goal");
    assert_eq!(one.json["status"], "done");
    assert_eq!(one.json["commit"].as_str().map(str::len), Some(40));
    let branch = one.json["branch"].as_str().unwrap();
    assert_eq!(one.variables, format!("done|goal|done|{branch}"));
    assert!(heard(&env, "waiting").is_empty());

    assert_ne!(env.kapi(&run(LAZY, &options)).code, 0);
    let all = heard(&env, "waiting");
    let [one] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(one.json["event"], "waiting");
    assert_eq!(one.json["branch"], Value::Null, "nothing is proved");
    assert!(one.variables.starts_with("waiting|goal|"), "{one:?}");
    assert_eq!(heard(&env, "done").len(), 1);
}

#[test]
fn a_command_that_fails_is_a_note_and_changes_nothing() {
    let env = Environment::new();
    let output = env.kapi(&run(HONEST, &["--on-done", "echo no route >&2; exit 3"]));
    assert_eq!(output.code, 0, "{output:?}");
    let note = "the notification of `done` failed: exit code 3 no route";
    assert!(output.stderr.contains(note), "{output:?}");
}

#[test]
fn the_configuration_names_commands_and_a_project_may_not() {
    let env = Environment::new();
    let config = env.home().join(".config/kapi/config.toml");
    let command = told(&env, "done");
    write(&config, format!("[notify]\non_done = '''{command}'''\n"));
    assert_eq!(env.kapi(&run(HONEST, &[])).code, 0);
    assert_eq!(heard(&env, "done").len(), 1);
    // What is typed holds over it.
    assert_eq!(env.kapi(&run(HONEST, &["--on-done", "true"])).code, 0);
    assert_eq!(heard(&env, "done").len(), 1);
    let project = env.repository().join(".ilchul/config.toml");
    write(&project, "[notify]\non_done = 'true'\n");
    env.kapi(&run(HONEST, &[]))
        .assert_error(2, &["notify", "a project may not set this"]);
}

#[test]
fn tasks_and_launches_tell_alike() {
    let env = Environment::new();
    let done = told(&env, "done");
    let agent = "command:echo hello";
    let task = [
        "task",
        "run",
        "say hello",
        "--agent",
        agent,
        "--on-done",
        &done,
    ];
    let output = env.kapi(&task);
    assert_eq!(output.code, 0, "{output:?}");
    let launch = ["launch", "one", ".", "--task", "x"];
    let launch = [
        &launch[..],
        &["--agent", "command:exit 4", "--on-done", &done],
    ]
    .concat();
    // An agent's 4 is not taken for one of ours.
    assert_eq!(env.kapi(&launch).code, 104);
    let lines: Vec<String> = heard(&env, "done")
        .into_iter()
        .map(|one| one.variables)
        .collect();
    assert_eq!(
        lines,
        ["done|task|completed|", "done|launch|exit code 104|"]
    );
    env.kapi(&["task", "run", "x", "--detach", "--on-done", "true"])
        .assert_error(2, &["--detach", "--on-done"]);
}

#[test]
fn a_supervisor_tells_of_what_it_drives_and_of_nothing_old() {
    let env = Environment::new();
    let done = told(&env, "done");
    assert_eq!(env.kapi(&run(HONEST, &[])).code, 0);
    let queued = ["goal", "new", TASK, "--agent", HONEST];
    let queued = [
        &queued[..],
        &["--verify", "sh test.sh", "--yes", "--no-run"],
    ]
    .concat();
    assert_eq!(env.kapi(&queued).code, 0);
    for _ in 0..2 {
        let up = env.kapi(&["up", "--once", "--on-done", &done]);
        assert_eq!(up.code, 0, "{up:?}");
    }
    let all = heard(&env, "done");
    let [one] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(one.json["reference"], "002");
}

#[test]
fn a_person_who_leaves_is_not_told() {
    let env = Environment::new();
    let waiting = told(&env, "waiting");
    let args = ["run", TASK, "--agent", "command:sleep 60"];
    let args = [
        &args[..],
        &["--verify", "sh test.sh", "--on-waiting", &waiting],
    ]
    .concat();
    let answers = [("[y/N] ", "y\n"), ("Turn 1", "\u{3}")];
    let output = at_terminal(&env, &args, &answers);
    assert_eq!(output.code, 130, "{output:?}");
    assert!(heard(&env, "waiting").is_empty());
}
