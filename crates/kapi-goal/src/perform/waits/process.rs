//! Whether a process of the host has ended.
//!
//! Its number alone names nothing: numbers are used again, after a while and after a restart.

use std::fs;

use kapi_sys::process::{ProcessName, process_name};

/// How far clocks may be apart when it is asked whether the machine was started since.
const SLACK_MS: i64 = 60_000;

/// Tells whether a process has ended that ran when the goal was parked.
pub(super) fn has_ended(name: ProcessName, since_ms: i64, now_ms: i64) -> bool {
    let was_restarted = up_ms().is_some_and(|up_ms| is_after(since_ms, now_ms, up_ms));
    was_restarted || process_name(name.pid) != Some(name)
}

/// Tells whether a machine that has been up for so long was started after a time.
const fn is_after(since_ms: i64, now_ms: i64, up_ms: i64) -> bool {
    now_ms.saturating_sub(up_ms) > since_ms.saturating_add(SLACK_MS)
}

/// Returns for how long the machine has been up.
fn up_ms() -> Option<i64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, _) = text.split_once('.')?;
    seconds.parse::<i64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use kapi_sys::process::{ProcessName, process_name};

    use super::{has_ended, is_after};

    #[test]
    fn this_process_has_not_ended_and_one_that_began_at_another_time_has() {
        let name = process_name(std::process::id()).unwrap();
        let now_ms = i64::MAX / 2;
        assert!(!has_ended(name, now_ms, now_ms));
        let earlier = ProcessName {
            started_ticks: name.started_ticks - 1,
            ..name
        };
        assert!(has_ended(earlier, now_ms, now_ms));
    }

    #[test]
    fn a_restart_ends_every_process() {
        let hour = 3_600_000;
        assert!(is_after(0, 3 * hour, hour));
        assert!(!is_after(0, 3 * hour, 4 * hour));
        assert!(!is_after(0, 3 * hour, 3 * hour - 1_000), "clocks differ");
    }
}
