//! Where something was measured, when, from which commit, and with which versions.
//!
//! A machine is described by what explains its numbers, never by its name.

use std::path::Path;
use std::{fs, thread};

use anyhow::Context as _;
use kapi_store::timestamp;
use kapi_sys::clock::{Clock as _, SystemClock};

use crate::tool::ToolCommand;

/// The versions that matter, as the tools tell them.
const VERSIONS: &[(&str, &[&str])] = &[
    ("rustc", &["--version"]),
    ("git", &["--version"]),
    ("node", &["--version"]),
    ("bwrap", &["--version"]),
    ("podman", &["--version"]),
    ("runc", &["--version"]),
];

/// Returns when, from which commit, where and with which versions something is measured now: one
/// sentence.
pub(super) fn origin(root: &Path) -> anyhow::Result<String> {
    let today = timestamp::format_ms(SystemClock.now_ms());
    let today = today.split('T').next().unwrap_or_default();
    let commit = ToolCommand::new(root, "git", &["rev-parse", "--short", "HEAD"]).read()?;
    let cores = thread::available_parallelism().context("count the cores")?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    // What follows the first dash is the builder's own label.
    let kernel = kernel.trim().split('-').next().unwrap_or_default();
    let cpu = field(&read("/proc/cpuinfo")?, "model name");
    let memory = field(&read("/proc/meminfo")?, "MemTotal");
    let file_system = ToolCommand::new(root, "stat", &["-f", "-c", "%T", "."]).read()?;
    let mut facts = vec![
        format!("{cores} cores ({cpu})"),
        memory,
        format!("Linux {kernel}"),
        file_system.trim().to_owned(),
    ];
    for (program, args) in VERSIONS {
        let reported = ToolCommand::new(root, program, args).read();
        facts.push(match reported {
            Ok(reported) => format!("{program} {}", version(&reported)),
            Err(_) => format!("no {program}"),
        });
    }
    Ok(format!(
        "Measured on {today} at commit {}: {}.",
        commit.trim(),
        facts.join(", ")
    ))
}

/// Returns the first number with dots in what a program says of its version, without a leading `v`.
fn version(reported: &str) -> &str {
    let mut words = reported.split_whitespace();
    let number = words.find(|word| word.contains(|c: char| c.is_ascii_digit()));
    number.map_or("unknown", |word| word.trim_start_matches('v'))
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
