//! What a parked goal waits for: a time, a file, a process, a command, an approval, a quota, a judge.
//!
//! Only the condition as data. Whether it holds is looked at by whoever watches; a parked goal
//! itself has no process and asks no model.

use serde::{Deserialize, Serialize};

/// The shortest pause between two runs of a command that is waited for, in milliseconds.
pub const COMMAND_EVERY_MS_MIN: u64 = 10_000;
/// The longest a goal may be parked on a time, in milliseconds: a year.
pub const WAIT_MS_MAX: i64 = 366 * 24 * 60 * 60 * 1_000;
/// The longest text of a condition, in bytes.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// A condition under which a parked goal goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
pub enum WaitFor {
    /// A time has come.
    Time {
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// A file is in a state. An agent's path is relative to its workspace.
    File {
        /// The path.
        path: String,
        /// The state.
        until: FileState,
    },
    /// A process of the host has ended.
    Process {
        /// Its number.
        pid: u32,
        /// When it started, in clock ticks since boot, so that another process of the same
        /// number is not waited for.
        started_ticks: u64,
    },
    /// A command exits 0, run in the sandbox on the work so far.
    Command {
        /// The shell command.
        command: String,
        /// Milliseconds between two tries.
        every_ms: u64,
    },
    /// A person allows something.
    Approval {
        /// What, as the person will read it.
        what: String,
    },
    /// A judge that could not be reached is worth asking again.
    Judge {
        /// Who judges.
        judge: String,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// A provider's quota is reset.
    Quota {
        /// Whose.
        provider: String,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
}

/// A state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// It is there.
    Exists,
    /// It is not there.
    Gone,
    /// It was written to after the goal was parked.
    Changed,
}

/// A parked goal's wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalWait {
    /// Counted from 1 within the goal, so that one wait is ended once.
    pub number: u32,
    /// What is waited for.
    pub until: WaitFor,
    /// Why, in the words of whoever parked it.
    pub reason: Option<String>,
    /// Since when, in milliseconds since the epoch.
    pub since_ms: i64,
    /// When it ends all the same, in milliseconds since the epoch.
    pub deadline_ms: Option<i64>,
}

impl WaitFor {
    /// Returns the rule that a condition breaks; an agent may wait for less than a person.
    #[must_use]
    pub fn fault(&self, now_ms: i64, is_agent: bool) -> Option<&'static str> {
        let text_is_bad = |text: &str| text.trim().is_empty() || text.len() > TEXT_BYTES_MAX;
        match self {
            Self::Time { at_ms } | Self::Quota { at_ms, .. } | Self::Judge { at_ms, .. } => {
                let ahead = at_ms.saturating_sub(now_ms);
                (ahead <= 0 || ahead > WAIT_MS_MAX)
                    .then_some("the time must be in the future, within a year")
            }
            Self::File { path, .. } => {
                if text_is_bad(path) || path.contains('\0') {
                    return Some("the path must be text of at most 4 KiB");
                }
                (is_agent && !stays_below(path)).then_some(
                    "the path must be relative to the working directory and must not leave it",
                )
            }
            Self::Process { .. } => is_agent.then_some(
                "processes in the sandbox end with the turn; wait for a file or a command instead",
            ),
            Self::Command { command, every_ms } => {
                if text_is_bad(command) {
                    return Some("the command must be text of at most 4 KiB");
                }
                (*every_ms < COMMAND_EVERY_MS_MIN)
                    .then_some("a command runs at most every 10 seconds")
            }
            Self::Approval { what } => {
                text_is_bad(what).then_some("the request for approval must be at most 4 KiB")
            }
        }
    }
}

fn stays_below(path: &str) -> bool {
    !path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::{FileState, WaitFor};

    fn file(path: &str) -> WaitFor {
        WaitFor::File {
            path: path.to_owned(),
            until: FileState::Exists,
        }
    }

    #[test]
    fn an_agent_waits_only_within_its_workspace() {
        for path in ["/etc/passwd", "../x", "a/../../x", ""] {
            assert!(file(path).fault(0, true).is_some(), "{path}");
        }
        assert_eq!(file("build/out.txt").fault(0, true), None);
        assert_eq!(file("/var/run/ready").fault(0, false), None);
        let process = WaitFor::Process {
            pid: 1,
            started_ticks: 1,
        };
        assert!(process.fault(0, true).is_some());
        assert_eq!(process.fault(0, false), None);
    }

    #[test]
    fn times_lie_ahead() {
        let at = |at_ms| WaitFor::Time { at_ms };
        assert!(at(5).fault(5, false).is_some());
        assert_eq!(at(6).fault(5, false), None);
        assert!(at(i64::MAX).fault(5, false).is_some());
    }
}
