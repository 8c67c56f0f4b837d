//! Whether the machine bears one more agent: its pressure, its memory, its processes, and the places
//! that all projects of a person share.
//!
//! Reads what the kernel of the system says of itself. Who asks, and what waits, is not known here.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, thread};

use kapi_sys::cancel::Cancel;
use kapi_sys::disk::Disk;
use kapi_sys::lock::{Lock, LockError};

/// Where places of all projects are kept, below the person's state directory.
const SLOTS: &str = "slots";
/// The most places that are looked through.
const SLOTS_MAX: u32 = 1_024;
/// How often it is looked whether a place became free.
const LOOK: Duration = Duration::from_millis(100);

/// How much of a machine may be in use before another agent is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Hundredths of a per cent of the last ten seconds in which something waited for memory.
    pub memory_pressure: u32,
    /// The same for processors; not looked at while no task of ours runs.
    pub cpu_pressure: u32,
    /// Bytes of memory that must be there to be had.
    pub memory_bytes: u64,
    /// The most processes and threads, in per cent of those that the system allows.
    pub processes_percent: u64,
}

impl Thresholds {
    /// What holds unless somebody says otherwise.
    ///
    /// Memory that is waited for a tenth of the time is a machine that begins to thrash: one more
    /// agent makes all of them slower than they would be one after the other. Processors may be busy
    /// all the time, that is what they are for; only when nearly everything waits for one is there
    /// nothing left to share. An agent with its tools takes some hundred megabytes, and its tests
    /// more. Of processes a fifth is left for whoever sits at the machine.
    pub const USUAL: Self = Self {
        memory_pressure: 10_00,
        cpu_pressure: 95_00,
        memory_bytes: 768 << 20,
        processes_percent: 80,
    };
}

/// Why no further agent is begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// Memory or processors are waited for.
    Pressure {
        /// Which.
        of: &'static str,
        /// How much, in hundredths of a per cent.
        found: u32,
        /// How much there may be.
        max: u32,
    },
    /// There is too little memory.
    Memory {
        /// How many bytes there are.
        found: u64,
        /// How many there must be.
        min: u64,
    },
    /// There are too many processes.
    Processes {
        /// How many.
        found: u64,
        /// How many there may be.
        max: u64,
    },
    /// Every place of the machine is taken.
    Slots {
        /// How many there are.
        max: u32,
    },
}

impl fmt::Display for Shortage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |hundredths: u32| format!("{}.{:02} %", hundredths / 100, hundredths % 100);
        match self {
            Self::Pressure { of, found, max } => write!(
                out,
                "processes wait for {of} {} of the time, more than {}",
                percent(*found),
                percent(*max)
            ),
            Self::Memory { found, min } => write!(
                out,
                "{} MiB of memory are free, fewer than {}",
                found >> 20,
                min >> 20
            ),
            Self::Processes { found, max } => {
                write!(out, "{found} processes run, more than {max}")
            }
            Self::Slots { max } => write!(out, "all {max} slots of this machine are in use"),
        }
    }
}

/// The room of one machine.
#[derive(Clone)]
pub struct MachineCapacity<'a> {
    disk: &'a dyn Disk,
    /// Where the system says of itself.
    proc: PathBuf,
    slots: PathBuf,
    machine_max: Option<u32>,
    owner: String,
    thresholds: Thresholds,
}

/// A place of the machine, held as long as this lives.
#[derive(Debug)]
pub struct CapacitySlot {
    /// None where the machine has no number of places.
    _lock: Option<Lock>,
}

impl<'a> MachineCapacity<'a> {
    /// Returns the room of this machine; `state_dir` is the person's, and `machine_max` the number of
    /// tasks of all their projects at once.
    #[must_use]
    pub fn new(
        disk: &'a dyn Disk,
        state_dir: &Path,
        machine_max: Option<u32>,
        owner: &str,
    ) -> Self {
        Self {
            disk,
            proc: PathBuf::from("/proc"),
            slots: state_dir.join(SLOTS),
            machine_max: machine_max.map(|max| max.clamp(1, SLOTS_MAX)),
            owner: owner.to_owned(),
            thresholds: Thresholds::USUAL,
        }
    }

