//! What only a container has: its image and what podman is told.
//!
//! Pure data.

/// The options of the container level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The image to take the root from.
    pub image: String,
}
