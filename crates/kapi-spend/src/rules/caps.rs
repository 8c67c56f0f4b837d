//! How much may be spent, and what stands against it.
//!
//! A person sets caps; a project only makes them smaller. Knows nothing of where they are written.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The percent of a daily cap at which a person is asked when nobody said otherwise.
pub const ASK_AT_PERCENT_DEFAULT: u8 = 80;

/// What one day may cost, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// All projects of this machine together; `None` for no cap.
    pub machine_per_day: Option<u64>,
    /// One project; `None` for no cap.
    pub project_per_day: Option<u64>,
    /// The percent of a daily cap from which on a person is asked before each turn.
    pub ask_at_percent: u8,
    /// Whether models of unknown price may be asked where money is limited.
    pub allows_unpriced: bool,
}

/// What a cap is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapScope {
    /// One goal's own budget.
    Goal,
    /// One project on one day.
    ProjectDay,
    /// The whole machine on one day.
    MachineDay,
}

/// A cap and what stands against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CapStatus {
    /// What it is for.
    pub scope: CapScope,
    /// Millionths of a US dollar that were spent.
    pub spent: u64,
    /// Millionths that turns under way may still spend.
    pub reserved: u64,
    /// The most.
    pub cap: u64,
}

impl Caps {
    /// Returns what holds when nobody said anything: no cap.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            machine_per_day: None,
            project_per_day: None,
            ask_at_percent: ASK_AT_PERCENT_DEFAULT,
            allows_unpriced: false,
        }
    }

    /// Returns the smaller of each; models of unknown price stay allowed, or not, as they are here.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let smaller = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self {
            machine_per_day: smaller(self.machine_per_day, other.machine_per_day),
            project_per_day: smaller(self.project_per_day, other.project_per_day),
            ask_at_percent: self.ask_at_percent.min(other.ask_at_percent),
            allows_unpriced: self.allows_unpriced,
        }
    }
}

impl CapStatus {
    /// Returns what was spent and what may be, together.
    #[must_use]
    pub const fn committed(&self) -> u64 {
        self.spent.saturating_add(self.reserved)
    }

    /// Returns what is left to reserve.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.cap.saturating_sub(self.committed())
    }

    /// Tells whether so many percent of the cap are committed.
    #[must_use]
    pub fn has_reached(&self, percent: u8) -> bool {
        u128::from(self.committed()) * 100 >= u128::from(self.cap) * u128::from(percent)
    }

    /// Tells whether more is committed than the cap allows.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.committed() > self.cap
    }
}

impl fmt::Display for CapScope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Goal => "this goal",
            Self::ProjectDay => "this project today",
            Self::MachineDay => "this machine today",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CapScope, CapStatus, Caps};

    #[test]
    fn the_smaller_cap_holds() {
        let own = Caps {
            machine_per_day: Some(10),
            ..Caps::none()
        };
        let project = Caps {
            machine_per_day: Some(20),
            project_per_day: Some(5),
            ask_at_percent: 90,
            ..Caps::none()
        };
        let expected = Caps {
            project_per_day: Some(5),
            ..own
        };
        assert_eq!(own.within(&project), expected);
        assert_eq!(project.within(&own), expected);
        assert_eq!(own.within(&Caps::none()), own);
    }

    #[test]
    fn what_is_left_and_when_to_ask() {
        let at = |spent, reserved| CapStatus {
            scope: CapScope::MachineDay,
            spent,
            reserved,
            cap: 1_000,
        };
        assert_eq!((at(200, 300).left(), at(900, 300).left()), (500, 0));
        assert!(!at(799, 0).has_reached(80) && at(500, 300).has_reached(80));
        assert!(!at(700, 300).is_over() && at(701, 300).is_over());
        assert!(!at(0, 999).has_reached(100));
    }
}
