//! Which file of a group holds which limit, and which one tells that it was hit.
//!
//! Knows both generations of the interface and nothing of where groups are.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use super::{CgroupVersion, Controller, write};
use crate::status::StepFailure;

/// Processes of ours that are in the group too: launcher and leader.
const OWN_PROCESSES: u64 = 2;
/// Over how many microseconds the time of processors is counted.
const PERIOD_MICROS: u64 = 100_000;
/// Microseconds of a period for a thousandth of a processor.
const MICROS_PER_MILLI: u64 = PERIOD_MICROS / 1_000;
/// The least the kernel accepts.
const QUOTA_MICROS_MIN: u64 = 1_000;

/// Sets the limit of one controller.
pub(super) fn set(
    group: &Path,
    controller: Controller,
    version: CgroupVersion,
    value: u64,
) -> Result<(), StepFailure> {
    let put = |file: &str, value: &str| write(&group.join(file), value);
    let quota = value.saturating_mul(MICROS_PER_MILLI).max(QUOTA_MICROS_MIN);
    match (controller, version) {
        (Controller::Memory, CgroupVersion::One) => {
            put("memory.limit_in_bytes", &value.to_string())?;
            where_known(put("memory.memsw.limit_in_bytes", &value.to_string()))
        }
        (Controller::Memory, CgroupVersion::Two) => {
            put("memory.max", &value.to_string())?;
            where_known(put("memory.swap.max", "0"))
        }
        (Controller::Processes, CgroupVersion::One | CgroupVersion::Two) => {
            let count = value.saturating_add(OWN_PROCESSES);
            put("pids.max", &count.to_string())
        }
        (Controller::Processor, CgroupVersion::One) => {
            put("cpu.cfs_period_us", &PERIOD_MICROS.to_string())?;
            put("cpu.cfs_quota_us", &quota.to_string())
        }
        (Controller::Processor, CgroupVersion::Two) => {
            put("cpu.max", &format!("{quota} {PERIOD_MICROS}"))
        }
    }
}

/// A kernel that does not count swapped memory has no file for it; then there is nothing to limit.
fn where_known(written: Result<(), StepFailure>) -> Result<(), StepFailure> {
    match written {
        Err(failure) if failure.errno == Errno::NOENT.raw_os_error() => Ok(()),
        other => other,
    }
}

/// Tells whether a controller had to refuse something: a process killed for memory, a fork that failed.
/// Time of processors is never refused, only delayed.
pub(super) fn was_hit(group: &Path, controller: Controller, version: CgroupVersion) -> bool {
    let (file, key) = match (controller, version) {
        (Controller::Memory, CgroupVersion::One) => ("memory.oom_control", "oom_kill"),
        (Controller::Memory, CgroupVersion::Two) => ("memory.events", "oom_kill"),
        (Controller::Processes, CgroupVersion::One | CgroupVersion::Two) => ("pids.events", "max"),
        (Controller::Processor, CgroupVersion::One | CgroupVersion::Two) => return false,
    };
    fs::read_to_string(group.join(file)).is_ok_and(|text| count(&text, key) > 0)
}

/// Reads the number behind a key in a list of `key number` lines.
fn count(text: &str, key: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == key)
        .and_then(|(_, number)| number.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::{CgroupVersion, Controller};
    use super::{count, set};

    const FIRST: &[&str] = &[
        "memory.limit_in_bytes",
        "pids.max",
        "cpu.cfs_period_us",
        "cpu.cfs_quota_us",
    ];
    const SECOND: &[&str] = &["memory.max", "memory.swap.max", "pids.max", "cpu.max"];

    fn read(group: &Path, files: &[&str]) -> Vec<String> {
        let read = |file: &&str| fs::read_to_string(group.join(file)).unwrap();
        files.iter().map(read).collect()
    }

    fn check(version: CgroupVersion, files: &[&str], expected: &[&str]) {
        let group = tempfile::tempdir().unwrap();
        for file in files {
            fs::File::create(group.path().join(file)).unwrap();
        }
        for (controller, value) in [
            (Controller::Memory, 1 << 26),
            (Controller::Processes, 20),
            (Controller::Processor, 1_500),
        ] {
            set(group.path(), controller, version, value).unwrap();
        }
        assert_eq!(read(group.path(), files), expected, "{version:?}");
    }

    #[test]
    fn each_generation_has_its_files() {
        check(
            CgroupVersion::One,
            FIRST,
            &["67108864", "22", "100000", "150000"],
        );
        check(
            CgroupVersion::Two,
            SECOND,
            &["67108864", "0", "22", "150000 100000"],
        );
    }

    #[test]
    fn counters_are_found_by_their_whole_name() {
        let text = "oom_kill_disable 3\nunder_oom 0\noom_kill 2\n";
        assert_eq!(count(text, "oom_kill"), 2);
        assert_eq!(count(text, "oom"), 0);
        assert_eq!(count("max 7\n", "max"), 7);
    }
}
