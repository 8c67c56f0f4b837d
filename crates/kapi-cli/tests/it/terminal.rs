//! A person's terminal, of tmux: a program in it, what it shows, and keys that are pressed.
//!
//! Knows nothing of the program.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::environment::{Environment, PATIENCE};
use crate::program::finish;

/// How often the screen is looked at: each look starts a program.
const BLINK: Duration = Duration::from_millis(50);

/// A terminal with a program in it.
pub(crate) struct Terminal<'a> {
    env: &'a Environment,
    socket: PathBuf,
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminalSize {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

impl<'a> Terminal<'a> {
    /// Opens a terminal of so many columns and rows with a line for the shell in it; `vars` are
    /// `NAME=value`.
    pub(crate) fn open(
        env: &'a Environment,
        size: TerminalSize,
        vars: &[&str],
        line: &str,
    ) -> Self {
        let socket = env.root().join("tmux");
        let terminal = Self { env, socket };
        let (columns, rows) = (size.columns.to_string(), size.rows.to_string());
        let begin = ["new-session", "-d", "-x", &columns, "-y", &rows].into_iter();
        let vars = vars.iter().flat_map(|var| ["-e", var]);
        let words: Vec<&str> = begin.chain(vars).chain([line]).collect();
        terminal.tmux(&words);
        terminal
    }

    /// Runs a command of tmux and returns what it printed.
    pub(crate) fn tmux(&self, words: &[&str]) -> String {
        let mut command = self.env.command("tmux", &self.env.repository());
        command
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(words);
        let output = finish(command);
        assert_eq!(output.code, 0, "{words:?}: {output:?}");
        output.stdout
    }

    /// Returns what the screen shows.
    pub(crate) fn shown(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"])
    }

    /// Waits until the screen shows a text.
    pub(crate) fn awaits(&self, text: &str) {
        self.awaits_that(&format!("shows {text:?}"), &|shown| shown.contains(text));
    }

    /// Waits until something holds of the screen, and returns it.
    pub(crate) fn awaits_that(&self, what: &str, holds: &dyn Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let shown = self.shown();
            if holds(&shown) {
                return shown;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "the screen never {what}:\n{shown}"
            );
            thread::sleep(BLINK);
        }
    }

    /// Waits until tmux says something of the terminal, such as `1` of `#{alternate_on}`.
    pub(crate) fn awaits_state(&self, format: &str, expected: &str) {
        let what = format!("has {format} = {expected}");
        self.awaits_that(&what, &|_| {
            self.tmux(&["display-message", "-p", format]).trim_end() == expected
        });
    }

    /// Presses a key by its name.
    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Types a line, and Enter once it stands there.
    pub(crate) fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.awaits(line);
        self.press("Enter");
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = self.env.command("tmux", &self.env.repository());
        command.arg("-S").arg(&self.socket).arg("kill-server");
        // A test that failed half-way may have no server any more.
        drop(command.output());
    }
}
