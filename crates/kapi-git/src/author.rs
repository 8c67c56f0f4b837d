//! Who a commit is by.
//!
//! Knows no repository and nothing of what the commit holds.

/// The identity a commit carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}
