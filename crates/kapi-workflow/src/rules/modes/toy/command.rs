//! What only a toy can be asked.

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToyCommand {
    /// Describe the scale anew.
    Reweigh,
}
