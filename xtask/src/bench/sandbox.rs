//! One sandbox around `true`: ours, bubblewrap's, podman's, and none at all.
//!
//! What is timed is what a person waits for: from before the program is started to its end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::comparison::{Side, compare, gap, measured, not_run};
use super::ground::Ground;
use super::invocation::Invocation;
use super::process_table::{self, Process};
use super::sample::{Pair, by_turns};
use super::table::{ComparisonRow, ComparisonTable, Quantity};
use super::{BenchDirectory, walls};
use crate::tool::{ToolCommand, find};

/// Rounds that count, of what takes milliseconds.
const ROUNDS: usize = 200;
/// Rounds that count, of what takes longer.
const SLOW_ROUNDS: usize = 25;
/// The longest that podman is given to tidy up, and how often it is looked at.
const TIDY_PATIENCE: Duration = Duration::from_secs(5);
const TIDY_PAUSE: Duration = Duration::from_millis(5);
pub(super) const IMAGE: &str = "localhost/kapi-bench:1";
/// Runtime, manager and limits are stated because podman's own choice fails on some hosts.
const PODMAN: &[&str] = &[
    "--runtime",
    "runc",
    "--cgroup-manager",
    "cgroupfs",
    "run",
    "--rm",
    "--ulimit",
    "nofile=1024:2048",
    "--ulimit",
    "nproc=1000:1000",
];
/// The cheapest podman: without a network to the outside, as ours is here.
const NO_NETWORK: &[&str] = &["--network", "none"];
const BWRAP: &[&str] = &[
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
];
pub(super) const TRUE: &str = "/bin/true";

/// Measures what a sandbox costs before anything runs in it.
pub(super) fn alone(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let ground = Ground::new(&location.scratch, 0)?;
    let directory = ground.directory.join("sandbox");
    let lower = lower(&directory)?;
    let bare = kapi(location, None, &[TRUE]);
    let full = kapi(location, Some(&Overlay::new(&lower, &directory)?), &[TRUE]);
    let bwrap = bwrap(location, &[TRUE]);
    let direct = Invocation::new("`true` alone", &directory, TRUE, &[]);
    let mut rows = vec![
        compare(ROUNDS, &full, &bwrap)?,
        compare(ROUNDS, &bare, &bwrap)?,
        compare(ROUNDS, &full, &direct)?,
    ];
    rows.push(from_living_process(location, &full, &bwrap, &directory)?);
    rows.push(beside_podman(location, &full, &podman(location, &[TRUE]))?);
    rows.push(beside_podman(
        location,
        &full,
        &podman_as_typed(location, &[TRUE]),
    )?);
    Ok(ComparisonTable {
        title: "A sandbox around `true`",
        note: format!(
            "From the start of the command to its end. Ours is the native level with all its layers: seven namespaces, a minimal root, private home, temporary files and devices, Landlock, seccomp, and where it says so a copy-on-write workspace. bubblewrap shows the whole host read-only and has neither workspace nor filter. Each is over when its program is and no process of the sandbox lives; the mounts of ours and of bubblewrap's go a moment later, in the kernel. None of them has a network to the outside but podman as a person types it, in the last line. podman starts an image with a static busybox on runc; it goes on tidying up after its end, which is waited for and counted for neither. Layers lie apart: {}",
            ground.note()
        ),
        quantity: Quantity::Time,
        rows,
    })
}

/// Measures both as a program sees them that runs one sandbox after the other: its own start is
/// counted for neither.
fn from_living_process(
    location: &BenchDirectory,
    full: &Invocation,
    bwrap: &Invocation,
    directory: &Path,
) -> anyhow::Result<ComparisonRow> {
    let shown = format!("{}, from a program that runs on", full.shown);
    let Some(binary) = find("bwrap") else {
        return Ok(not_run(&shown, &bwrap.shown, "not found", Side::Peer));
    };
    let overlay = Overlay::of(&directory.join("lower"), directory);
    let [lower, upper, work, binary] =
        [&overlay.lower, &overlay.upper, &overlay.work, &binary].map(|path| path.to_string_lossy());
    let rounds = ROUNDS.to_string();
    let mut args = vec!["--overlay", &lower, &upper, &work];
    args.extend(["--repeat", &rounds, "--peer", &binary]);
    args.extend(BWRAP.iter().chain(&[TRUE, "--", TRUE]));
    let reported = walls::invocation(&shown, location, &args).read()?;
    let mut pair = Pair::default();
    for line in reported.lines() {
        let (ours, peer) = line.split_once(' ').context("read two times")?;
        let time = |text: &str| text.parse().map(Duration::from_micros);
        pair.add(time(ours)?, time(peer)?);
    }
    Ok(measured(&shown, &bwrap.shown, pair))
}

