//! The supervisors of a soak: one that is never killed, whose memory is looked at, and one that is.
//!
//! Knows no work. Starts again what has ended.

use std::fs;
use std::process::Child;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::soak::MemoryGrowth;
use crate::soak::accepted_work::has_ended;
use crate::soak::machine::SoakMachine;

/// Two supervisors: one that is never killed, and one that is.
#[derive(Debug, Default)]
pub(super) struct Supervisors {
    steady: Option<SteadySupervisor>,
    killed: Option<Child>,
    n_started: u64,
    longest: Option<MemoryGrowth>,
}

#[derive(Debug)]
struct SteadySupervisor {
    child: Child,
    began: Instant,
    memory_kib: Vec<u64>,
}

impl Supervisors {
    /// Starts what is not there, and looks at the memory of the one that stays.
    pub(super) fn keep(&mut self, machine: &SoakMachine) -> Result<(), Vec<String>> {
        if self
            .steady
            .as_mut()
            .is_some_and(|it| has_ended(&mut it.child))
        {
            self.note_memory();
            self.steady = None;
        }
        if self.killed.as_mut().is_some_and(has_ended) {
            self.killed = None;
        }
        let mut start = || {
            self.n_started += 1;
            machine
                .start(&["up", "--tasks", "2"])
                .map_err(|why| vec![why])
        };
        if self.steady.is_none() {
            self.steady = Some(SteadySupervisor {
                child: start()?,
                began: Instant::now(),
                memory_kib: Vec::new(),
            });
        }
        if self.killed.is_none() {
            self.killed = Some(start()?);
        }
        if let Some(steady) = &mut self.steady {
            steady.memory_kib.extend(memory_kib(steady.child.id()));
        }
        Ok(())
    }

    fn note_memory(&mut self) {
        let Some(steady) = &self.steady else {
            return;
        };
        let third = steady.memory_kib.len() / 3;
        let (Some(first), Some(last)) = (
            steady.memory_kib.get(..third),
            steady.memory_kib.get(steady.memory_kib.len() - third..),
        ) else {
            return;
        };
        let growth = MemoryGrowth {
            early: median(first),
            late: median(last),
            seconds: steady.began.elapsed().as_secs(),
        };
        if self
            .longest
            .is_none_or(|longest| longest.seconds < growth.seconds)
        {
            self.longest = Some(growth);
        }
    }

    /// Tells whether a process is the one that is never killed.
    pub(super) fn spares(&self, pid: u32) -> bool {
        self.steady.as_ref().is_some_and(|it| it.child.id() == pid)
    }

    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("supervisors started", self.n_started)]
    }

    /// Asks both to stop, and returns how the memory of the one that lived longest grew.
    pub(super) fn end(&mut self) -> Option<MemoryGrowth> {
        self.note_memory();
        let children = self.steady.as_mut().map(|it| &mut it.child).into_iter();
        for child in children.chain(self.killed.as_mut()) {
            signal(child.id(), Signal::INT);
            drop(child.wait());
        }
        self.longest
    }
}

/// Sends a signal to a process, which may have ended meanwhile.
pub(super) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, signal).ok();
    }
}

/// Returns the memory that a process holds.
fn memory_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
