//! The system's table of processes, as `/proc` shows it: descendants and ancestors.
//!
//! A snapshot, never the truth: processes come and go while it is read. Whoever acts on an entry
//! holds its pidfd, taken before the entry was read for the second time.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::AncestorProcess;

/// Generations looked at, downwards and upwards; deeper trees than this do not occur.
const GENERATIONS_MAX: usize = 1024;
/// The most that is read of one process's environment.
const ENVIRON_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessEntry {
    pid: Pid,
    parent: i32,
    session: i32,
    /// Ticks since boot; together with the pid it names one process for ever.
    start: u64,
    /// It has not ended; one that has may be in the table until its parent asks for its end.
    is_live: bool,
}

/// A process that descends from another or is in its session.
#[derive(Debug)]
pub(super) struct FamilyMember {
    pid: Pid,
    start: u64,
    /// Names exactly this process.
    pub(super) pidfd: OwnedFd,
}

impl FamilyMember {
    /// Tells whether both are one process.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }
}

/// Returns the live processes below `leader` or in its session, without `leader`.
pub(super) fn family(leader: Pid) -> Vec<FamilyMember> {
    let table = table();
    let mut pids = BTreeSet::from([leader.as_raw_pid()]);
    for _ in 0..GENERATIONS_MAX {
        let known = pids.len();
        for entry in &table {
            if entry.session == leader.as_raw_pid() || pids.contains(&entry.parent) {
                pids.insert(entry.pid.as_raw_pid());
            }
        }
        if pids.len() == known {
            break;
        }
    }
    let members = table.iter().filter(|entry| entry.pid != leader);
    members
        .filter(|e| pids.contains(&e.pid.as_raw_pid()))
        .filter_map(hold)
        .collect()
}

/// Returns this process and its ancestors, nearest first, as far as `/proc` lets us see.
pub(super) fn ancestors() -> Vec<AncestorProcess> {
    let mut chain = Vec::new();
    let mut next = Some(getpid());
    while let Some(pid) = next
        && chain.len() < GENERATIONS_MAX
    {
        let raw = pid.as_raw_pid();
        chain.push(AncestorProcess {
            pid: raw.unsigned_abs(),
            environ: environ(pid),
            exe: fs::read_link(format!("/proc/{raw}/exe")).ok(),
        });
        next = entry(pid).and_then(|entry| Pid::from_raw(entry.parent));
    }
    chain
}

/// Returns when a live process was started, in ticks since boot; nothing if it has ended.
pub(super) fn started_ticks(pid: Pid) -> Option<u64> {
    entry(pid)
        .filter(|entry| entry.is_live)
        .map(|entry| entry.start)
}

/// Opens a pidfd for the live process of this number that was started then; nothing if it has
/// ended.
pub(super) fn hold_live(pid: Pid, start: u64) -> Option<OwnedFd> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    (started_ticks(pid) == Some(start)).then_some(pidfd)
}

/// Opens a pidfd for exactly the process the entry was read from; nothing if it is gone.
fn hold(seen: &ProcessEntry) -> Option<FamilyMember> {
    let pidfd = pidfd_open(seen.pid, PidfdFlags::empty()).ok()?;
    let now = entry(seen.pid)?;
    (now.start == seen.start).then_some(FamilyMember {
        pid: seen.pid,
        start: seen.start,
        pidfd,
    })
}

fn table() -> Vec<ProcessEntry> {
    let Ok(directory) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = directory.filter_map(|item| item.ok()?.file_name().to_str()?.parse().ok());
    names.filter_map(Pid::from_raw).filter_map(entry).collect()
}

fn entry(pid: Pid) -> Option<ProcessEntry> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&stat))
}

/// Parses `/proc/<pid>/stat`. The command name may hold anything, also parentheses and newlines.
fn parse_stat(pid: Pid, stat: &str) -> Option<ProcessEntry> {
    const STATE: usize = 0;
    const PARENT: usize = 1;
    const SESSION: usize = 3;
    const START: usize = 19;
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    Some(ProcessEntry {
        pid,
        parent: fields.get(PARENT)?.parse().ok()?,
        session: fields.get(SESSION)?.parse().ok()?,
        start: fields.get(START)?.parse().ok()?,
        is_live: !matches!(*fields.get(STATE)?, "Z" | "X"),
    })
}

fn environ(pid: Pid) -> Option<Vec<u8>> {
    let path = PathBuf::from(format!("/proc/{}/environ", pid.as_raw_pid()));
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(ENVIRON_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::{ProcessEntry, parse_stat};

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let pid = Pid::from_raw(42).unwrap();
        let stat = "42 (a) 1 (b\n) S 7 42 9 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 10 5";
        let expected = ProcessEntry {
            pid,
            parent: 7,
            session: 9,
            start: 987_654,
            is_live: true,
        };
        assert_eq!(parse_stat(pid, stat), Some(expected));
        let ended = parse_stat(pid, &stat.replace(" S ", " Z ")).unwrap();
        assert!(
            !ended.is_live,
            "one that only waits to be asked about has ended"
        );
    }

    #[test]
    fn a_cut_line_is_no_entry() {
        let pid = Pid::from_raw(42).unwrap();
        assert_eq!(parse_stat(pid, "42 (a) S 7 42"), None);
        assert_eq!(parse_stat(pid, ""), None);
    }
}
