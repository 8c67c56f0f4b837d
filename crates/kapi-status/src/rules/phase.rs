//! The phases of a run, the categories of tool calls, and their ranges of progress.
//!
//! Their names are read by outside tools and never change. Knows nothing of which tool call
//! belongs where, nor of how progress moves.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusPhase {
    /// Inputs and configuration are being checked.
    Initializing,
    /// The sandbox and its workspace are being made.
    Preparing,
    /// The sandbox is being started.
    Starting,
    /// The agent reads and searches.
    Exploring,
    /// The agent writes.
    Implementing,
    /// The agent compiles or installs.
    Building,
    /// The agent runs tests.
    Testing,
    /// The agent has ended; its work has not been taken over yet.
    Running,
    /// The work is being committed.
    Committing,
    /// The branch is being pushed.
    Pushing,
    /// Everything has ended, well or not.
    Complete,
}

impl StatusPhase {
    /// Every phase, in the order of a run.
    pub const ALL: [Self; 11] = [
        Self::Initializing,
        Self::Preparing,
        Self::Starting,
        Self::Exploring,
        Self::Implementing,
        Self::Building,
        Self::Testing,
        Self::Running,
        Self::Committing,
        Self::Pushing,
        Self::Complete,
    ];

    /// Returns its name, as in the status file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Exploring => "exploring",
            Self::Implementing => "implementing",
            Self::Building => "building",
            Self::Testing => "testing",
            Self::Running => "running",
            Self::Committing => "committing",
            Self::Pushing => "pushing",
            Self::Complete => "complete",
        }
    }

    /// Returns the per cents it stands for.
    #[must_use]
    pub const fn range(self) -> PercentRange {
        let (min, max) = match self {
            Self::Initializing => (0, 10),
            Self::Preparing => (10, 20),
            Self::Starting => (20, 25),
            Self::Exploring => (25, 35),
            Self::Implementing => (35, 60),
            Self::Building => (50, 70),
            Self::Testing => (60, 80),
            Self::Running => (90, 90),
            Self::Committing => (85, 95),
            Self::Pushing => (95, 99),
            Self::Complete => (100, 100),
        };
        PercentRange { min, max }
    }
}

impl fmt::Display for StatusPhase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// What kind of work a tool call is. The order is that of advancement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCategory {
    /// Nothing that tells how far the work is.
    Other,
    /// Reading and searching.
    Exploring,
    /// Writing.
    Implementing,
    /// Compiling and installing.
    Building,
    /// Running tests.
    Testing,
    /// Committing.
    Committing,
}

impl ToolCategory {
    /// Every category, in the order of advancement.
    pub const ALL: [Self; 6] = [
        Self::Other,
        Self::Exploring,
        Self::Implementing,
        Self::Building,
        Self::Testing,
        Self::Committing,
    ];

    /// Returns the phase such a call puts a run in; `None` leaves it where it is.
    #[must_use]
    pub const fn phase(self) -> Option<StatusPhase> {
        match self {
            Self::Other => None,
            Self::Exploring => Some(StatusPhase::Exploring),
            Self::Implementing => Some(StatusPhase::Implementing),
            Self::Building => Some(StatusPhase::Building),
            Self::Testing => Some(StatusPhase::Testing),
            Self::Committing => Some(StatusPhase::Committing),
        }
    }

    /// Returns the per cents that calls of this kind reach by themselves.
    #[must_use]
    pub const fn range(self) -> PercentRange {
        let (min, max) = match self {
            Self::Other => (25, 50),
            Self::Exploring => (25, 35),
            Self::Implementing => (35, 60),
            Self::Building => (50, 70),
            Self::Testing => (60, 80),
            Self::Committing => (85, 90),
        };
        PercentRange { min, max }
    }
}

/// A range of per cents, both ends in it. Invariant: `min <= max <= 100`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(u8, u8)", into = "(u8, u8)")]
pub struct PercentRange {
    min: u8,
    max: u8,
}

/// Two numbers that are no range of per cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("use [{min}, {max}] as a percentage range: it must increase and end at 100 or below")]
pub struct PercentRangeError {
    min: u8,
    max: u8,
}

impl PercentRange {
    /// Returns its beginning.
    #[must_use]
    pub const fn min(self) -> u8 {
        self.min
    }

    /// Returns its end.
    #[must_use]
    pub const fn max(self) -> u8 {
        self.max
    }

    /// Returns the nearest number in it.
    #[must_use]
    pub fn clamp(self, percent: u8) -> u8 {
        percent.clamp(self.min, self.max)
    }
}

impl TryFrom<(u8, u8)> for PercentRange {
    type Error = PercentRangeError;

    fn try_from(pair: (u8, u8)) -> Result<Self, PercentRangeError> {
        let (min, max) = pair;
        if min <= max && max <= 100 {
            Ok(Self { min, max })
        } else {
            Err(PercentRangeError { min, max })
        }
    }
}

impl From<PercentRange> for (u8, u8) {
    fn from(range: PercentRange) -> Self {
        (range.min, range.max)
    }
}

#[cfg(test)]
mod tests {
    use super::{PercentRange, StatusPhase, ToolCategory};

    #[test]
    fn the_ranges_are_those_outside_tools_were_promised() {
        let table: Vec<(&str, u8, u8)> = StatusPhase::ALL
            .iter()
            .map(|phase| (phase.name(), phase.range().min(), phase.range().max()))
            .collect();
        let promised = [
            ("initializing", 0, 10),
            ("preparing", 10, 20),
            ("starting", 20, 25),
            ("exploring", 25, 35),
            ("implementing", 35, 60),
            ("building", 50, 70),
            ("testing", 60, 80),
            ("running", 90, 90),
            ("committing", 85, 95),
            ("pushing", 95, 99),
            ("complete", 100, 100),
        ];
        assert_eq!(table, promised);
    }

    #[test]
    fn a_call_stays_within_the_range_of_its_phase() {
        for category in ToolCategory::ALL {
            let Some(phase) = category.phase() else {
                continue;
            };
            assert!(phase.range().min() <= category.range().min());
            assert!(category.range().max() <= phase.range().max());
        }
    }

    #[test]
    fn what_falls_or_passes_a_hundred_is_no_range() {
        assert!(PercentRange::try_from((10, 10)).is_ok());
        for pair in [(11, 10), (0, 101), (200, 201)] {
            let error = PercentRange::try_from(pair).unwrap_err();
            assert!(error.to_string().contains("percentage"), "{error}");
        }
    }
}
