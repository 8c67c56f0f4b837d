//! The roles in which agents of a build are asked: planner, critic, arbiter, reviewer, accountant.

use kapi_core::mode::Mode;

use crate::rules::role::{AskedOf, Reads, Recall, RoleSpec};

/// One role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RalphRole {
    /// It proposes a plan.
    Thesis,
    /// It says what speaks against it.
    Antithesis,
    /// It says what comes of both.
    Synthesis,
    /// It reviews what landed.
    Reviewer,
    /// It accounts for the whole.
    Accountant,
}

static THESIS: RoleSpec = RoleSpec {
    mode: Mode::Ralph,
    name: "thesis",
    by: AskedOf::Agent,
    reads: Reads::Commit,
    recalls: Recall::Nothing,
    asked: "for a plan",
};
static ANTITHESIS: RoleSpec = RoleSpec {
    mode: Mode::Ralph,
    name: "antithesis",
    by: AskedOf::Reviewer,
    reads: Reads::Commit,
    recalls: Recall::Nothing,
    asked: "what speaks against the plan",
};
static SYNTHESIS: RoleSpec = RoleSpec {
    mode: Mode::Ralph,
    name: "synthesis",
    by: AskedOf::Agent,
    reads: Reads::Commit,
    recalls: Recall::Nothing,
    asked: "what comes of both",
};
static REVIEWER: RoleSpec = RoleSpec {
    mode: Mode::Ralph,
    name: "reviewer",
    by: AskedOf::Reviewer,
    reads: Reads::Change,
    recalls: Recall::Nothing,
    asked: "for a review",
};
static ACCOUNTANT: RoleSpec = RoleSpec {
    mode: Mode::Ralph,
    name: "accountant",
    by: AskedOf::Agent,
    reads: Reads::Change,
    recalls: Recall::Nothing,
    asked: "for the account",
};

impl RalphRole {
    /// Every role there is.
    pub const ALL: [Self; 5] = [
        Self::Thesis,
        Self::Antithesis,
        Self::Synthesis,
        Self::Reviewer,
        Self::Accountant,
    ];

    /// Returns the role as data.
    #[must_use]
    pub const fn spec(self) -> &'static RoleSpec {
        match self {
            Self::Thesis => &THESIS,
            Self::Antithesis => &ANTITHESIS,
            Self::Synthesis => &SYNTHESIS,
            Self::Reviewer => &REVIEWER,
            Self::Accountant => &ACCOUNTANT,
        }
    }

    /// Returns the role of this data; `None` where it is another mode's.
    #[must_use]
    pub fn of(spec: &RoleSpec) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.spec() == spec)
    }

    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.spec().name
    }
}
