//! A machine that is busy and disturbed: tasks, loops, launches and workflows in one project while
//! supervisors and agents are killed, the disk fills up and the clock jumps.
//!
//! Starts and disturbs the real program, and goes on with what was cut off as it happens, so that little
//! is left to do at the end; what must hold is looked up then, by its commands and by git. Expects a
//! disk of its own that is small enough to be filled.

mod accepted_work;
mod disturber;
mod judge;
mod launches;
mod leavings;
mod machine;
mod progress;
mod supervisors;
mod work_content;
mod workflows;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::Signal;

use crate::launch_schedule::model::Generator;
use crate::soak::accepted_work::AcceptedWork;
use crate::soak::disturber::Disturber;
use crate::soak::machine::SoakMachine;
use crate::soak::progress::Progress;
use crate::soak::supervisors::{Supervisors, signal};

/// Between two deeds of the person, in milliseconds: the least, and what is drawn by lot.
const PAUSE_MS: (u64, usize) = (400, 900);
/// Workflows take long: so many at a time.
const WORKFLOWS_MAX: usize = 1;
/// With more tasks in the queue, the person submits none: what is cut off at the end is bounded.
const QUEUED_MAX: usize = 30;
/// The share of the deeds that are of each kind, of a hundred.
const TASKS: usize = 45;
const LAUNCHES: usize = 25;
/// How often the queue is looked at, and something is said: while it is disturbed, and at the end.
const LOOKED_EVERY: Duration = Duration::from_secs(10);
const SAID_EVERY: Duration = Duration::from_secs(60);
const SAID_AT_END_EVERY: Duration = Duration::from_secs(10);
/// How long it may take to come to an end once nothing disturbs it, and how often it is looked at.
const ENDING_MAX: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(200);
/// The exit codes of `kapi up --once` when all went well, and when one of its tasks failed.
const ONCE_CODES: [i32; 2] = [0, 5];

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
    /// Memory of the supervisor that lived longest.
    pub memory_kib: Option<MemoryGrowth>,
    /// Bytes that the disk held at the end.
    pub bytes: u64,
    /// How long it took to come to an end once nothing disturbed it, and to judge it.
    pub ending: Duration,
    /// The same of the judgement.
    pub judging: Duration,
}

/// The memory of one process, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryGrowth {
    /// The median of the first third of its life.
    pub early: u64,
    /// The median of the second.
    pub middle: u64,
    /// The median of the last.
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

/// Keeps a machine busy and disturbs it, then judges what is left; `say` gets a line now and then.
///
/// # Errors
/// Everything that was accepted and is lost or wrong, and everything that is left and should not be.
pub fn soak(
    kapi: &Path,
    location: &Path,
    options: &SoakOptions,
    say: &mut dyn FnMut(&str),
) -> Result<SoakReport, Box<SoakFailure>> {
    let failed = |faults, steps| Box::new(SoakFailure { faults, steps });
    let machine = SoakMachine::new(kapi, location).map_err(|why| failed(vec![why], Vec::new()))?;
    let mut soak = Soak {
        machine: &machine,
        accepted: AcceptedWork::default(),
        supervisors: Supervisors::default(),
        steps: Vec::new(),
        progress: Progress::new(say),
        looked: Instant::now(),
    };
    let done = soak.perform(options);
    if done.is_err() {
        // What is kept for people to look at does not change any more.
        for (pid, _) in machine.processes() {
            signal(pid, Signal::KILL);
        }
    }
    done.map_err(|faults| failed(faults, soak.steps))
}

/// A soak under way.
struct Soak<'s> {
    machine: &'s SoakMachine,
    accepted: AcceptedWork,
    supervisors: Supervisors,
    steps: Vec<String>,
    progress: Progress<'s>,
    /// When the queue was last looked at.
    looked: Instant,
}

