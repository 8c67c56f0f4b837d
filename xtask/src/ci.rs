//! The gate: what every commit passes, in an order that fails early and ends with the tests.
//!
//! The runner's own summary is the last thing printed. Knows no rule itself.

use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, bail};
use kapi_sys::shortage;

use crate::output::say;
use crate::tool::{ToolCommand, find};
use crate::{conformance, corpora, layers, peers, tidy, toolchain};

struct GateStep {
    name: &'static str,
    perform: fn(&Path) -> anyhow::Result<()>,
}

const STEPS: &[GateStep] = &[
    GateStep {
        name: "disk",
        perform: disk,
    },
    GateStep {
        name: "peers",
        perform: peers::ensure_for_tests,
    },
    GateStep {
        name: "format",
        perform: format,
    },
    GateStep {
        name: "tidy",
        perform: tidy::run,
    },
    GateStep {
        name: "layers",
        perform: layers::run,
    },
    GateStep {
        name: "conformance",
        perform: conformance::check,
    },
    GateStep {
        name: "clippy",
        perform: clippy,
    },
    GateStep {
        name: "documentation",
        perform: documentation,
    },
    GateStep {
        name: "build",
        perform: build,
    },
    GateStep {
        name: "cheats",
        perform: cheats,
    },
    GateStep {
        name: "integration",
        perform: integration,
    },
];

/// Runs every step and stops at the first that fails.
///
/// # Errors
/// When a step fails, naming it.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let started = Instant::now();
    for step in STEPS {
        say(&format!("== {}", step.name));
        let begun = Instant::now();
        (step.perform)(root).with_context(|| format!("pass the step `{}`", step.name))?;
        say(&format!(
            "== {}: passed in {:.1} s",
            step.name,
            begun.elapsed().as_secs_f64()
        ));
    }
    say(&format!(
        "== tests (everything else took {:.1} s)",
        started.elapsed().as_secs_f64()
    ));
    test(root, &[]).context("pass the step `tests`")
}

/// Runs the tests, with nextest where it is installed; nothing is printed after its summary.
///
/// # Errors
/// When a test fails.
pub(crate) fn test(root: &Path, filter: &[&str]) -> anyhow::Result<()> {
    let threads = test_threads().to_string();
    let runner: &[&str] = if find("cargo-nextest").is_some() {
        &[
            "nextest",
            "run",
            "--locked",
            "--workspace",
            "--profile",
            "ci",
            "--test-threads",
            &threads,
        ]
    } else {
        // There are no documentation tests, which a tidy rule makes sure of.
        &[
            "test",
            "--locked",
            "--workspace",
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
        ]
    };
    cargo(root, &[runner, filter].concat()).run()
}

/// Returns how many tests run at once: half of a test's time is waiting for a disk or another process.
fn test_threads() -> usize {
    2 * thread::available_parallelism().map_or(1, NonZero::get)
}

/// What has to be free on disk, in bytes: a warm build writes this much beside what the tests need for a moment.
const FREE_BYTES_MIN: u64 = 4 << 30;

/// A full disk fails tests in fifty ways, none of which names it first.
fn disk(root: &Path) -> anyhow::Result<()> {
    let free = shortage::free_bytes(root).context("find how much of the disk is free")?;
    if free < FREE_BYTES_MIN {
        let [free, needed] = [free, FREE_BYTES_MIN].map(|bytes| bytes >> 20);
        bail!(
            "{free} MiB are free at {}, and {needed} are needed. Free some: `cargo clean` removes all \
             that earlier builds left there",
            root.display()
        );
    }
    Ok(())
}

fn format(root: &Path) -> anyhow::Result<()> {
    cargo(root, &["xfmt", "--check"]).run()
}

fn clippy(root: &Path) -> anyhow::Result<()> {
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
        "--",
    ];
    let warnings = toolchain::warnings(root)?;
    cargo(root, &[&args[..], warnings.flags()].concat()).run()
}

/// Builds what the tests are made of, so that the steps after it share one build: a build of one package
/// has other features of what it depends on, and compiles nearly everything once more.
fn build(root: &Path) -> anyhow::Result<()> {
    cargo(root, &["build", "--workspace", "--all-targets", "--locked"]).run()
}

/// The part of the corpus that has every ecosystem in it; the whole is a command of its own.
fn cheats(root: &Path) -> anyhow::Result<()> {
    let kapi = corpora::target_directory(root)?.join("debug").join("kapi");
    corpora::cheats::run(root, &["--quick", "--kapi", &kapi.to_string_lossy()])
}

/// The part of the corpus that has every kind of repository in it, made up from a new seed.
fn integration(root: &Path) -> anyhow::Result<()> {
    corpora::integration::run(root, &["--quick"])
}

fn documentation(root: &Path) -> anyhow::Result<()> {
    let args = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
        "--quiet",
    ];
    let warnings = toolchain::warnings(root)?;
    cargo(root, &args)
        .env("RUSTDOCFLAGS", warnings.flags().join(" "))
        .run()
}

fn cargo(root: &Path, args: &[&str]) -> ToolCommand {
    ToolCommand::new(root, "cargo", args)
}
