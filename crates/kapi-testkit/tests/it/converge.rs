//! A thousand executors through the real core: what issue and specification promise of it.

use kapi_testkit::converge::executor::ExecutorKind;
use kapi_testkit::converge::{ConvergenceRules, converge};

#[test]
fn nothing_false_is_accepted_and_nothing_honest_is_lost() {
    for seed in 1..=3 {
        let table = converge(seed, 1_000).unwrap();
        let ours = table.total(ConvergenceRules::Kapi);
        assert_eq!(ours.executors, 1_000);
        assert_eq!(ours.false_done, 0, "\n{table}");
        assert_eq!(ours.honest_lost, 0, "\n{table}");
    }
}

#[test]
fn a_goal_ends_soon_after_its_last_useful_turn() {
    let table = converge(7, 1_000).unwrap();
    for kind in ExecutorKind::ALL {
        let row = table.row(ConvergenceRules::Kapi, kind);
        // Going back and forth between two trees takes one turn more to be seen.
        let most = if kind == ExecutorKind::Oscillator {
            3
        } else {
            2
        };
        assert!(row.wasted_max <= most, "{}\n{table}", kind.name());
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    assert_eq!(converge(11, 200).unwrap(), converge(11, 200).unwrap());
}

#[test]
fn the_rules_of_others_let_liars_through() {
    let table = converge(1, 1_000).unwrap();
    for kind in [
        ExecutorKind::Liar,
        ExecutorKind::TestEditor,
        ExecutorKind::Injector,
    ] {
        assert!(
            table.row(ConvergenceRules::Sentinel, kind).false_done > 0,
            "\n{table}"
        );
        assert!(
            table.row(ConvergenceRules::TextEvidence, kind).false_done > 0,
            "\n{table}"
        );
    }
}
