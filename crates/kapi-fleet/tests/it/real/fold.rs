//! What is kept beside the log: the fold, what has ended, the time; and waiting for news.

use std::time::Duration;

use kapi_fleet::log::{FleetCursor, NetLog};
use kapi_fleet::watch::News;
use kapi_sys::clock::{StepClock, SystemClock};
use serde_json::value::{RawValue, to_raw_value};

use crate::cluster::Cluster;
use crate::support::{Writer, says};

fn open(cluster: &Cluster) -> NetLog {
    NetLog::open(cluster.settings(), "shop", "kernel").unwrap()
}

/// A fold of more than one part and more than one server takes in one message.
fn state(mark: u64) -> Box<RawValue> {
    to_raw_value(&(mark, "x".repeat(1_300_000))).unwrap()
}

#[test]
fn the_fold_goes_only_forwards_and_loads_with_what_came_after() {
    let cluster = Cluster::one();
    let mut writer = Writer::new("w", open(&cluster));
    assert!(writer.log.load().unwrap().state.is_none());
    (0..3).for_each(|number| writer.append(number));
    let early = writer.cursor.clone();
    (3..5).for_each(|number| writer.append(number));
    let late = writer.cursor.clone();
    assert!(writer.log.save(&late, state(5)).unwrap());
    assert!(
        !writer.log.save(&early, state(3)).unwrap(),
        "an older one changes nothing"
    );
    assert!(
        !writer.log.save(&late, state(6)).unwrap(),
        "nor does one as old"
    );
    (5..7).for_each(|number| writer.append(number));
    let other = open(&cluster);
    let loaded = other.load().unwrap();
    assert_eq!(loaded.state.unwrap().get(), state(5).get());
    assert_eq!(loaded.cursor, writer.cursor);
    let numbers: Vec<u32> = loaded.records.iter().map(|record| says(record).1).collect();
    assert_eq!(numbers, [5, 5, 6, 6]);
    assert_eq!(other.saved_seq().unwrap(), 10);
    // The one after it replaces it, and leaves nothing of it behind.
    assert!(writer.log.save(&writer.cursor, state(7)).unwrap());
    assert_eq!(other.load().unwrap().state.unwrap().get(), state(7).get());
    assert_eq!(other.load_all().unwrap().records.len(), 14);
}

#[test]
fn savers_that_race_leave_one_whole_fold() {
    let cluster = Cluster::three();
    let mut writer = Writer::new("w", open(&cluster));
    let mut savers: Vec<(NetLog, FleetCursor)> = Vec::new();
    for number in 0..4 {
        writer.append(number);
        savers.push((open(&cluster), writer.cursor.clone()));
    }
    let n_saved: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = savers
            .iter()
            .map(|(log, cursor)| scope.spawn(|| log.save(cursor, state(cursor.message)).unwrap()))
            .collect();
        let saved = threads.into_iter().map(|thread| thread.join().unwrap());
        saved.filter(|is_saved| *is_saved).count()
    });
    assert!(n_saved >= 1, "somebody was first");
    let log = open(&cluster);
    let loaded = log.load().unwrap();
    let saved_seq = log.saved_seq().unwrap();
    let state_text = loaded.state.unwrap();
    assert_eq!(state_text.get(), state(saved_seq / 2).get());
    assert_eq!(loaded.records.len() as u64, 8 - saved_seq);
}

#[test]
fn what_has_ended_is_found_by_its_segment() {
    let cluster = Cluster::one();
    let past = open(&cluster).past();
    assert_eq!(past.segments().unwrap(), [0_u64; 0]);
    let line = |text: &str| format!("{text}\n").into_bytes();
    let long = "y".repeat(200_000);
    past.add(12, &[line("a"), line(&long), line(&long)])
        .unwrap();
    past.add(3, &[line("b")]).unwrap();
    past.add(12, &[line("c")]).unwrap();
    assert_eq!(past.segments().unwrap(), [3, 12]);
    let text = String::from_utf8(past.read(12).unwrap()).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), ["a", &long, &long, "c"]);
    assert_eq!(past.read(3).unwrap(), b"b\n");
    assert_eq!(past.read(4).unwrap(), b"");
}

#[test]
fn the_clusters_time_is_known_whatever_this_machine_believes() {
    let cluster = Cluster::one();
    let log = open(&cluster);
    let offset_ms = log.clock_offset_ms(&SystemClock).unwrap();
    assert_eq!(offset_ms, 0, "it is the same machine");
    let lag_ms = log.clock_offset_ms(&StepClock::new(0)).unwrap();
    assert!(lag_ms > 1_700_000_000_000, "{lag_ms}");
}

#[test]
fn who_waits_is_told_of_what_was_accepted_and_of_nothing_else() {
    let cluster = Cluster::one();
    let mut writer = Writer::new("w", open(&cluster));
    let mut late = Writer::new("late", open(&cluster));
    let mut watch = writer.log.watch().unwrap();
    let (soon, long) = (Duration::from_millis(200), Duration::from_secs(120));
    assert_eq!(
        watch.wait(long).unwrap(),
        News::Some,
        "what was before is news"
    );
    assert_eq!(watch.wait(soon).unwrap(), News::None);
    writer.append(0);
    assert_eq!(watch.wait(long).unwrap(), News::Some);
    late.try_append(0).unwrap();
    assert_eq!(
        watch.wait(soon).unwrap(),
        News::None,
        "what was refused is no news"
    );
    // A wait that is under way ends with the news.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| watch.wait(long).unwrap());
        writer.append(1);
        assert_eq!(thread.join().unwrap(), News::Some);
    });
}

#[test]
fn who_waits_is_told_when_the_server_it_listened_to_is_gone() {
    let mut cluster = Cluster::three();
    let mut writer = Writer::new("w", open(&cluster));
    let mut watch = writer.log.watch().unwrap();
    let long = Duration::from_secs(120);
    assert_eq!(watch.wait(long).unwrap(), News::Some);
    // Whichever server it listens to, it hears of what is appended after that one is gone.
    for (number, gone) in [0, 1, 2].into_iter().enumerate() {
        cluster.wait_until_healthy();
        cluster.kill(gone);
        writer.append(u32::try_from(number).unwrap());
        assert_eq!(watch.wait(long).unwrap(), News::Some);
        cluster.start(gone);
        writer.append(u32::try_from(number).unwrap() + 10);
        while watch.wait(Duration::from_millis(500)).unwrap() == News::Some {}
    }
}
