//! Appending, loading, torn tails and damage.

use std::path::Path;

use kapi_core::actor::Actor;
use kapi_store::error::StoreError;
use kapi_sys::disk::Disk as _;
use kapi_sys::lock::LockError;
use kapi_sys::real_disk::RealDisk;
use kapi_sys::sim_disk::SimDisk;

use crate::support::{
    ROOT, batch, chain, log, number, numbers, raw, record, sim_disk, stream, stream_in,
};

#[test]
fn a_line_has_its_golden_form() {
    let disk = sim_disk();
    let stream = stream(&disk);
    stream.disk.create_dir(&stream.dir).unwrap();
    let held = stream.lock("test", 0).unwrap();
    let mut cursor = stream.load().unwrap().cursor;
    let person = Actor::Human {
        user: "ada".to_owned(),
    };
    stream
        .append(&held, &mut cursor, &batch(&person, &[1, 2]))
        .unwrap();
    let text = String::from_utf8(disk.snapshot()[&log()].clone()).unwrap();
    let golden = concat!(
        r#"{"v":1,"seq":1,"at":"2026-08-22T10:00:00.000Z","id":"001-try#1","type":"counted","#,
        r#""actor":{"kind":"human","user":"ada"},"data":{"number":1},"#,
        r#""prev":"0000000000000000000000000000000000000000000000000000000000000000","more":true}"#,
        "\n",
        r#"{"v":1,"seq":2,"at":"2026-08-22T10:00:00.000Z","id":"001-try#2","type":"counted","#,
        r#""actor":{"kind":"human","user":"ada"},"data":{"number":2},"#,
        r#""prev":"1bebc5f2ad1410de7d33a21643c37ed46d9b5acc72eb51bbc057664eb5590b8a"}"#,
        "\n",
    );
    assert_eq!(text, golden);
}

