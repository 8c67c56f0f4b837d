//! The supervisors of a soak: one that is never killed, whose memory is looked at, and one that is.
//!
//! Knows no work. Starts again what has ended.

use std::process::Child;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::soak::MemoryGrowth;
use crate::soak::machine::{SoakMachine, exit_code};

/// How long one may take to stop when it is asked to, and how often it is looked at.
const STOPPED_WITHIN: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);

/// Two supervisors: one that is never killed, and one that is.
#[derive(Debug, Default)]
pub(super) struct Supervisors {
    steady: Option<SteadySupervisor>,
    killed: Option<Child>,
    n_started: u64,
    /// How often the one that is never killed ended.
    n_ended: u64,
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
    pub(super) fn keep(
        &mut self,
        machine: &SoakMachine,
        steps: &mut Vec<String>,
    ) -> Result<(), Vec<String>> {
        let ended = self.steady.as_mut();
        if let Some(code) = ended.and_then(|it| exit_code(&mut it.child)) {
            // A full disk may end it, and whoever started it starts it again.
            steps.push(format!(
                "the supervisor that nobody kills ended with {code}"
            ));
            self.note_memory();
            self.steady = None;
            self.n_ended += 1;
        }
        if self
            .killed
            .as_mut()
            .is_some_and(|it| exit_code(it).is_some())
        {
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
        let part = |nth: usize| {
            let part = steady.memory_kib.get(nth * third..(nth + 1) * third);
            median(part.unwrap_or_default())
        };
        let growth = MemoryGrowth {
            early: part(0),
            middle: part(1),
            late: part(2),
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
        vec![
            ("supervisors started", self.n_started),
            ("supervisors ended by themselves", self.n_ended),
        ]
    }

    /// Asks both to stop, and returns what is wrong with those that do not, which are killed.
    pub(super) fn end(&mut self) -> Vec<String> {
        self.note_memory();
        let steady = self.steady.take().map(|it| it.child);
        let mut faults = Vec::new();
        for mut child in steady.into_iter().chain(self.killed.take()) {
            signal(child.id(), Signal::INT);
            let began = Instant::now();
            while exit_code(&mut child).is_none() && began.elapsed() < STOPPED_WITHIN {
                thread::sleep(LOOK);
            }
            if exit_code(&mut child).is_none() {
                faults.push(format!("supervisor {} did not stop", child.id()));
                signal(child.id(), Signal::KILL);
                drop(child.wait());
            }
        }
        faults
    }

    /// Returns how the memory of the one that lived longest grew.
    pub(super) const fn memory(&self) -> Option<MemoryGrowth> {
        self.longest
    }

    /// Returns the memory that the one that is never killed holds now, in KiB.
    pub(super) fn memory_now(&self) -> u64 {
        let steady = self.steady.as_ref();
        let last = steady.and_then(|it| it.memory_kib.last());
        last.copied().unwrap_or_default()
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
