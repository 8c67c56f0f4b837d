//! The roles in which agents of a search are asked: drafter and researcher.

use kapi_core::mode::Mode;

use crate::rules::role::{AskedOf, Reads, Recall, RoleSpec};

/// One role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AutoresearchRole {
    /// It drafts the contract, reading only.
    Drafter,
    /// It changes the worktree and says why.
    Researcher,
}

static DRAFTER: RoleSpec = RoleSpec {
    mode: Mode::Autoresearch,
    name: "drafter",
    by: AskedOf::Agent,
    reads: Reads::Commit,
    recalls: Recall::Nothing,
    asked: "for a contract",
};
static RESEARCHER: RoleSpec = RoleSpec {
    mode: Mode::Autoresearch,
    name: "researcher",
    by: AskedOf::Agent,
    reads: Reads::Commit,
    recalls: Recall::Nothing,
    asked: "for the next experiment",
};

impl AutoresearchRole {
    /// Every role there is.
    pub const ALL: [Self; 2] = [Self::Drafter, Self::Researcher];

    /// Returns the role as data.
    #[must_use]
    pub const fn spec(self) -> &'static RoleSpec {
        match self {
            Self::Drafter => &DRAFTER,
            Self::Researcher => &RESEARCHER,
        }
    }

    /// Returns the role of this data; `None` where it is another mode's.
    #[must_use]
    pub fn of(spec: &RoleSpec) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.spec() == spec)
    }
}
