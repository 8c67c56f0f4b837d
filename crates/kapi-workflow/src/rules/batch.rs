//! Several sources that are landed together: in which order, and who is to blame where they fail.
//!
//! A source is known by its place in the request. Nothing here merges or runs anything: what is known
//! arrives as an argument, and what should be found out next is the answer.

pub mod bisection;
pub mod mechanical;
pub mod order;

use std::collections::BTreeSet;

/// A source that was begun on the work of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceDependency {
    /// The source.
    pub source: usize,
    /// What it builds on.
    pub on: usize,
}

/// Returns some sources with everything that they build on.
#[must_use]
pub fn with_dependencies(
    sources: &BTreeSet<usize>,
    dependencies: &[SourceDependency],
) -> BTreeSet<usize> {
    let mut whole = sources.clone();
    let mut open: Vec<usize> = sources.iter().copied().collect();
    while let Some(source) = open.pop() {
        let own = dependencies.iter().filter(|one| one.source == source);
        open.extend(own.map(|one| one.on).filter(|on| whole.insert(*on)));
    }
    whole
}
