//! Launches under power failures at every write.

use std::collections::BTreeSet;

use kapi_sys::sim_disk::Mutation;
use kapi_testkit::launch_sim::{KINDS, crash_everywhere};

/// One operation in so many: each takes a while; `cargo xtask sim --launches 1` takes them all.
const ONE_IN: u64 = 7;

#[test]
fn no_power_failure_loses_what_a_launch_did_or_counts_it_twice() {
    let tally = crash_everywhere(ONE_IN, None).unwrap_or_else(|found| panic!("{found}"));
    assert!(tally.cases >= 4 * (tally.ops / ONE_IN), "{tally:?}");
    assert!(
        tally.crashes > tally.cases,
        "most cases crash twice: {tally:?}"
    );
    // The story leads to everything that can be recorded.
    assert_eq!(tally.kinds, BTreeSet::from(KINDS), "{tally:?}");
}

#[test]
fn a_launch_log_that_does_not_sync_is_found_out() {
    for mistake in [
        Mutation::SkipFileSync,
        Mutation::SkipDirSync,
        Mutation::SkipTruncate,
    ] {
        let found = crash_everywhere(1, Some(&mistake));
        assert!(found.is_err(), "{mistake:?} was not noticed");
    }
}

#[test]
fn work_that_is_kept_before_its_agents_end_is_durable_is_found_out() {
    let mistake = Mutation::DelayAppendMatching("\"agent_ended\"".to_owned());
    let found = crash_everywhere(1, Some(&mistake));
    assert!(found.is_err(), "{mistake:?} was not noticed");
}
