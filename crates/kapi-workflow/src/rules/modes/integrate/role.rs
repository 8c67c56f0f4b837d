//! The roles in which agents of an integration are asked: planner, resolver, reviewer, and the three of
//! the consensus.

use kapi_core::mode::Mode;

use crate::rules::role::{AskedOf, Reads, Recall, RoleSpec};

/// One role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntegrateRole {
    /// It proposes another plan, where a person or the consensus wants one.
    Planner,
    /// It resolves a conflict in the workflow's worktree.
    Resolver,
    /// It reviews the result, and says what each unexplained change is for.
    Reviewer,
    /// It defends the result.
    Thesis,
    /// It says what speaks against the result.
    Antithesis,
    /// It decides.
    Synthesis,
}

const fn role(name: &'static str, by: AskedOf, asked: &'static str) -> RoleSpec {
    RoleSpec {
        mode: Mode::Integrate,
        name,
        by,
        reads: Reads::Change,
        recalls: Recall::Nothing,
        asked,
    }
}

static PLANNER: RoleSpec = RoleSpec {
    reads: Reads::Commit,
    ..role("planner", AskedOf::Agent, "for a merge plan")
};
static RESOLVER: RoleSpec = RoleSpec {
    reads: Reads::Commit,
    ..role("resolver", AskedOf::Agent, "to resolve a conflict")
};
static REVIEWER: RoleSpec = role("reviewer", AskedOf::Reviewer, "for a review");
static THESIS: RoleSpec = role("thesis", AskedOf::Agent, "what speaks for the result");
static ANTITHESIS: RoleSpec = role(
    "antithesis",
    AskedOf::Reviewer,
    "what speaks against the result",
);
static SYNTHESIS: RoleSpec = role("synthesis", AskedOf::Agent, "what comes of both");

impl IntegrateRole {
    /// Every role there is.
    pub const ALL: [Self; 6] = [
        Self::Planner,
        Self::Resolver,
        Self::Reviewer,
        Self::Thesis,
        Self::Antithesis,
        Self::Synthesis,
    ];

    /// Returns the role as data.
    #[must_use]
    pub const fn spec(self) -> &'static RoleSpec {
        match self {
            Self::Planner => &PLANNER,
            Self::Resolver => &RESOLVER,
            Self::Reviewer => &REVIEWER,
            Self::Thesis => &THESIS,
            Self::Antithesis => &ANTITHESIS,
            Self::Synthesis => &SYNTHESIS,
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