fn beside_podman(
    location: &BenchDirectory,
    full: &Invocation,
    podman: &Invocation,
) -> anyhow::Result<ComparisonRow> {
    if let Err(error) = import_image(location) {
        let reason = format!("{error:#}");
        return Ok(not_run(&full.shown, &podman.shown, &reason, Side::Peer));
    }
    if let Some(row) = gap(full, podman) {
        return Ok(row);
    }
    let (mut ours, mut peer) = (full.repeated(), podman.repeated());
    let mut alone = || {
        await_podman()?;
        ours.time()
    };
    let pair = by_turns(SLOW_ROUNDS, &mut alone, &mut || peer.time())?;
    Ok(measured(&full.shown, &podman.shown, pair))
}

/// Waits until podman has tidied up, which it does for a tenth of a second after `podman run` has ended.
///
/// Counted for neither: without this it would be counted for whoever comes next. Where it has no end,
/// somebody else's containers come and go, and measuring goes on.
fn await_podman() -> anyhow::Result<()> {
    let until = Instant::now() + TIDY_PATIENCE;
    let is_tidying = |process: &Process| {
        let word = |wanted: &str| process.arguments.iter().any(|word| word.ends_with(wanted));
        word("podman") && word("cleanup")
    };
    while process_table::all()?.iter().any(is_tidying) && Instant::now() < until {
        sleep(TIDY_PAUSE);
    }
    Ok(())
}

/// A workspace of a measured sandbox.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) lower: PathBuf,
    pub(super) upper: PathBuf,
    pub(super) work: PathBuf,
}

impl Overlay {
    /// Makes an empty layer in `directory`.
    pub(super) fn new(lower: &Path, directory: &Path) -> anyhow::Result<Self> {
        let overlay = Self::of(lower, directory);
        for part in [&overlay.upper, &overlay.work] {
            fs::create_dir_all(part).with_context(|| format!("create {}", part.display()))?;
        }
        Ok(overlay)
    }

    /// Names the parts of a layer that is in `directory`.
    pub(super) fn of(lower: &Path, directory: &Path) -> Self {
        Self {
            lower: lower.to_path_buf(),
            upper: directory.join("upper"),
            work: directory.join("work"),
        }
    }
}

/// Makes a directory to lay a workspace over.
pub(super) fn lower(directory: &Path) -> anyhow::Result<PathBuf> {
    let lower = directory.join("lower");
    fs::create_dir_all(&lower).with_context(|| format!("create {}", lower.display()))?;
    Ok(lower)
}

/// Names a program in a native sandbox of ours.
pub(super) fn kapi(
    location: &BenchDirectory,
    overlay: Option<&Overlay>,
    command: &[&str],
) -> Invocation {
    let parts = overlay.map(|Overlay { lower, upper, work }| {
        [lower, upper, work].map(|path| path.to_string_lossy().into_owned())
    });
    let mut args = Vec::new();
    if let Some(parts) = &parts {
        args.push("--overlay");
        args.extend(parts.iter().map(String::as_str));
    }
    args.push("--");
    args.extend(command);
    let shown = if overlay.is_some() {
        "`kapi`, native, with a workspace"
    } else {
        "`kapi`, native"
    };
    walls::invocation(shown, location, &args)
}

/// Names a program in a sandbox of bubblewrap's.
pub(super) fn bwrap(location: &BenchDirectory, command: &[&str]) -> Invocation {
    let args = [BWRAP, &["--"], command].concat();
    Invocation::new("`bwrap --unshare-all`", &location.scratch, "bwrap", &args)
}

/// Names a program in a container of podman's, without a network to the outside.
pub(super) fn podman(location: &BenchDirectory, command: &[&str]) -> Invocation {
    let args = [PODMAN, NO_NETWORK, &[IMAGE], command].concat();
    Invocation::new(
        "`podman run --network none`",
        &location.scratch,
        "podman",
        &args,
    )
}

/// The same as a person types it, with the network that podman gives.
fn podman_as_typed(location: &BenchDirectory, command: &[&str]) -> Invocation {
    let args = [PODMAN, &[IMAGE], command].concat();
    Invocation::new("`podman run`", &location.scratch, "podman", &args)
}

/// Makes the smallest image that can run `true`, once.
pub(super) fn import_image(location: &BenchDirectory) -> anyhow::Result<()> {
    let archive = location.scratch.join("image.tar");
    if archive.exists() {
        return Ok(());
    }
    let bin = location.scratch.join("image/bin");
    fs::create_dir_all(&bin).with_context(|| format!("create {}", bin.display()))?;
    let busybox = find("busybox").context("find busybox")?;
    fs::copy(&busybox, bin.join("busybox")).context("copy busybox")?;
    for name in ["true", "sh", "sleep"] {
        symlink("busybox", bin.join(name)).with_context(|| format!("name busybox `{name}`"))?;
    }
    let directory = location.scratch.as_path();
    ToolCommand::new(directory, "tar", &["-C", "image", "-cf", "image.part", "."]).read()?;
    ToolCommand::new(directory, "podman", &["import", "image.part", IMAGE]).read()?;
    fs::rename(directory.join("image.part"), &archive).context("keep the image's archive")
}
