//! The live view in a real terminal: keys, colours, terminals without a screen, and everything as it
//! was afterwards.
//!
//! How it looks is in golden screens beside the code, and with real agents in the slow tests.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::environment::{Environment, FIRST, await_some, processes_with, usual, write};
use crate::terminal::{Terminal, TerminalSize};

const SIZE: TerminalSize = TerminalSize {
    columns: 80,
    rows: 40,
};
/// Works for longer than any test takes.
const BUSY: &str = "turns:
  - steps:
      - say: Let me see.
      - bash: cat answer.txt
      - bash: sleep 600
";
const KAPI: &str = env!("CARGO_BIN_EXE_kapi");

/// Returns the line that runs the usual task with such an agent, leaves its number in `pid`, and
/// afterwards writes how it ended and the terminal is set, and stays.
fn line(env: &Environment, script: &str, options: &[&str]) -> String {
    let agent = env.script("agent.yaml", script);
    let words = usual(&agent, options);
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    format!(
        "sh -c 'echo $$ > ../pid; exec \"$0\" \"$@\"' {KAPI} {}; echo $? > ../code; stty -a > \
         ../stty; sleep 600",
        words.join(" ")
    )
}

/// Opens a terminal in which an agent is at work.
fn at_work<'a>(env: &'a Environment, vars: &[&str]) -> Terminal<'a> {
    let terminal = Terminal::open(env, SIZE, vars, &line(env, BUSY, &[]));
    terminal.awaits("sleep 600");
    terminal
}

/// Waits for the end, and checks that the terminal is as it was.
fn check_restored(env: &Environment, terminal: &Terminal<'_>, code: &str) {
    let file = env.root().join("stty");
    let set = await_some("the end", || {
        fs::read_to_string(&file)
            .ok()
            .filter(|text| text.ends_with('\n'))
    });
    let modes: Vec<&str> = set.split_whitespace().collect();
    for mode in ["icanon", "echo", "isig"] {
        assert!(modes.contains(&mode), "{mode} in {set}");
    }
    assert_eq!(
        fs::read_to_string(env.root().join("code")).unwrap().trim(),
        code
    );
    terminal.awaits_state("#{alternate_on} #{cursor_flag}", "0 1");
}

/// Returns whether the screen has colours, by the sequences that tmux would draw it with.
fn has_colours(terminal: &Terminal<'_>) -> bool {
    let drawn = terminal.tmux(&["capture-pane", "-p", "-e"]);
    let sequences = drawn.split("\x1b[").skip(1);
    let mut codes = sequences
        .filter_map(|rest| rest.split_once('m'))
        .flat_map(|(codes, _)| {
            let codes = codes.split(';').filter_map(|code| code.parse::<u32>().ok());
            codes.collect::<Vec<_>>()
        });
    codes.any(|code| matches!(code, 30..=38 | 90..=97))
}

#[test]
fn a_goal_is_watched_spoken_to_and_paused() {
    let env = Environment::new();
    let terminal = at_work(&env, &[]);
    terminal.awaits_state("#{alternate_on}", "1");
    terminal.awaits("turn 1 of");
    assert!(has_colours(&terminal));
    terminal.press("s");
    terminal.awaits("Message to the agent");
    terminal.types("look at the file");
    env.await_event(FIRST, &|event| event["type"] == "person_said");
    terminal.awaits("gets the message at the start of its next turn");
    terminal.press("p");
    check_restored(&env, &terminal, "130");
    let shown = terminal.shown();
    for text in [
        "Turn 1: ",
        "message from the user: look at the file",
        ": paused",
        "kapi resume",
    ] {
        assert!(shown.contains(text), "{text:?} in {shown}");
    }
}

#[test]
fn leaving_the_view_leaves_the_work_and_its_lines() {
    let env = Environment::new();
    let terminal = at_work(&env, &[]);
    terminal.press("q");
    terminal.awaits("Leave this view?");
    terminal.press("q");
    terminal.awaits_state("#{alternate_on}", "0");
    terminal.awaits("Turn 1: ");
    let ends = |event: &serde_json::Value| event["type"] == "goal_stopped";
    assert!(!env.events(FIRST).iter().any(ends), "it goes on");
    terminal.press("C-c");
    check_restored(&env, &terminal, "130");
}

