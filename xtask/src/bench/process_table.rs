//! The processes below this one, and the memory they hold, as the kernel tells it.

use std::collections::BTreeSet;
use std::{fs, process};

use anyhow::Context as _;

/// One process, told from a later one with its number by its start.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pid: u32,
    parent: u32,
    /// When it started, in the kernel's ticks.
    began: String,
    pub(super) arguments: Vec<String>,
}

/// Returns every process of the machine.
pub(super) fn all() -> anyhow::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("list /proc")? {
        let name = entry.context("list /proc")?.file_name();
        if let Some(process) = name.to_str().and_then(|name| read(name.parse().ok()?)) {
            found.push(process);
        }
    }
    Ok(found)
}

/// Returns every process that this one started, and those they started.
pub(super) fn below_this_process() -> anyhow::Result<Vec<Process>> {
    let mut others = all()?;
    let mut below = BTreeSet::from([process::id()]);
    let mut found = Vec::new();
    loop {
        let (near, far): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|process| below.contains(&process.parent));
        if near.is_empty() {
            return Ok(found);
        }
        below.extend(near.iter().map(|process| process.pid));
        found.extend(near);
        others = far;
    }
}

/// Tells whether it runs still.
pub(super) fn is_alive(process: &Process) -> bool {
    read(process.pid).is_some_and(|found| found.began == process.began)
}

/// Returns the process with this number.
pub(super) fn find(pid: u32) -> Option<Process> {
    read(pid)
}

/// Returns a process's proportional share of memory; none of one that is ending.
pub(super) fn proportional_bytes(process: &Process) -> anyhow::Result<u64> {
    memory(process, "Pss:")
}

/// Returns how much of a process is in memory, shared or not.
pub(super) fn resident_bytes(process: &Process) -> anyhow::Result<u64> {
    memory(process, "Rss:")
}

/// Returns for how many of the kernel's ticks a process was on a processor so far.
pub(super) fn cpu_ticks(process: &Process) -> anyhow::Result<u64> {
    let path = format!("/proc/{}/stat", process.pid);
    let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    ticks(&stat).with_context(|| format!("find the times in {path}"))
}

/// Adds up the time in the program and the time in the kernel.
fn ticks(stat: &str) -> Option<u64> {
    let fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let times: Vec<u64> = fields
        .skip(11)
        .take(2)
        .map_while(|it| it.parse().ok())
        .collect();
    (times.len() == 2).then(|| times.iter().sum())
}

fn memory(process: &Process, name: &str) -> anyhow::Result<u64> {
    let path = format!("/proc/{}/smaps_rollup", process.pid);
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    kilobytes(&text, name).with_context(|| format!("find {name} in {path}"))
}

/// Returns how much memory the host could give to new programs.
pub(super) fn available_bytes() -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    kilobytes(&text, "MemAvailable:").context("find MemAvailable in /proc/meminfo")
}

/// Returns the bytes that stand, in kB, after a name.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = value.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// Reads one process; none when it is gone.
fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, brackets too; the fields begin after the last of them.
    let fields: Vec<&str> = stat
        .get(stat.rfind(')')? + 1..)?
        .split_whitespace()
        .collect();
    let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        began: (*fields.get(19)?).to_owned(),
        arguments: arguments
            .trim_end_matches('\0')
            .split('\0')
            .map(str::to_owned)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{kilobytes, ticks};

    #[test]
    fn kilobytes_are_read_by_name() {
        let text = "Rss:  20 kB\nPss:  12 kB\nPss_Dirty: 8 kB\n";
        assert_eq!(kilobytes(text, "Pss:"), Some(12 * 1024));
        assert_eq!(kilobytes(text, "Swap:"), None);
    }

    #[test]
    fn times_stand_after_a_name_of_any_kind() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 21 4 0 0 20 0 1 0 99 0 0";
        assert_eq!(ticks(stat), Some(25));
        assert_eq!(ticks("7 (a) S 1"), None);
    }
}
