//! Orders of a few sources by hand, and of any by their promises.

use std::collections::BTreeSet;

use proptest::prelude::{Strategy as _, prop};
use proptest::{prop_assert, proptest};

use super::{ForeseenClash, OrderError, OrderReason, SourceGraph, order};
use crate::rules::batch::SourceDependency;

fn on(source: usize, on: usize) -> SourceDependency {
    SourceDependency { source, on }
}

fn clash(one: usize, other: usize) -> ForeseenClash {
    ForeseenClash { one, other }
}

fn placed(
    n_sources: usize,
    dependencies: &[SourceDependency],
    clashes: &[ForeseenClash],
) -> Result<Vec<(usize, OrderReason)>, OrderError> {
    let placed = order(&SourceGraph {
        n_sources,
        dependencies,
        clashes,
    })?;
    let pairs = placed.into_iter().map(|one| (one.source, one.reason));
    Ok(pairs.collect())
}

fn fewest(with: &[usize]) -> OrderReason {
    OrderReason::FewestConflicts {
        with: with.iter().copied().collect(),
    }
}

#[test]
fn nothing_known_keeps_the_order_of_the_request() {
    use OrderReason::{NamedFirst, Only};
    let found = placed(3, &[], &[]);
    assert_eq!(found, Ok(vec![(0, NamedFirst), (1, NamedFirst), (2, Only)]));
    assert_eq!(placed(0, &[], &[]), Ok(vec![]));
}

#[test]
fn what_builds_on_another_comes_after_it_and_conflicts_come_late() {
    let on_two = OrderReason::BuildsOn(BTreeSet::from([2]));
    let found = placed(4, &[on(0, 2)], &[clash(1, 2), clash(1, 3)]);
    let expected = [
        (2, OrderReason::NamedFirst),
        (0, on_two),
        (1, OrderReason::NamedFirst),
        (3, OrderReason::Only),
    ];
    assert_eq!(found, Ok(expected.to_vec()));
    let found = placed(3, &[], &[clash(0, 1), clash(0, 2)]);
    let expected = [
        (1, OrderReason::NamedFirst),
        (0, OrderReason::NamedFirst),
        (2, OrderReason::Only),
    ];
    assert_eq!(found, Ok(expected.to_vec()));
    let found = placed(3, &[], &[clash(0, 1)]);
    assert_eq!(found.expect("an order").first(), Some(&(2, fewest(&[]))));
}

#[test]
fn a_circle_is_named_without_what_hangs_on_it() {
    let sources = vec![1, 3, 2];
    let circle = [on(0, 1), on(1, 3), on(3, 2), on(2, 1)];
    assert_eq!(placed(4, &circle, &[]), Err(OrderError::Cycle { sources }));
    let sources = vec![0];
    let own = placed(1, &[on(0, 0)], &[]);
    assert_eq!(own, Err(OrderError::Cycle { sources }));
    let unknown = placed(2, &[on(0, 5)], &[]);
    assert_eq!(unknown, Err(OrderError::Unknown { source_index: 5 }));
}

proptest! {
    #[test]
    fn every_source_has_one_place_behind_what_it_builds_on(
        (n, links, pairs) in (1_usize..8).prop_flat_map(|n| {
            let link = prop::collection::vec((0..n, 0..n), 0..10);
            (prop::strategy::Just(n), link.clone(), link)
        })
    ) {
        let dependencies: Vec<_> = links.iter().map(|(one, other)| on(*one, *other)).collect();
        let clashes: Vec<_> = pairs.iter().map(|(one, other)| clash(*one, *other)).collect();
        match placed(n, &dependencies, &clashes) {
            Ok(placed) => {
                let at = |source| placed.iter().position(|(one, _)| *one == source);
                prop_assert!((0..n).all(|source| at(source).is_some()) && placed.len() == n);
                for one in &dependencies {
                    prop_assert!(at(one.on) < at(one.source), "{one:?} in {placed:?}");
                }
            }
            Err(OrderError::Cycle { sources }) => {
                let nexts = sources.iter().cycle().skip(1);
                for (source, next) in sources.iter().zip(nexts) {
                    prop_assert!(dependencies.contains(&on(*source, *next)), "{sources:?}");
                }
                prop_assert!(!sources.is_empty());
            }
            Err(OrderError::Unknown { source_index }) => prop_assert!(false, "{source_index}"),
        }
    }
}
