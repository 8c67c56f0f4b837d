//! The kernel's queue under power failures at every write, and processes that are killed.

use std::path::Path;
use std::time::Duration;

use kapi_sys::sim_disk::Mutation;
use kapi_testkit::kernel_sim::crash_everywhere;
use kapi_testkit::kernel_sim::storm::{StormOptions, storm};

const WORKER: &str = env!("CARGO_BIN_EXE_kapi-testkit-worker");

/// One operation in so many: each takes a while; `cargo xtask storm --crashes` takes them all.
const ONE_IN: u64 = 7;

#[test]
fn no_power_failure_loses_a_task_or_ends_one_twice() {
    let tally = crash_everywhere(ONE_IN, None).unwrap();
    assert!(tally.cases >= 4 * (tally.ops / ONE_IN), "{tally:?}");
}

#[test]
fn a_queue_that_does_not_sync_is_found_out() {
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
fn processes_that_are_killed_lose_nothing_and_repeat_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let options = StormOptions {
        tasks: 300,
        processes: 4,
        kill_every: Duration::from_millis(200),
        seed: 7,
        deadline: Duration::from_secs(480),
    };
    let stormed = storm(Path::new(WORKER), dir.path(), &options).unwrap();
    assert!(stormed.kills > 0, "nobody was killed: {stormed:?}");
    assert_eq!(stormed.judged.waited_ms.len(), 4, "{stormed:?}");
}
