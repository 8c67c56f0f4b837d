//! What `kapi up` takes while a thousand loops wait and none is due, beside one without loops.
//!
//! Both run at the same time and are looked at from outside.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, ensure};
use kapi_sys::disk::replace_derived;
use kapi_sys::real_disk::RealDisk;
use kapi_task::record::queue::Queue;

use super::{directory, errand};
use crate::bench::comparison::{Side, measured, not_run};
use crate::bench::invocation::{Invocation, RunningProgram};
use crate::bench::process_table::{self, Process};
use crate::bench::sample::Pair;
use crate::bench::table::{ComparisonRow, ComparisonTable, Quantity};
use crate::bench::{BenchDirectory, program};
use crate::tool::find;

const LOOPS: usize = 1_000;
/// Looks at both, one after each slice: a minute in all.
const SLICES: u32 = 6;
const SLICE: Duration = Duration::from_secs(10);
/// The longest until every loop is known to the one who sets them off.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);
/// What a process counts its time in; the same on every Linux.
const TICK: Duration = Duration::from_millis(10);
/// Ticks in a second of one that rests.
const REST_TICKS: u64 = 2;
const OURS: &str = "`kapi up`, a thousand loops wait";
const PEER: &str = "`kapi up` without loops";

/// Measures two supervisors that have nothing to do.
pub(super) fn compare(location: &BenchDirectory) -> anyhow::Result<Vec<ComparisonTable>> {
    match watch(location) {
        Ok(tables) => Ok(tables),
        Err(error) => {
            let row = not_run(OURS, PEER, &format!("{error:#}"), Side::Ours);
            Ok(vec![time_table(row, "")])
        }
    }
}

fn watch(location: &BenchDirectory) -> anyhow::Result<Vec<ComparisonTable>> {
    let (many, none) = (
        RunningSupervisor::start(location, "idle-many", LOOPS)?,
        RunningSupervisor::start(location, "idle-none", 0)?,
    );
    let (mut resident, mut shares) = (Pair::default(), Pair::default());
    let before = (many.ticks()?, none.ticks()?);
    for _ in 0..SLICES {
        thread::sleep(SLICE);
        let of = |process| -> anyhow::Result<(f64, f64)> {
            let resident = process_table::resident_bytes(process)?;
            let share = process_table::proportional_bytes(process)?;
            Ok((resident as f64, share as f64))
        };
        let (ours, peer) = (of(&many.process)?, of(&none.process)?);
        resident.add_numbers(ours.0, peer.0);
        shares.add_numbers(ours.1, peer.1);
    }
    let mut times = Pair::default();
    times.add(
        at_most(many.ticks()? - before.0),
        at_most(none.ticks()? - before.1),
    );
    let calls = calls(location, &many, &none)?;
    let title = |what: &str| format!("{OURS}: {what}");
    let memory = ComparisonTable {
        title: "Memory of a supervisor that has nothing to do",
        note: "As the kernel tells it, every ten seconds of the minute above.".to_owned(),
        quantity: Quantity::Memory,
        rows: vec![
            measured(&title("resident"), PEER, resident),
            measured(&title("proportional share"), PEER, shares),
        ],
    };
    Ok(vec![
        time_table(measured(OURS, PEER, times), &calls),
        memory,
    ])
}

fn time_table(row: ComparisonRow, calls: &str) -> ComparisonTable {
    ComparisonTable {
        title: "A supervisor that has nothing to do",
        note: format!(
            "Time on a processor in one minute, rounded up to the next tick of 10 ms, after every loop was seen; each loop has a schedule of its own that is not due for long. {calls}"
        ),
        quantity: Quantity::Time,
        rows: vec![row],
    }
}

/// Returns the time that so many ticks may stand for at most.
fn at_most(ticks: u64) -> Duration {
    TICK * u32::try_from(ticks + 1).unwrap_or(u32::MAX)
}

