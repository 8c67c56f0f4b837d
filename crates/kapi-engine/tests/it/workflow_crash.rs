//! Workflows under power failures at every write.

use kapi_sys::sim_disk::Mutation;
use kapi_testkit::workflow_sim::crash_everywhere;

/// One operation in so many: each takes a while; `cargo xtask sim --workflows 1` takes them all.
const ONE_IN: u64 = 211;

#[test]
fn no_power_failure_loses_what_was_accepted() {
    let tally = crash_everywhere(ONE_IN, 1, None).unwrap();
    assert!(tally.cases >= tally.ops / ONE_IN, "{tally:?}");
    assert!(
        tally.crashes > tally.cases,
        "most cases crash twice: {tally:?}"
    );
    // The story leads through both modes to their ends.
    for kind in [
        "interview.spec_drafted",
        "interview.contradiction_named",
        "ralph.plan_reopened",
        "ralph.task_conflicted",
        "ralph.fix_planned",
        "ralph.accounted",
        "blocked",
        "abandoned",
        "completed",
    ] {
        assert!(tally.kinds.contains(kind), "{kind}: {tally:?}");
    }
}

fn check_found_out(mistake: &Mutation) {
    let found = crash_everywhere(3, 4, Some(mistake));
    assert!(found.is_err(), "{mistake:?} was not noticed");
}

#[test]
fn a_lost_event_is_found_out() {
    check_found_out(&Mutation::SkipFileSync);
}

#[test]
fn a_directory_that_is_never_synced_is_found_out() {
    check_found_out(&Mutation::SkipDirSync);
}

#[test]
fn a_torn_tail_that_is_never_cut_is_found_out() {
    check_found_out(&Mutation::SkipTruncate);
}

#[test]
fn an_effect_before_its_intent_is_found_out() {
    let intent = "\"effect_intended\"".to_owned();
    check_found_out(&Mutation::DelayAppendMatching(intent));
}
