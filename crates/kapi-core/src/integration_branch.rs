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
