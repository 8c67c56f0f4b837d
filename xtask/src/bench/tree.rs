//! Repositories of different sizes, and what a workspace over each of them costs.
//!
//! Every tree is made, measured and removed before the next one is made, and a person is told how
//! long that takes.

mod inside;
pub(super) mod integrate;
mod layered;
mod make;
mod worktree;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use self::layered::LayeredBranch;
use self::worktree::Worktree;
use super::comparison::measured;
use super::ground::Ground;
use super::launcher::{Launcher, remove_all};
use super::options::size_name;
use super::sample::{Pair, by_turns};
use super::sandbox::{self, Overlay, TRUE};
use super::table::{ComparisonRow, ComparisonTable, Quantity};
use super::{BenchDirectory, launch};
use crate::output::talk;
use crate::tool::ToolCommand;

/// Files that one workspace's work changes.
const N_CHANGED: usize = 10;
/// Changes that are taken out of a layer: changed, new and deleted files.
const EXTRACTED: Changes = Changes {
    n_changed: 60,
    n_new: 20,
    n_deleted: 20,
};
const START_ROUNDS: usize = 100;
const EXTRACT_ROUNDS: usize = 20;

/// A repository of which everything is checked out and committed.
#[derive(Debug)]
pub(super) struct BenchRepository {
    pub(super) name: String,
    pub(super) n_files: u32,
    pub(super) root: PathBuf,
    /// Where what is made of it goes.
    pub(super) beside: PathBuf,
}

/// How many files a work changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Changes {
    pub(super) n_changed: usize,
    pub(super) n_new: usize,
    pub(super) n_deleted: usize,
}

/// The rows of all trees, table by table.
#[derive(Debug, Default)]
struct TreeRows {
    starts: Vec<ComparisonRow>,
    workspaces: Vec<ComparisonRow>,
    extractions: Vec<ComparisonRow>,
    first_status: Vec<ComparisonRow>,
    launches: Vec<ComparisonRow>,
}

/// Measures workspaces over trees of these sizes.
pub(super) fn compare(
    location: &BenchDirectory,
    sizes: &[u32],
) -> anyhow::Result<Vec<ComparisonTable>> {
    let mut rows = TreeRows::default();
    let largest = sizes.iter().max().copied().unwrap_or_default();
    let ground = Ground::new(&location.scratch, largest)?;
    let directory = ground.directory.clone();
    let (smallest, others) = sizes.split_first().context("find the smallest tree")?;
    let smallest = made(&directory.join("smallest"), *smallest)?;
    let launcher = Launcher::new(location, &directory)?;
    measure(&launcher, &smallest, &mut rows)?;
    for n_files in others {
        let tree = made(&directory.join("larger"), *n_files)?;
        measure(&launcher, &tree, &mut rows)?;
        rows.starts.push(start(location, &tree, &smallest)?);
        let (name, least) = (&tree.name, &smallest.name);
        let row = launch::over(&launcher, name, &tree.root, least, &smallest.root)?;
        rows.launches.push(row);
        remove_all(&tree.beside)?;
    }
    launcher.remove()?;
    remove_all(&smallest.beside)?;
    Ok(tables(rows, &ground))
}

fn tables(rows: TreeRows, ground: &Ground) -> Vec<ComparisonTable> {
    let table = |title, note: &str, rows| ComparisonTable {
        title,
        note: format!("{note} {}", ground.note()),
        quantity: Quantity::Time,
        rows,
    };
    let tables = vec![
        table(
            "A sandbox over trees of different sizes",
            "Start to exit of `true` in a native sandbox whose workspace is a copy-on-write view of the tree. A ratio near 1 means that the size costs nothing.",
            rows.starts,
        ),
        table(
            "A workspace with a branch of its own",
            "Ours is the time inside the program for finding the repository and the files of its commit, taking a layer and making the branch; the mount is part of every sandbox's start above, and the view of the repository that git reads inside is part of a whole launch below. The commit is built from the layer after ten files were changed in a sandbox; the peer changes the same files in a new worktree, then runs `git add -A` and `git commit`. Both trees were compared and are the same. Of workspaces on one commit the first, which is not counted, also makes the files of the commit, and the file that later branches are names of; the next commit's files cost what changed in it, and an index of all. Of a peer that takes seconds, few rounds are run.",
            rows.workspaces,
        ),
        table(
            "What changed",
            "A hundred changes (60 changed, 20 new, 20 deleted files) found in a layer, the third of three walks in one program, beside `git status` in a warm worktree with the same changes.",
            rows.extractions,
        ),
        table(
            "The first `git status`",
            "Ours is run by the agent of a launch on a branch, in its view of the repository; the peer in a worktree that was just made. Timed around git by the same shell script.",
            rows.first_status,
        ),
        table(
            "A whole launch over trees of different sizes",
            "`kapi launch` on a branch at the native level, with an agent of one line: from the start of the command to its end, the view of the repository included. Launches after the first on a commit.",
            rows.launches,
        ),
    ];
    // With one tree alone, nothing is compared between trees.
    let has_rows = |table: &ComparisonTable| !table.rows.is_empty();
    tables.into_iter().filter(has_rows).collect()
}

fn measure(
    launcher: &Launcher<'_>,
    tree: &BenchRepository,
    rows: &mut TreeRows,
) -> anyhow::Result<()> {
    talk(&format!("Measuring the tree of {} files …", tree.name));
    let location = launcher.location();
    rows.workspaces.extend(workspaces(location, tree)?);
    rows.extractions.push(extraction(location, tree)?);
    rows.first_status
        .push(inside::first_status(launcher, tree)?);
    Ok(())
}