#[test]
fn what_was_appended_is_loaded() {
    let disk = sim_disk();
    let stream = stream(&disk);
    record(&stream, &[1]).unwrap();
    record(&stream, &[2, 3]).unwrap();
    let cursor = record(&stream, &[4]).unwrap();
    assert_eq!(numbers(&stream), [1, 2, 3, 4]);
    assert_eq!(cursor.position.seq, 4);
    let loaded = stream.load().unwrap();
    assert_eq!(loaded.state.unwrap().get(), r#"{"events":4}"#);
    assert_eq!(loaded.records, []);
    assert_eq!(loaded.cursor, cursor);
}

#[test]
fn an_empty_stream_is_no_error() {
    let disk = sim_disk();
    let loaded = stream(&disk).load().unwrap();
    assert!(loaded.state.is_none() && loaded.records.is_empty());
    assert_eq!(loaded.cursor.position.seq, 0);
}

#[test]
fn only_the_records_after_the_fold_come_with_it() {
    let disk = sim_disk();
    let stream = stream(&disk);
    record(&stream, &[1, 2]).unwrap();
    let held = stream.lock("test", 0).unwrap();
    let mut cursor = stream.load().unwrap().cursor;
    stream
        .append(&held, &mut cursor, &batch(&Actor::Engine, &[3]))
        .unwrap();
    let loaded = stream.load().unwrap();
    assert_eq!(loaded.state.unwrap().get(), r#"{"events":2}"#);
    assert_eq!(loaded.records.iter().map(number).collect::<Vec<_>>(), [3]);
}

fn replace(bytes: &mut Vec<u8>, from: &str, to: &str) {
    *bytes = String::from_utf8(bytes.clone())
        .unwrap()
        .replace(from, to)
        .into();
}

#[test]
fn a_fold_that_cannot_be_read_is_done_without() {
    let damage: [fn(&mut Vec<u8>); 5] = [
        Vec::clear,
        |bytes| bytes.truncate(40),
        |bytes| replace(bytes, "{\"v\":2", "{\"v\":99"),
        // Another state of the same length.
        |bytes| replace(bytes, "\"events\":2", "\"events\":3"),
        |bytes| bytes.fill(0),
    ];
    for damage in damage {
        let disk = sim_disk();
        let stream = stream(&disk);
        record(&stream, &[1, 2]).unwrap();
        let mut bytes = disk.snapshot()[&stream.state()].clone();
        damage(&mut bytes);
        disk.write(&stream.state(), &bytes).unwrap();
        let loaded = stream.load().unwrap();
        assert!(loaded.state.is_none());
        assert_eq!(
            loaded.records.iter().map(number).collect::<Vec<_>>(),
            [1, 2]
        );
        record(&stream, &[3]).unwrap();
        assert_eq!(
            stream.load().unwrap().state.unwrap().get(),
            r#"{"events":3}"#
        );
    }
}

/// Records 1 and 2, then puts these bytes at the end of the log, as a dying process does.
fn with_tail(tail: &[u8]) -> SimDisk {
    let disk = sim_disk();
    record(&stream(&disk), &[1]).unwrap();
    record(&stream(&disk), &[2]).unwrap();
    disk.append(&log(), tail).unwrap();
    disk
}

/// Returns the bytes that appending these numbers after 1 and 2 would add.
fn next_bytes(next: &[u32]) -> Vec<u8> {
    let disk = with_tail(b"");
    let before = disk.snapshot()[&log()].len();
    record(&stream(&disk), next).unwrap();
    disk.snapshot()[&log()][before..].to_vec()
}

#[test]
fn a_torn_tail_is_ignored_by_readers_and_cut_by_the_next_writer() {
    let torn = next_bytes(&[30, 31]);
    for length in 1..torn.len() {
        let disk = with_tail(&torn[..length]);
        let stream = stream(&disk);
        let before = disk.snapshot();
        assert_eq!(numbers(&stream), [1, 2], "{length}");
        assert_eq!(stream.load().unwrap().records, []);
        assert_eq!(disk.snapshot(), before, "reading changes nothing");
        record(&stream, &[3]).unwrap();
        assert_eq!(numbers(&stream), [1, 2, 3], "{length}");
    }
}

#[test]
fn a_tail_of_zeros_is_torn_too() {
    let disk = with_tail(&[0; 4096]);
    record(&stream(&disk), &[3]).unwrap();
    assert_eq!(numbers(&stream(&disk)), [1, 2, 3]);
}

#[test]
fn a_whole_batch_that_nobody_acknowledged_counts() {
    let disk = with_tail(&next_bytes(&[3, 4]));
    let stream = stream(&disk);
    assert_eq!(numbers(&stream), [1, 2, 3, 4]);
    record(&stream, &[5]).unwrap();
    assert_eq!(numbers(&stream), [1, 2, 3, 4, 5]);
}

fn check_refused(disk: &SimDisk, expected: &str) {
    let stream = stream(disk);
    let before = disk.snapshot();
    let error = stream.load().unwrap_err();
    assert_eq!(
        chain(&error),
        format!("trust {ROOT}/.ilchul/goals/001-try/events.jsonl {expected}")
    );
    assert!(error.hint().unwrap().contains("kapi audit"));
    assert!(record(&stream, &[9]).is_err());
    assert_eq!(disk.snapshot(), before, "a damaged log is not touched");
}

#[test]
fn a_finished_line_that_does_not_follow_is_refused() {
    check_refused(
        &with_tail(b"garbage\n"),
        "at line 3: the line is not a record: expected value at line 1 column 1",
    );
    check_refused(
        &with_tail(b"\n"),
        "at line 3: the line is not a record: EOF while parsing a value at line 1 column 0",
    );
    let first = next_bytes(&[3]);
    let text = String::from_utf8(first.clone()).unwrap();
    let doubled = [first.clone(), first].concat();
    check_refused(
        &with_tail(&doubled),
        "at line 4: the record has number 3 where 4 was expected",
    );
    let gap = text.replace("\"seq\":3", "\"seq\":5");
    check_refused(
        &with_tail(gap.as_bytes()),
        "at line 3: the record has number 5 where 3 was expected",
    );
    let forged = text
        .replace("\"prev\":\"", "\"prev\":\"0")
        .replace("0\"}", "\"}");
    assert_ne!(forged, text);
    check_refused(
        &with_tail(forged.as_bytes()),
        "at line 3: the hash of the previous line does not match",
    );
    let elsewhere = text.replace("001-try#3", "002-other#3");
    check_refused(
        &with_tail(elsewhere.as_bytes()),
        "at line 3: the record's id is \"002-other#3\" where \"001-try#3\" was expected",
    );
    let newer = text.replace("{\"v\":1", "{\"v\":2");
    check_refused(
        &with_tail(newer.as_bytes()),
        "at line 3: the record has version 2, this program reads version 1",
    );
    let no_newline = text.replace('\n', "x");
    check_refused(
        &with_tail(no_newline.as_bytes()),
        "at line 3: the newline after the record was changed",
    );
}

#[test]
fn an_acknowledged_line_that_was_cut_or_changed_is_refused() {
    let disk = with_tail(b"");
    let length = disk.snapshot()[&log()].len();
    disk.truncate(&log(), length as u64 - 1).unwrap();
    let (accepted, found) = (length, length - 1);
    check_refused(
        &disk,
        &format!("at line 2: the log has {found} bytes, {accepted} were accepted"),
    );

    let whole = disk_bytes(&with_tail(b""));
    let last_line = whole[..length - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for offset in last_line..length {
        let disk = with_tail(b"");
        let mut bytes = whole.clone();
        bytes[offset] ^= 1;
        disk.write(&log(), &bytes).unwrap();
        check_refused(
            &disk,
            "at line 2: the line was changed after it was accepted",
        );
    }
}

fn disk_bytes(disk: &SimDisk) -> Vec<u8> {
    disk.snapshot()[&log()].clone()
}

#[test]
fn a_changed_byte_is_found_when_everything_is_read() {
    let whole = disk_bytes(&with_tail(&next_bytes(&[3])));
    let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for offset in 0..=first_line {
        let disk = with_tail(&next_bytes(&[3]));
        let mut bytes = whole.clone();
        bytes[offset] ^= 1;
        disk.write(&log(), &bytes).unwrap();
        let error = stream(&disk).load_all().unwrap_err();
        let StoreError::Corrupt { line, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(line, 1, "byte {offset}");
    }
}

#[test]
fn an_event_that_is_too_long_is_refused_and_changes_nothing() {
    let disk = with_tail(b"");
    let stream = stream(&disk);
    let held = stream.lock("test", 0).unwrap();
    let mut cursor = stream.load().unwrap().cursor;
    let mut long = batch(&Actor::Engine, &[3]);
    long.payloads[0].data = raw(&format!("\"{}\"", "x".repeat(5 * 1024 * 1024)));
    let before = disk.snapshot();
    let error = stream.append(&held, &mut cursor, &long).unwrap_err();
    assert!(matches!(error, StoreError::TooLong { .. }), "{error}");
    assert_eq!(disk.snapshot(), before);
    stream
        .append(&held, &mut cursor, &batch(&Actor::Engine, &[3]))
        .unwrap();
    assert_eq!(numbers(&stream), [1, 2, 3]);
}

#[test]
fn a_reader_follows_a_growing_log() {
    let disk = sim_disk();
    let stream = stream(&disk);
    record(&stream, &[1]).unwrap();
    let mut cursor = stream.load().unwrap().cursor;
    assert!(!stream.has_changed(&cursor).unwrap());
    record(&stream, &[2, 3]).unwrap();
    assert!(stream.has_changed(&cursor).unwrap());
    let more: Vec<u32> = stream
        .read_more(&mut cursor)
        .unwrap()
        .iter()
        .map(number)
        .collect();
    assert_eq!(more, [2, 3]);
    assert!(stream.read_more(&mut cursor).unwrap().is_empty());
    // A torn tail replaced by as many bytes must not look like no change.
    let bytes = next_bytes(&[4]);
    disk.append(&log(), &bytes[..10]).unwrap();
    stream.read_more(&mut cursor).unwrap();
    assert!(stream.has_changed(&cursor).unwrap());
}

#[test]
fn a_held_lock_names_its_holder() {
    let disk = sim_disk();
    let stream = stream(&disk);
    let _held = stream.lock("kapi run", 0).unwrap();
    let error = stream.lock("kapi cancel", 0).unwrap_err();
    let StoreError::Lock(LockError::Busy { owner, .. }) = &error else {
        panic!("{error}")
    };
    assert!(owner.contains("kapi run"), "{owner}");
    assert!(error.hint().unwrap().contains("wait for"));
}

#[test]
fn the_real_disk_keeps_a_stream_too() {
    let dir = tempfile::tempdir().unwrap();
    let root: &Path = dir.path();
    let stream = stream_in(&RealDisk, root);
    record(&stream, &[1]).unwrap();
    record(&stream, &[2, 3]).unwrap();
    RealDisk.append(&stream.log(), b"{\"v\":1,\"se").unwrap();
    assert_eq!(numbers(&stream), [1, 2, 3]);
    record(&stream, &[4]).unwrap();
    assert_eq!(numbers(&stream), [1, 2, 3, 4]);
    let names = RealDisk.list(&stream.dir).unwrap();
    assert_eq!(names, ["events.jsonl", "lock", "state.json"]);
}
