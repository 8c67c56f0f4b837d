//! Real CLIs on a screen: on their own, where their own hooks move the status of the launch, and at
//! work on a goal, as the live view shows it.
//!
//! Nobody looks at what they draw themselves; the status file says what they do. Codex is not among
//! them there: it asks a person about news and trust before it takes its task.

use std::fs;

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario};

use crate::environment::{FIRST, await_some, usual, write};
use crate::machine::Machine;
use crate::program::finish;
use crate::terminal::{Terminal, TerminalSize};

/// What ends each of them, sooner or later.
const WATCHER: &str = r"
import glob, json, os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0: os.execv('/bin/sh', ['sh', '-c', 'stty rows 40 cols 120; ' + sys.argv[1]])
drawn, seen, end, ending = b'', [], time.monotonic() + 90, 0
while True:
    if select.select([fd], [], [], 0.05)[0]:
        try: more = os.read(fd, 65536)
        except OSError: break
        if not more: break
        drawn += more
    for path in glob.glob(sys.argv[2]):
        now = json.load(open(path))
        now = now['phase'] + ' ' + now['message']
        if seen[-1:] != [now]:
            seen.append(now)
            print('STATUS', now, flush=True)
    is_over = any('ended its turn' in now for now in seen) or time.monotonic() > end
    if is_over and time.monotonic() > ending:
        ending = time.monotonic() + 0.4
        os.write(fd, b'\x03')
    if time.monotonic() > end + 60: break
os.close(fd)
print(drawn.decode(errors='replace')[-4000:])
os.waitpid(pid, 0)
";

fn check(cli: Cli) {
    let machine = Machine::new(ModelScenario::new(vec![
        AssistantTurn::bash("cat answer.txt"),
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("Done."),
    ]));
    let env = &machine.env;
    let line = format!(
        "exec {} launch screen {} --interactive --agent {} --branch screen --task 'make it right'",
        env!("CARGO_BIN_EXE_kapi"),
        env.repository().display(),
        cli.name(),
    );
    let status = env.home().join(".ilchul/status/kapi-*.json");
    let mut command = env.command("python3", &env.repository());
    command.env("TERM", "xterm-256color");
    command.args(["-c", WATCHER, &line, &status.display().to_string()]);
    let output = finish(command);
    let lines = output.stdout.lines();
    let seen: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("STATUS "))
        .collect();
    let at = |begin: &str| seen.iter().position(|now| now.starts_with(begin));
    let order = [
        at("starting "),
        at("exploring Exploring: cat answer.txt"),
        at("implementing Implementing: echo 42 > answer.txt"),
        at("implementing The agent ended its turn"),
        at("complete "),
    ];
    assert!(order.iter().all(Option::is_some), "{seen:#?}\n{output:?}");
    assert!(order.is_sorted(), "{seen:#?}");
    assert_eq!(env.show("screen", "answer.txt"), "42");
    env.await_no_process();
    machine.assert_key_is_in_no_file();
}

#[test]
fn claude_on_its_screen_tells_what_it_does() {
    check(Cli::Claude);
}

#[test]
fn gemini_on_its_screen_tells_what_it_does() {
    check(Cli::Gemini);
}

/// When the clock of the golden screens stands at first, and how long the agent has worked then.
const BEGAN_MS: i64 = 1_767_225_600_000;
const WORKED_MS: i64 = 65_000;

/// A real CLI at work on a goal, with a clock that the test moves.
#[test]
fn a_real_agent_at_work_has_the_golden_screens() {
    let machine = Machine::new(ModelScenario::new(vec![
        AssistantTurn::bash("cat answer.txt").saying("I look at the answer first."),
        AssistantTurn::bash("echo 41 > answer.txt"),
        AssistantTurn::text("The answer is written."),
        AssistantTurn::bash("sh test.sh; true").saying("The check says it is not 42. Once more."),
        AssistantTurn::bash("sleep 600"),
    ]));
    let env = &machine.env;
    let clock = env.root().join("clock");
    let set = |ms: i64| write(&clock, ms.to_string());
    set(BEGAN_MS);
    let options = ["--judge", "none", "--tokens", "1M", "--wall", "2h"];
    let words = usual(Cli::Claude.name(), &options);
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let kapi = env!("CARGO_BIN_EXE_kapi");
    let line = format!("{kapi} {}; echo $? > ../code; sleep 600", words.join(" "));
    let var = format!("KAPI_TEST_CLOCK={}", clock.display());
    let size = TerminalSize {
        columns: 80,
        rows: 60,
    };
    let terminal = Terminal::open(env, size, &[&var], &line);
    terminal.awaits("sleep 600");
    // The books can be read while it works: each answer is in them as soon as it has come.
    let spent = env.json(&["spend", "--all", "--by", "agent"]);
    let [row] = spent["rows"].as_array().unwrap().as_slice() else {
        panic!("{spent:#}");
    };
    assert_eq!(row["key"], "claude");
    assert!(row["sum"]["output_tokens"].as_u64() > Some(0), "{spent:#}");
    assert!(spent["total"]["usd_micros"].as_u64() > Some(0), "{spent:#}");
    set(BEGAN_MS + WORKED_MS);
    for columns in [80, 40, 200] {
        terminal.tmux(&["resize-window", "-x", &columns.to_string(), "-y", "60"]);
        let shown = terminal.awaits_that("is drawn anew", &|shown| {
            let rows: Vec<&str> = shown.lines().collect();
            let is_first = |row: &&str| match columns {
                40 => row.starts_with("make the"),
                columns => row.ends_with(FIRST) && row.chars().count() == columns - 1,
            };
            let is_whole = rows.last().is_some_and(|row| row.contains("q leave"));
            is_whole && rows.iter().any(is_first) && shown.contains("1m 05s of 2h 00m")
        });
        // The log names directories of this machine.
        let golden = shown.split("Log").next().unwrap_or_default();
        let golden: Vec<&str> = golden.lines().map(str::trim_end).collect();
        let name = format!("goal_at_work_{columns}");
        insta::assert_snapshot!(name, golden.join("\n").trim_end());
    }
    terminal.press("C-c");
    terminal.awaits(": paused");
    let code = await_some("the end", || {
        let code = fs::read_to_string(env.root().join("code")).ok()?;
        code.ends_with('\n').then_some(code)
    });
    assert_eq!(code.trim(), "130");
}
