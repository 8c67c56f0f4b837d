//! The one name of the directory where Kapi keeps its state, in a project and in a person's home.
//!
//! Only the name; what lies in it is laid out by the store.

/// The name of the state directory.
pub const STATE_DIRECTORY: &str = ".ilchul";
