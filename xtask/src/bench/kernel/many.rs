//! What requests cost after many tasks have ended, beside what they cost after few.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use kapi_task::record::queue::Queue;

use super::past::Past;
use super::{directory, errand};
use crate::bench::comparison::{compare as compare_programs, measured};
use crate::bench::invocation::Invocation;
use crate::bench::sample::by_turns;
use crate::bench::table::{ComparisonRow, ComparisonTable, Quantity};
use crate::bench::{BenchDirectory, program};
use crate::output::talk;

const SUBMIT_ROUNDS: usize = 500;
const OPEN_ROUNDS: usize = 500;
const STATUS_ROUNDS: usize = 60;
/// Tasks that have ended; the first is what the others are compared with.
const PASTS: [u64; 3] = [100, 10_000, 1_000_000];

/// Measures how requests depend on the past.
pub(super) fn compare(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let mut pasts = Vec::new();
    for n_ended in PASTS {
        let root = directory(location, &format!("past-{n_ended}"));
        talk(&format!("Making a past of {n_ended} tasks …"));
        program::make_project(&root)?;
        pasts.push(Past::create(&root, n_ended)?);
    }
    let (few, others) = pasts.split_first().context("find the shortest past")?;
    let mut rows = Vec::new();
    for past in others {
        rows.push(submits(past, few)?);
        rows.push(openings(past, few)?);
    }
    let mut first = Vec::new();
    for past in &pasts {
        first.push(errand::submit(
            &mut Queue::open(&past.project)?,
            errand::PROMPT,
        )?);
    }
    let waiting = first.iter().map(ToString::to_string);
    let ended = pasts
        .iter()
        .map(|past| format!("task_{}", past.n_ended / 2));
    for (what, tasks) in [
        ("that waits", waiting.collect::<Vec<_>>()),
        ("that ended long ago", ended.collect()),
    ] {
        let shown: Vec<Invocation> = pasts
            .iter()
            .zip(&tasks)
            .map(|(past, task)| status(location, past, what, task))
            .collect();
        if let Some((few, others)) = shown.split_first() {
            for many in others {
                rows.push(compare_programs(STATUS_ROUNDS, many, few)?);
            }
        }
    }
    Ok(ComparisonTable {
        title: "The kernel after many tasks",
        note: "A task is submitted by a process that has the queue open; the queue is opened by one that has not; `kapi show` is a whole program. A ratio near 1 means that tasks which have ended cost nothing. The events of each past were written in batches; fold and history are the queue's own work.".to_owned(),
        quantity: Quantity::Time,
        rows,
    })
}

fn submits(many: &Past, few: &Past) -> anyhow::Result<ComparisonRow> {
    let mut queue_of_many = Queue::open(&many.project)?;
    let mut queue_of_few = Queue::open(&few.project)?;
    let pair = by_turns(
        SUBMIT_ROUNDS,
        &mut || time_submit(&mut queue_of_many),
        &mut || time_submit(&mut queue_of_few),
    )?;
    Ok(measured(
        &format!("submit a task after {}", many.n_ended),
        &format!("after {}", few.n_ended),
        pair,
    ))
}

fn openings(many: &Past, few: &Past) -> anyhow::Result<ComparisonRow> {
    let pair = by_turns(OPEN_ROUNDS, &mut || time_open(many), &mut || time_open(few))?;
    Ok(measured(
        &format!("open the queue after {}", many.n_ended),
        &format!("after {}", few.n_ended),
        pair,
    ))
}

/// Submits a task, and takes it back unmeasured, so that no queue grows.
pub(super) fn time_submit(queue: &mut Queue<'_>) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let task = errand::submit(queue, errand::PROMPT)?;
    let took = started.elapsed();
    errand::cancel(queue, task)?;
    Ok(took)
}

/// Opens the queue, and lets its log grow unmeasured, so that every distance to the last fold
/// counts as often.
fn time_open(past: &Past) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut queue = Queue::open(&past.project)?;
    let took = started.elapsed();
    let totals = queue.kernel().totals;
    ensure!(
        totals.completed + totals.cancelled >= past.n_ended,
        "open the queue that was written"
    );
    time_submit(&mut queue)?;
    Ok(took)
}

fn status(location: &BenchDirectory, past: &Past, what: &str, task: &str) -> Invocation {
    let shown = format!("`kapi show` of one {what}, after {}", past.n_ended);
    let root: &Path = past.project.layout.root();
    let kapi = location.kapi.to_string_lossy();
    Invocation::new(&shown, root, &kapi, &["show", task])
}
