//! The loop that kills: one process after another does what is left to do and is cut off where it is
//! told to be; what must hold is looked up after each death and at the end.
//!
//! Knows disks and logs; what happens on them is the story's. Which crashes are tried is said by
//! each simulator.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use kapi_store::codec::{LogPosition, decode};
use kapi_sys::sim_disk::{SimDisk, Survival};

use crate::oracle::{Oracle, OracleViolation, check_prefix};

/// A power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// Where.
    pub at: Boundary,
    /// What survives.
    pub survival: Survival,
}

/// A place where the power may fail, counted from the start of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// Instead of this disk operation.
    Op(u64),
    /// At this moment before, within or after an effect.
    Moment(u64),
}

/// Something that happens on a simulated disk and can be cut off anywhere.
pub trait CrashScenario {
    /// Where it comes to rest: what must be equal however often the power failed on the way.
    type Rest: PartialEq + fmt::Debug;

    /// Returns the disk it happens on.
    fn disk(&self) -> &SimDisk;

    /// Lets the power fail there and nowhere else, counted from now; `None`: nowhere any more.
    fn arm(&mut self, crash: Option<Crash>) {
        if let Some(Crash { at, survival }) = crash
            && let Boundary::Op(op) = at
        {
            self.disk().crash_at(self.disk().ops() + op, survival);
        }
    }

    /// Does what one process does, whatever came before.
    ///
    /// # Errors
    /// When it cannot; it must be able to where the power did not fail.
    fn live(&mut self) -> Result<(), OracleViolation>;

    /// Looks for what must not even happen in a process that is cut off.
    ///
    /// # Errors
    /// When it did.
    fn witness(&self) -> Result<(), OracleViolation> {
        Ok(())
    }

    /// Looks whether everything holds that must, after each death and at the end.
    ///
    /// # Errors
    /// When something does not.
    fn check(&self) -> Result<(), OracleViolation>;

    /// Returns where it came to rest.
    ///
    /// # Errors
    /// When something is left to do.
    fn rest(&self) -> Result<Self::Rest, OracleViolation>;
}

/// A story that was told to its end.
#[derive(Debug)]
pub struct FinishedScenario<R> {
    /// Where it came to rest.
    pub rest: R,
    /// Crashes that came to pass before a process had nothing left to do.
    pub crashes: u64,
}

/// Tells a story to its end, with deaths on the way.
///
/// # Errors
/// When something does not hold that must, or it comes to rest elsewhere than expected.
pub fn notify<S: CrashScenario>(
    scenario: &mut S,
    crashes: &[Crash],
    expected: Option<&S::Rest>,
) -> Result<FinishedScenario<S::Rest>, OracleViolation> {
    let mut n_crashes = 0;
    for crash in crashes {
        scenario.arm(Some(*crash));
        let lived = scenario.live();
        scenario.witness()?;
        if scenario.disk().is_crashed() {
            n_crashes += 1;
        } else {
            lived?;
        }
        die(scenario.disk(), crash.survival)?;
        scenario.check()?;
    }
    scenario.arm(None);
    let lived = scenario.live();
    scenario.witness()?;
    lived?;
    scenario.check()?;
    let rest = scenario.rest()?;
    match expected {
        Some(expected) if *expected != rest => {
            let detail = format!("it came to rest as {rest:?}, not as {expected:?}");
            Err(OracleViolation::new(Oracle::Convergence, detail))
        }
        Some(_) | None => Ok(FinishedScenario {
            rest,
            crashes: n_crashes,
        }),
    }
}

/// A story with power failures that an oracle complained about.
#[derive(Debug, thiserror::Error)]
#[error("crashes {crashes:?}: {violation}")]
pub struct CrashFound {
    /// Where the power failed.
    pub crashes: Vec<Crash>,
    /// The complaint.
    pub violation: OracleViolation,
}

impl CrashFound {
    /// Returns what makes a complaint of what an oracle said after these crashes.
    pub(crate) fn after(crashes: &[Crash]) -> impl FnOnce(OracleViolation) -> Box<Self> {
        move |violation| {
            Box::new(Self {
                crashes: crashes.to_vec(),
                violation,
            })
        }
    }
}

/// Returns the crashes of each case: at one of so many operations in `one_in`, in each of four ways, and
/// once more a few operations later.
pub(crate) fn crash_pairs(ops: u64, one_in: u64) -> impl Iterator<Item = [Crash; 2]> {
    let step = usize::try_from(one_in.max(1)).unwrap_or(1);
    (0..=ops).step_by(step).flat_map(|op| {
        let firsts = survivals(op).into_iter().zip(0..);
        firsts.map(move |(first, way)| {
            let shift = u64::from(way);
            let others = survivals(op.wrapping_add(shift + 1));
            let after = others[(usize::from(way) + 1) % others.len()];
            crash_pair(op, way, [first, after])
        })
    })
}

/// Returns a crash at an operation and another that mostly hits the recovery: the first operations of
/// the next process.
pub(crate) fn crash_pair(op: u64, way: u8, survival: [Survival; 2]) -> [Crash; 2] {
    let second = op.wrapping_mul(7).wrapping_add(u64::from(way) * 5) % 24;
    let [first, after] = survival;
    [(op, first), (second, after)].map(|(op, survival)| Crash {
        at: Boundary::Op(op),
        survival,
    })
}

/// Returns everything that can be left after a power failure; what is torn follows from the seed.
#[must_use]
pub const fn survivals(seed: u64) -> [Survival; 4] {
    [
        Survival::Nothing,
        Survival::TornPrefix(seed.wrapping_mul(31)),
        Survival::Everything,
        Survival::PageCache,
    ]
}

/// Brings the disk back after a power failure, and checks that each log is a prefix of what it was.
fn die(disk: &SimDisk, survival: Survival) -> Result<(), OracleViolation> {
    disk.crash_now(survival);
    let before = disk.snapshot();
    disk.reboot();
    for (log, survived) in logs(&disk.snapshot()) {
        let written = before.get(log).map(Vec::as_slice).unwrap_or_default();
        check_prefix(&lines(log, written)?, &lines(log, survived)?)?;
    }
    Ok(())
}

fn logs(files: &BTreeMap<PathBuf, Vec<u8>>) -> impl Iterator<Item = (&Path, &[u8])> {
    let is_log = |path: &Path| path.file_name() == Some("events.jsonl".as_ref());
    let logs = files.iter().filter(move |(path, _)| is_log(path));
    logs.map(|(path, bytes)| (path.as_path(), bytes.as_slice()))
}

/// Returns the accepted lines of a log. A stream is called as its directory is.
fn lines<'a>(log: &Path, bytes: &'a [u8]) -> Result<Vec<&'a [u8]>, OracleViolation> {
    let dir = log.parent().and_then(Path::file_name).unwrap_or_default();
    let stream = dir.to_string_lossy();
    let tail = decode(&stream, &LogPosition::start(), bytes).map_err(|error| {
        let detail = format!("{stream}: {error}: {}", error.fault);
        OracleViolation::new(Oracle::Prefix, detail)
    })?;
    let n_bytes = usize::try_from(tail.position.offset).unwrap_or(usize::MAX);
    let accepted = bytes.get(..n_bytes).unwrap_or(bytes);
    Ok(accepted.split_inclusive(|byte| *byte == b'\n').collect())
}
