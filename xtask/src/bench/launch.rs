//! A whole `kapi launch` with an agent of one line, beside a bare container.
//!
//! From the start of the command to its end: configuration, workspace, status, sandbox, the agent,
//! the commit. Every launch is a sandbox and a branch of its own in a home of the bench's own.

use std::cell::Cell;
use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::comparison::{Side, gap, measured, not_run};
use super::invocation::Invocation;
use super::sample::by_turns;
use super::sandbox::{self, IMAGE, TRUE};
use super::table::{Quantity, Row, Table};
use super::{Place, program, tree};
use crate::tool::Tool;

const ROUNDS: usize = 25;
const TREE_ROUNDS: usize = 10;
/// The agent: one line that changes one file.
const AGENT: &str = "command:echo changed >> made.txt";
/// What the container level needs on hosts where podman's own choices fail.
const CONFIG: &str = "runtime = \"runc\"\nulimits = [\"nofile=1024:2048\", \"nproc=1000:1000\"]\n";

/// A home to launch from.
#[derive(Debug)]
pub(super) struct Launcher<'a> {
    place: &'a Place,
    home: PathBuf,
    /// How many were launched, so that every one has a name of its own.
    n_launched: Cell<u32>,
}

/// A launch that is over.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) took: Duration,
    /// The branch that its work was committed to.
    pub(super) branch: String,
}

/// What is read of a launch's answer.
#[derive(Debug, Deserialize)]
struct Answer {
    exit_code: i32,
    changed: Vec<serde_json::Value>,
}

/// Measures launches at every level.
pub(super) fn levels(place: &Place) -> anyhow::Result<Table> {
    let directory = place.scratch.join("launch");
    let project = directory.join("project");
    program::make_project(&project)?;
    let launcher = Launcher::new(place, &directory)?;
    let podman = sandbox::podman(place, &[TRUE]);
    let image = sandbox::import_image(place);
    let mut rows = Vec::new();
    for (shown, options) in [
        ("`kapi launch`, native, a branch", &[][..]),
        (
            "`kapi launch`, native, a real worktree",
            &["--worktree-mode"],
        ),
        (
            "`kapi launch`, podman, a real worktree",
            &["--worktree-mode", "--sandbox", "podman"],
        ),
    ] {
        rows.push(match &image {
            Ok(()) => beside(&launcher, &project, (shown, options), &podman)?,
            Err(error) => not_run(shown, &podman.shown, &format!("{error:#}"), Side::Peer),
        });
    }
    launcher.remove()?;
    Ok(Table {
        title: "A whole launch",
        note: "The agent is a shell command of one line. Ours makes the workspace and a branch, runs the agent with the network behind a proxy, commits what it changed and writes the status; the bare container runs `true`. Launches after the first on a commit: the first also packs what that commit reaches.".to_owned(),
        quantity: Quantity::Time,
        rows,
    })
}

fn beside(
    launcher: &Launcher<'_>,
    project: &Path,
    (shown, options): (&str, &[&str]),
    podman: &Invocation,
) -> anyhow::Result<Row> {
    let direct = Invocation::new(shown, project, TRUE, &[]);
    if let Some(row) = gap(&direct, podman) {
        return Ok(row);
    }
    if let Err(error) = launcher.launch(project, options) {
        return Ok(not_run(
            shown,
            &podman.shown,
            &format!("{error:#}"),
            Side::Ours,
        ));
    }
    let mut bare = podman.repeated();
    let pair = by_turns(
        ROUNDS,
        &mut || launcher.launch(project, options),
        &mut || bare.time(),
    )?;
    Ok(measured(shown, &podman.shown, pair))
}

/// Compares launches on two trees.
pub(super) fn over(
    launcher: &Launcher<'_>,
    (name, root): (&str, &Path),
    (least, smallest): (&str, &Path),
) -> anyhow::Result<Row> {
    let pair = by_turns(TREE_ROUNDS, &mut || launcher.launch(root, &[]), &mut || {
        launcher.launch(smallest, &[])
    })?;
    Ok(measured(
        &format!("`kapi launch` on {name} files"),
        &format!("on {least} files"),
        pair,
    ))
}

impl<'a> Launcher<'a> {
    /// Makes an empty home with the bench's configuration.
    pub(super) fn new(place: &'a Place, directory: &Path) -> anyhow::Result<Self> {
        let home = directory.join("home");
        let config = home.join(".config/kapi");
        fs::create_dir_all(&config).with_context(|| format!("create {}", config.display()))?;
        let mut file =
            File::create(config.join("config.toml")).context("create a configuration")?;
        write!(file, "[sandbox]\nimage = \"{IMAGE}\"\n{CONFIG}")
            .context("write a configuration")?;
        Ok(Self {
            place,
            home,
            n_launched: Cell::new(0),
        })
    }

    /// Returns where measuring happens.
    pub(super) fn place(&self) -> &'a Place {
        self.place
    }

    /// Launches once, makes sure that the work was committed, and returns how long it took.
    fn launch(&self, project: &Path, options: &[&str]) -> anyhow::Result<Duration> {
        let launched = self.launch_agent(project, AGENT, options)?;
        Ok(launched.took)
    }

    /// Launches a shell command that changes one file.
    pub(super) fn launch_agent(
        &self,
        project: &Path,
        agent: &str,
        options: &[&str],
    ) -> anyhow::Result<Launched> {
        let number = self.n_launched.get();
        self.n_launched.set(number + 1);
        let (id, branch) = (format!("b{number}"), format!("bench/launch-{number}"));
        let (kapi, path) = (self.place.kapi.to_string_lossy(), project.to_string_lossy());
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
        let tool = Tool::new(project, &kapi, &args)
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", self.home.join(".config"));
        let started = Instant::now();
        let told = tool.read()?;
        let took = started.elapsed();
        let answer: Answer = serde_json::from_str(&told).context("read a launch's answer")?;
        ensure!(
            answer.exit_code == 0 && answer.changed.len() == 1,
            "launch an agent that changes one file: {told}"
        );
        Ok(Launched { took, branch })
    }

    /// Removes the home and every workspace in it.
    pub(super) fn remove(self) -> anyhow::Result<()> {
        tree::remove_all(&self.home)
    }
}