impl Soak<'_> {
    fn perform(&mut self, options: &SoakOptions) -> Result<SoakReport, Vec<String>> {
        let base = self.machine.git(&["rev-parse", "main"]);
        let base = base.map_err(|why| vec![why])?;
        let mut random = Generator::new(options.seed);
        let mut disturber = Disturber::new(self.machine);
        while self.progress.elapsed() < options.lasts {
            self.go_on(SAID_EVERY)?;
            disturber.disturb(&mut random, &self.supervisors, &mut self.steps)?;
            let said = self.deed(&mut random).map_err(|why| vec![why])?;
            let at = self.progress.elapsed().as_secs();
            self.steps.push(format!("{at:>5} s  {said}"));
            let pause = PAUSE_MS.0 + u64::try_from(random.below(PAUSE_MS.1)).unwrap_or(0);
            thread::sleep(Duration::from_millis(pause));
        }
        disturber.end()?;
        let ending = Instant::now();
        let mut faults = self.finish()?;
        let ending = ending.elapsed();
        self.progress.say("judging");
        let judging = Instant::now();
        let ended = match judge::judge(self.machine, &self.accepted, &base) {
            Ok(ended) if faults.is_empty() => ended,
            Ok(_) => return Err(faults),
            Err(found) => {
                faults.extend(found);
                return Err(faults);
            }
        };
        let disturbed = [
            disturber.counts(),
            self.supervisors.counts(),
            self.accepted.resumed(),
        ];
        Ok(SoakReport {
            accepted: self.accepted.counts(),
            ended,
            disturbed: disturbed.concat().into_iter().collect(),
            memory_kib: self.supervisors.memory(),
            bytes: bytes_below(self.machine.root()),
            ending,
            judging: judging.elapsed(),
        })
    }

    /// Starts what is not there, goes on with what was cut off, and says now and then how it stands.
    fn go_on(&mut self, said_every: Duration) -> Result<(), Vec<String>> {
        self.supervisors.keep(self.machine, &mut self.steps)?;
        let gone_on = self.accepted.go_on(self.machine, &mut self.steps);
        gone_on.map_err(|why| vec![why])?;
        if self.looked.elapsed() > LOOKED_EVERY {
            self.looked = Instant::now();
            self.accepted.look_at_queue(self.machine);
        }
        if self.progress.is_due(said_every) {
            let line = self.accepted.line();
            let memory = self.supervisors.memory_now();
            self.progress
                .say(&format!("{line}; a supervisor holds {memory} KiB"));
        }
        Ok(())
    }

    /// Does what the lot says.
    fn deed(&mut self, random: &mut Generator) -> Result<String, String> {
        let (machine, accepted) = (self.machine, &mut self.accepted);
        let deed = random.below(100);
        let is_launch = (TASKS..TASKS + LAUNCHES).contains(&deed);
        if is_launch {
            return accepted.launch(machine, random);
        }
        if accepted.n_queued() > QUEUED_MAX {
            return Ok("waited for the queue".to_owned());
        }
        if deed < TASKS {
            return Ok(accepted.task(machine, random));
        }
        if deed.is_multiple_of(10) && accepted.workflows.n_open() < WORKFLOWS_MAX {
            return accepted.workflows.plan(machine);
        }
        Ok(accepted.loop_run(machine))
    }

    /// Goes on until all that was accepted has ended, and ends the supervisors; returns what would not.
    fn finish(&mut self) -> Result<Vec<String>, Vec<String>> {
        let began = Instant::now();
        loop {
            self.go_on(SAID_AT_END_EVERY)?;
            self.accepted.look_at_queue(self.machine);
            if self.accepted.is_over() || began.elapsed() > ENDING_MAX {
                break;
            }
            thread::sleep(LOOK);
        }
        let mut faults = Vec::new();
        if !self.accepted.is_over() {
            let line = self.accepted.line();
            let waited = ENDING_MAX.as_secs();
            faults.push(format!("not all ended within {waited} s: {line}"));
        }
        faults.extend(self.supervisors.end());
        let run = self.machine.kapi(&["up", "--once"]);
        if !ONCE_CODES.contains(&run.code) {
            let said = run.stderr.trim_end();
            faults.push(format!("`kapi up --once` ended with {}: {said}", run.code));
        }
        Ok(faults)
    }
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
