//! How soon a task starts: from before it is submitted until another process has begun its work.
//!
//! The other process was asleep. That its work has begun is told through a pipe, for every side
//! alike.

use std::time::{Duration, Instant};

use kapi_task::record::queue::Queue;

use super::crew::{Member, member as name_member};
use super::member::{BEGUN, IDLE, READY};
use super::past::Past;
use super::redis::{Client, Server};
use super::rq::Rq;
use super::{Peers, absent, directory, errand};
use crate::bench::BenchDirectory;
use crate::bench::comparison::measured;
use crate::bench::sample::by_turns;
use crate::bench::table::{ComparisonRow, ComparisonTable, Quantity};

const ROUNDS: usize = 300;
const RQ_ROUNDS: usize = 100;
const PAST: u64 = 100;
const OURS: &str = "`kapi`, from submit to start";
const REDIS: &str = "redis, from `LPUSH` to the end of `BRPOP`, synced";
const RQ: &str = "rq, from enqueue to start, on redis, synced";

/// Measures the time from submitting to starting.
pub(super) fn compare(location: &BenchDirectory, peers: &Peers) -> anyhow::Result<ComparisonTable> {
    let redis = match &peers.redis {
        Ok(server) => beside_redis(location, server)?,
        Err(error) => absent(OURS, REDIS, error),
    };
    let rq = match &peers.rq {
        Ok(rq) => beside_rq(location, rq)?,
        Err(error) => absent(OURS, RQ, error),
    };
    Ok(ComparisonTable {
        title: "From submit to start",
        note: format!(
            "One process submits; a worker, another process, sleeps until its directory changes, claims the task, records that it begins, and begins. Until then ours has made three durable records. A plain list in redis makes two, and forgets what it gave to a worker that dies. {}.",
            peers.versions()
        ),
        quantity: Quantity::Time,
        rows: vec![redis, rq],
    })
}

fn beside_redis(location: &BenchDirectory, server: &Server) -> anyhow::Result<ComparisonRow> {
    let mut client = Client::connect(&server.socket)?;
    let socket = server.socket.to_string_lossy();
    let popping = name_member(&location.scratch, &["pop", &socket])?;
    let mut popping = Member::start(&popping)?;
    let prompt = errand::PROMPT.as_bytes();
    let pair = with_ours(location, "start-redis", ROUNDS, &mut || {
        popping.hear(IDLE)?;
        let started = Instant::now();
        client.ask(&[b"LPUSH", b"bench", prompt])?;
        popping.hear(BEGUN)?;
        Ok(started.elapsed())
    })?;
    Ok(measured(OURS, REDIS, pair))
}

fn beside_rq(location: &BenchDirectory, rq: &Rq) -> anyhow::Result<ComparisonRow> {
    let mut worker = Member::start(&rq.process("await", &[]))?;
    let mut submitting = Member::start(&rq.process("submit", &[]))?;
    submitting.hear(READY)?;
    let pair = with_ours(location, "start-rq", RQ_ROUNDS, &mut || {
        worker.hear(IDLE)?;
        let started = Instant::now();
        submitting.notify()?;
        worker.hear(BEGUN)?;
        Ok(started.elapsed())
    })?;
    Ok(measured(OURS, RQ, pair))
}

fn with_ours(
    location: &BenchDirectory,
    name: &str,
    rounds: usize,
    peer: &mut dyn FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<crate::bench::sample::Pair> {
    let root = directory(location, name);
    let past = Past::create(&root, PAST)?;
    let mut queue = Queue::open(&past.project)?;
    let waiting = name_member(&location.scratch, &["await", &root.to_string_lossy()])?;
    let mut waiting = Member::start(&waiting)?;
    let ours = &mut || {
        waiting.hear(IDLE)?;
        let started = Instant::now();
        errand::submit(&mut queue, errand::PROMPT)?;
        waiting.hear(BEGUN)?;
        Ok(started.elapsed())
    };
    by_turns(rounds, ours, peer)
}
