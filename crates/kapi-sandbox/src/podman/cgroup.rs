//! What the control group of this container allows and how often it refused, in either version.
//!
//! Only reads, and only what the container itself sees; a file that is not there limits nothing.

use std::fs;

use super::channel::{LimitCounts, RelayEnvironment};

const ROOT: &str = "/sys/fs/cgroup";
/// Version 1 says "no limit" with a number close to the largest.
const V1_UNLIMITED_FROM: u64 = 1 << 62;

/// Reads the limits in force.
pub(super) fn limits() -> RelayEnvironment {
    let memory = number("memory.max").or_else(|| number("memory/memory.limit_in_bytes"));
    let processes = number("pids.max").or_else(|| number("pids/pids.max"));
    let cpu = read("cpu.max").or_else(|| {
        let quota = read("cpu/cpu.cfs_quota_us")?;
        let period = read("cpu/cpu.cfs_period_us")?;
        Some(format!("{} {}", quota.trim(), period.trim()))
    });
    RelayEnvironment {
        memory_bytes: memory.filter(|bytes| *bytes < V1_UNLIMITED_FROM),
        processes,
        cpu_millis: cpu.as_deref().and_then(parse_cpu),
        ..RelayEnvironment::default()
    }
}

/// Reads how often something was refused so far.
pub(super) fn met() -> LimitCounts {
    let memory = read("memory.events").or_else(|| read("memory/memory.oom_control"));
    let processes = read("pids.events").or_else(|| read("pids/pids.events"));
    LimitCounts {
        memory_kills: memory
            .as_deref()
            .map_or(0, |text| counter(text, "oom_kill")),
        process_refusals: processes.as_deref().map_or(0, |text| counter(text, "max")),
    }
}

/// Subtracts an earlier reading.
pub(super) fn since(now: LimitCounts, before: LimitCounts) -> LimitCounts {
    LimitCounts {
        memory_kills: now.memory_kills.saturating_sub(before.memory_kills),
        process_refusals: now.process_refusals.saturating_sub(before.process_refusals),
    }
}

fn read(name: &str) -> Option<String> {
    fs::read_to_string(format!("{ROOT}/{name}")).ok()
}

fn number(name: &str) -> Option<u64> {
    read(name)?.trim().parse().ok()
}

fn counter(text: &str, name: &str) -> u64 {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    let found = pairs.find(|(key, _)| *key == name);
    found
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

/// Reads `50000 100000`; `max` and a negative quota are no limit.
fn parse_cpu(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    quota.saturating_mul(1000).checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::{counter, parse_cpu};

    #[test]
    fn quotas_of_both_versions_become_thousandths() {
        assert_eq!(parse_cpu("50000 100000\n"), Some(500));
        assert_eq!(parse_cpu("max 100000\n"), None);
        assert_eq!(parse_cpu("-1 100000"), None);
    }

    #[test]
    fn counters_are_found_by_their_whole_name() {
        assert_eq!(
            counter("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"),
            3
        );
        assert_eq!(
            counter("low 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 0\n", "max"),
            7
        );
        assert_eq!(counter("", "max"), 0);
    }
}
