//! How many tasks without work some processes work off in a second, beside the physical limit and
//! beside another job queue.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kapi_task::record::queue::Queue;

use super::cost::{STEPS, sizes};
use super::crew::{self, member};
use super::past::Past;
use super::rq::Rq;
use super::unsynced::UnsyncedDisk;
use super::{Peers, absent, directory, errand};
use crate::bench::BenchDirectory;
use crate::bench::comparison::measured;
use crate::bench::sample::Pair;
use crate::bench::table::{ComparisonRow, ComparisonTable, Quantity};

/// Tasks of one round.
const TASKS: u32 = 120;
/// Rounds that count, after one that does not.
const ROUNDS: u32 = 3;
const PROCESSES: [u32; 3] = [1, 2, 8];

/// Measures how fast tasks are worked off.
pub(super) fn compare(location: &BenchDirectory, peers: &Peers) -> anyhow::Result<ComparisonTable> {
    let root = directory(location, "rate");
    let past = Past::create(&root.join("sizes"), 1)?;
    let mut queue = Queue::open(&past.project)?;
    let own = queue.enlist()?;
    let sizes = sizes(&past, &mut queue, &own.holder)?;
    let mut rows = Vec::new();
    for n_processes in PROCESSES {
        let ours = format!("`kapi`, {n_processes} at work");
        let (mut beside_bare, mut beside_rq) = (Pair::default(), Vec::new());
        for round in 0..=ROUNDS {
            let mine = drain(&root.join(format!("{n_processes}-{round}")), n_processes)?;
            let bare = bare(&root, n_processes, sizes.step)?;
            let rq = peers.rq.as_ref().ok();
            let rq = rq.map(|rq| drain_rq(rq, n_processes)).transpose()?;
            if round > 0 {
                beside_bare.add_numbers(each(mine), each(bare));
                beside_rq.extend(rq.map(|rq| (each(mine), each(rq))));
            }
        }
        rows.push(measured(
            &ours,
            &format!("{n_processes} with nothing but lock, append, `fdatasync`, unlock, three times for each"),
            beside_bare,
        ));
        rows.push(beside(&ours, n_processes, peers, &beside_rq));
    }
    Ok(ComparisonTable {
        title: "Tasks worked off by several processes",
        note: format!(
            "{TASKS} tasks that wait are claimed, begun, performed (there is nothing to do) and finished, by processes that have started already. The first peer of each pair is the physical limit of one file on this disk: as many records of as many bytes; three times its rate is how many locked and synced appends a second the file allows. The second is rq with workers that run jobs in their own process; its redis syncs every write. The ratio is that of the times: below 1 we are faster. {}.",
            peers.versions()
        ),
        quantity: Quantity::Rate,
        rows,
    })
}

fn beside(ours: &str, n_processes: u32, peers: &Peers, times: &[(f64, f64)]) -> ComparisonRow {
    let peer = format!("rq, {n_processes} at work, synced");
    if let Err(error) = &peers.rq {
        return absent(ours, &peer, error);
    }
    let mut pair = Pair::default();
    for (mine, theirs) in times {
        pair.add_numbers(*mine, *theirs);
    }
    measured(ours, &peer, pair)
}

/// Works tasks off that were submitted before, in a project of their own.
fn drain(root: &Path, n_processes: u32) -> anyhow::Result<Duration> {
    fs::create_dir_all(root).with_context(|| format!("create {}", root.display()))?;
    let project = errand::project(&UnsyncedDisk, root);
    let mut queue = Queue::open(&project)?;
    for _ in 0..TASKS {
        errand::submit(&mut queue, errand::PROMPT)?;
    }
    let words = ["drain", &root.to_string_lossy(), &TASKS.to_string()];
    let invocation = member(root, &words)?;
    let took = crew::time(&vec![invocation; usize::try_from(n_processes)?])?;
    queue.refresh()?;
    let n_completed = queue.kernel().totals.completed;
    ensure!(
        n_completed == u64::from(TASKS),
        "work off {TASKS} tasks: {n_completed} have completed"
    );
    Ok(took)
}

/// Makes as many records with nothing around them.
fn bare(root: &Path, n_processes: u32, n_bytes: u64) -> anyhow::Result<Duration> {
    let file = root.join("bare").to_string_lossy().into_owned();
    let n_appends = u64::from(TASKS / n_processes) * STEPS;
    let words = ["bare", &file, &n_appends.to_string(), &n_bytes.to_string()];
    let invocation = member(root, &words)?;
    crew::time(&vec![invocation; usize::try_from(n_processes)?])
}

fn drain_rq(rq: &Rq, n_processes: u32) -> anyhow::Result<Duration> {
    rq.fill(u64::from(TASKS))?;
    let invocation = rq.process("drain", &[]);
    let took = crew::time(&vec![invocation; usize::try_from(n_processes)?])?;
    rq.check_empty()?;
    Ok(took)
}

/// Returns the seconds of each task.
fn each(whole: Duration) -> f64 {
    whole.as_secs_f64() / f64::from(TASKS)
}
