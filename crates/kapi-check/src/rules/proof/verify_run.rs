//! One run of a verify command.
//!
//! Data alone: knows neither the commit it was run on nor what follows from it.

use serde::{Deserialize, Serialize};

use super::tally::TestTally;

/// Which checks a verify command ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checks {
    /// Those the agent can see.
    Visible,
    /// With the hidden files copied over the checkout.
    Hidden,
}

/// One verify command's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyRun {
    /// The shell command.
    pub command: String,
    /// With or without the hidden checks.
    pub checks: Checks,
    /// Its exit code, 128 plus the signal if a signal ended it; `None` if it was killed at its time limit,
    /// or by a SIGKILL that Kapi did not send.
    pub exit_code: Option<i32>,
    /// Whether it was killed at its time limit.
    pub timed_out: bool,
    /// Milliseconds it took.
    pub duration_ms: u64,
    /// The end of its output, capped.
    pub output_tail: String,
    /// How many bytes of output there were.
    pub output_bytes: u64,
    /// How many tests it reports, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<TestTally>,
}

impl VerifyRun {
    /// Tells whether the command exited 0 in time.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out
    }

    /// Tells whether it was killed from outside: by the kernel for want of memory, or by somebody.
    #[must_use]
    pub const fn was_killed(&self) -> bool {
        self.exit_code.is_none() && !self.timed_out
    }

    /// Tells whether its runner says that it ran no test.
    #[must_use]
    pub fn ran_no_test(&self) -> bool {
        self.tally
            .is_some_and(|tally| tally.run() == 0 && !tally.only_red)
    }
}
