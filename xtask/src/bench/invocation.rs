//! A program with its arguments, started again and again.
//!
//! Started like a developer's tool, with the environment and never through a shell; what it is
//! compared with is started in the same way.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::tool::{RepeatedTool, ToolCommand};

/// A program with its arguments.
#[derive(Debug, Clone)]
pub(super) struct Invocation {
    /// What tables call it.
    pub(super) shown: String,
    program: String,
    args: Vec<String>,
    directory: PathBuf,
    /// The home it is run from, where it is not the person's own.
    home: Option<PathBuf>,
}

/// A program under way, ended by force when it is dropped.
#[derive(Debug)]
pub(super) struct RunningProgram(Child);

impl Invocation {
    /// Names a program; relative names in it start from `directory`.
    pub(super) fn new(shown: &str, directory: &Path, program: &str, args: &[&str]) -> Self {
        Self {
            shown: shown.to_owned(),
            program: program.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            directory: directory.to_path_buf(),
            home: None,
        }
    }

    /// Runs it from another home.
    pub(super) fn at_home(mut self, home: &Path) -> Self {
        self.home = Some(home.to_path_buf());
        self
    }

    /// Runs it once and returns what it printed.
    pub(super) fn read(&self) -> anyhow::Result<String> {
        self.tool().read()
    }

    /// Returns it ready to be run in silence, again and again.
    pub(super) fn repeated(&self) -> RepeatedTool {
        RepeatedTool::new(self.tool())
    }

    /// Runs it once with a file as its input and returns how long that took.
    pub(super) fn time_with_input(&self, input: &Path) -> anyhow::Result<Duration> {
        let input = File::open(input).with_context(|| format!("open {}", input.display()))?;
        let mut command = self.command();
        command
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Instant::now();
        let status = command.status();
        let took = started.elapsed();
        let status = status.with_context(|| format!("start {}", self.shown))?;
        ensure!(status.success(), "run {}: {status}", self.shown);
        Ok(took)
    }

    /// Starts it without any input.
    pub(super) fn start(&self) -> anyhow::Result<RunningProgram> {
        let mut command = self.command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.spawned(&mut command)
    }

    /// Starts it with pipes for input and output.
    pub(super) fn start_piped(&self) -> anyhow::Result<(RunningProgram, ChildStdin, ChildStdout)> {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut started = self.spawned(&mut command)?;
        let stdin = started.0.stdin.take().context("take its input")?;
        let stdout = started.0.stdout.take().context("take its output")?;
        Ok((started, stdin, stdout))
    }

    fn spawned(&self, command: &mut Command) -> anyhow::Result<RunningProgram> {
        let child = command.spawn();
        let child = child.with_context(|| format!("start {}", self.shown))?;
        Ok(RunningProgram(child))
    }

    fn command(&self) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "what is measured here is the start of a bare program"
        )]
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.directory);
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        command
    }

    fn tool(&self) -> ToolCommand {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let tool = ToolCommand::new(&self.directory, &self.program, &args);
        match &self.home {
            Some(home) => tool.env("HOME", home),
            None => tool,
        }
    }
}

impl RunningProgram {
    /// Returns its number.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it ends, however it does.
    pub(super) fn wait(mut self) -> anyhow::Result<()> {
        self.0.wait().context("wait for a program")?;
        Ok(())
    }

    /// Waits until it ends well.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let status = self.0.wait().context("wait for a program")?;
        ensure!(status.success(), "run a program: {status}");
        Ok(())
    }
}

impl Drop for RunningProgram {
    #[expect(
        clippy::let_underscore_must_use,
        let_underscore_drop,
        reason = "it has ended already, or there is nothing else that could be done about it"
    )]
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
