//! The kernel's queue on real servers, under processes that are killed and a server that is.

use std::path::Path;
use std::time::Duration;

use kapi_fleet::address::Address;
use kapi_fleet::client::FleetSettings;
use kapi_task::record::store::KernelStore;
use kapi_testkit::cluster::Cluster;
use kapi_testkit::kernel_sim::storm::{ForeignStore, StormOptions, storm_elsewhere};

const WORKER: &str = env!("CARGO_BIN_EXE_kapi-testkit-worker");

#[test]
fn processes_and_a_server_that_are_killed_lose_nothing_and_repeat_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(3, dir.path()).unwrap();
    let address = cluster.address();
    let store = KernelStore::Fleet {
        settings: FleetSettings {
            address: Address::parse(&address).unwrap(),
            authorities: None,
            replicas: 3,
            patience: Duration::from_secs(60),
        },
        project: "storm".to_owned(),
    };
    let options = StormOptions {
        tasks: 500,
        processes: 4,
        kill_every: Duration::from_secs(1),
        seed: 7,
        deadline: Duration::from_secs(480),
    };
    let mut killed = |kills: u64| {
        if kills == 2 {
            cluster.wait_until_healthy().unwrap();
            cluster.kill(0).unwrap();
        }
    };
    let elsewhere = ForeignStore {
        store: &store,
        address: &address,
        killed: &mut killed,
    };
    let stormed = storm_elsewhere(Path::new(WORKER), dir.path(), &options, elsewhere).unwrap();
    assert!(stormed.kills > 2, "no server was killed: {stormed:?}");
    assert_eq!(stormed.judged.waited_ms.len(), 4, "{stormed:?}");
}
