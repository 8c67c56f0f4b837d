//! Many sandboxes at once: how long until all have come and gone, and what each takes in memory.
//!
//! Every one has its own workspace. After the memory was read they are killed, and what is still
//! there afterwards is an error.

use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::comparison::{Side, gap, measured, not_run};
use super::ground::Ground;
use super::invocation::Invocation;
use super::process_table::{self, Process};
use super::sample::Pair;
use super::sandbox::{self, Overlay, TRUE};
use super::table::{ComparisonRow, ComparisonTable, Quantity};
use super::{BenchDirectory, walls};

/// How many at once.
const N: usize = 100;
/// Rounds that count, of what takes less than a second.
const ROUNDS: usize = 12;
const SLOW_ROUNDS: usize = 2;
const MEMORY_ROUNDS: usize = 5;
/// A payload that waits to be killed, told from every other by its argument.
const WAITING: [&str; 2] = ["/bin/sleep", "86399"];
/// The longest until all run, or until all are gone.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// Measures a hundred `true` at once.
pub(super) fn at_once(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let ground = Ground::new(&location.scratch, 0)?;
    let ours = overlaid(location, &ground.directory, &[TRUE])?;
    let direct = Invocation::new("`true` alone", &location.scratch, TRUE, &[]);
    let mut rows = Vec::new();
    for (rounds, peer) in [
        (ROUNDS, sandbox::bwrap(location, &[TRUE])),
        (ROUNDS, direct),
        (SLOW_ROUNDS, sandbox::podman(location, &[TRUE])),
    ] {
        rows.extend(compare(rounds, &ours, &peer)?);
    }
    Ok(ComparisonTable {
        title: "A hundred sandboxes at once",
        note: format!(
            "A hundred threads start one each at the same moment. The first line of a pair is the time until the last has ended; in the second, each one's own time, compared by rank: the fastest with the fastest, the slowest with the slowest. Layers lie apart: {}",
            ground.note()
        ),
        quantity: Quantity::Time,
        rows,
    })
}

/// Measures the memory of a hundred that wait.
pub(super) fn memory(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let peer = many(&sandbox::bwrap(location, &WAITING));
    let together = walls::invocation(
        "`kapi`, native, all from one program",
        location,
        &[&["--at-once", "100", "--"], &WAITING[..]].concat(),
    );
    let mut rows = Vec::new();
    for ours in [
        overlaid(location, &location.scratch, &WAITING)?,
        vec![together],
    ] {
        rows.extend(compare_memory(&ours, &peer)?);
    }
    Ok(memory_table(rows))
}

fn compare_memory(ours: &[Invocation], peer: &[Invocation]) -> anyhow::Result<Vec<ComparisonRow>> {
    let (mine, theirs) = (name_of(ours), name_of(peer));
    let (mut processes, mut whole) = (Pair::default(), Pair::default());
    for _ in 0..MEMORY_ROUNDS {
        let (first, second) = match (hold(ours), hold(peer)) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(error), _) => {
                return Ok(vec![not_run(
                    mine,
                    theirs,
                    &format!("{error:#}"),
                    Side::Ours,
                )]);
            }
            (_, Err(error)) => {
                return Ok(vec![not_run(
                    mine,
                    theirs,
                    &format!("{error:#}"),
                    Side::Peer,
                )]);
            }
        };
        processes.add_numbers(first.processes, second.processes);
        // Of what other programs took or gave back meanwhile, nothing can be concluded.
        if first.whole > 0.0 && second.whole > 0.0 {
            whole.add_numbers(first.whole, second.whole);
        }
    }
    let everything = format!("{mine}: everything");
    let reason = "other programs changed the host's memory by more";
    Ok(vec![
        measured(&format!("{mine}: its processes"), theirs, processes),
        if whole.rounds() == 0 {
            not_run(&everything, theirs, reason, Side::Peer)
        } else {
            measured(&everything, theirs, whole)
        },
    ])
}

fn memory_table(rows: Vec<ComparisonRow>) -> ComparisonTable {
    ComparisonTable {
        title: "Memory of each of a hundred sandboxes",
        note: "While a hundred payloads sleep. \"Its processes\" is the proportional share (PSS) of every process of a sandbox but the payload, the side on the host included. \"Everything\" is what the host's available memory fell by, the payload and the kernel's own structures included; it is a hundredth of a difference and noisy.".to_owned(),
        quantity: Quantity::Memory,
        rows,
    }
}

