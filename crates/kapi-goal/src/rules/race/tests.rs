//! The order of lanes, one criterion after the other, and its ties.

use proptest::prelude::{Strategy, any, prop, proptest};

use crate::rules::race::{
    DiffSize, Entrant, HiddenChecksResult, LaneProof, ProofTime, RankCriterion, RankedLane, first,
    rank,
};

fn lane(lane: u32) -> Entrant {
    Entrant {
        lane,
        proof: LaneProof::Proved,
        hidden: HiddenChecksResult::Passed,
        usd_micros: Some(100_000),
        tokens: 50_000,
        wall_ms: 60_000,
        diff: Some(DiffSize {
            files: 2,
            added: 10,
            removed: 5,
        }),
    }
}

/// Ranks lanes and returns their numbers, places and what put them before the next.
fn ranked(entrants: Vec<Entrant>) -> Vec<(u32, u32, Option<RankCriterion>)> {
    let line = |ranked: RankedLane| (ranked.entrant.lane, ranked.rank, ranked.ahead_by);
    rank(entrants).into_iter().map(line).collect()
}

/// Checks that lane 2 stands before lane 1, and why.
#[track_caller]
fn check(mut better: Entrant, mut worse: Entrant, by: RankCriterion) {
    better.lane = 2;
    worse.lane = 1;
    let expected = vec![(2, 1, Some(by)), (1, 2, None)];
    assert_eq!(ranked(vec![worse.clone(), better.clone()]), expected);
    assert_eq!(ranked(vec![better, worse]), expected);
}

#[test]
fn each_criterion_decides_where_those_before_it_are_equal() {
    let size = |files, added| {
        Some(DiffSize {
            files,
            added,
            removed: 0,
        })
    };
    let with = |change: &dyn Fn(&mut Entrant)| {
        let mut entrant = lane(0);
        change(&mut entrant);
        entrant
    };
    check(
        with(&|it| {
            it.hidden = HiddenChecksResult::NotAsked;
            it.usd_micros = Some(9_000_000);
        }),
        with(&|it| it.proof = LaneProof::Unproved),
        RankCriterion::Proof,
    );
    check(
        with(&|it| it.wall_ms = 900_000),
        with(&|it| it.hidden = HiddenChecksResult::Failed),
        RankCriterion::Hidden,
    );
    check(
        with(&|it| it.wall_ms = 900_000),
        with(&|it| it.usd_micros = Some(110_000)),
        RankCriterion::Cost,
    );
    check(
        with(&|it| it.diff = size(90, 900)),
        with(&|it| it.wall_ms = 61_000),
        RankCriterion::Time,
    );
    check(
        with(&|it| it.diff = size(9, 14)),
        with(&|it| it.diff = size(1, 15)),
        RankCriterion::Diff,
    );
    check(
        with(&|it| it.diff = size(1, 15)),
        with(&|it| it.diff = size(2, 15)),
        RankCriterion::Diff,
    );
    check(lane(0), with(&|it| it.diff = None), RankCriterion::Diff);
}

#[test]
fn proofs_and_hidden_checks_have_an_order() {
    let proofs = [
        LaneProof::Proved,
        LaneProof::Accepted,
        LaneProof::Unproved,
        LaneProof::Nothing,
    ];
    for (better, worse) in proofs.iter().zip(&proofs[1..]) {
        let of = |proof: &LaneProof| Entrant {
            proof: *proof,
            ..lane(0)
        };
        check(of(better), of(worse), RankCriterion::Proof);
    }
    let hidden = [
        HiddenChecksResult::Passed,
        HiddenChecksResult::NotAsked,
        HiddenChecksResult::Failed,
        HiddenChecksResult::NotReached,
    ];
    for (better, worse) in hidden.iter().zip(&hidden[1..]) {
        let of = |hidden: &HiddenChecksResult| Entrant {
            hidden: *hidden,
            ..lane(0)
        };
        check(of(better), of(worse), RankCriterion::Hidden);
    }
}