    /// Returns the same room with other thresholds, as another system says of itself.
    #[must_use]
    pub fn measured(self, proc: PathBuf, thresholds: Thresholds) -> Self {
        Self {
            proc,
            thresholds,
            ..self
        }
    }

    /// Tells whether one more task may be begun, beside so many that this process runs.
    #[must_use]
    pub fn has_capacity(&self, n_running: usize) -> bool {
        self.shortage(n_running).is_none()
    }

    /// Returns what is short, if anything is. What the system does not say is not short.
    #[must_use]
    pub fn shortage(&self, n_running: usize) -> Option<Shortage> {
        let limits = &self.thresholds;
        let pressed = |of, file: &str, max| {
            let found = self.pressure(file)?;
            (found > max).then_some(Shortage::Pressure { of, found, max })
        };
        let of_processors = || {
            // Somebody else's load must not keep us from ever beginning.
            (n_running > 0).then_some(())?;
            pressed("a processor", "cpu", limits.cpu_pressure)
        };
        pressed("memory", "memory", limits.memory_pressure)
            .or_else(of_processors)
            .or_else(|| self.memory())
            .or_else(|| self.processes())
            .or_else(|| self.taken())
    }

    /// Takes a place, waiting for one; none when it is called off before.
    ///
    /// # Errors
    /// When the directory of the places cannot be used.
    pub fn occupy(&self, cancel: &Cancel) -> Result<Option<CapacitySlot>, LockError> {
        let Some(max) = self.machine_max else {
            return Ok(Some(CapacitySlot { _lock: None }));
        };
        while !cancel.is_raised() {
            if let Some(lock) = self.free(max)? {
                return Ok(Some(CapacitySlot { _lock: Some(lock) }));
            }
            thread::sleep(LOOK);
        }
        Ok(None)
    }

    fn free(&self, max: u32) -> Result<Option<Lock>, LockError> {
        for number in 1..=max {
            let file = self.slots.join(format!("{number:04}.lock"));
            match self.disk.lock(&file, &self.owner, 0) {
                Ok(lock) => return Ok(Some(lock)),
                Err(LockError::Busy { .. }) => {}
                Err(error @ LockError::Failed { .. }) => return Err(error),
            }
        }
        Ok(None)
    }

