//! From nothing to a proved branch: agents are found and tried, and a configuration is written that
//! works and leaves alone what was there.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;

use crate::dialogs::at_terminal;
use crate::environment::{BRANCH, Environment, TASK, write};
use crate::program::Run;

/// Works like Claude Code as far as a run sees it: says its version, does the task, reports.
const CLAUDE: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo '2.0.0 (Claude Code)' && exit
[ -f "$HOME/.claude/.credentials.json" ] || [ -n "$ANTHROPIC_API_KEY" ] || exit 9
echo 42 > answer.txt
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","usage":{"input_tokens":9,"output_tokens":1}}'
"#;

/// Makes a machine on which claude is installed by npm, off PATH, and logged in.
fn machine() -> Environment {
    let mut env = Environment::new();
    env.set("PATH", "/usr/bin:/bin");
    let cli = env
        .home()
        .join(".npm-global/lib/node_modules/@x/claude/cli.js");
    write(&cli, CLAUDE);
    fs::set_permissions(&cli, fs::Permissions::from_mode(0o755)).unwrap();
    let bin = env.home().join(".npm-global/bin");
    fs::create_dir(&bin).unwrap();
    symlink("../lib/node_modules/@x/claude/cli.js", bin.join("claude")).unwrap();
    write(&env.home().join(".claude/.credentials.json"), "{}");
    env.write(
        "Makefile",
        "test:\n\ttest -f answer.txt\nlint:\n\t@echo too long; exit 3\n",
    );
    env.commit_all("checks");
    env
}

fn person(env: &Environment) -> String {
    fs::read_to_string(env.home().join(".config/kapi/config.toml")).unwrap_or_default()
}

