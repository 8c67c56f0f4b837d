//! All processes below one process, and what they use together.
//!
//! Reads `/proc` of the host. The numbers are of this moment: processes come and go while they are read.

use std::fs;

use rustix::process::Pid;

/// The most processes that are counted; a sandbox with more is over any sensible limit.
const PROCESSES_MAX: usize = 100_000;

/// The processes below a leader, itself included.
#[derive(Debug)]
pub(super) struct Family {
    members: Vec<i32>,
    /// Processes and threads, without the leader.
    pub n_tasks: u64,
    /// Memory of their own that is present, shared pages counted for each that shares them.
    pub resident_bytes: u64,
}

impl Family {
    /// Counts the family of a process.
    pub(super) fn of(leader: Pid) -> Self {
        let leader = leader.as_raw_nonzero().get();
        let mut family = Self {
            members: vec![leader],
            n_tasks: 0,
            resident_bytes: 0,
        };
        let mut index = 0;
        while let Some(pid) = family.members.get(index).copied() {
            index += 1;
            let threads = threads(pid);
            if pid != leader {
                family.n_tasks += u64::try_from(threads.len()).unwrap_or(u64::MAX);
            }
            family.resident_bytes += resident(pid);
            for thread in threads {
                family.members.extend(children(pid, thread));
            }
            family.members.truncate(PROCESSES_MAX);
        }
        family
    }

    /// Returns their memory with every shared page divided among those that share it. Slow.
    pub(super) fn proportional_bytes(&self) -> u64 {
        self.members.iter().map(|pid| proportional(*pid)).sum()
    }
}

fn threads(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let entries = entries.into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn children(pid: i32, thread: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"));
    let text = text.unwrap_or_default();
    text.split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// Returns the bytes of memory that are present and not a file's.
fn resident(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kibibytes(&text, "RssAnon:").saturating_add(kibibytes(&text, "RssShmem:"))
}

/// Returns the same with shared pages divided; of a process that may not be read, the quick count.
fn proportional(pid: i32) -> u64 {
    fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).map_or_else(
        |_| resident(pid),
        |text| kibibytes(&text, "Pss_Anon:").saturating_add(kibibytes(&text, "Pss_Shmem:")),
    )
}

/// Reads a `name: number kB` line; a process that is gone has none.
fn kibibytes(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let number = lines.next().and_then(|rest| rest.split_whitespace().next());
    let number: Option<u64> = number.and_then(|number| number.parse().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use rustix::process::getpid;

    use super::Family;

    #[test]
    fn the_memory_of_this_process_is_seen() {
        let before = Family::of(getpid()).resident_bytes;
        let hoard: Vec<u8> = (0..64 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
        let family = Family::of(getpid());
        assert!(family.members.contains(&getpid().as_raw_nonzero().get()));
        let grown = family.resident_bytes.saturating_sub(before);
        assert!(grown > 60 << 20, "{grown} with {}", hoard.len());
        assert!(family.proportional_bytes() > 60 << 20);
    }
}
