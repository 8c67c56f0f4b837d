//! Starts `kapi launch` from a home of the bench's own, and removes what was left.
//!
//! Knows nothing of what is compared.

use std::cell::Cell;
use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::BenchDirectory;
use super::sandbox::IMAGE;
use crate::tool::ToolCommand;

/// The agent: one line that changes one file.
pub(crate) const AGENT: &str = "command:echo changed >> made.txt";

/// What the container level needs on hosts where podman's own choices fail.
pub(crate) const CONFIG: &str =
    "runtime = \"runc\"\nulimits = [\"nofile=1024:2048\", \"nproc=1000:1000\"]\n";

/// Removes a directory with layers in it.
pub(crate) fn remove_all(directory: &Path) -> anyhow::Result<()> {
    let shown = directory.to_string_lossy();
    // The kernel's own directory in a layer cannot be entered without this.
    ToolCommand::new(Path::new("/"), "chmod", &["-R", "u+rwx", &shown]).read()?;
    ToolCommand::new(Path::new("/"), "rm", &["-rf", &shown]).read()?;
    Ok(())
}

/// A home to launch from.
#[derive(Debug)]
pub(crate) struct Launcher<'a> {
    location: &'a BenchDirectory,
    home: PathBuf,
    /// How many were launched, so that every one has a name of its own.
    n_launched: Cell<u32>,
}

/// A launch that is over.
#[derive(Debug)]
pub(crate) struct FinishedLaunch {
    pub(crate) took: Duration,
    /// The branch that its work was committed to.
    pub(crate) branch: String,
}

/// What is read of a launch's answer.
#[derive(Debug, Deserialize)]
pub(crate) struct LaunchAnswer {
    exit_code: i32,
    changed: Vec<serde_json::Value>,
}

impl<'a> Launcher<'a> {
    /// Makes an empty home with the bench's configuration.
    pub(crate) fn new(location: &'a BenchDirectory, directory: &Path) -> anyhow::Result<Self> {
        let home = directory.join("home");
        let config = home.join(".config/kapi");
        fs::create_dir_all(&config).with_context(|| format!("create {}", config.display()))?;
        let mut file =
            File::create(config.join("config.toml")).context("create a configuration")?;
        write!(file, "[sandbox]\nimage = \"{IMAGE}\"\n{CONFIG}")
            .context("write a configuration")?;
        Ok(Self {
            location,
            home,
            n_launched: Cell::new(0),
        })
    }

    /// Returns where measuring happens.
    pub(crate) fn location(&self) -> &'a BenchDirectory {
        self.location
    }

    /// Returns the home.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Launches once, makes sure that the work was committed, and returns how long it took.
    pub(super) fn launch(&self, project: &Path, options: &[&str]) -> anyhow::Result<Duration> {
        let launched = self.launch_agent(project, AGENT, options)?;
        Ok(launched.took)
    }

    /// Launches a shell command that changes one file.
    pub(crate) fn launch_agent(
        &self,
        project: &Path,
        agent: &str,
        options: &[&str],
    ) -> anyhow::Result<FinishedLaunch> {
        let number = self.n_launched.get();
        self.n_launched.set(number + 1);
        let (id, branch) = (format!("b{number}"), format!("bench/launch-{number}"));
        let (kapi, path) = (
            self.location.kapi.to_string_lossy(),
            project.to_string_lossy(),
        );
        let fixed = [
            "launch",
            &id,
            &path,
            "--json",
            "--task",
            "measure",
            "--agent",
            agent,
            "--branch",
            &branch,
            "--no-push",
        ];
        let args = [&fixed[..], options].concat();
        let tool = ToolCommand::new(project, &kapi, &args)
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", self.home.join(".config"));
        let started = Instant::now();
        let reported = tool.read()?;
        let took = started.elapsed();
        let answer: LaunchAnswer =
            serde_json::from_str(&reported).context("read a launch's answer")?;
        ensure!(
            answer.exit_code == 0 && answer.changed.len() == 1,
            "launch an agent that changes one file: {reported}"
        );
        Ok(FinishedLaunch { took, branch })
    }

    /// Removes the home and every workspace in it.
    pub(crate) fn remove(self) -> anyhow::Result<()> {
        remove_all(&self.home)
    }
}
