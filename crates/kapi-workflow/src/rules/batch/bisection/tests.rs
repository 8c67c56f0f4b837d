//! Bisections of batches whose culprits are known, beside what trying every set finds.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::{Strategy as _, any, prop};
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::{BisectionStep, Culprits, SetResult, SetResults, SourceBatch, next};
use crate::rules::batch::{SourceDependency, with_dependencies};

/// The most sets that a batch of so few may take.
const STEPS_MAX: usize = 64;

/// A batch that fails wherever all of one of these sets are in it.
struct Truth {
    order: Vec<usize>,
    dependencies: Vec<SourceDependency>,
    bad: Vec<BTreeSet<usize>>,
    baseline: BTreeSet<String>,
}

impl Truth {
    fn new(n_sources: usize, bad: &[&[usize]]) -> Self {
        Self {
            order: (0..n_sources).collect(),
            dependencies: Vec::new(),
            bad: bad
                .iter()
                .map(|set| set.iter().copied().collect())
                .collect(),
            baseline: BTreeSet::from(["old".to_owned()]),
        }
    }

    fn fails(&self, set: &BTreeSet<usize>) -> bool {
        self.bad.iter().any(|bad| bad.is_subset(set))
    }

    fn result(&self, set: &BTreeSet<usize>) -> SetResult {
        let mut failed = self.baseline.clone();
        if self.fails(set) {
            failed.insert("new".to_owned());
        }
        SetResult::Ran { failed }
    }

    /// Runs what is asked for until there is an answer, and returns it with the sets that were run.
    fn bisect(&self) -> (BisectionStep, Vec<BTreeSet<usize>>) {
        let mut results: SetResults = BTreeMap::new();
        let mut asked = Vec::new();
        let batch = SourceBatch {
            order: &self.order,
            dependencies: &self.dependencies,
            baseline: &self.baseline,
        };
        loop {
            match next(&batch, &results) {
                BisectionStep::Verify(set) => {
                    assert!(!results.contains_key(&set), "{set:?} is run twice");
                    assert!(asked.len() < STEPS_MAX, "{asked:?}");
                    results.insert(set.clone(), self.result(&set));
                    asked.push(set);
                }
                end => return (end, asked),
            }
        }
    }

    fn found(&self) -> Option<Culprits> {
        match self.bisect().0 {
            BisectionStep::Found(found) => Some(found),
            BisectionStep::Holds => None,
            BisectionStep::Verify(set) => panic!("{set:?} is no end"),
        }
    }

    /// What trying everything finds: the first source whose beginning fails, alone or with the
    /// smallest earlier one; `with` is nothing where it takes more.
    fn by_force(&self) -> Option<(usize, Option<BTreeSet<usize>>)> {
        let set = |sources: &[usize]| {
            with_dependencies(&sources.iter().copied().collect(), &self.dependencies)
        };
        let n = (1..=self.order.len()).find(|n| self.fails(&set(&self.order[..*n])))?;
        let source = self.order[n - 1];
        if self.fails(&set(&[source])) {
            return Some((source, Some(BTreeSet::new())));
        }
        let mut earlier = self.order[..n - 1].iter();
        let other = earlier.find(|other| self.fails(&set(&[**other, source])));
        Some((source, other.map(|other| BTreeSet::from([*other]))))
    }
}

#[test]
fn one_that_fails_alone_is_found_in_few_runs() {
    let truth = Truth::new(8, &[&[5]]);
    let (end, asked) = truth.bisect();
    let BisectionStep::Found(found) = end else {
        panic!("{end:?}");
    };
    assert_eq!(found.source, 5);
    assert_eq!(found.with, BTreeSet::new());
    assert_eq!(found.checks, BTreeSet::from(["new".to_owned()]));
    assert_eq!(found.shown_by, BTreeSet::from([5]));
    // The whole, three halvings, and the source alone.
    assert_eq!(asked.len(), 5, "{asked:?}");
}

#[test]
fn a_pair_is_found_and_three_that_fit_in_pairs_only() {
    let found = Truth::new(6, &[&[1, 4]]).found().expect("a pair");
    assert_eq!((found.source, found.with), (4, BTreeSet::from([1])));
    let found = Truth::new(6, &[&[0, 2, 4]]).found().expect("three");
    assert_eq!((found.source, found.with), (4, BTreeSet::from([0, 2])));
    let found = Truth::new(2, &[&[0, 1]]).found().expect("a pair");
    assert_eq!((found.source, found.with), (1, BTreeSet::from([0])));
}

#[test]
fn what_fails_before_blames_nobody() {
    let (end, asked) = Truth::new(4, &[]).bisect();
    assert_eq!(end, BisectionStep::Holds);
    assert_eq!(asked.len(), 1);
    let none = SourceBatch {
        order: &[],
        dependencies: &[],
        baseline: &BTreeSet::new(),
    };
    assert_eq!(next(&none, &BTreeMap::new()), BisectionStep::Holds);
}

#[test]
fn a_source_is_never_verified_without_what_it_builds_on() {
    let mut truth = Truth::new(4, &[&[3]]);
    truth.dependencies = vec![SourceDependency { source: 3, on: 1 }];
    let (end, asked) = truth.bisect();
    assert!(matches!(&end, BisectionStep::Found(found)
        if found.source == 3 && found.with.is_empty() && found.shown_by == BTreeSet::from([1, 3])));
    for set in asked {
        assert!(!set.contains(&3) || set.contains(&1), "{set:?}");
    }
}

#[test]
fn what_cannot_be_applied_shows_nothing() {
    let baseline = BTreeSet::new();
    let batch = SourceBatch {
        order: &[0, 1],
        dependencies: &[],
        baseline: &baseline,
    };
    let failed = SetResult::Ran {
        failed: BTreeSet::from(["new".to_owned()]),
    };
    let results = BTreeMap::from([
        (BTreeSet::from([0, 1]), failed),
        (BTreeSet::from([0]), SetResult::NoFit),
        (BTreeSet::from([1]), SetResult::NoFit),
    ]);
    let BisectionStep::Found(found) = next(&batch, &results) else {
        panic!("the pair is known to fail");
    };
    assert_eq!((found.source, found.with), (1, BTreeSet::from([0])));
}

proptest! {
    #[test]
    fn it_finds_what_trying_everything_finds(
        (n, bad) in (1_usize..9).prop_flat_map(|n| {
            let set = prop::collection::btree_set(0..n, 1..=n.min(3));
            (prop::strategy::Just(n), prop::collection::vec(set, 0..4))
        }),
        links in prop::collection::vec(any::<(u8, u8)>(), 0..3),
    ) {
        let mut truth = Truth::new(n, &[]);
        truth.bad = bad;
        truth.dependencies = links
            .iter()
            .map(|(one, other)| (usize::from(*one) % n, usize::from(*other) % n))
            .filter(|(one, other)| one > other)
            .map(|(source, on)| SourceDependency { source, on })
            .collect();
        let expected = truth.by_force();
        let found = truth.found();
        prop_assert_eq!(found.is_some(), expected.is_some());
        if let (Some(found), Some((source, with))) = (found, expected) {
            prop_assert_eq!(found.source, source);
            match with {
                Some(with) => prop_assert_eq!(found.with, with),
                None => prop_assert!(found.with.len() > 1 && truth.fails(&found.shown_by)),
            }
        }
    }
}