    fn taken(&self) -> Option<Shortage> {
        let max = self.machine_max?;
        // Taken for an instant and given back; where it cannot be looked, taking one will say why.
        let is_full = matches!(self.free(max), Ok(None));
        is_full.then_some(Shortage::Slots { max })
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.proc.join(name)).ok()
    }

    /// Returns the share of the last ten seconds, in hundredths of a per cent.
    fn pressure(&self, of: &str) -> Option<u32> {
        let text = self.read(&format!("pressure/{of}"))?;
        let line = text.lines().find(|line| line.starts_with("some "))?;
        let mut words = line.split_whitespace();
        let share = words.find_map(|word| word.strip_prefix("avg10="))?;
        let (whole, part) = share.split_once('.').unwrap_or((share, "0"));
        let part = part.get(..2).unwrap_or(part);
        let part: u32 = format!("{part:0<2}").parse().ok()?;
        Some(whole.parse::<u32>().ok()?.saturating_mul(100) + part)
    }

    fn memory(&self) -> Option<Shortage> {
        let text = self.read("meminfo")?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        let (found, min) = (kib.saturating_mul(1_024), self.thresholds.memory_bytes);
        (found < min).then_some(Shortage::Memory { found, min })
    }

    fn processes(&self) -> Option<Shortage> {
        let text = self.read("loadavg")?;
        let (_, all) = text.split_whitespace().nth(3)?.split_once('/')?;
        let found: u64 = all.parse().ok()?;
        let limit = |name: &str| -> Option<u64> { self.read(name)?.trim().parse().ok() };
        let limits = [limit("sys/kernel/pid_max"), limit("sys/kernel/threads-max")];
        let most = limits.into_iter().flatten().min()?;
        let max = most / 100 * self.thresholds.processes_percent;
        (found > max).then_some(Shortage::Processes { found, max })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;

    use kapi_sys::cancel::Cancel;
    use kapi_sys::real_disk::RealDisk;

    use super::{MachineCapacity, Thresholds};

    /// A machine that says of itself what a test wants.
    fn said(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn idle(dir: &Path) {
        let quiet = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n";
        said(dir, "pressure/memory", quiet);
        said(dir, "pressure/cpu", quiet);
        said(
            dir,
            "meminfo",
            "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n",
        );
        said(dir, "loadavg", "0.10 0.10 0.10 1/200 4711\n");
        said(dir, "sys/kernel/pid_max", "32768\n");
        said(dir, "sys/kernel/threads-max", "190000\n");
    }

    fn capacity(dir: &Path, machine_max: Option<u32>) -> MachineCapacity<'static> {
        let capacity = MachineCapacity::new(&RealDisk, &dir.join("state"), machine_max, "test");
        capacity.measured(dir.to_path_buf(), Thresholds::USUAL)
    }

    #[test]
    fn each_shortage_is_seen_and_said() {
        for (name, text, n_running, expected) in [
            ("pressure/memory", "some avg10=9.99 avg60=0", 1, ""),
            (
                "pressure/memory",
                "some avg10=10.5 avg60=0",
                0,
                "processes wait for memory 10.50 % of the time, more than 10.00 %",
            ),
            ("pressure/cpu", "some avg10=99.12 avg60=0", 0, ""),
            (
                "pressure/cpu",
                "some avg10=99.12 avg60=0",
                1,
                "processes wait for a processor 99.12 % of the time, more than 95.00 %",
            ),
            (
                "meminfo",
                "MemAvailable: 102400 kB\n",
                0,
                "100 MiB of memory are free, fewer than 768",
            ),
            (
                "loadavg",
                "1 1 1 2/30000 1\n",
                0,
                "30000 processes run, more than 26160",
            ),
            ("loadavg", "what", 0, ""),
        ] {
            let dir = tempfile::tempdir().unwrap();
            idle(dir.path());
            said(dir.path(), name, text);
            let found = capacity(dir.path(), None).shortage(n_running);
            let found = found.map(|short| short.to_string()).unwrap_or_default();
            assert_eq!(found, expected, "{name} {text}");
        }
    }

    #[test]
    fn what_a_system_does_not_say_is_not_short() {
        let dir = tempfile::tempdir().unwrap();
        assert!(capacity(dir.path(), None).has_capacity(1));
    }

    #[test]
    fn the_places_of_the_machine_are_shared_by_all_who_look_there() {
        let dir = tempfile::tempdir().unwrap();
        idle(dir.path());
        let (one, other) = (capacity(dir.path(), Some(2)), capacity(dir.path(), Some(2)));
        let cancel = Cancel::new();
        let first = one.occupy(&cancel).unwrap().unwrap();
        assert!(other.has_capacity(0));
        let second = other.occupy(&cancel).unwrap().unwrap();
        let short = one.shortage(1).unwrap().to_string();
        assert_eq!(short, "all 2 slots of this machine are in use");
        // Whoever waits gets the place when it is free, and none when it is called off.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| one.occupy(&cancel).unwrap().is_some());
            drop(first);
            assert!(waiting.join().unwrap());
        });
        let third = other.occupy(&cancel).unwrap();
        cancel.raise();
        assert!(one.occupy(&cancel).unwrap().is_none());
        drop((second, third));
    }
}
