//! The live view in a real terminal: keys, colours, terminals without a screen, and everything as it
//! was afterwards.
//!
//! How it looks is in golden screens beside the code, and with real agents in the slow tests.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::environment::{Environment, FIRST, await_some, processes_with, usual, write};
use crate::terminal::{Terminal, TerminalSize};
use crate::workflow_support::{AGENT, Machine};

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

/// Opens a terminal with a command line of Kapi's in it; what `d` shows goes into `diff`.
fn watching<'a>(env: &'a Environment, words: &[&str]) -> Terminal<'a> {
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!(
        "{KAPI} {}; echo $? > ../code; stty -a > ../stty; sleep 600",
        words.join(" ")
    );
    Terminal::open(env, SIZE, &["PAGER=cat > ../diff"], &line)
}

/// Presses `d`, and waits for what the pager gets.
fn check_diff(env: &Environment, terminal: &Terminal<'_>, expected: &str) {
    let file = env.root().join("diff");
    terminal.press("d");
    await_some(&format!("a diff with {expected:?}"), || {
        let text = fs::read_to_string(&file).ok()?;
        text.contains(expected).then_some(())
    });
    terminal.awaits_state("#{alternate_on}", "1");
}

/// Presses `c`, thinks better of it, and presses it again.
fn cancel(terminal: &Terminal<'_>, id: &str) {
    let question = format!("Cancel {id} for good?");
    terminal.press("c");
    terminal.awaits(&question);
    terminal.press("n");
    terminal.awaits("c cancel");
    terminal.press("c");
    terminal.awaits(&question);
    terminal.press("y");
}

/// Returns the keys that the view names.
fn keys(terminal: &Terminal<'_>) -> String {
    let shown = terminal.awaits_that("names its keys", &|shown| shown.contains("q leave"));
    let line = shown.lines().rfind(|line| line.contains("q leave"));
    line.unwrap().trim().to_owned()
}

#[test]
fn a_task_is_watched_and_cancelled() {
    let env = Environment::new();
    let agent = env.script("agent.yaml", BUSY);
    let words = ["task", "run", "look at it", "--agent", &agent];
    let terminal = watching(&env, &words);
    terminal.awaits("sleep 600");
    terminal.awaits("task task_1");
    assert_eq!(keys(&terminal), "s say   c cancel   q leave");
    cancel(&terminal, "task_1");
    check_restored(&env, &terminal, "5");
    assert_eq!(env.json(&["show", "task_1"])["status"], "cancelled");
}

#[test]
fn a_launch_is_watched_and_cancelled() {
    let env = Environment::new();
    let agent = env.script("agent.yaml", BUSY);
    let words = ["launch", "2", ".", "--agent", &agent, "--task", "look"];
    let terminal = watching(&env, &words);
    terminal.awaits("sleep 600");
    terminal.awaits("launch 2");
    assert_eq!(keys(&terminal), "s say   p pause   c cancel   q leave");
    cancel(&terminal, "2");
    check_restored(&env, &terminal, "130");
    let ended = env.json(&["sandbox", "list"])[0].clone();
    assert_eq!(
        (&ended["id"], &ended["exit_code"]),
        (&"2".into(), &130.into())
    );
}

#[test]
fn a_workflow_is_watched_its_changes_are_shown_and_it_is_cancelled() {
    let quick = r#"[{write: {path: MANUAL, content: "sh greet.sh NAME\n"}}, {claim"#;
    let busy = AGENT.replace(quick, "[{bash: sleep 600}, {claim");
    assert_ne!(busy, AGENT);
    let machine = Machine::with_agent(&busy);
    let env = &machine.env;
    let (agent, reviewer) = (machine.agent.as_str(), machine.reviewer.as_str());
    let parties = ["--agent", agent, "--reviewer", reviewer, "--judge", "none"];
    let words = ["ralph", "greet people", "--approve-plan", "auto"];
    let terminal = watching(env, &[&words[..], &parties].concat());
    terminal.awaits("ralph 001-greet-people");
    terminal.awaits("T-001 landed");
    check_diff(env, &terminal, "+helo");
    cancel(&terminal, "001-greet-people");
    check_restored(env, &terminal, "5");
    assert_eq!(env.json(&["status", "1"])["status"], "abandoned");
}

#[test]
fn what_waits_is_settled_in_place_of_the_view_while_kapi_up_goes_on() {
    let env = Environment::new();
    let agent = env.script("agent.yaml", "turns:\n  - steps:\n      - bash: 'true'\n");
    env.run(&agent, &["--turns", "1"])
        .assert_status("paused", 5);
    let terminal = watching(&env, &["up"]);
    terminal.awaits("001-make-answer-right  paused");
    terminal.press("a");
    terminal.awaits_state("#{alternate_on}", "0");
    terminal.awaits("What about it?");
    // What happens meanwhile is kept for the view.
    env.kapi(&["task", "run", "x", "--detach", "--agent", "command:true"]);
    assert_eq!(env.kapi(&["wait", "task_1"]).code, 0);
    terminal.types("quit");
    terminal.awaits("Press Enter to go back.");
    assert!(!terminal.shown().contains("task_1"), "{}", terminal.shown());
    terminal.press("Enter");
    terminal.awaits_state("#{alternate_on}", "1");
    cancel(&terminal, "001-make-answer-right");
    terminal.awaits("Nothing is running here.");
    assert_eq!(env.json(&["show", "1"])["status"], "cancelled");
    terminal.press("C-c");
    check_restored(&env, &terminal, "130");
}
