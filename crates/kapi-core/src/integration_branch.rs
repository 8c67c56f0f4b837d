//! The branch that finished work is brought together on.
//!
//! There is one name for it, and no way to make another: nothing that Kapi moves can be `main`.

use std::fmt;

/// The branch that finished work is brought together on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegrationBranch(());

impl IntegrationBranch {
    /// The only one.
    pub const DEV: Self = Self(());

    /// Returns the name, without `refs/heads/`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        "dev"
    }
}

impl fmt::Display for IntegrationBranch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What is done about a checkout that the branch is checked out in, when the branch moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutRule {
    /// The branch stays: its checkout would show the step backwards as a change of its own.
    Refuse,
    /// One that is clean is brought along, because its person said so.
    BringClean,
}
