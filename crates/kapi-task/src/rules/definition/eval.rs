//! What counts as well done: one check of what a run left.
//!
//! Only data. How a command is run, a judge asked or an output matched is not known here.

use std::fmt;

use kapi_core::value::KernelValue;
use kapi_settings::amount::parse_millionths;
use serde::{Deserialize, Serialize};

/// The exit codes that can be asked for lie between minus this and this.
pub const EXIT_CODE_MAX: i32 = 9_999;
/// The longest pattern in bytes.
pub const PATTERN_BYTES_MAX: usize = 2_000;
/// The most criteria of one judge.
pub const CRITERIA_MAX: usize = 20;
/// How long a command may take when the definition does not say: five minutes.
pub const COMMAND_MS_DEFAULT: u64 = 300_000;
/// The longest a command may be allowed to take, in milliseconds: six hours.
pub const COMMAND_MS_MAX: u64 = 6 * 60 * 60 * 1_000;

/// One check of what a run left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Eval {
    /// Its name, the only one of the loop.
    pub name: String,
    /// Whether the run fails with it.
    pub blocking: bool,
    /// What is checked.
    pub check: EvalCheck,
}

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum EvalCheck {
    /// The agent's exit code.
    ExitCode {
        /// The one that passes.
        pass_condition: i32,
    },
    /// A shell command, run in the sandbox on what the run left; exit code 0 passes.
    Command {
        /// The command.
        run: String,
        /// The longest it may take.
        timeout_ms: u64,
    },
    /// The agent's last words match a regular expression.
    Regex {
        /// The expression.
        pattern: String,
        /// Whether a match passes, or its absence.
        expect: Expect,
    },
    /// The agent's last words are, or end in, JSON that fits a schema.
    JsonSchema {
        /// The schema as it was when the definition was read.
        schema: KernelValue,
    },
    /// Another agent says whether the criteria are met.
    Judge {
        /// The criteria.
        criteria: Vec<String>,
        /// The profile that judges; `None` for the one that the configuration names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A number that a shell command prints last.
    Metric {
        /// The command, run in the sandbox on what the run left.
        run: String,
        /// The longest it may take.
        timeout_ms: u64,
        /// Which direction is better.
        better: Better,
        /// What it must be.
        bound: NumberBound,
    },
}

impl EvalCheck {
    /// Returns its type as definitions name it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ExitCode { .. } => "exit_code",
            Self::Command { .. } => "command",
            Self::Regex { .. } => "regex",
            Self::JsonSchema { .. } => "json_schema",
            Self::Judge { .. } => "judge",
            Self::Metric { .. } => "metric",
        }
    }
}

/// Whether a match passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It must match.
    Match,
    /// It must not match.
    NoMatch,
}

/// Which direction of a number is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Up.
    Higher,
    /// Down.
    Lower,
}

/// What a number must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum NumberBound {
    /// As good as this, or better.
    AsGoodAs {
        /// The number.
        value: Millionths,
    },
    /// No worse than in the last run that completed; passes when there is none.
    NoWorseThanLast {
        /// How much worse it may be all the same.
        tolerance: Millionths,
    },
}

impl NumberBound {
    /// Tells whether a number is good enough; `last` is that of the last run that completed.
    #[must_use]
    pub const fn is_met(
        self,
        better: Better,
        number: Millionths,
        last: Option<Millionths>,
    ) -> bool {
        let (limit, slack) = match (self, last) {
            (Self::AsGoodAs { value }, _) => (value.0, 0),
            (Self::NoWorseThanLast { tolerance }, Some(last)) => (last.0, tolerance.0),
            (Self::NoWorseThanLast { .. }, None) => return true,
        };
        match better {
            Better::Higher => number.0 >= limit.saturating_sub(slack),
            Better::Lower => number.0 <= limit.saturating_add(slack),
        }
    }
}

/// A decimal number with six places, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millionths(pub i64);

/// A text that is no number with up to six decimals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {text:?} as a number: it must have digits and at most six decimals")]
pub struct NumberError {
    /// The text.
    pub text: String,
}

impl Millionths {
    /// One.
    pub const ONE: Self = Self(1_000_000);

    /// Reads `12`, `-0.5` or `+3.25`.
    ///
    /// # Errors
    /// When it is no such number, has more decimals, or is too large.
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        let failed = || NumberError {
            text: text.to_owned(),
        };
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1_i64, digits),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let millionths = parse_millionths(digits).ok_or_else(failed)?;
        let millionths = i64::try_from(millionths).map_err(|_| failed())?;
        Ok(Self(sign * millionths))
    }
}

impl fmt::Display for Millionths {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        let (whole, decimals) = (size / 1_000_000, size % 1_000_000);
        if decimals == 0 {
            return write!(out, "{sign}{whole}");
        }
        let text = format!("{decimals:06}");
        write!(out, "{sign}{whole}.{}", text.trim_end_matches('0'))
    }
}
