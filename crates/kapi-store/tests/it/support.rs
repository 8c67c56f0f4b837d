//! A stream on a disk, with events that mean nothing.

use std::path::{Path, PathBuf};

use kapi_core::actor::Actor;
use kapi_store::error::StoreError;
use kapi_store::record::{Batch, LogRecord, NewRecord};
use kapi_store::stream::{LogStream, StreamCursor};
use kapi_sys::disk::Disk;
use kapi_sys::sim_disk::SimDisk;
use serde_json::value::RawValue;

pub(crate) const ROOT: &str = "/project";

/// A simulated disk with an empty project on it.
pub(crate) fn sim_disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.provide_dir(Path::new(ROOT));
    disk
}

pub(crate) fn stream_in<'a>(disk: &'a dyn Disk, root: &Path) -> LogStream<'a> {
    LogStream {
        disk,
        name: "001-try".to_owned(),
        dir: root.join(".ilchul/goals/001-try"),
        anchor: root.to_path_buf(),
    }
}

pub(crate) fn stream(disk: &dyn Disk) -> LogStream<'_> {
    stream_in(disk, Path::new(ROOT))
}

pub(crate) fn log() -> PathBuf {
    Path::new(ROOT).join(".ilchul/goals/001-try/events.jsonl")
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// Makes a batch of events that hold these numbers.
pub(crate) fn batch<'a>(actor: &'a Actor, numbers: &[u32]) -> Batch<'a> {
    let payload = |number: &u32| NewRecord {
        kind: "counted".to_owned(),
        data: raw(&format!(r#"{{"number":{number}}}"#)),
    };
    Batch {
        actor,
        at_ms: 1_787_392_800_000,
        payloads: numbers.iter().map(payload).collect(),
    }
}

/// Loads, appends one batch and saves a fold, as a process does in one go.
pub(crate) fn record(stream: &LogStream<'_>, numbers: &[u32]) -> Result<StreamCursor, StoreError> {
    stream.disk.create_dir(&stream.dir)?;
    let held = stream.lock("test", 0)?;
    let mut cursor = stream.load()?.cursor;
    stream.settle(&held, &mut cursor)?;
    stream.append(&held, &mut cursor, &batch(&Actor::Engine, numbers))?;
    let fold = raw(&format!(r#"{{"events":{}}}"#, cursor.position.seq));
    stream.save(&held, &cursor, fold)?;
    Ok(cursor)
}

/// Returns the numbers of all events, read from the start.
pub(crate) fn numbers(stream: &LogStream<'_>) -> Vec<u32> {
    stream
        .load_all()
        .unwrap()
        .records
        .iter()
        .map(number)
        .collect()
}

pub(crate) fn number(record: &LogRecord) -> u32 {
    let data: serde_json::Value = serde_json::from_str(record.data.get()).unwrap();
    u32::try_from(data["number"].as_u64().unwrap()).unwrap()
}

/// Says an error and all its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