fn name_of(invocations: &[Invocation]) -> &str {
    invocations.first().map_or("", |first| first.shown.as_str())
}

/// Names the same as often as it runs at once.
fn many(invocation: &Invocation) -> Vec<Invocation> {
    vec![invocation.clone(); N]
}

/// Names as many sandboxes as run at once, each with a workspace of its own.
fn overlaid(
    location: &BenchDirectory,
    ground: &Path,
    command: &[&str],
) -> anyhow::Result<Vec<Invocation>> {
    let directory = ground.join("crowd");
    let lower = sandbox::lower(&directory)?;
    (0..N)
        .map(|number| {
            let overlay = Overlay::new(&lower, &directory.join(number.to_string()))?;
            Ok(sandbox::kapi(location, Some(&overlay), command))
        })
        .collect()
}

fn compare(
    rounds: usize,
    ours: &[Invocation],
    peer: &Invocation,
) -> anyhow::Result<Vec<ComparisonRow>> {
    let first = ours.first().context("find the first sandbox")?;
    if let Some(row) = gap(first, peer) {
        return Ok(vec![row]);
    }
    let peers = many(peer);
    let (mut whole, mut each) = (Pair::default(), Pair::default());
    // The first round warms both up.
    for round in 0..=rounds {
        let (mine, theirs) = (run(ours)?, run(&peers)?);
        if round > 0 {
            whole.add(mine.whole, theirs.whole);
            for (mine, theirs) in mine.each.iter().zip(&theirs.each) {
                each.add(*mine, *theirs);
            }
        }
    }
    let shown = |what: &str| format!("{}, {what}", first.shown);
    Ok(vec![
        measured(&shown("all 100"), &peer.shown, whole),
        measured(&shown("each of 100"), &peer.shown, each),
    ])
}

struct CrowdRun {
    whole: Duration,
    /// Sorted.
    each: Vec<Duration>,
}

/// Runs all of them at once.
fn run(invocations: &[Invocation]) -> anyhow::Result<CrowdRun> {
    let barrier = Barrier::new(invocations.len() + 1);
    let barrier = &barrier;
    thread::scope(|scope| {
        let threads: Vec<_> = invocations
            .iter()
            .map(|invocation| {
                let mut repeated = invocation.repeated();
                scope.spawn(move || {
                    barrier.wait();
                    repeated.time()
                })
            })
            .collect();
        barrier.wait();
        let started = Instant::now();
        let mut each = Vec::new();
        for thread in threads {
            let Ok(time) = thread.join() else {
                bail!("measure one of many: its thread panicked");
            };
            each.push(time?);
        }
        let whole = started.elapsed();
        each.sort();
        Ok(CrowdRun { whole, each })
    })
}

/// Bytes of one sandbox.
struct SandboxMemory {
    processes: f64,
    whole: f64,
}

/// Starts all of them, reads their memory while a hundred payloads run, and ends them.
fn hold(invocations: &[Invocation]) -> anyhow::Result<SandboxMemory> {
    let before = process_table::available_bytes()?;
    let started: Vec<_> = invocations
        .iter()
        .map(Invocation::start)
        .collect::<Result<_, _>>()?;
    let deadline = Instant::now() + PATIENCE;
    let processes = loop {
        let processes = process_table::below_this_process()?;
        let n_payloads = processes.iter().filter(|found| is_payload(found)).count();
        if n_payloads == N {
            break processes;
        }
        if Instant::now() > deadline {
            bail!("start {N} sandboxes: {n_payloads} payloads run");
        }
        thread::sleep(PAUSE);
    };
    let whole = before.saturating_sub(process_table::available_bytes()?);
    let mut bytes = 0;
    for process in processes.iter().filter(|found| !is_payload(found)) {
        bytes += process_table::proportional_bytes(process)?;
    }
    drop(started);
    wait_for_end(&processes)?;
    let per_sandbox = |bytes: u64| bytes as f64 / N as f64;
    Ok(SandboxMemory {
        processes: per_sandbox(bytes),
        whole: per_sandbox(whole),
    })
}

fn is_payload(process: &Process) -> bool {
    process.arguments.len() == WAITING.len()
        && process
            .arguments
            .last()
            .is_some_and(|last| last == WAITING[1])
}

fn wait_for_end(processes: &[Process]) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let n_left = processes
            .iter()
            .filter(|process| process_table::is_alive(process))
            .count();
        if n_left == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("end {N} sandboxes: {n_left} of their processes are left");
        }
        thread::sleep(PAUSE);
    }
}
