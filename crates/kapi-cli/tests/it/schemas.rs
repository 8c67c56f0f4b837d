//! What every command prints with `--json` against the schemas that are shipped: `docs/schemas`.
//!
//! CommandRuns more strictly than the schemas say: a field that they do not name is a fault here, so that
//! whoever adds one adds it there.

mod schema;

use serde_json::Value;

use crate::environment::{Environment, write};
use crate::program::parse;
use crate::schemas::schema::Schemas;

const HONEST: &str = "command:echo 42 > answer.txt";

/// Runs commands and checks what they print.
struct CommandRuns<'a> {
    env: &'a Environment,
    schemas: Schemas,
}

impl CommandRuns<'_> {
    /// Runs a command, which may end in any way but as a usage error, and returns what it printed.
    fn run(&self, args: &[&str]) -> Vec<Value> {
        let output = self.env.kapi(&[args, &["--json"]].concat());
        let lines: Vec<Value> = output.stdout.lines().map(parse).collect();
        for line in &lines {
            self.schemas.check(args, line);
            let is_usage = line["type"] == "error" && line["code"] == "usage";
            assert!(!is_usage, "{args:?}: {line}");
        }
        assert!(!lines.is_empty(), "{args:?} printed nothing: {output:?}");
        lines
    }

    fn all(&self, commands: &[&[&str]]) {
        for args in commands {
            self.run(args);
        }
    }
}

fn machine() -> Environment {
    let env = Environment::new();
    env.write("Makefile", "test:\n\tsh test.sh\nlint:\n\ttrue\n");
    env.commit_all("a project whose tools can be found");
    env
}

fn runs(env: &Environment) -> CommandRuns<'_> {
    CommandRuns {
        env,
        schemas: Schemas::load(),
    }
}

/// What is asked about goals once some were run, drafted and raced.
const AFTERWARDS: &[&[&str]] = &[
    &["goal", "reject", "6"],
    &["status"],
    &["show", "1"],
    &["show", "2", "--all"],
    &["log", "1"],
    &["events"],
    &["diff", "1"],
    &["budget", "1"],
    &["budget", "2", "--turns", "+1"],
    &["wait", "1"],
    &["audit"],
    &["inbox"],
    &["resume", "2"],
    &["goal", "tasks", "1"],
    &["goal", "plan", "1"],
    &["goal", "northstar", "1"],
    &["goal", "replan-log", "1"],
    &["goal", "help"],
    &["goal", "autopilot"],
    &["goal", "judge"],
    &["goal", "slash", "status"],
    &["say", "2", "hello"],
    &["pause", "2"],
    &["goal", "allow", "2", "git push"],
    &["goal", "reopen", "1", "not good", "--no-run"],
    &["cancel", "2"],
    &["spend"],
    &["show", "99"],
];

#[test]
fn goals_print_what_the_schemas_say() {
    let env = machine();
    let it = runs(&env);
    let contract = ["--verify", "sh test.sh", "--judge", "none"];
    let goal = |words: &[&str]| it.run(&[words, &contract].concat());
    goal(&["run", "make the answer right", "--agent", HONEST, "--yes"]);
    goal(&[
        "run",
        "write nothing",
        "--agent",
        "command:true",
        "--yes",
        "--turns",
        "1",
    ]);
    goal(&["run", "explain it", "--agent", HONEST, "--explain"]);
    goal(&[
        "run",
        "race it",
        "--race",
        HONEST,
        "--race",
        "command:true",
        "--turns",
        "1",
        "--compare",
        "--yes",
    ]);
    let drafted = [
        "goal", "new", "draft it", "--agent", HONEST, "--no-run", "--keep",
    ];
    let lines = goal(&drafted);
    let hash = lines
        .iter()
        .find(|line| line["type"] == "approval_needed")
        .unwrap();
    it.run(&[
        "goal",
        "approve",
        "5",
        "--hash",
        hash["contract_hash"].as_str().unwrap(),
    ]);
    goal(&drafted);
    it.all(AFTERWARDS);
}

