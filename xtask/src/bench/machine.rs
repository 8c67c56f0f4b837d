//! The document around the tables: how it was made, where, and with which versions.
//!
//! A machine is described by what explains its numbers, never by its name.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, thread};

use anyhow::Context as _;
use kapi_store::timestamp;
use kapi_sys::clock::{Clock as _, SystemClock};

use super::table::ComparisonTable;
use crate::tool::ToolCommand;

const HEAD: &str = "\
# Performance

Written by `cargo xtask bench`; do not edit.

Each line was measured by turns (ours, peer, ours, peer …) in one run, after warm-up rounds that do not count.
Numbers are p50 · p99 (min to max).
The ratio is the median (min to max) of the rounds' own ratios; below 1 we are faster.
Absolute times belong to the machine; compare ratios.
";

/// The versions that matter, as the tools tell them.
const VERSIONS: &[(&str, &[&str])] = &[
    ("rustc", &["--version"]),
    ("git", &["--version"]),
    ("node", &["--version"]),
    ("bwrap", &["--version"]),
    ("podman", &["--version"]),
    ("runc", &["--version"]),
];

/// Returns the whole document.
pub(super) fn document(root: &Path, tables: &[ComparisonTable]) -> anyhow::Result<String> {
    let mut text = HEAD.to_owned();
    write_facts(&mut text, root)?;
    for table in tables {
        table.render(&mut text)?;
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(text)
}

fn write_facts(text: &mut String, root: &Path) -> anyhow::Result<()> {
    let today = timestamp::format_ms(SystemClock.now_ms());
    let today = today.split('T').next().unwrap_or_default();
    let cores = thread::available_parallelism().context("count the cores")?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    // What follows the first dash is the builder's own label.
    let kernel = kernel.trim().split('-').next().unwrap_or_default();
    let cpu = field(&read("/proc/cpuinfo")?, "model name");
    let memory = field(&read("/proc/meminfo")?, "MemTotal");
    let file_system = ToolCommand::new(root, "stat", &["-f", "-c", "%T", "."]).read()?;
    writeln!(text, "\n| | |\n|---|---|")?;
    writeln!(text, "| date | {today} |")?;
    writeln!(text, "| processor | {cores} cores, {cpu} |")?;
    writeln!(text, "| memory | {memory} |")?;
    writeln!(text, "| kernel | Linux {kernel} |")?;
    writeln!(text, "| file system | {} |", file_system.trim())?;
    for (program, args) in VERSIONS {
        let reported = ToolCommand::new(root, program, args).read();
        let version = reported.as_deref().map_or("not installed", |reported| {
            reported.lines().next().unwrap_or("")
        });
        writeln!(text, "| {program} | {version} |")?;
    }
    writeln!(text)?;
    Ok(())
}

fn read(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {path}"))
}

/// Returns what stands after `name:` in a file of the kernel.
fn field(text: &str, name: &str) -> String {
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    });
    value.unwrap_or("unknown").to_owned()
}
