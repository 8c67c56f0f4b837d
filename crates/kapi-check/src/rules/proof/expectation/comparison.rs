//! What is known of a statement of a test that compares two values.
//!
//! Where it stands in the text alone; how it is found depends on the language.

use std::ops::Range;

/// A statement that compares.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Where it begins.
    pub(super) start: usize,
    /// What is called, where a call says that it compares.
    pub(super) callee: Range<usize>,
    /// The two sides, the one that is likelier to say what is expected first.
    pub(super) sides: Vec<Range<usize>>,
}
