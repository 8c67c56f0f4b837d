//! A machine that is busy and disturbed: tasks, loops, launches and workflows in one project while
//! supervisors and agents are killed, the disk fills up and the clock jumps.
//!
//! Starts and disturbs the real program; what must hold is looked up at the end, by its commands and
//! by git. Expects a disk of its own that is small enough to be filled.

mod accepted_work;
mod disturber;
mod judge;
mod machine;
mod supervisors;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::launch_schedule::model::Generator;
use crate::soak::accepted_work::AcceptedWork;
use crate::soak::disturber::Disturber;
use crate::soak::machine::SoakMachine;
use crate::soak::supervisors::Supervisors;

/// Between two deeds of the person, in milliseconds: the least, and what is drawn by lot.
const PAUSE_MS: (u64, usize) = (400, 900);
/// Workflows take long: so many at a time.
const WORKFLOWS_MAX: usize = 1;
/// The share of the deeds that are of each kind, of a hundred.
const TASKS: usize = 45;
const LAUNCHES: usize = 25;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoakOptions {
    /// How long work comes in and is disturbed.
    pub lasts: Duration,
    /// What everything that is drawn by lot follows from.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SoakReport {
    /// What was accepted, by kind.
    pub accepted: BTreeMap<&'static str, u64>,
    /// How it ended, by kind and word.
    pub ended: BTreeMap<String, u64>,
    /// What was done to it, by kind.
    pub disturbed: BTreeMap<&'static str, u64>,
    /// Memory of the supervisor that lived longest, in KiB: early in its life, and late.
    pub memory_kib: Option<MemoryGrowth>,
    /// Bytes that the disk held at the end.
    pub bytes: u64,
}

/// The memory of one process, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryGrowth {
    /// The median of the first third of its life.
    pub early: u64,
    /// The median of the last third.
    pub late: u64,
    /// How long it lived, in seconds.
    pub seconds: u64,
}

/// Something that does not hold, or could not be done; one a line.
#[derive(Debug, thiserror::Error)]
#[error("{}", faults.join("\n"))]
pub struct SoakFailure {
    /// What is wrong.
    pub faults: Vec<String>,
    /// What was done, one step a line.
    pub steps: Vec<String>,
}

/// Keeps a machine busy and disturbs it, then judges what is left.
///
/// # Errors
/// Everything that was accepted and is lost or wrong, and everything that is left and should not be.
pub fn soak(
    kapi: &Path,
    location: &Path,
    options: &SoakOptions,
) -> Result<SoakReport, Box<SoakFailure>> {
    let mut steps = Vec::new();
    perform(kapi, location, options, &mut steps)
        .map_err(|faults| Box::new(SoakFailure { faults, steps }))
}

fn perform(
    kapi: &Path,
    location: &Path,
    options: &SoakOptions,
    steps: &mut Vec<String>,
) -> Result<SoakReport, Vec<String>> {
    let machine = SoakMachine::new(kapi, location).map_err(|fault| vec![fault])?;
    let mut random = Generator::new(options.seed);
    let mut accepted = AcceptedWork::default();
    let mut supervisors = Supervisors::default();
    let mut disturber = Disturber::new(&machine);
    let began = Instant::now();
    while began.elapsed() < options.lasts {
        supervisors.keep(&machine)?;
        disturber.disturb(&mut random, &supervisors, steps)?;
        let deed = random.below(100);
        let said = if deed < TASKS {
            accepted.task(&machine, &mut random)
        } else if deed < TASKS + LAUNCHES {
            accepted.launch(&machine, &mut random)
        } else if deed.is_multiple_of(10) && accepted.n_open_workflows(&machine) < WORKFLOWS_MAX {
            accepted.workflow(&machine)
        } else {
            accepted.loop_run(&machine)
        };
        steps.push(format!("{:>5} s  {said}", began.elapsed().as_secs()));
        let pause = PAUSE_MS.0 + u64::try_from(random.below(PAUSE_MS.1)).unwrap_or(0);
        thread::sleep(Duration::from_millis(pause));
    }
    disturber.end()?;
    let memory_kib = supervisors.end();
    let disturbed = [disturber.counts(), supervisors.counts()].concat();
    accepted.finish(&machine, steps);
    let ended = judge::judge(&machine, &accepted)?;
    Ok(SoakReport {
        accepted: accepted.counts(),
        ended,
        disturbed: disturbed.into_iter().collect(),
        memory_kib,
        bytes: bytes_below(location),
    })
}

/// Returns how many bytes the files below a directory have.
fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
        Ok(_) => entry.metadata().map_or(0, |found| found.len()),
        Err(_) => 0,
    });
    sizes.sum()
}
