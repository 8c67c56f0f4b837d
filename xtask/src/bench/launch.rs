//! A whole `kapi launch` with an agent of one line, beside a bare container.
//!
//! From the start of the command to its end: configuration, workspace, status, sandbox, the agent,
//! the commit. Every launch is a sandbox and a branch of its own in a home of the bench's own.

use std::path::Path;

use super::comparison::{Side, gap, measured, not_run};
use super::invocation::Invocation;
use super::launcher::Launcher;
use super::sample::by_turns;
use super::sandbox::{self, TRUE};
use super::table::{ComparisonRow, ComparisonTable, Quantity};
use super::{BenchDirectory, program};

const ROUNDS: usize = 25;
const TREE_ROUNDS: usize = 10;

/// Measures launches at every level.
pub(super) fn levels(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let directory = location.scratch.join("launch");
    let project = directory.join("project");
    program::make_project(&project)?;
    let launcher = Launcher::new(location, &directory)?;
    let podman = sandbox::podman(location, &[TRUE]);
    let image = sandbox::import_image(location);
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
            Ok(()) => beside(&launcher, &project, shown, options, &podman)?,
            Err(error) => not_run(shown, &podman.shown, &format!("{error:#}"), Side::Peer),
        });
    }
    launcher.remove()?;
    Ok(ComparisonTable {
        title: "A whole launch",
        note: "The agent is a shell command of one line. Ours makes the workspace and a branch, runs the agent with the network behind a proxy, commits what it changed and writes the status; the bare container runs `true`. Launches after the first on a commit: the first also packs what that commit reaches.".to_owned(),
        quantity: Quantity::Time,
        rows,
    })
}

fn beside(
    launcher: &Launcher<'_>,
    project: &Path,
    shown: &str,
    options: &[&str],
    podman: &Invocation,
) -> anyhow::Result<ComparisonRow> {
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
    name: &str,
    root: &Path,
    least: &str,
    smallest: &Path,
) -> anyhow::Result<ComparisonRow> {
    let pair = by_turns(TREE_ROUNDS, &mut || launcher.launch(root, &[]), &mut || {
        launcher.launch(smallest, &[])
    })?;
    Ok(measured(
        &format!("`kapi launch` on {name} files"),
        &format!("on {least} files"),
        pair,
    ))
}
