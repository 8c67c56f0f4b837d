//! Many real processes that submit to one project and work on it, some of them killed.
//!
//! Starts, kills and replaces them; what is left is judged by the log alone. What a worker does is
//! the affair of the program that is started: its arguments are the project, the name, the number,
//! how many processes and how many tasks there are.

pub mod judge;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use kapi_task::record::store::KernelStore;

use crate::kernel_sim::storm::judge::{StormCounts, judge};
use crate::oracle::OracleViolation;

/// Between two looks at the processes.
const LOOK: Duration = Duration::from_millis(5);

/// What is let loose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StormOptions {
    /// Tasks of all processes together.
    pub tasks: u64,
    /// Processes at a time.
    pub processes: u64,
    /// Between one kill and the next.
    pub kill_every: Duration,
    /// What the victims follow from.
    pub seed: u64,
    /// The longest it may take.
    pub deadline: Duration,
}

/// Where a storm rages, if not in files.
pub struct ForeignStore<'a> {
    /// Where the kernel is kept.
    pub store: &'a KernelStore,
    /// The same, as the program is told by its last argument.
    pub address: &'a str,
    /// Called after each kill, with their number.
    pub killed: &'a mut dyn FnMut(u64),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StormReport {
    /// How long it took until every process had ended.
    pub took: Duration,
    /// Processes that were killed and replaced.
    pub kills: u64,
    /// What the log says.
    pub judged: StormCounts,
}

/// Why a storm failed.
#[derive(Debug, thiserror::Error)]
pub enum StormError {
    /// The system refused to start, watch or kill a process.
    #[error("{doing} a worker")]
    Process {
        /// What was done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A worker that nobody killed did not end well.
    #[error("end worker {name} well: {status}, {words}")]
    Failed {
        /// Which.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said last.
        words: String,
    },
    /// It did not come to an end.
    #[error("end the storm within {} s", deadline.as_secs())]
    TooLong {
        /// The longest it may take.
        deadline: Duration,
    },
    /// What is left is not what should be.
    #[error(transparent)]
    Violation(#[from] OracleViolation),
}

/// Lets workers loose on the empty directory `root` and judges what is left.
///
/// # Errors
/// When a process fails by itself, when it takes too long, or when a promise is broken.
pub fn storm(
    program: &Path,
    root: &Path,
    options: &StormOptions,
) -> Result<StormReport, Box<StormError>> {
    rage(program, root, options, None)
}

/// Does the same with a kernel that is not kept in files: `root` holds only what workers wrote down.
///
/// # Errors
/// As for one in files.
pub fn storm_elsewhere(
    program: &Path,
    root: &Path,
    options: &StormOptions,
    elsewhere: ForeignStore<'_>,
) -> Result<StormReport, Box<StormError>> {
    rage(program, root, options, Some(elsewhere))
}

fn rage(
    program: &Path,
    root: &Path,
    options: &StormOptions,
    mut elsewhere: Option<ForeignStore<'_>>,
) -> Result<StormReport, Box<StormError>> {
    let started = Instant::now();
    let mut crowd = Crowd {
        program: program.to_path_buf(),
        root: root.to_path_buf(),
        address: elsewhere.as_ref().map(|there| there.address.to_owned()),
        options: *options,
        workers: Vec::new(),
        seed: options.seed,
    };
    for number in 0..options.processes {
        let worker = crowd.start(number)?;
        crowd.workers.push(worker);
    }
    let mut kills = 0;
    let mut kill_at = started + options.kill_every;
    while crowd.look()? {
        if started.elapsed() > options.deadline {
            let deadline = options.deadline;
            return Err(Box::new(StormError::TooLong { deadline }));
        }
        if Instant::now() >= kill_at {
            kills += u64::from(crowd.kill_one()?);
            if let Some(there) = &mut elsewhere {
                (there.killed)(kills);
            }
            // What a busy machine was late with is not made up for: then nobody would live to work.
            kill_at = Instant::now() + options.kill_every;
        }
        thread::park_timeout(LOOK);
    }
    let took = started.elapsed();
    let store = elsewhere.map_or(&KernelStore::Files, |there| there.store);
    let judged =
        judge(root, options.tasks, store).map_err(|violation| Box::new(violation.into()))?;
    Ok(StormReport {
        took,
        kills,
        judged,
    })
}

/// One process; dropping it kills it.
struct StormWorker {
    number: u64,
    child: Child,
    has_ended: bool,
}

impl Drop for StormWorker {
    fn drop(&mut self) {
        // It may have ended; there is nothing to do about a failure.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

struct Crowd {
    program: PathBuf,
    root: PathBuf,
    /// Where the kernel is kept, if not in files.
    address: Option<String>,
    options: StormOptions,
    workers: Vec<StormWorker>,
    seed: u64,
}

impl Crowd {
    #[expect(
        clippy::disallowed_methods,
        reason = "the door has no background processes to offer"
    )]
    fn start(&self, number: u64) -> Result<StormWorker, Box<StormError>> {
        let failed = |source| {
            let doing = "start";
            Box::new(StormError::Process { doing, source })
        };
        let words = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.words_of(number))
            .map_err(failed)?;
        let child = Command::new(&self.program)
            .arg(&self.root)
            .arg(name_of(number))
            .arg(number.to_string())
            .arg(self.options.processes.to_string())
            .arg(self.options.tasks.to_string())
            .args(&self.address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(words)
            .spawn()
            .map_err(failed)?;
        Ok(StormWorker {
            number,
            child,
            has_ended: false,
        })
    }

    /// Tells whether one is still at it.
    fn look(&mut self) -> Result<bool, Box<StormError>> {
        let mut is_busy = false;
        for worker in self.workers.iter_mut().filter(|worker| !worker.has_ended) {
            let status = worker.child.try_wait().map_err(|source| {
                let doing = "watch";
                Box::new(StormError::Process { doing, source })
            })?;
            match status {
                None => is_busy = true,
                Some(status) if status.success() => worker.has_ended = true,
                Some(status) => {
                    let words = self.root.join(format!("{}.words", name_of(worker.number)));
                    let words = std::fs::read_to_string(words).unwrap_or_default();
                    return Err(Box::new(StormError::Failed {
                        name: name_of(worker.number),
                        status,
                        words: words.trim().to_owned(),
                    }));
                }
            }
        }
        Ok(is_busy)
    }

    /// Kills one that is at it and starts another in its place; tells whether there was one.
    fn kill_one(&mut self) -> Result<bool, Box<StormError>> {
        let busy = self.workers.iter().filter(|worker| !worker.has_ended);
        let numbers: Vec<u64> = busy.map(|worker| worker.number).collect();
        let n_busy = u64::try_from(numbers.len()).unwrap_or(1).max(1);
        let pick = usize::try_from(self.roll() % n_busy).unwrap_or(0);
        let Some(&number) = numbers.get(pick) else {
            return Ok(false);
        };
        // Dropping it kills it, and waits until it is gone.
        self.workers.retain(|worker| worker.number != number);
        let next = self.start(number)?;
        self.workers.push(next);
        Ok(true)
    }

    /// Numbers that follow from the seed (splitmix64).
    const fn roll(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn words_of(&self, number: u64) -> PathBuf {
        self.root.join(format!("{}.words", name_of(number)))
    }
}

fn name_of(number: u64) -> String {
    format!("w{number}")
}
