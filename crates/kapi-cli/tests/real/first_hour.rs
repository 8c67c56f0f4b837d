//! From nothing to a proved branch and an opened pull request in three commands, on a machine with git,
//! one agent and the forge's program, and nothing else that a person installed.
//!
//! What is typed and what Kapi answers is kept: the snapshots beside this file are what a newcomer reads. The forge is a bare repository and a program that writes down how it is called; the vendor's
//! server is scripted, and its address is all that is configured beforehand.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario};
use serde_json::json;

use crate::environment::{BRANCH, FIRST, TASK, write};
use crate::machine::{JUDGE_MARK, Machine};

const ADDRESS: &str = "https://forge.example/o/r/pull/7";
/// Opens one pull request and knows it afterwards.
const GH: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
  'auth status') ;;
  'pr view') [ -f "$here/opened" ] && cat "$here/opened" ;;
  'pr create') cat > "$here/body"; echo ADDRESS | tee "$here/opened" ;;
  *) exit 9 ;;
esac
"#;

fn scenario() -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("The answer is right now."),
    ]);
    let verdict =
        json!({ "verdict": "done", "reason": "answer.txt says 42", "token": "{{token}}" });
    scenario.judges = vec![JudgeRule::new(JUDGE_MARK, vec![verdict])];
    scenario
}

/// Makes a machine on which `PATH` leads to what the system has, with git, to one agent and to the
/// forge's program.
fn machine(cli: Cli) -> Machine {
    let mut machine = Machine::new(scenario());
    let bin = machine.env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let config = machine.env.home().join(".config/kapi/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let table = format!("[agents.{}]\n", cli.name());
    let own = text.split("[agents.").find_map(|part| {
        let rest = part.strip_prefix(&table["[agents.".len()..])?;
        Some(rest.lines().map(str::to_owned).collect::<Vec<_>>())
    });
    let (command, rest): (Vec<String>, Vec<String>) = own
        .unwrap()
        .into_iter()
        .partition(|line| line.starts_with("command"));
    let program = command[0].split('"').nth(1).unwrap();
    symlink(program, bin.join(cli.name())).unwrap();
    if let Some(node) = &machine.node {
        symlink(node.join("node"), bin.join("node")).unwrap();
    }
    // The address of the vendor's stand-in is all that the person's file says.
    write(&config, format!("{table}{}\n", rest.join("\n")));
    let gh = bin.join("gh");
    write(&gh, GH.replace("ADDRESS", ADDRESS));
    fs::set_permissions(&gh, fs::Permissions::from_mode(0o755)).unwrap();
    machine
        .env
        .set("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    machine.env.write("Makefile", "test:\n\t@sh test.sh\n");
    machine.env.commit_all("how to test");
    let remote = machine.env.root().join("remote.git").display().to_string();
    machine.env.git(&["init", "--quiet", "--bare", &remote]);
    machine.env.git(&["remote", "add", "origin", &remote]);
    machine
}

/// Types a command and notes it with everything that it answered.
fn type_in(machine: &Machine, transcript: &mut String, words: &[&str]) {
    let output = machine.env.kapi(words);
    let shown = words.iter().map(|word| match word.contains(' ') {
        true => format!("\"{word}\""),
        false => (*word).to_owned(),
    });
    let shown: Vec<String> = shown.collect();
    writeln!(transcript, "$ kapi {}", shown.join(" ")).unwrap();
    for said in [&output.stderr, &output.stdout] {
        transcript.push_str(said);
    }
    assert_eq!(output.code, 0, "{transcript}");
}

/// Leaves out what differs from one run to the next: places, times, names of commits, amounts.
fn plain(machine: &Machine, text: &str) -> String {
    let root = machine.env.root().display().to_string();
    let text = text.replace(&root, "~");
    let lines: Vec<String> = text.lines().map(plain_line).collect();
    lines.join("\n")
}

/// Lines that are kept up to these words, because everything behind them differs.
const VARYING: [&str; 6] = [
    "  spent    1 turn, ",
    "  budget   tokens",
    "  budget   money",
    "  budget   time",
    "worktree ~/",
    "worktree created at ~/",
];

fn plain_line(line: &str) -> String {
    let cut = VARYING.iter().find_map(|words| {
        let at = line.find(words)?;
        Some(format!("{}…", &line[..at + words.len()]))
    });
    cut.unwrap_or_else(|| {
        let words = line.split(' ').map(plain_word);
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    })
}

/// Leaves out the names of commits, versions and times.
fn plain_word(word: &str) -> String {
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let begins = core.starts_with(|c: char| c.is_ascii_digit());
    let is_id = core.len() >= 7 && core.chars().all(|c| c.is_ascii_hexdigit());
    let is_version = begins && core.split('.').count() == 3;
    let number = core.trim_end_matches(['m', 's', 'h']);
    let is_time =
        begins && number != core && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_id || is_version || is_time {
        word.replace(core, "…")
    } else {
        word.to_owned()
    }
}

fn check_three_commands(cli: Cli) {
    let machine = machine(cli);
    let mut transcript = String::new();
    type_in(&machine, &mut transcript, &["init", "--yes"]);
    type_in(
        &machine,
        &mut transcript,
        &["run", TASK, "--verify", "make test", "--pr", "--yes"],
    );
    type_in(&machine, &mut transcript, &["show", "1"]);
    let commit = machine.env.commit_of(BRANCH);
    assert_eq!(machine.env.show(BRANCH, "answer.txt"), "42");
    let remote = machine.env.root().join("remote.git");
    let there = fs::read_to_string(remote.join("refs/heads").join(BRANCH)).unwrap();
    assert_eq!(there.trim(), commit);
    let body = fs::read_to_string(machine.env.root().join("bin/body")).unwrap();
    for words in [
        TASK,
        "| `make test` | exited with 2 | exited with 0 |",
        FIRST,
    ] {
        assert!(body.contains(words), "{words:?} in {body}");
    }
    assert!(transcript.contains(ADDRESS), "{transcript}");
    machine.assert_key_is_in_no_file();
    insta::assert_snapshot!(cli.name(), plain(&machine, &transcript));
}

#[test]
fn claude() {
    check_three_commands(Cli::Claude);
}

#[test]
fn codex() {
    check_three_commands(Cli::Codex);
}

#[test]
fn gemini() {
    check_three_commands(Cli::Gemini);
}

#[test]
fn pi() {
    check_three_commands(Cli::Pi);
}