/// What is asked of the kernel and of launches, in this order.
const TASKS_LOOPS_AND_LAUNCHES: &[&[&str]] = &[
    &["task", "run", "look", "--agent", "command:echo hi"],
    &[
        "task",
        "run",
        "do it",
        "--agent",
        HONEST,
        "--verify",
        "sh test.sh",
    ],
    &["task", "run", "fail", "--agent", "command:exit 3"],
    &[
        "task",
        "run",
        "later",
        "--agent",
        "command:true",
        "--detach",
    ],
    &["task", "list", "--all"],
    &["task", "retry", "3"],
    &["show", "task_1"],
    &["diff", "task_2"],
    &["budget", "task_1"],
    &["wait", "task_1"],
    &["cancel", "task_4"],
    &[
        "launch",
        "7",
        ".",
        "--task",
        "look",
        "--agent",
        "command:echo x > new.txt",
    ],
    &[
        "launch",
        "8",
        ".",
        "--task",
        "look",
        "--agent",
        "command:true",
        "--dry-run",
    ],
    &[
        "launch",
        "8",
        ".",
        "--task",
        "look",
        "--agent",
        "command:true",
        "--explain",
    ],
    &["show", "launch/7"],
    &["diff", "launch/7"],
    &["budget", "launch/7"],
    &["wait", "launch/7"],
    &["log", "launch/7"],
    &["resume", "launch/7"],
    &["status"],
    &["inbox"],
    &["audit", "launch/7"],
    &["sandbox", "list"],
    &["sandbox", "profile"],
    &["sandbox", "merge", "7", "--dry-run"],
    &["loop", "list"],
    &["loop", "show", "look"],
    &["loop", "status"],
    &["loop", "run", "look", "--dry-run"],
    &["loop", "run", "look"],
    &["loop", "history", "look"],
    &["loop", "disable", "look"],
    &["loop", "enable", "look"],
    &["loop", "guardrail", "list"],
    &["loop", "policy"],
    &["dashboard"],
    &["events"],
    &["up", "--once"],
    &["up", "--show-unit"],
    &["cleanup", "--dry-run"],
];

#[test]
fn tasks_loops_and_launches_print_what_the_schemas_say() {
    let env = machine();
    let it = runs(&env);
    let looks = "trigger:\n  schedule: \"0 3 * * *\"\ninputs:\n  what: all";
    let file = env.repository().join(".ilchul/loops/look.md");
    let text = format!(
        "---\nname: look\nagent: oracle\nworkspace: read_only\nbackend: \"command:echo looked\"\n\
         {looks}\n---\nLook around.\n"
    );
    write(&file, text);
    it.all(TASKS_LOOPS_AND_LAUNCHES);
}

#[test]
fn everything_else_prints_what_the_schemas_say() {
    let env = machine();
    let it = runs(&env);
    env.write("answer.txt", "42\n");
    env.commit_all("the answer is right");
    let work = ["--agent", "command:true", "--verify", "sh test.sh"];
    it.all(&[
        &["prove", "HEAD", "--verify", "sh test.sh"],
        &["check", "--list"],
        &["check"],
        &["doctor"],
        &["doctor", "--modes"],
        &["clear"],
        &["setup", "claude", "--dry-run"],
        &["setup", "zed", "--yes"],
        &["setup", "zed", "--undo", "--yes"],
        &["gate"],
        &["gate", "set", "do it", "--verify", "sh test.sh"],
        &["gate", "status"],
        &["gate", "check"],
        &["gate", "pause"],
        &["gate", "resume"],
        &["gate", "off"],
        &["deep-interview", "say hello", "--agent", "command:true"],
        &["deep-interview", "status"],
        &["autoresearch", "status"],
        &["integrate", "status"],
        &[
            &["ralph", "build it", "--reviewer", "command:true"],
            &work[..],
        ]
        .concat(),
        &["ralph", "status"],
        &["status"],
        &["inbox"],
        &["events"],
    ]);
}

#[test]
fn a_field_that_no_schema_names_is_found() {
    let schemas = Schemas::load();
    let env = machine();
    let mut status = env.json(&["status"]);
    schemas.check(&["status"], &status);
    status["new"] = Value::Bool(true);
    assert!(schemas.fault(&["status"], &status).unwrap().contains("new"));
    status.as_object_mut().unwrap().remove("new");
    status["waiting"] = "many".into();
    assert!(
        schemas
            .fault(&["status"], &status)
            .unwrap()
            .contains("waiting")
    );
    status.as_object_mut().unwrap().remove("waiting");
    assert!(
        schemas
            .fault(&["status"], &status)
            .unwrap()
            .contains("waiting")
    );
}
