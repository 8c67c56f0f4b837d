//! A few of the random schedules of `cargo xtask schedules`: every commit of a launch is its base and
//! the agent's own changes, whatever the person does meanwhile.

use std::path::Path;

use kapi_testkit::launch_schedule;

/// How many schedules the gate performs.
const SEEDS: u64 = 5;

#[test]
fn every_commit_is_the_base_and_the_agents_own_changes() {
    let kapi = Path::new(env!("CARGO_BIN_EXE_kapi"));
    for seed in 1..=SEEDS {
        let location = Path::new(env!("CARGO_TARGET_TMPDIR"));
        if let Err(failure) = launch_schedule::run(kapi, location, seed) {
            panic!("{failure}");
        }
    }
}