#[test]
fn what_nothing_tells_apart_shares_its_place() {
    let slow = Entrant {
        lane: 4,
        wall_ms: 99_000,
        ..lane(4)
    };
    // Less than a cent, a second or nothing at all is no difference.
    let almost = Entrant {
        usd_micros: Some(109_999),
        wall_ms: 60_999,
        ..lane(3)
    };
    assert_eq!(
        ranked(vec![slow, almost, lane(2), lane(1)]),
        [
            (1, 1, None),
            (2, 1, None),
            (3, 1, Some(RankCriterion::Time)),
            (4, 4, None)
        ]
    );
    assert_eq!(ranked(Vec::new()), []);
}

#[test]
fn cost_is_compared_in_what_all_of_them_report() {
    let quiet = |number| Entrant {
        usd_micros: None,
        ..lane(number)
    };
    // One of them does not know its price: tokens count.
    let thrifty = Entrant {
        tokens: 40_000,
        usd_micros: Some(90_000_000),
        ..lane(2)
    };
    assert_eq!(
        ranked(vec![quiet(1), thrifty]),
        [(2, 1, Some(RankCriterion::Cost)), (1, 2, None)]
    );
    // One of them reports nothing, and does not win by that.
    let silent = Entrant {
        tokens: 0,
        wall_ms: 70_000,
        ..quiet(2)
    };
    assert_eq!(
        ranked(vec![silent.clone(), lane(1)]),
        [(1, 1, Some(RankCriterion::Time)), (2, 2, None)]
    );
    // A lane that never worked does not spoil the comparison of the others.
    let absent = Entrant {
        proof: LaneProof::Nothing,
        diff: None,
        ..silent
    };
    let cheap = Entrant {
        usd_micros: Some(10_000),
        wall_ms: 90_000,
        ..lane(3)
    };
    assert_eq!(
        ranked(vec![absent, lane(1), cheap]),
        [
            (3, 1, Some(RankCriterion::Cost)),
            (1, 2, Some(RankCriterion::Proof)),
            (2, 3, None)
        ]
    );
}

#[test]
fn the_first_proof_wins_and_the_lowest_lane_of_the_same_millisecond() {
    let at = |at_ms, lane| ProofTime { at_ms, lane };
    assert_eq!(first(&[]), None);
    assert_eq!(first(&[at(9, 1), at(7, 3), at(8, 2)]), Some(3));
    assert_eq!(first(&[at(7, 3), at(7, 2), at(9, 1)]), Some(2));
}

fn entrants() -> impl Strategy<Value = Vec<Entrant>> {
    let proof = prop::sample::select(vec![
        LaneProof::Proved,
        LaneProof::Unproved,
        LaneProof::Nothing,
    ]);
    let hidden = prop::sample::select(vec![HiddenChecksResult::Passed, HiddenChecksResult::Failed]);
    let usd = prop::option::of(0..40_000_u64);
    let one = (
        proof,
        hidden,
        usd,
        0..3_000_u64,
        0..3_000_u64,
        any::<bool>(),
    );
    prop::collection::vec(one, 0..8).prop_map(|lanes| {
        let numbered = (1..).zip(lanes);
        let entrant = numbered.map(
            |(lane, (proof, hidden, usd_micros, tokens, wall_ms, has_diff))| Entrant {
                lane,
                proof,
                hidden,
                usd_micros,
                tokens,
                wall_ms,
                diff: has_diff.then(DiffSize::default),
            },
        );
        entrant.collect()
    })
}

proptest! {
    #[test]
    fn the_order_does_not_depend_on_the_order_of_arrival(mut lanes in entrants()) {
        let forward = rank(lanes.clone());
        lanes.reverse();
        assert_eq!(rank(lanes), forward);
        for pair in forward.windows(2) {
            assert!(pair[0].entrant.proof <= pair[1].entrant.proof);
            assert_eq!(pair[0].rank == pair[1].rank, pair[0].ahead_by.is_none());
        }
        assert!(forward.iter().enumerate().all(|(at, one)| one.rank as usize <= at + 1));
    }
}
