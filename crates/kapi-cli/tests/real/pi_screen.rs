//! The Pi package on Pi's own screen, in a terminal of tmux: Esc, what a person types behind `!`, and a
//! document that is read.
//!
//! Everything that needs no keyboard is tested over Pi's protocol instead.

use kapi_testkit::agent_tools::{AgentTools, Cli};

use crate::environment::{Environment, await_some, processes_with};
use crate::pi_host::{checkout, configure, package};
use crate::terminal::Terminal;
use crate::workflow_support::Machine;

/// Opens a terminal with a Pi in it.
fn start(env: &Environment) -> Terminal<'_> {
    let pi = AgentTools::ensure(&checkout(), &[Cli::Pi]).expect("pi can be installed");
    // Nobody answers there: no prompt goes to the model in these tests.
    configure(env, "http://127.0.0.1:9");
    let line = format!(
        "exec {} --provider scripted --model scripted -e {} 2>{}",
        pi.binary(Cli::Pi).unwrap().display(),
        package().display(),
        env.root().join("said").display()
    );
    let vars = [
        "PI_SCRIPTED_KEY=sk-pi",
        "PI_OFFLINE=1",
        "PI_TELEMETRY=0",
        concat!("KAPI_BIN=", env!("CARGO_BIN_EXE_kapi")),
    ];
    let terminal = Terminal::open(env, (150, 45), &vars, &line);
    terminal.awaits("0.0%/");
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
