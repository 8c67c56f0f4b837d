//! Programs beside programs: a sandboxed `true`, and a command that only looks.
//!
//! What is timed is what a person waits for: from before the process is started to its end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Context as _;

use super::sample::by_turns;
use super::table::{Finding, Gap, Row, Table};
use super::{Place, storage};
use crate::tool::{Repeated, Tool, find};

/// Rounds that count.
const ROUNDS: usize = 40;
/// Goals that `kapi status` finds.
const N_GOALS: usize = 20;
/// How `kapi` runs one program in its sandbox and nothing else.
const SANDBOXED_TRUE: &[&str] = &["__sandbox-run", "/bin/true"];
const BWRAP: &[&str] = &[
    "--unshare-all",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "true",
];
const IMAGE: &str = "localhost/kapi-bench:1";
/// The limits are stated because podman's own are higher than some hosts allow.
const PODMAN: &[&str] = &[
    "--runtime",
    "runc",
    "run",
    "--rm",
    "--network",
    "none",
    "--ulimit",
    "nofile=1024:1024",
    "--ulimit",
    "nproc=1024:1024",
    IMAGE,
    "/bin/true",
];

/// A program with its arguments.
#[derive(Debug, Clone, Copy)]
struct Invocation<'a> {
    program: &'a str,
    args: &'a [&'a str],
    directory: &'a Path,
}

/// Measures what a sandbox costs before anything runs in it.
pub(super) fn sandboxes(place: &Place) -> anyhow::Result<Table> {
    let directory = place.scratch.as_path();
    let kapi = place.kapi.to_string_lossy();
    let ours = Invocation {
        program: &kapi,
        args: SANDBOXED_TRUE,
        directory,
    };
    let bwrap = Invocation {
        program: "bwrap",
        args: BWRAP,
        directory,
    };
    let podman = Invocation {
        program: "podman",
        args: PODMAN,
        directory,
    };
    let shown = format!("`kapi {}`", SANDBOXED_TRUE.join(" "));
    let image = import_image(place);
    let rows = vec![
        compare((&shown, ours), ("`bwrap --unshare-all … true`", bwrap))?,
        match image {
            Ok(()) => compare(
                (&shown, ours),
                ("`podman run --network none … true`", podman),
            )?,
            Err(error) => not_run(&shown, "`podman run`", &format!("{error:#}"), Side::Peer),
        },
    ];
    Ok(Table {
        title: "A sandbox around `true`",
        note: "bubblewrap shows the whole host read-only; Kapi builds a minimal root, a private home and its own devices. podman starts an image with a static busybox on runc.",
        rows,
    })
}

/// Measures a command that only looks.
pub(super) fn commands(place: &Place) -> anyhow::Result<Table> {
    let project = place.scratch.join("project");
    make_project(&project)?;
    storage::fill_project(&project, N_GOALS)?;
    let directory = project.as_path();
    let kapi = place.kapi.to_string_lossy();
    let ours = (
        "`kapi status`",
        Invocation {
            program: &kapi,
            args: &["status"],
            directory,
        },
    );
    let git = Invocation {
        program: "git",
        args: &["--version"],
        directory,
    };
    let node = Invocation {
        program: "node",
        args: &["-e", "0"],
        directory,
    };
    let rows = vec![
        compare(ours, ("`git --version`", git))?,
        compare(ours, ("`node -e 0`", node))?,
    ];
    Ok(Table {
        title: "A command that only looks",
        note: "`kapi status` lists 20 goals. `git --version` is close to the cost of starting any process; `node -e 0` is what every agent written in JavaScript pays before its first line.",
        rows,
    })
}

/// Measures two programs, or says which of them cannot be run here.
fn compare(
    (ours_shown, ours): (&str, Invocation<'_>),
    (peer_shown, peer): (&str, Invocation<'_>),
) -> anyhow::Result<Row> {
    for (invocation, side) in [(ours, Side::Ours), (peer, Side::Peer)] {
        if let Err(error) = invocation.tool().read() {
            return Ok(not_run(ours_shown, peer_shown, &format!("{error:#}"), side));
        }
    }
    let mut ours = Repeated::new(ours.tool());
    let mut peer = Repeated::new(peer.tool());
    let pair = by_turns(ROUNDS, &mut || ours.time(), &mut || peer.time())?;
    let finding = Finding::Measured(pair);
    Ok(Row {
        ours: ours_shown.to_owned(),
        peer: peer_shown.to_owned(),
        finding,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Peer,
}

fn not_run(ours: &str, peer: &str, reason: &str, side: Side) -> Row {
    let name = if side == Side::Ours { ours } else { peer };
    // One line, and none of the table's own marks.
    let reason = reason.replace(['\n', '|'], " ");
    let gap = Gap {
        name: name.to_owned(),
        reason,
        is_ours: side == Side::Ours,
    };
    Row {
        ours: ours.to_owned(),
        peer: peer.to_owned(),
        finding: Finding::NotRun(gap),
    }
}

impl Invocation<'_> {
    fn tool(&self) -> Tool {
        Tool::new(self.directory, self.program, self.args)
    }
}

/// Makes the smallest image that can run `true`.
fn import_image(place: &Place) -> anyhow::Result<()> {
    let bin = place.scratch.join("image/bin");
    fs::create_dir_all(&bin).with_context(|| format!("create {}", bin.display()))?;
    let busybox = find("busybox").context("find busybox")?;
    fs::copy(&busybox, bin.join("busybox")).context("copy busybox")?;
    symlink("busybox", bin.join("true")).context("name busybox `true`")?;
    let archive = place.scratch.join("image.tar");
    let archive = archive.to_string_lossy();
    let directory = place.scratch.as_path();
    Tool::new(directory, "tar", &["-C", "image", "-cf", &archive, "."]).read()?;
    Tool::new(directory, "podman", &["import", &archive, IMAGE]).read()?;
    Ok(())
}

/// Makes a repository with one commit.
fn make_project(project: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(project).with_context(|| format!("create {}", project.display()))?;
    let git = |args: &[&str]| {
        Tool::new(project, "git", args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .read()
    };
    git(&["init", "--quiet", "--initial-branch=main"])?;
    let identity = [
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.invalid",
    ];
    git(&[
        &identity[..],
        &["commit", "--quiet", "--allow-empty", "--message=start"],
    ]
    .concat())?;
    Ok(())
}
