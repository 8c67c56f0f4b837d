//! What one request of the kernel costs beside the system calls that any durable queue needs, and
//! beside a redis that syncs every write.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kapi_core::task_id::Holder;
use kapi_task::record::queue::Queue;

use super::many::time_submit;
use super::past::Past;
use super::redis::Client;
use super::{Peers, absent, directory, errand, member};
use crate::bench::BenchDirectory;
use crate::bench::comparison::measured;
use crate::bench::sample::{Work, by_turns};
use crate::bench::table::{ComparisonRow, ComparisonTable, Quantity};

const ROUNDS: usize = 400;
/// Requests of a task that is worked off: claim, begin, finish.
pub(super) const STEPS: u64 = 3;
/// Tasks that have ended before.
const PAST: u64 = 100;
const SUBMIT: &str = "submit a task";
const PUSH: &str = "redis, `LPUSH` of as many bytes, synced";

/// Measures single requests.
pub(super) fn compare(location: &BenchDirectory, peers: &Peers) -> anyhow::Result<ComparisonTable> {
    let root = directory(location, "cost");
    let past = Past::create(&root, PAST)?;
    let mut queue = Queue::open(&past.project)?;
    let own = queue.enlist()?;
    let sizes = sizes(&past, &mut queue, &own.holder)?;
    let submitted = vec![b'x'; usize::try_from(sizes.submit)?];
    let step = vec![b'x'; usize::try_from(sizes.step)?];
    let mut bare = member::open(&root.join("bare"))?;
    let row =
        |ours: &str, peer: &str, works: (Work<'_>, Work<'_>)| -> anyhow::Result<ComparisonRow> {
            Ok(measured(ours, peer, by_turns(ROUNDS, works.0, works.1)?))
        };
    let mut rows = vec![
        row(
            SUBMIT,
            "`write` and `fdatasync` of as many bytes",
            (&mut || time_submit(&mut queue), &mut || {
                write_and_sync(&mut bare, &submitted, 1)
            }),
        )?,
        row(
            SUBMIT,
            "lock, append, `fdatasync`, unlock",
            (&mut || time_submit(&mut queue), &mut || {
                time_locked(&mut bare, &submitted)
            }),
        )?,
    ];
    rows.push(match &peers.redis {
        Err(error) => absent(SUBMIT, PUSH, error),
        Ok(server) => {
            let mut client = Client::connect(&server.socket)?;
            let work: Work<'_> = &mut || time_push(&mut client, &submitted);
            row(SUBMIT, PUSH, (&mut || time_submit(&mut queue), work))?
        }
    });
    rows.push(row(
        "claim, begin and finish a task",
        "three times `write` and `fdatasync` of as many bytes",
        (&mut || time_work(&mut queue, &own.holder), &mut || {
            write_and_sync(&mut bare, &step, STEPS)
        }),
    )?);
    Ok(ComparisonTable {
        title: "One request of the kernel",
        note: format!(
            "A submit is a whole request: lock, look, decide, append and sync, fold; as often as the log has grown by 64 kB the fold is written, too. Its record has {} bytes; those of claim, begin and finish have {} on average. The peer with a lock opens the file once. {}.",
            sizes.submit,
            sizes.step,
            peers.versions()
        ),
        quantity: Quantity::Time,
        rows,
    })
}

/// Bytes in the log.
pub(super) struct Sizes {
    /// Of a task that is submitted.
    pub(super) submit: u64,
    /// Of one of the three requests that work it off, on average.
    pub(super) step: u64,
}

/// Finds out how much the log grows.
pub(super) fn sizes(past: &Past, queue: &mut Queue<'_>, holder: &Holder) -> anyhow::Result<Sizes> {
    let before = past.log_bytes()?;
    errand::submit(queue, errand::PROMPT)?;
    let between = past.log_bytes()?;
    errand::work_off(queue, holder)?;
    let after = past.log_bytes()?;
    Ok(Sizes {
        submit: between - before,
        step: (after - between) / STEPS,
    })
}

fn time_work(queue: &mut Queue<'_>, holder: &Holder) -> anyhow::Result<Duration> {
    errand::submit(queue, errand::PROMPT)?;
    let started = Instant::now();
    errand::work_off(queue, holder)?;
    Ok(started.elapsed())
}

fn time_locked(file: &mut File, bytes: &[u8]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    member::append_locked(file, bytes)?;
    Ok(started.elapsed())
}

fn time_push(client: &mut Client, bytes: &[u8]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    client.ask(&[b"LPUSH", b"pushed", bytes])?;
    Ok(started.elapsed())
}

fn write_and_sync(file: &mut File, bytes: &[u8], times: u64) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..times {
        file.write_all(bytes).context("write")?;
        file.sync_data().context("sync")?;
    }
    Ok(started.elapsed())
}
