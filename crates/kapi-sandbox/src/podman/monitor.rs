//! Ends a container whose maker died in the middle of making it.
//!
//! Podman forgets such a container when asked to remove it, but its monitor and the half-made first
//! process stay. The monitor is found by the container's id or name among its arguments.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::host::PodmanHost;

/// How long the end of a monitor is waited for; podman's own removal still follows.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How often it is looked for.
const PAUSE: Duration = Duration::from_millis(5);

/// Kills what the monitor of a container watches until the monitor is gone.
pub(super) fn end(host: &PodmanHost, container: &str) {
    let started = Instant::now();
    while let Some(monitor) = find(host.uid, container) {
        if started.elapsed() > WAIT_MAX {
            return;
        }
        for child in children(monitor) {
            kill(child);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Finds the monitor: this user's process called `conmon` with the id or name as a whole argument.
fn find(uid: u32, container: &str) -> Option<i32> {
    processes().into_iter().find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        let is_monitor = words.next().is_some_and(|word| word.ends_with(b"conmon"));
        let is_own = || fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == uid);
        is_monitor && is_own() && words.any(|word| word == container.as_bytes())
    })
}

/// Lists the children of a monitor but for podman, which it starts to clear up.
fn children(monitor: i32) -> Vec<i32> {
    let is_watched = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((name, rest)) = stat.rsplit_once(')') else {
            return false;
        };
        let parent = rest
            .split_whitespace()
            .nth(1)
            .and_then(|word| word.parse().ok());
        parent == Some(monitor) && !name.ends_with("(podman")
    };
    processes().into_iter().filter(is_watched).collect()
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir(Path::new("/proc"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn kill(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else {
        return;
    };
    let killed = pidfd_open(pid, PidfdFlags::empty())
        .and_then(|pidfd| pidfd_send_signal(pidfd, Signal::KILL));
    match killed {
        // It may have ended meanwhile.
        // Whatever refuses, the caller sees by the monitor that stays.
        Ok(()) | Err(_) => {}
    }
}
