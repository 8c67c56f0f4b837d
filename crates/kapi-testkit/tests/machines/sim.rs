//! The crash simulation, and the proof that its oracles see planted mistakes.

use kapi_testkit::oracle::Oracle;
use kapi_testkit::sim::{Effort, SimOptions, simulate};
use kapi_testkit::sim_mistake::{MISTAKES, Mistake};

/// Printed by every failure; `cargo xtask sim --seed N` shows it again.
const SEED: u64 = 1;

#[test]
fn a_crash_anywhere_is_repaired_by_starting_again() {
    let options = SimOptions {
        effort: Effort::Sample(3),
        mistake: None,
    };
    let tally = simulate(SEED, &options).unwrap_or_else(|found| panic!("{found}"));
    assert!(
        tally.crashes > tally.cases,
        "most cases crash twice: {tally:?}"
    );
}

/// Plants a mistake and returns the oracle that notices it.
fn noticed(mistake: Mistake, effort: Effort) -> Option<Oracle> {
    let options = SimOptions {
        effort,
        mistake: Some(mistake),
    };
    let found = simulate(SEED, &options).err();
    found.map(|found| found.violation.oracle)
}

#[test]
fn a_file_that_is_never_synced_is_noticed() {
    assert_eq!(
        noticed(Mistake::NoFileSync, Effort::Sample(3)),
        Some(Oracle::Intent)
    );
}

#[test]
fn a_directory_that_is_never_synced_is_noticed() {
    assert_eq!(
        noticed(Mistake::NoDirSync, Effort::Sample(3)),
        Some(Oracle::Intent)
    );
}

#[test]
fn a_torn_tail_that_is_never_cut_is_noticed() {
    // Old and new bytes in one line: the log cannot be read any more.
    let oracle = noticed(Mistake::NoTailRepair, Effort::EveryFirst);
    assert!(
        matches!(oracle, Some(Oracle::Convergence | Oracle::Prefix)),
        "{oracle:?}"
    );
}

#[test]
fn an_effect_before_its_intent_is_noticed() {
    assert_eq!(
        noticed(Mistake::EffectBeforeIntent, Effort::Sample(3)),
        Some(Oracle::Intent)
    );
}

#[test]
fn an_effect_id_used_twice_is_noticed() {
    assert_eq!(
        noticed(Mistake::ReusedEffectId, Effort::Sample(3)),
        Some(Oracle::Once)
    );
}

#[test]
fn an_agent_that_works_on_a_half_done_turn_is_noticed() {
    assert_eq!(
        noticed(Mistake::NoRestore, Effort::EveryFirst),
        Some(Oracle::Convergence)
    );
}

#[test]
fn a_commit_on_somebody_elses_branch_is_noticed() {
    assert_eq!(
        noticed(Mistake::WrongBranch, Effort::Sample(3)),
        Some(Oracle::Ownership)
    );
}

#[test]
fn no_mistake_goes_unnoticed() {
    for mistake in MISTAKES {
        assert!(
            noticed(mistake, Effort::EveryFirst).is_some(),
            "no oracle sees {mistake:?}"
        );
    }
}
