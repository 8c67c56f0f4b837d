//! Who is to blame for a batch that fails: which set of sources is verified next, or the culprits.
//!
//! A function of what is known: asking again with the same results gives the same answer, and no set
//! is asked for whose result is there. A check that fails on the target branch blames nobody.

use std::collections::{BTreeMap, BTreeSet};

use super::{SourceDependency, with_dependencies};

/// A batch, as it is applied.
#[derive(Debug, Clone, Copy)]
pub struct SourceBatch<'a> {
    /// The sources in their order.
    pub order: &'a [usize],
    /// What builds on what.
    pub dependencies: &'a [SourceDependency],
    /// The checks that fail on the target branch without any source.
    pub baseline: &'a BTreeSet<String>,
}

/// What came of some sources that were applied to the target branch in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetResult {
    /// The checks ran.
    Ran {
        /// Those that failed.
        failed: BTreeSet<String>,
    },
    /// They cannot be applied without others, so that nothing ran.
    NoFit,
}

/// Results by the sources that were applied.
pub type SetResults = BTreeMap<BTreeSet<usize>, SetResult>;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BisectionStep {
    /// These sources are applied in their order and verified.
    Verify(BTreeSet<usize>),
    /// No check fails but those of the baseline.
    Holds,
    /// It is known who is to blame.
    Found(Culprits),
}

/// The sources that fail together, and none of them without the others as far as was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprits {
    /// The last of them, which goes.
    pub source: usize,
    /// Those with which it fails; none where it fails alone.
    pub with: BTreeSet<usize>,
    /// The set whose result shows it: the culprits, with what they build on.
    pub shown_by: BTreeSet<usize>,
    /// The checks that fail on it and not on the target branch.
    pub checks: BTreeSet<String>,
}

/// Returns what is to be done next about a batch.
#[must_use]
pub fn next(batch: &SourceBatch<'_>, results: &SetResults) -> BisectionStep {
    match (Search { batch, results }).culprits() {
        Ok(Some(found)) => BisectionStep::Found(found),
        Ok(None) => BisectionStep::Holds,
        Err(Unknown(set)) => BisectionStep::Verify(set),
    }
}

/// A set without a result.
struct Unknown(BTreeSet<usize>);

struct Search<'a> {
    batch: &'a SourceBatch<'a>,
    results: &'a SetResults,
}

impl Search<'_> {
    fn culprits(&self) -> Result<Option<Culprits>, Unknown> {
        let order = self.batch.order;
        let none = BTreeSet::new();
        if !self.fails(order, &none)? {
            return Ok(None);
        }
        let n_failing = self.shortest(order, &none)?;
        let earlier = order.get(..n_failing.saturating_sub(1));
        let earlier = earlier.unwrap_or_default();
        let Some(source) = order.get(earlier.len()).copied() else {
            return Ok(None);
        };
        let alone = BTreeSet::from([source]);
        if self.fails(&[], &alone)? {
            return Ok(Some(self.named(source, none)));
        }
        let together = self.pair(earlier, source)?;
        let mut with = match together {
            Some(other) => BTreeSet::from([other]),
            None => self.several(earlier, source)?,
        };
        with.remove(&source);
        Ok(Some(self.named(source, with)))
    }

    /// Returns the first earlier source with which a source fails.
    ///
    /// None before the end of the shortest failing beginning can be it, so that one is tried first.
    fn pair(&self, earlier: &[usize], source: usize) -> Result<Option<usize>, Unknown> {
        let alone = BTreeSet::from([source]);
        let end = self.shortest(earlier, &alone)?;
        for other in earlier.get(end.saturating_sub(1)..).unwrap_or_default() {
            if self.fails(&[*other], &alone)? {
                return Ok(Some(*other));
            }
        }
        Ok(None)
    }

    /// Returns sources with which a source fails, where no single one is enough: the end of the
    /// shortest failing beginning is one of them each time.
    fn several(&self, earlier: &[usize], source: usize) -> Result<BTreeSet<usize>, Unknown> {
        let mut fixed = BTreeSet::from([source]);
        let mut open = earlier;
        while !open.is_empty() && !self.fails(&[], &fixed)? {
            let end = self.shortest(open, &fixed)?;
            let rest = open.get(..end.saturating_sub(1)).unwrap_or_default();
            fixed.extend(open.get(rest.len()));
            open = rest;
        }
        Ok(fixed)
    }

    /// Returns how long the shortest beginning of `sources` is that fails together with `fixed`, where
    /// all of them fail and none of them does not.
    fn shortest(&self, sources: &[usize], fixed: &BTreeSet<usize>) -> Result<usize, Unknown> {
        let (mut holds, mut fails) = (0, sources.len());
        while fails - holds > 1 {
            let middle = holds.midpoint(fails);
            let beginning = sources.get(..middle).unwrap_or_default();
            if self.fails(beginning, fixed)? {
                fails = middle;
            } else {
                holds = middle;
            }
        }
        Ok(fails)
    }

    /// Tells whether sources fail that are applied with what they build on. What cannot be applied
    /// shows nothing.
    fn fails(&self, sources: &[usize], fixed: &BTreeSet<usize>) -> Result<bool, Unknown> {
        let set = self.set(sources, fixed);
        Ok(!self.new_failures(&set)?.is_empty())
    }

    fn set(&self, sources: &[usize], fixed: &BTreeSet<usize>) -> BTreeSet<usize> {
        let named = sources.iter().chain(fixed).copied().collect();
        with_dependencies(&named, self.batch.dependencies)
    }

    fn new_failures(&self, set: &BTreeSet<usize>) -> Result<BTreeSet<String>, Unknown> {
        if set.is_empty() {
            return Ok(BTreeSet::new());
        }
        match self.results.get(set) {
            None => Err(Unknown(set.clone())),
            Some(SetResult::NoFit) => Ok(BTreeSet::new()),
            Some(SetResult::Ran { failed }) => Ok(failed - self.batch.baseline),
        }
    }

    fn named(&self, source: usize, with: BTreeSet<usize>) -> Culprits {
        let shown_by = self.set(&[source], &with);
        let checks = self.new_failures(&shown_by);
        Culprits {
            source,
            with,
            checks: checks.unwrap_or_default(),
            shown_by,
        }
    }
}

#[cfg(test)]
mod tests;
