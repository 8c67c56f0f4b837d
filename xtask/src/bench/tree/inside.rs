//! The first `git status` that an agent runs: in our workspace, and in a new worktree.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;

use super::make::git;
use super::worktree::Worktree;
use super::{BenchRepository, rounds};
use crate::bench::comparison::measured;
use crate::bench::launcher::Launcher;
use crate::bench::sample::Pair;
use crate::bench::table::ComparisonRow;
use crate::tool::ToolCommand;

/// Of a first time, few rounds tell enough: each needs a worktree of its own.
const ROUNDS_MAX: usize = 5;
/// Times git by the shell alone, in the same way on both sides.
const SCRIPT: &str = "export HOME=/tmp GIT_CONFIG_NOSYSTEM=1; began=$(date +%s%N); git status --porcelain; ended=$(date +%s%N); echo $((ended - began)) > took";

/// Measures the first `git status` of both.
pub(super) fn first_status(
    launcher: &Launcher<'_>,
    tree: &BenchRepository,
) -> anyhow::Result<ComparisonRow> {
    let mut pair = Pair::default();
    let agent = format!("command:{SCRIPT}");
    for round in 0..=rounds(tree).min(ROUNDS_MAX) {
        let launched = launcher.launch_agent(&tree.root, &agent, &[])?;
        // What the agent wrote down is the only thing in its commit.
        let ours = took(&git(tree, &["show", &format!("{}:took", launched.branch)])?)?;
        let (worktree, _) = Worktree::create(tree)?;
        ToolCommand::new(&worktree.path, "/bin/sh", &["-euc", SCRIPT]).read()?;
        let path = worktree.path.join("took");
        let text = fs::read_to_string(&path);
        let peer = took(&text.with_context(|| format!("read {}", path.display()))?)?;
        worktree.remove()?;
        if round > 0 {
            pair.add(ours, peer);
        }
    }
    Ok(measured(
        &format!("{}: first `git status` inside", tree.name),
        "first `git status` in a worktree",
        pair,
    ))
}

/// Reads what the script wrote down.
fn took(text: &str) -> anyhow::Result<Duration> {
    let nanoseconds = text.trim().parse().context("read how long git took")?;
    Ok(Duration::from_nanos(nanoseconds))
}