/// A running supervisor.
struct RunningSupervisor {
    process: Process,
    started: RunningProgram,
}

impl RunningSupervisor {
    /// Starts it, and waits until it has seen every loop and rests.
    fn start(location: &BenchDirectory, name: &str, n_loops: usize) -> anyhow::Result<Self> {
        let root = directory(location, name);
        program::make_project(&root)?;
        write_loops(&root.join(".ilchul/loops"), n_loops)?;
        let kapi = location.kapi.to_string_lossy();
        let started = Invocation::new(OURS, &root, &kapi, &["up"]).start()?;
        let process = process_table::find(started.id()).context("find `kapi up`")?;
        let up = Self { process, started };
        let project = errand::project(&RealDisk, &root);
        let mut queue = Queue::open(&project)?;
        up.wait("see every loop", &mut || {
            queue.refresh()?;
            Ok(queue.kernel().loops.len() >= n_loops)
        })?;
        let mut before = up.ticks()?;
        up.wait("come to rest", &mut || {
            thread::sleep(Duration::from_secs(1));
            let now = up.ticks()?;
            let was_resting = now - before <= REST_TICKS;
            before = now;
            Ok(was_resting)
        })?;
        Ok(up)
    }

    fn wait(
        &self,
        what: &str,
        is_over: &mut dyn FnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !is_over()? {
            ensure!(
                process_table::is_alive(&self.process),
                "{what}: `kapi up` has ended"
            );
            ensure!(Instant::now() < deadline, "{what} within {PATIENCE:?}");
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn ticks(&self) -> anyhow::Result<u64> {
        process_table::cpu_ticks(&self.process)
    }
}

/// Writes loops that are due on the first of January.
fn write_loops(directory: &Path, n_loops: usize) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
    for number in 0..n_loops {
        let (minute, hour) = (number % 60, number / 60 % 24);
        let text = format!(
            "---\nname: idle-{number}\ndescription: Waits\ntrigger:\n  type: cron\n  schedule: \"{minute} {hour} 1 1 *\"\nagent: oracle\n---\nDo nothing.\n"
        );
        let file = directory.join(format!("idle-{number}.md"));
        replace_derived(&RealDisk, &file, text.as_bytes())?;
    }
    Ok(())
}

/// Says how many system calls both make, if that can be counted here.
fn calls(
    location: &BenchDirectory,
    many: &RunningSupervisor,
    none: &RunningSupervisor,
) -> anyhow::Result<String> {
    if find("strace").is_none() {
        return Ok("System calls were not counted: strace is not installed.".to_owned());
    }
    let (ours, peer) = (n_calls(location, many)?, n_calls(location, none)?);
    let seconds = SLICE.as_secs();
    Ok(format!(
        "strace counted {ours} system calls in {seconds} s with a thousand loops, and {peer} without."
    ))
}

fn n_calls(location: &BenchDirectory, up: &RunningSupervisor) -> anyhow::Result<u64> {
    let file = location.scratch.join("strace");
    let (seconds, pid) = (SLICE.as_secs().to_string(), up.started.id().to_string());
    let limit = ["--signal=INT", &seconds, "strace", "-c", "-f", "-q", "-o"];
    let shown = file.to_string_lossy();
    let args = [&limit[..], &[&shown, "-p", &pid]].concat();
    // It is interrupted, and says so.
    Invocation::new("strace", &location.scratch, "timeout", &args)
        .start()?
        .wait()?;
    let text = fs::read_to_string(&file).context("read what strace counted")?;
    total(&text).context("find the total of strace")
}

/// Finds the calls in the last line of a summary.
fn total(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|line| line.trim_end().ends_with(" total"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_is_found() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n100.00    0.000131          13        10         2 poll\n------ ----------- ----------- --------- --------- ----------------\n100.00    0.000131          13        42         2 total\n";
        assert_eq!(total(text), Some(42));
        assert_eq!(total(""), None);
    }
}