/// Returns how many rounds of a peer are run that does something for every file.
pub(super) fn rounds(tree: &BenchRepository) -> usize {
    match tree.n_files {
        ..5_000 => 11,
        5_000..50_000 => 5,
        50_000..200_000 => 3,
        200_000.. => 1,
    }
}

fn workspaces(
    location: &BenchDirectory,
    tree: &BenchRepository,
) -> anyhow::Result<Vec<ComparisonRow>> {
    let [mut create, mut commit, mut copy, mut further] = [(); 4].map(|()| Pair::default());
    // One round warms both up.
    for round in 0..=rounds(tree) {
        let layered = LayeredBranch::new(location, tree, &format!("{}-{round}", tree.name));
        settle(tree)?;
        let created = layered.create()?;
        settle(tree)?;
        let (worktree, added) = Worktree::create(tree)?;
        layered.change(&Changes::only_changed())?;
        worktree.change(&Changes::only_changed())?;
        settle(tree)?;
        let committed = layered.commit(N_CHANGED)?;
        settle(tree)?;
        let frozen = layered.freeze()?;
        settle(tree)?;
        let (taken, peer_tree) = worktree.commit()?;
        ensure!(
            layered.tree()? == peer_tree,
            "commit the same tree in both ways"
        );
        layered.remove()?;
        worktree.remove()?;
        let copied = copied(tree)?;
        if round > 0 {
            create.add(created, added);
            commit.add(created + committed, added + taken);
            copy.add(created, copied);
            further.add(frozen, added);
        }
    }
    let name = &tree.name;
    Ok(vec![
        measured(
            &format!("{name}: a branch's workspace"),
            "`git worktree add`",
            create,
        ),
        measured(&format!("{name}: a branch's workspace"), "`cp -a`", copy),
        measured(
            &format!("{name}: the files of a commit with ten changes"),
            "`git worktree add`",
            further,
        ),
        measured(
            &format!("{name}: a branch's workspace and a commit of ten changes"),
            "`git worktree add`, `git add -A`, `git commit`",
            commit,
        ),
    ])
}

/// Lets the disk write what was done before: whoever syncs next would pay for it.
///
/// Twice, because the first call ends by handing what describes the files to the device, and on a file
/// system in a file that is only the next sync's work: more of it the larger the tree that a peer made
/// or removed before.
fn settle(tree: &BenchRepository) -> anyhow::Result<()> {
    let beside = tree.beside.to_string_lossy();
    for _ in 0..2 {
        ToolCommand::new(&tree.beside, "sync", &["-f", &beside]).read()?;
    }
    Ok(())
}

fn copied(tree: &BenchRepository) -> anyhow::Result<Duration> {
    let to = tree.beside.join("copy");
    let (from, to) = (tree.root.to_string_lossy(), to.to_string_lossy());
    let started = Instant::now();
    ToolCommand::new(&tree.beside, "cp", &["-a", &from, &to]).read()?;
    let took = started.elapsed();
    ToolCommand::new(&tree.beside, "rm", &["-rf", &to]).read()?;
    Ok(took)
}

fn extraction(location: &BenchDirectory, tree: &BenchRepository) -> anyhow::Result<ComparisonRow> {
    let layered = LayeredBranch::new(location, tree, &format!("{}-extract", tree.name));
    layered.create()?;
    layered.change(&EXTRACTED)?;
    let (worktree, _) = Worktree::create(tree)?;
    worktree.change(&EXTRACTED)?;
    let expected = EXTRACTED.total();
    let pair = by_turns(
        EXTRACT_ROUNDS,
        &mut || layered.extract(expected),
        &mut || worktree.status(expected),
    )?;
    layered.remove()?;
    worktree.remove()?;
    Ok(measured(
        &format!("{}: 100 changes of a layer", tree.name),
        "`git status --porcelain`",
        pair,
    ))
}

/// Compares the start of a sandbox over two trees.
fn start(
    location: &BenchDirectory,
    tree: &BenchRepository,
    smallest: &BenchRepository,
) -> anyhow::Result<ComparisonRow> {
    let over = |tree: &BenchRepository| -> anyhow::Result<_> {
        let overlay = Overlay::new(&tree.root, &tree.beside.join("start"))?;
        Ok(sandbox::kapi(location, Some(&overlay), &[TRUE]).repeated())
    };
    let (mut ours, mut peer) = (over(tree)?, over(smallest)?);
    let pair = by_turns(START_ROUNDS, &mut || ours.time(), &mut || peer.time())?;
    Ok(measured(
        &format!("over {} files", tree.name),
        &format!("over {} files", smallest.name),
        pair,
    ))
}

fn made(directory: &Path, n_files: u32) -> anyhow::Result<BenchRepository> {
    let name = size_name(n_files);
    talk(&format!("Making a tree of {name} files …"));
    let started = Instant::now();
    let tree = BenchRepository {
        root: directory.join("project"),
        beside: directory.to_path_buf(),
        n_files,
        name,
    };
    fs::create_dir_all(&tree.root).with_context(|| format!("create {}", tree.root.display()))?;
    make::make(&tree)?;
    let seconds = started.elapsed().as_secs_f64();
    talk(&format!("It took {seconds:.1} s."));
    Ok(tree)
}

impl Changes {
    fn only_changed() -> Self {
        Self {
            n_changed: N_CHANGED,
            n_new: 0,
            n_deleted: 0,
        }
    }

    fn total(&self) -> usize {
        self.n_changed + self.n_new + self.n_deleted
    }
}
