//! The order in which sources are applied, with a reason for each place.
//!
//! What a source builds on comes before it; of those that may come, the one with the fewest conflicts
//! foreseen with what is still to come; then the one that was named first.

use std::collections::BTreeSet;

use super::SourceDependency;

/// Two sources that are foreseen to conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeseenClash {
    /// The one.
    pub one: usize,
    /// The other.
    pub other: usize,
}

/// What is known of the sources.
#[derive(Debug, Clone, Copy)]
pub struct SourceGraph<'a> {
    /// How many there are.
    pub n_sources: usize,
    /// What builds on what.
    pub dependencies: &'a [SourceDependency],
    /// Which of them are foreseen to conflict.
    pub clashes: &'a [ForeseenClash],
}

/// A source in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSource {
    /// The source.
    pub source: usize,
    /// Why it comes here.
    pub reason: OrderReason,
}

/// Why a source has its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderReason {
    /// No other source could come here.
    Only,
    /// It builds on these, and comes once they are there.
    BuildsOn(BTreeSet<usize>),
    /// It conflicts with fewer of the sources still to come than any other that could come here.
    FewestConflicts {
        /// The sources with which it does.
        with: BTreeSet<usize>,
    },
    /// Another one could come here just as well, and this one was named first.
    NamedFirst,
}

/// Sources that cannot be put in an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Each of these builds on the next, and the last on the first.
    #[error(
        "order the sources: {} build on one another in a circle",
        list(sources)
    )]
    Cycle {
        /// The sources.
        sources: Vec<usize>,
    },
    /// A dependency or a clash names a source that is none.
    #[error("order the sources: there is no source {source_index}")]
    Unknown {
        /// What was named.
        source_index: usize,
    },
}

fn list(sources: &[usize]) -> String {
    let names: Vec<String> = sources.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// Returns the sources in the order in which they are applied.
///
/// # Errors
/// When sources build on one another in a circle, or one is named that is none.
pub fn order(graph: &SourceGraph<'_>) -> Result<Vec<PlacedSource>, OrderError> {
    check(graph)?;
    let mut open: BTreeSet<usize> = (0..graph.n_sources).collect();
    let mut placed = Vec::new();
    while !open.is_empty() {
        let may_come: Vec<Candidate> = open
            .iter()
            .filter(|source| !builds_on(graph, **source).any(|on| open.contains(&on)))
            .map(|source| candidate(graph, *source, &open))
            .collect();
        let Some(best) = may_come
            .iter()
            .min_by_key(|one| (one.conflicts.len(), one.source))
        else {
            let sources = cycle(graph, &open);
            return Err(OrderError::Cycle { sources });
        };
        open.remove(&best.source);
        placed.push(PlacedSource {
            source: best.source,
            reason: reason(graph, best, &may_come),
        });
    }
    Ok(placed)
}

/// A source that may come next.
struct Candidate {
    source: usize,
    conflicts: BTreeSet<usize>,
}

fn check(graph: &SourceGraph<'_>) -> Result<(), OrderError> {
    let of_dependencies = graph
        .dependencies
        .iter()
        .flat_map(|one| [one.source, one.on]);
    let of_clashes = graph.clashes.iter().flat_map(|one| [one.one, one.other]);
    match of_dependencies
        .chain(of_clashes)
        .find(|source| *source >= graph.n_sources)
    {
        Some(source_index) => Err(OrderError::Unknown { source_index }),
        None => Ok(()),
    }
}

fn builds_on(graph: &SourceGraph<'_>, source: usize) -> impl Iterator<Item = usize> {
    let own = graph.dependencies.iter();
    own.filter(move |one| one.source == source)
        .map(|one| one.on)
}

fn candidate(graph: &SourceGraph<'_>, source: usize, open: &BTreeSet<usize>) -> Candidate {
    let others = graph.clashes.iter().filter_map(|clash| {
        if clash.one == source {
            Some(clash.other)
        } else {
            (clash.other == source).then_some(clash.one)
        }
    });
    Candidate {
        source,
        conflicts: others
            .filter(|other| *other != source && open.contains(other))
            .collect(),
    }
}

fn reason(graph: &SourceGraph<'_>, best: &Candidate, may_come: &[Candidate]) -> OrderReason {
    let on: BTreeSet<usize> = builds_on(graph, best.source).collect();
    if !on.is_empty() {
        return OrderReason::BuildsOn(on);
    }
    let mut others = may_come.iter().filter(|one| one.source != best.source);
    let n_best = best.conflicts.len();
    match others.clone().next() {
        None => OrderReason::Only,
        Some(_) if others.any(|one| one.conflicts.len() == n_best) => OrderReason::NamedFirst,
        Some(_) => OrderReason::FewestConflicts {
            with: best.conflicts.clone(),
        },
    }
}

/// Returns a circle among sources each of which builds on another one of them.
fn cycle(graph: &SourceGraph<'_>, open: &BTreeSet<usize>) -> Vec<usize> {
    let mut path: Vec<usize> = open.first().copied().into_iter().collect();
    let follows = |path: &[usize]| builds_on(graph, *path.last()?).find(|on| open.contains(on));
    while let Some(next) = follows(&path) {
        if let Some(at) = path.iter().position(|one| *one == next) {
            return path.split_off(at);
        }
        path.push(next);
    }
    path
}

#[cfg(test)]
mod tests;
