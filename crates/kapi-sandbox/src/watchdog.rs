//! Holds the limits that nothing in the kernel holds for us: it looks from outside, again and again,
//! and ends the sandbox that is over one.
//!
//! Sees host processes and host directories only. Between two looks a sandbox can go beyond its limit
//! for a moment; the grade of a run says which limits are held this way.

pub(crate) mod disk;
mod family;

use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};

use self::disk::{Disk, DiskBaseline};
use self::family::Family;
use crate::cgroup::Controller;

/// The pause between two looks while there is room, and when half the memory is used.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_NEAR: Duration = Duration::from_millis(20);
/// The pause between two looks at directories.
const DISK_PAUSE: Duration = Duration::from_secs(1);
/// How many looks in a row must agree before a sandbox is ended for memory: a process that is about
/// to become another program is counted twice for a moment.
const MEMORY_LOOKS: u32 = 3;

/// Limits to hold from outside.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// Bytes of memory of all processes together.
    pub memory_bytes: Option<u64>,
    /// Processes and threads, if the kernel does not refuse more.
    pub processes: Option<u64>,
    /// Processes and threads, if the kernel refuses more and says so to nobody but the process.
    pub processes_noticed: Option<u64>,
    /// Bytes that a run may add on disk, and the host's directories that count as they were before it.
    pub disk: Option<(u64, DiskBaseline)>,
}

/// A limit that a sandbox was found beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitBreach {
    /// One that a control group would hold.
    Counted(Controller),
    /// The growth of the writable directories.
    Disk,
}

impl Watchdog {
    /// Tells whether there is anything to hold.
    pub(crate) fn is_idle(&self) -> bool {
        let Self {
            memory_bytes,
            processes,
            processes_noticed,
            disk,
        } = self;
        [memory_bytes, processes, processes_noticed]
            .iter()
            .all(|limit| limit.is_none())
            && disk.is_none()
    }

    /// Watches until the leading process has ended, and ends it when a limit is passed. Ending it ends
    /// every process of its namespace and no other.
    pub(crate) fn guard(&self, leader: BorrowedFd<'_>) -> Result<Option<LimitBreach>, Errno> {
        let Some(pid) = number_of(leader) else {
            // It has ended already.
            return Ok(None);
        };
        let mut watch = LimitWatch {
            limits: self,
            memory_looks: 0,
            is_full: false,
            disk: self.disk.as_ref().map(|(_, start)| Disk::new(start)),
            disk_due: Instant::now(),
        };
        let mut pause = PAUSE_NEAR;
        while !has_ended(leader, pause)? {
            let (beyond, next) = watch.look(pid);
            if beyond.is_some() {
                return match pidfd_send_signal(leader, Signal::KILL) {
                    Ok(()) => Ok(beyond),
                    Err(Errno::SRCH) => Ok(None),
                    Err(errno) => Err(errno),
                };
            }
            pause = next;
        }
        let full = watch.is_full;
        let full = full.then_some(LimitBreach::Counted(Controller::Processes));
        // What a short run wrote between two looks is said all the same.
        Ok(watch.last_look_at_disk().or(full))
    }
}

/// The state of one watch.
struct LimitWatch<'a> {
    limits: &'a Watchdog,
    memory_looks: u32,
    /// There were as many processes as there may be.
    is_full: bool,
    disk: Option<Disk<'a>>,
    disk_due: Instant,
}

impl LimitWatch<'_> {
    /// Looks once; returns what is over its limit and how long to wait before the next look.
    fn look(&mut self, leader: Pid) -> (Option<LimitBreach>, Duration) {
        let limits = self.limits;
        let counted = [
            limits.memory_bytes,
            limits.processes,
            limits.processes_noticed,
        ];
        let mut pause = PAUSE;
        if counted.iter().any(Option::is_some) {
            let family = Family::of(leader);
            if let Some(controller) = self.look_at_family(&family) {
                return (Some(LimitBreach::Counted(controller)), pause);
            }
            if is_near(&family, limits) {
                pause = PAUSE_NEAR;
            }
        }
        (self.look_at_disk(), pause)
    }

    fn look_at_family(&mut self, family: &Family) -> Option<Controller> {
        let limits = self.limits;
        let n_tasks = family.n_tasks;
        self.is_full |= limits.processes_noticed.is_some_and(|most| n_tasks >= most);
        if limits.processes.is_some_and(|most| n_tasks > most) {
            return Some(Controller::Processes);
        }
        let limit = limits.memory_bytes?;
        self.is_over(family, limit).then_some(Controller::Memory)
    }

    fn is_over(&mut self, family: &Family, limit: u64) -> bool {
        // The exact sum is costly, so it is made only when the quick one, which is never smaller, is
        // over the limit.
        let is_over = family.resident_bytes > limit && family.proportional_bytes() > limit;
        self.memory_looks = if is_over { self.memory_looks + 1 } else { 0 };
        self.memory_looks >= MEMORY_LOOKS
    }

    fn look_at_disk(&mut self) -> Option<LimitBreach> {
        let (limit, _) = self.limits.disk.as_ref()?;
        let disk = self.disk.as_mut()?;
        if Instant::now() < self.disk_due {
            return None;
        }
        let is_over = disk.is_over(*limit);
        // A walk that took long is not repeated at once.
        self.disk_due = Instant::now() + DISK_PAUSE.max(disk.last_walk_took() * 10);
        is_over.then_some(LimitBreach::Disk)
    }

    fn last_look_at_disk(&mut self) -> Option<LimitBreach> {
        self.disk_due = Instant::now();
        self.look_at_disk()
    }
}

/// Tells whether half of a limit is used, so that the next look should come soon.
fn is_near(family: &Family, limits: &Watchdog) -> bool {
    let memory = limits.memory_bytes;
    let memory = memory.is_some_and(|limit| family.resident_bytes > limit / 2);
    let processes = limits.processes.or(limits.processes_noticed);
    memory || processes.is_some_and(|most| family.n_tasks > most / 2)
}

/// Waits, and tells whether the process ended meanwhile.
fn has_ended(leader: BorrowedFd<'_>, pause: Duration) -> Result<bool, Errno> {
    let pause = Timespec::try_from(pause).map_err(|_| Errno::INVAL)?;
    let mut polled = [PollFd::new(&leader, PollFlags::IN)];
    match poll(&mut polled, Some(&pause)) {
        Ok(n_ready) => Ok(n_ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Returns the number of the process that a descriptor stands for, as this process sees it.
fn number_of(process: BorrowedFd<'_>) -> Option<Pid> {
    let path = format!("/proc/self/fdinfo/{}", process.as_raw_fd());
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    // A process that has ended has the number -1 here.
    let number: i32 = line.trim().parse().ok().filter(|number| *number > 0)?;
    Pid::from_raw(number)
}
