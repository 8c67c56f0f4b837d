//! Batches are accepted once, in the place they were decided for, whatever happens to servers and
//! networks.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use kapi_fleet::error::FleetError;
use kapi_fleet::log::{BatchOutcome, FleetCursor, NetLog};

use crate::cluster::{Cluster, settings};
use crate::proxy::Proxy;
use crate::support::{Writer, check, pause, says};

const WRITERS: usize = 8;

fn open(cluster: &Cluster) -> NetLog {
    NetLog::open(cluster.settings(), "shop", "kernel").unwrap()
}

/// Eight writers race; `meanwhile` happens once all of them are at it. Returns their conflicts.
fn race(cluster: &mut Cluster, n_batches: u32, meanwhile: impl FnOnce(&mut Cluster)) -> u32 {
    let writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer::new(&format!("w{number}"), open(cluster)))
        .collect();
    let (at_half, reached) = sync_channel(WRITERS);
    std::thread::scope(|scope| {
        let threads: Vec<_> = writers
            .into_iter()
            .map(|mut writer| {
                let at_half = at_half.clone();
                let (first, second) = (0..n_batches / 2, n_batches / 2..n_batches);
                scope.spawn(move || {
                    first.for_each(|number| writer.append(number));
                    at_half.send(()).unwrap();
                    second.for_each(|number| writer.append(number));
                    writer.n_conflicts
                })
            })
            .collect();
        drop(at_half);
        reached.recv().unwrap();
        meanwhile(cluster);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    })
}

#[test]
fn eight_writers_lose_nothing_and_double_nothing_on_one_server() {
    let mut cluster = Cluster::one();
    let n_conflicts = race(&mut cluster, 25, |_| {});
    assert!(n_conflicts > 0, "they were in each other's way");
    check(&open(&cluster), WRITERS, 25);
}

#[test]
fn eight_writers_lose_nothing_and_double_nothing_while_a_server_is_killed() {
    let mut cluster = Cluster::three();
    let n_conflicts = race(&mut cluster, 10, |cluster| {
        cluster.wait_until_healthy();
        cluster.kill(0);
    });
    assert!(n_conflicts > 0, "they were in each other's way");
    check(&open(&cluster), WRITERS, 10);
    // The one that was away catches up, and another may go.
    cluster.start(0);
    let mut late = Writer::new("late", open(&cluster));
    late.append(0);
    cluster.wait_until_healthy();
    cluster.kill(1);
    late.append(1);
    let records = open(&cluster).load_all().unwrap().records;
    assert_eq!(records.len(), 2 * (WRITERS * 10 + 2));
}

#[test]
fn whoever_is_cut_off_fails_in_time_and_goes_on_when_the_network_is_back() {
    let cluster = Cluster::one();
    let mut free = Writer::new("free", open(&cluster));
    let proxy = Proxy::to(cluster.ports()[0]);
    let mut far = settings(&[proxy.port]);
    far.patience = Duration::from_secs(3);
    let log = NetLog::open(far, "shop", "kernel").unwrap();
    let mut cut = Writer::new("cut", log);
    cut.append(0);
    proxy.cut();
    let error = cut.try_append(1).unwrap_err();
    assert!(matches!(error, FleetError::Unknown { .. }), "{error:?}");
    let error = cut.log.read_more(&mut cut.cursor).unwrap_err();
    assert!(matches!(error, FleetError::Unreachable { .. }), "{error:?}");
    // The others go on as if nothing were.
    free.append(0);
    proxy.mend();
    assert_eq!(cut.try_append(1).unwrap(), BatchOutcome::Conflict);
    cut.append(1);
    let names: Vec<_> = free
        .log
        .load_all()
        .unwrap()
        .records
        .iter()
        .map(says)
        .collect();
    let expected = [("cut", 0), ("free", 0), ("cut", 1)];
    let expected = expected.map(|(name, number)| (name.to_owned(), number));
    assert_eq!(
        names,
        expected
            .iter()
            .flat_map(|one| [one.clone(), one.clone()])
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_batch_whose_answer_was_lost_is_there_once_and_known_to_be() {
    let cluster = Cluster::one();
    let proxy = Proxy::to(cluster.ports()[0]);
    let log = NetLog::open(settings(&[proxy.port]), "shop", "kernel").unwrap();
    let mut deaf = Writer::new("deaf", log);
    deaf.append(0);
    let watched = open(&cluster);
    proxy.deafen();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| deaf.try_append(1).unwrap());
        // Mended only once the server has accepted it.
        let mut cursor = FleetCursor::start();
        let mut n = 0;
        while n < 4 {
            n += watched.read_more(&mut cursor).unwrap().len();
            pause();
        }
        proxy.mend();
        let appended = thread.join().unwrap();
        assert!(matches!(appended, BatchOutcome::Accepted(records) if records.len() == 2));
    });
    deaf.append(2);
    check(&watched, 1, 3);
}

#[test]
fn two_who_say_the_same_in_the_same_millisecond_are_told_apart() {
    let cluster = Cluster::one();
    let mut first = Writer::new("same", open(&cluster));
    let mut second = Writer::new("same", open(&cluster));
    assert!(matches!(
        first.try_append(0).unwrap(),
        BatchOutcome::Accepted(_)
    ));
    assert_eq!(second.try_append(0).unwrap(), BatchOutcome::Conflict);
    assert_eq!(open(&cluster).load_all().unwrap().records.len(), 2);
}

#[test]
fn what_was_changed_or_is_not_ours_is_refused() {
    let cluster = Cluster::one();
    let log = open(&cluster);
    let mut writer = Writer::new("w", log);
    writer.append(0);
    // Another kind of stream in the same place.
    let other = NetLog::open(cluster.settings(), "shop", "other").unwrap();
    let error = other.load().unwrap_err();
    assert!(
        matches!(error, FleetError::Corrupt { message: 1, .. }),
        "{error:?}"
    );
    // Another project is another log.
    let elsewhere = NetLog::open(cluster.settings(), "bakery", "kernel").unwrap();
    assert_eq!(elsewhere.load().unwrap().records, []);
}

#[test]
fn a_batch_that_no_server_takes_is_refused_before_it_is_sent() {
    let cluster = Cluster::one();
    let mut writer = Writer::new(&"w".repeat(2 << 20), open(&cluster));
    let error = writer.try_append(0).unwrap_err();
    assert!(matches!(error, FleetError::TooLarge { .. }), "{error:?}");
    writer.name = "w".to_owned();
    writer.append(0);
}
