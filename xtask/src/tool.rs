//! Running a developer's tools.
//!
//! They inherit the environment and the terminal: unlike the product, automation is only as
//! hermetic as the person who starts it. Never goes through a shell.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use kapi_sys::process::find_in_path;

/// A tool, its arguments and where it runs.
#[derive(Debug)]
pub(crate) struct ToolCommand {
    command: Command,
    shown: String,
}

impl ToolCommand {
    /// Names a tool that runs in `directory`.
    pub(crate) fn new(directory: &Path, program: &str, args: &[&str]) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "developer tools need the developer's own environment and terminal"
        )]
        let mut command = Command::new(program);
        command.args(args).current_dir(directory);
        let shown = [&[program], args].concat().join(" ");
        Self { command, shown }
    }

    /// Adds a variable to the environment.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Drops standard output, for a tool whose effect alone is wanted.
    pub(crate) fn without_stdout(mut self) -> Self {
        self.command.stdout(Stdio::null());
        self
    }

    /// Runs it on our terminal; any exit code but 0 is an error.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        self.command.stdin(Stdio::null());
        let status = self
            .command
            .status()
            .with_context(|| format!("start `{}`", self.shown))?;
        if !status.success() {
            bail!("run `{}`: {status}", self.shown);
        }
        Ok(())
    }

    /// Runs it and returns what it printed; any exit code but 0 is an error with its last words.
    pub(crate) fn read(mut self) -> anyhow::Result<String> {
        self.command.stdin(Stdio::null());
        let finished = self
            .command
            .output()
            .with_context(|| format!("start `{}`", self.shown))?;
        if !finished.status.success() {
            let stderr = String::from_utf8_lossy(&finished.stderr);
            let last = stderr.trim().lines().last().unwrap_or("it said nothing");
            bail!("run `{}`: {}: {last}", self.shown, finished.status);
        }
        let text = String::from_utf8(finished.stdout);
        text.with_context(|| format!("read what `{}` printed", self.shown))
    }
}

/// Runs the same tool again and again, in silence, to measure it.
#[derive(Debug)]
pub(crate) struct RepeatedTool(ToolCommand);

impl RepeatedTool {
    /// Takes a tool whose output nobody wants.
    pub(crate) fn new(mut tool: ToolCommand) -> Self {
        tool.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(tool)
    }

    /// Runs it once and returns how long that took, from before it is started to its end.
    pub(crate) fn time(&mut self) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let status = self.0.command.status();
        let took = started.elapsed();
        let shown = &self.0.shown;
        let status = status.with_context(|| format!("start `{shown}`"))?;
        if !status.success() {
            bail!("run `{shown}`: {status}");
        }
        Ok(took)
    }
}

/// Returns where a program is found on the search path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    find_in_path(OsStr::new(program), &path)
}
