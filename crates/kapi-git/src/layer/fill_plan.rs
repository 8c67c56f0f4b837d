//! What a layer is to hold: a commit, and what is to be kept out of sight.
//!
//! Data alone; `materialise.rs` fills the layer and `keep.rs` says what stays of the old one.

use std::path::PathBuf;

use super::Layer;
use super::lower::LowerStack;
use crate::id::CommitId;

/// What a layer is to hold.
#[derive(Debug, Clone, Copy)]
pub struct FillPlan<'a> {
    /// The layer; not mounted by anybody now.
    pub layer: &'a Layer,
    /// What it lies over: the root of the person's checkout.
    pub lower: &'a LowerStack,
    /// The commit that is checked out there.
    pub base: &'a CommitId,
    /// The commit to show: the base at first, later what the work has come to.
    pub content: &'a CommitId,
    /// The paths of the person's uncommitted changes: shown as in `content`, or hidden when it
    /// does not have them. An untracked directory is named once for all that is in it.
    pub masks: &'a [PathBuf],
}
