//! How work flows between branches: into the integration branch by Kapi, and on from there by a person
//! alone.
//!
//! There is one name for that branch, and no way to make another: nothing that Kapi moves can be
//! `main`.

use kapi_core::integration_branch::IntegrationBranch;

/// Where a mode's workflows begin unless their person says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseRule {
    /// Where the person's checkout is.
    Head,
    /// At the integration branch.
    Dev,
}

impl BaseRule {
    /// Returns the revision; `None` for what is checked out.
    #[must_use]
    pub const fn revision(self) -> Option<&'static str> {
        match self {
            Self::Head => None,
            Self::Dev => Some(IntegrationBranch::DEV.as_str()),
        }
    }
}
