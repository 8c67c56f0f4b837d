//! The Pi package on Pi's own screen, in a terminal of tmux: Esc, what a person types behind `!`, and a
//! document that is read.
//!
//! Everything that needs no keyboard is tested over Pi's protocol instead.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use kapi_testkit::agent_tools::{AgentTools, Cli};

use crate::environment::{Environment, PATIENCE, await_some, processes_with};
use crate::pi_host::{checkout, configure, package};
use crate::program::finish;
use crate::workflow_support::Machine;

/// How often the screen is looked at: each look starts a program.
const BLINK: Duration = Duration::from_millis(50);

/// A terminal with a Pi in it.
struct Screen<'a> {
    env: &'a Environment,
    socket: PathBuf,
}

impl<'a> Screen<'a> {
    fn start(env: &'a Environment) -> Self {
        let pi = AgentTools::ensure(&checkout(), &[Cli::Pi]).expect("pi can be installed");
        let socket = env.root().join("tmux");
        // Nobody answers there: no prompt goes to the model in these tests.
        configure(env, "http://127.0.0.1:9");
        let line = format!(
            "exec {} --provider scripted --model scripted -e {} 2>{}",
            pi.binary(Cli::Pi).unwrap().display(),
            package().display(),
            env.root().join("said").display()
        );
        let screen = Self { env, socket };
        let vars = [
            "PI_SCRIPTED_KEY=sk-pi",
            "PI_OFFLINE=1",
            "PI_TELEMETRY=0",
            concat!("KAPI_BIN=", env!("CARGO_BIN_EXE_kapi")),
        ];
        let vars = vars.iter().flat_map(|var| ["-e", var]);
        let begin = ["new-session", "-d", "-x", "150", "-y", "45"].into_iter();
        let words: Vec<&str> = begin.chain(vars).chain([line.as_str()]).collect();
        screen.tmux(&words);
        screen.awaits("0.0%/");
        screen
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = self.env.command("tmux", &self.env.repository());
        command
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(words);
        let output = finish(command);
        assert_eq!(output.code, 0, "{words:?}: {output:?}");
        output.stdout
    }

    /// Waits until the screen shows a text.
    fn awaits(&self, text: &str) {
        let began = Instant::now();
        loop {
            let shown = self.tmux(&["capture-pane", "-p", "-J"]);
            if shown.contains(text) {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "the screen never shows {text:?}:\n{shown}"
            );
            thread::sleep(BLINK);
        }
    }

    /// Types a line, and Enter once it stands there.
    fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.awaits(line);
        self.tmux(&["send-keys", "Enter"]);
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let mut command = self.env.command("tmux", &self.env.repository());
        command.arg("-S").arg(&self.socket).arg("kill-server");
        // A test that failed half-way may have no server any more.
        drop(command.output());
    }
}

#[test]
fn escape_stops_what_pi_drives_and_the_persons_own_shell_acts_for_them() {
    let env = Environment::new();
    let screen = Screen::start(&env);
    screen.types("/kapi-deep-interview greet people --agent 'command:sleep 900'");
    screen.awaits("kapi 001 preparing the next question");
    await_some("the agent", || {
        let processes = processes_with(&env.marker());
        processes
            .iter()
            .any(|line| line.contains("sleep 900"))
            .then_some(())
    });
    screen.tmux(&["send-keys", "Escape"]);
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
    let screen = Screen::start(&machine.env);
    screen.types("/kapi-deep-interview approve 001-greet-people-name");
    screen.awaits("# Spec 001-greet-people-name");
    screen.tmux(&["send-keys", "PageDown"]);
    screen.awaits("the end ·");
    screen.tmux(&["send-keys", "Enter"]);
    screen.awaits("→ Approve");
    screen.tmux(&["send-keys", "Enter"]);
    screen.awaits("spec.md of workflow 001-greet-people-name is approved.");
    let view = machine.env.json(&["status", "1"]);
    assert_eq!(view["phase"], "branch", "{view:#}");
    assert_eq!(view["approvals"][0]["means"], "named_hash");
}