#[test]
fn two_commands_lead_from_nothing_to_a_proved_branch() {
    let env = machine();
    let init = env.kapi(&["init", "--yes", "--judge", "none"]);
    assert_eq!(init.code, 0, "{init:?}");
    for words in [
        "claude  2.0.0 (Claude Code); your login can be lent",
        "codex   not installed",
        "ok     make test",
        "FAILED make lint  (exited with",
    ] {
        assert!(init.stderr.contains(words), "{words:?} in {}", init.stderr);
    }
    assert!(init.stdout.starts_with("kapi run "), "{init:?}");
    let text = person(&env);
    for line in [
        "agent = \"claude\"",
        "judge = \"none\"",
        "turns = 20",
        "wall = \"2h\"",
        "login = true",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    let project = env.read(".ilchul/config.toml");
    assert!(project.contains("verify = [\"make test\"]"), "{project}");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    let run = Run::from(env.kapi(&["run", TASK, "--verify", "sh test.sh", "--yes", "--json"]));
    run.assert_status("done", 0);
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    // There is nothing left to choose.
    let again = env.json(&["init"]);
    assert_eq!(
        (&again["files"], &again["agent"]),
        (&json!([]), &json!("claude"))
    );
    assert_eq!(person(&env), text);
}

#[test]
fn a_command_whose_program_is_missing_says_what_installs_it() {
    let env = machine();
    let ci =
        "jobs:\n  a:\n    steps:\n      - run: make -s test\n      - run: npx-of-nobody lint\n";
    env.write(".github/workflows/ci.yml", ci);
    env.write("Makefile", "test:\n\ttrue\n");
    env.commit_all("checks");
    let init = env.kapi(&["init", "--yes", "--judge", "none"]);
    assert_eq!(init.code, 0, "{init:?}");
    let hint = "\n         hint: the program `npx-of-nobody` is missing: ";
    assert!(init.stderr.contains(hint), "{init:?}");
    // The same line that only says less is tried once, and what cannot run proves nothing.
    assert!(!init.stderr.contains("make -s test"), "{init:?}");
    assert!(!init.stderr.contains("is a good proof"), "{init:?}");
}

#[test]
fn a_command_that_runs_no_test_is_told_and_not_proposed() {
    let env = machine();
    let makefile = "test:\n\t@echo '# pass 0'\n\t@echo '# fail 0'\n";
    env.write("Makefile", makefile);
    env.commit_all("checks");
    let init = env.kapi(&["init", "--yes", "--judge", "none"]);
    assert_eq!(init.code, 0, "{init:?}");
    let line = "EMPTY  make test  (it ran no test)\n         hint: it proves nothing until";
    assert!(init.stderr.contains(line), "{init:?}");
    assert!(!init.stderr.contains("is a good proof"), "{init:?}");
    let project = env.repository().join(".ilchul/config.toml");
    let project = fs::read_to_string(project).unwrap_or_default();
    assert!(!project.contains("make test"), "{project}");
}

#[test]
fn what_no_proposed_command_covers_is_told() {
    let env = machine();
    env.write("web/package-lock.json", "{}");
    env.commit_all("a subproject");
    let init = env.kapi(&["init", "--yes", "--judge", "none"]);
    assert_eq!(init.code, 0, "{init:?}");
    let note = "note: No command covers web: package.json has no script \"test\".";
    assert!(init.stderr.contains(note), "{init:?}");
}

#[test]
fn without_a_terminal_everything_open_is_told_at_once_with_the_whole_command() {
    let env = machine();
    let refused = env.kapi(&["init"]);
    let command = "kapi init --agent claude --login --verify 'make test' --judge same --turns 20 \
                   --wall 2h";
    refused.assert_error_among_talk(
        2,
        &[
            "5 choices are open",
            "the agent, whether its runs get your login, the verify commands, the judge, the limits",
            command,
            "kapi init --yes",
        ],
    );
    assert_eq!(person(&env), "", "nothing was written");
    let said = env.kapi(&[
        "init",
        "--agent",
        "claude",
        "--login",
        "--verify",
        "make test",
        "--judge",
        "same",
        "--turns",
        "20",
        "--wall",
        "2h",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(person(&env).contains("judge = \"same\""));
}

#[test]
fn without_an_agent_that_works_each_is_told_with_why() {
    let mut env = Environment::new();
    env.set("PATH", "/usr/bin:/bin");
    env.kapi(&["init", "--yes"]).assert_error_among_talk(
        4,
        &["no agent works here", "npm install -g @openai/codex", "pi"],
    );
    assert_eq!(person(&env), "");
}

#[test]
fn a_person_chooses_at_the_terminal_and_the_first_run_offers_it() {
    let env = machine();
    let login = "[Y/n] ";
    let answers = [
        ("Set it up now", "y\n"),
        (login, "\n"),
        ("Verify commands", "\n"),
        ("Judge: ", "none\n"),
        ("Limits of each goal", "3 turns, 20m\n"),
        ("Approve this contract and start?", "y\n"),
    ];
    let run = at_terminal(&env, &["run", TASK, "--verify", "sh test.sh"], &answers);
    assert_eq!(run.code, 0, "{run:?}");
    let text = person(&env);
    assert!(
        text.contains("turns = 3\n") && text.contains("wall = \"20m\""),
        "{text}"
    );
    // It is configured now, and nothing is offered again.
    let again = at_terminal(
        &env,
        &["run", "more", "--verify", "sh test.sh"],
        &[("Approve", "n\n")],
    );
    assert!(!again.stdout.contains("Set it up now"), "{again:?}");
}

#[test]
fn the_end_of_the_input_writes_nothing() {
    let env = machine();
    let ended = at_terminal(&env, &["init"], &[("[Y/n] ", "\u{4}")]);
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stdout.contains("nothing was written"), "{ended:?}");
    assert_eq!(person(&env), "");
}

#[test]
fn what_a_person_wrote_stays() {
    let env = machine();
    let before = "# mine\n[goal]\njudge = \"none\" # on purpose\nwall = \"1h\"\n";
    env.configure(before);
    let init = env.kapi(&["init", "--yes", "--verify", "sh test.sh"]);
    assert_eq!(init.code, 0, "{init:?}");
    let text = person(&env);
    for line in [
        "# mine",
        "judge = \"none\" # on purpose",
        "wall = \"1h\"",
        "agent = \"claude\"",
        "login = true",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    env.configure("goal.judge = \"none\"\n");
    env.kapi(&["init", "--yes", "--verify", "sh test.sh"])
        .assert_error_among_talk(
            2,
            &["not written in a way", "agent = \"claude\" under [goal]"],
        );
    assert_eq!(person(&env), "goal.judge = \"none\"\n");
}