#[test]
fn a_kill_puts_the_terminal_back() {
    let env = Environment::new();
    let terminal = at_work(&env, &[]);
    terminal.awaits_state("#{alternate_on}", "1");
    let pid = fs::read_to_string(env.root().join("pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    check_restored(&env, &terminal, "130");
    terminal.awaits(": paused");
}

#[test]
fn a_terminal_that_goes_away_ends_the_program_and_leaves_the_goal_paused() {
    let env = Environment::new();
    let terminal = at_work(&env, &[]);
    drop(terminal);
    await_some("the end of every process", || {
        processes_with(&env.marker()).is_empty().then_some(())
    });
    assert_eq!(env.json(&["status", "1"])["status"], "paused");
}

#[test]
fn a_suspended_view_gives_the_terminal_back_and_takes_it_again() {
    let env = Environment::new();
    let line = line(&env, BUSY, &[]);
    let terminal = Terminal::open(&env, SIZE, &["ENV="], "sh -i");
    terminal.awaits_that("has a prompt", &|shown| !shown.trim().is_empty());
    write(&env.root().join("line"), line);
    terminal.types("set -m; sh ../line");
    terminal.awaits("sleep 600");
    terminal.awaits_state("#{alternate_on}", "1");
    terminal.press("C-z");
    terminal.awaits_state("#{alternate_on} #{cursor_flag}", "0 1");
    terminal.types("fg");
    terminal.awaits_state("#{alternate_on}", "1");
    terminal.awaits("turn 1 of");
    // Ctrl-C would end the script around it as well.
    terminal.press("p");
    check_restored(&env, &terminal, "130");
}

#[test]
fn a_question_is_answered_with_a_key() {
    let env = Environment::new();
    let script = "turns:\n  - steps:\n      - bash: rm -rf nothing\n      - bash: sleep 600\n";
    let line = line(&env, script, &["--ask-before", "rm -rf"]);
    let terminal = Terminal::open(&env, SIZE, &[], &line);
    terminal.awaits("y yes   n no");
    terminal.press("n");
    env.await_event(FIRST, &|event| event["type"] == "consent_asked");
    terminal.awaits("refused  rm -rf nothing");
    terminal.awaits("a approve");
    terminal.press("C-c");
    check_restored(&env, &terminal, "130");
}

#[test]
fn a_terminal_without_colours_has_none() {
    let env = Environment::new();
    let terminal = at_work(&env, &["NO_COLOR=1"]);
    terminal.awaits_state("#{alternate_on}", "1");
    assert!(
        !has_colours(&terminal),
        "{}",
        terminal.tmux(&["capture-pane", "-p", "-e"])
    );
}

#[test]
fn whoever_wants_lines_has_lines() {
    for vars in [["TERM=dumb"], ["KAPI_PLAIN=1"]] {
        let env = Environment::new();
        let line = line(&env, BUSY, &[]);
        let line = format!("export {}; {line}", vars[0]);
        let terminal = Terminal::open(&env, SIZE, &[], &line);
        terminal.awaits("    bash sleep 600");
        terminal.awaits("Turn 1: ");
        terminal.awaits_state("#{alternate_on}", "0");
    }
}

#[test]
fn what_is_piped_has_no_view() {
    let env = Environment::new();
    let line = line(&env, BUSY, &[]).replacen(';', "; true;", 1);
    let line = format!("({line}) 2>&1 | cat > ../piped");
    let terminal = Terminal::open(&env, SIZE, &[], &line);
    let piped = env.root().join("piped");
    let text = await_some("the lines", || {
        let text = fs::read_to_string(&piped).ok()?;
        text.contains("    bash sleep 600\n").then_some(text)
    });
    assert!(!text.contains('\x1b'), "{text}");
    terminal.awaits_state("#{alternate_on}", "0");
}

#[test]
fn the_dashboard_shows_what_is_alive_until_it_is_left() {
    let env = Environment::new();
    let line = format!("{KAPI} dashboard; echo $? > ../code; stty -a > ../stty; sleep 600");
    let terminal = Terminal::open(&env, SIZE, &[], &line);
    terminal.awaits("Nothing is running here.");
    let agent = env.script("agent.yaml", "turns:\n  - steps:\n      - bash: 'true'\n");
    let run = env.run(&agent, &["--turns", "1"]);
    run.assert_status("paused", 5);
    // What somebody else does comes by itself.
    terminal.awaits("001-make-answer-right  paused");
    terminal.awaits("Waiting for you");
    terminal.awaits("p resume");
    terminal.press("q");
    check_restored(&env, &terminal, "0");
}
