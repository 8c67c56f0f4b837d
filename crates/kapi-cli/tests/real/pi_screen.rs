//! The Pi package on Pi's own screen, in a terminal of tmux: Esc, what a person types behind `!`, and a
//! document that is read.
//!
//! Everything that needs no keyboard is tested over Pi's protocol instead.

use kapi_testkit::agent_tools::path_with;
use kapi_testkit::model_server::scenario::{AssistantTurn, Route};

use crate::environment::{Environment, TASK, await_some, processes_with};
use crate::pi_goal_rig::{AT_THE_GATE, UNFINISHED, accepted, done, says, working};
use crate::pi_host::{Options, PiVersion, QUIET, configure, package};
use crate::terminal::{Terminal, TerminalSize};
use crate::workflow_support::Machine;

/// Opens a terminal with a Pi that asks nobody: no prompt goes to its model.
fn start(env: &Environment) -> Terminal<'_> {
    let options = Options {
        base_url: "http://127.0.0.1:9".to_owned(),
        ..Options::default()
    };
    open(env, &options)
}

/// Opens a terminal with a Pi in it.
pub(crate) fn open<'a>(env: &'a Environment, options: &Options<'_>) -> Terminal<'a> {
    let (pi, first) = options.version.program();
    configure(env, &options.base_url);
    // The terminal's own `PATH` is the server's, whatever the session is started with.
    let path = first.map(|first| format!("PATH={}", path_with(&first).display()));
    let line = format!(
        "exec env {} {} --provider scripted --model scripted -e {} {} 2>{}",
        path.unwrap_or_default(),
        pi.display(),
        package().display(),
        options.args.join(" "),
        env.root().join("said").display()
    );
    let vars = QUIET.map(|(key, value)| format!("{key}={value}"));
    let binary = concat!("KAPI_BIN=", env!("CARGO_BIN_EXE_kapi"));
    let vars: Vec<&str> = vars.iter().map(String::as_str).chain([binary]).collect();
    let size = TerminalSize {
        columns: 150,
        rows: 45,
    };
    let terminal = Terminal::open(env, size, &vars, &line);
    terminal.awaits("0.0%/");
    // A recent Pi takes no line before it has started, and lists what it loaded once it does.
    terminal.awaits("[Extensions]");
    terminal
}

#[test]
fn escape_stops_what_pi_drives_and_the_persons_own_shell_acts_for_them() {
    let env = Environment::new();
    let screen = start(&env);
    screen.types("/kapi-deep-interview greet people --agent 'command:sleep 900'");
    screen.awaits("kapi 001 preparing the next question");
    await_some("the agent", || {
        let processes = processes_with(&env.marker());
        processes
            .iter()
            .any(|line| line.contains("sleep 900"))
            .then_some(())
    });
    screen.press("Escape");
    screen.awaits("/kapi-deep-interview resume 001 continues it.");
    await_some("the end of the agent", || {
        let processes = processes_with(&env.marker());
        let is_left = processes.iter().any(|line| line.contains("sleep 900"));
        (!is_left).then_some(())
    });
    let view = env.json(&["status", "1"]);
    assert_eq!(view["status"], "active", "{view:#}");
    // Behind `!` types the person, not their model.
    let kapi = env!("CARGO_BIN_EXE_kapi");
    screen.types(&format!("!{kapi} deep-interview resume 1 --abandon enough"));
    await_some("the end of the interview", || {
        let view = env.json(&["status", "1"]);
        (view["status"] == "abandoned").then_some(())
    });
}

#[test]
fn a_spec_is_read_from_its_beginning_and_approved_at_the_keyboard() {
    let machine = Machine::new();
    assert_eq!(machine.drafted().code, 5);
    let screen = start(&machine.env);
    screen.types("/kapi-deep-interview approve 001-greet-people-name");
    screen.awaits("# Spec 001-greet-people-name");
    screen.press("PageDown");
    screen.awaits("the end ·");
    screen.press("Enter");
    screen.awaits("→ Approve");
    screen.press("Enter");
    screen.awaits("spec.md of workflow 001-greet-people-name is approved.");
    let view = machine.env.json(&["status", "1"]);
    assert_eq!(view["phase"], "branch", "{view:#}");
    assert_eq!(view["approvals"][0]["means"], "named_hash");
}

/// Ctrl+Shift+G as a terminal that can tell it from others sends it.
const REDRAW: &str = "\u{1b}[103;6u";

#[test]
fn a_key_redraws_the_goal_and_no_version_of_pi_complains_about_it() {
    key_redraws(PiVersion::Pinned);
}

pub(crate) fn key_redraws(version: PiVersion) {
    let waits = vec![AssistantTurn::bash(AT_THE_GATE), says("Well.")];
    let rig = accepted(vec![working(waits), Route::new(UNFINISHED, done())]).in_pi(version);
    rig.gate();
    let screen = open(&rig.env, &rig.options());
    let shown = screen.shown();
    assert!(!shown.contains("[Extension issues]"), "{shown}");
    screen.types(&format!("/until-done {TASK}"));
    screen.awaits("Approve this contract and start?");
    screen.press("Enter");
    screen.awaits(AT_THE_GATE);
    let title = |held: &str| {
        screen.awaits_that(&format!("has {held:?} in its title"), &|_| {
            let title = screen.tmux(&["display-message", "-p", "#{pane_title}"]);
            title.contains(held)
        });
    };
    title("kapi 001: make the answer right");
    // Pi says something else there, until the goal is drawn again.
    screen.types("/name elsewhere");
    title("elsewhere");
    screen.tmux(&["send-keys", "-l", REDRAW]);
    title("kapi 001: make the answer right");
    rig.open_gate();
    screen.awaits("is done");
    // What Pi says there, it says again.
    title("π - elsewhere - app");
    drop(screen);
    rig.env.await_no_process();
}
