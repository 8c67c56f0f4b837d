//! What disturbs a soak: processes are killed, the disk fills up, and the clock jumps.
//!
//! Knows no work, and spares one supervisor.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::Signal;

use crate::launch_schedule::model::Generator;
use crate::soak::machine::{SoakMachine, put};
use crate::soak::supervisors::{Supervisors, signal};

/// How often something is killed, the disk is filled and the clock jumps.
const KILL_EVERY: Duration = Duration::from_secs(3);
const FILL_EVERY: Duration = Duration::from_secs(31);
const JUMP_EVERY: Duration = Duration::from_secs(19);
/// How long the disk stays full.
const FULL: Duration = Duration::from_secs(2);
/// How far the clock jumps, in seconds.
const JUMPS_S: [i64; 5] = [90, 3_600, -30, -600, 86_400];
/// How much time passes at the end.
const PASSES_MS: i64 = 600_000;
/// Bytes that are written at a time to fill the disk.
const FILL_BYTES: usize = 1 << 20;

/// Kills processes, fills the disk and has the clock jump.
#[derive(Debug)]
pub(super) struct Disturber<'a> {
    machine: &'a SoakMachine,
    last_kill: Instant,
    last_fill: Instant,
    last_jump: Instant,
    shift_ms: i64,
    /// The furthest that the clock was ahead.
    farthest_ms: i64,
    counts: BTreeMap<&'static str, u64>,
}

impl<'a> Disturber<'a> {
    pub(super) fn new(machine: &'a SoakMachine) -> Self {
        let now = Instant::now();
        Self {
            machine,
            last_kill: now,
            last_fill: now,
            last_jump: now,
            shift_ms: 0,
            farthest_ms: 0,
            counts: BTreeMap::new(),
        }
    }

    /// Does what is due.
    pub(super) fn disturb(
        &mut self,
        random: &mut Generator,
        supervisors: &Supervisors,
        steps: &mut Vec<String>,
    ) -> Result<(), Vec<String>> {
        if self.last_kill.elapsed() > KILL_EVERY {
            self.last_kill = Instant::now();
            let mut victims = self.machine.processes();
            victims.retain(|(pid, _)| !supervisors.spares(*pid));
            if let Some((pid, words)) = victims.get(random.below(victims.len())) {
                signal(*pid, Signal::KILL);
                *self.counts.entry("killed").or_default() += 1;
                steps.push(format!("killed {pid} {words}"));
            }
        }
        if self.last_fill.elapsed() > FILL_EVERY {
            self.last_fill = Instant::now();
            self.fill();
            steps.push("the disk was full".to_owned());
        }
        if self.last_jump.elapsed() > JUMP_EVERY {
            self.last_jump = Instant::now();
            let jump_s = JUMPS_S.get(random.below(JUMPS_S.len())).copied();
            self.shift_ms += jump_s.unwrap_or_default() * 1_000;
            self.farthest_ms = self.farthest_ms.max(self.shift_ms);
            self.shift().map_err(|why| vec![why])?;
            *self.counts.entry("clock jumped").or_default() += 1;
            steps.push(format!("the clock is off by {} ms", self.shift_ms));
        }
        Ok(())
    }

    fn shift(&self) -> Result<(), String> {
        let file = self.machine.clock();
        let next = file.with_extension("next");
        put(&next, &format!("{:+}", self.shift_ms))?;
        fs::rename(&next, &file).map_err(|error| format!("set the clock: {error}"))
    }

    /// Takes all that is left of the disk for a while.
    fn fill(&mut self) {
        let path = self.filler();
        let block = vec![1; FILL_BYTES];
        if let Ok(mut file) = fs::File::create(&path) {
            while file.write_all(&block).is_ok() {}
            while file.write_all(&block[..1]).is_ok() {}
        }
        thread::sleep(FULL);
        drop(fs::remove_file(&path));
        *self.counts.entry("disk filled").or_default() += 1;
    }

    fn filler(&self) -> PathBuf {
        self.machine.root().join("filler")
    }

    /// Leaves the machine alone, at a time that whatever waits for one has come to.
    pub(super) fn end(&mut self) -> Result<(), Vec<String>> {
        drop(fs::remove_file(self.filler()));
        self.shift_ms = self.farthest_ms + PASSES_MS;
        self.shift().map_err(|why| vec![why])
    }

    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        self.counts.iter().map(|(what, n)| (*what, *n)).collect()
    }
}
