//! Sleeping until something happens: a directory changes, a process ends, somebody rings.
//!
//! Only an invitation to look again: what has happened is for the caller to find out, and an event
//! that the system loses is made up for by a sleep that is never long.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use crate::process::{ProcessName, hold_process};

/// How often a sleeper looks whether it is still wanted: a signal may come just before it sleeps.
const SLICE: Duration = Duration::from_secs(1);
/// The pause after a change, in which more of them become one.
const GATHER: Duration = Duration::from_millis(2);
/// Bytes of changes that are read at once.
const CHANGES_BYTES: usize = 4096;
/// Reads of changes in one go; a directory that changes faster only wakes us again.
const READS_MAX: u32 = 64;

/// What wakes a sleeper before its time.
#[derive(Debug)]
pub struct Alarm {
    changes: OwnedFd,
    directories: BTreeMap<PathBuf, i32>,
    processes: BTreeMap<ProcessName, OwnedFd>,
    waker: AlarmWaker,
}

/// Wakes the sleeper of an alarm, from any thread.
#[derive(Debug, Clone)]
pub struct AlarmWaker(Arc<OwnedFd>);

/// What a sleeper is woken by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WakeSources {
    /// Directories in which a name or a file's content changes; those that are not there are
    /// passed over.
    pub directories: BTreeSet<PathBuf>,
    /// Processes that end.
    pub processes: BTreeSet<ProcessName>,
}

impl AlarmWaker {
    /// Wakes the sleeper, or keeps it from falling asleep.
    pub fn ring(&self) {
        // Only a counter that is full refuses, and then it has rung.
        rustix::io::write(&*self.0, &1_u64.to_ne_bytes()).ok();
    }
}

impl Alarm {
    /// Makes an alarm that nothing triggers but its bell.
    pub fn new() -> io::Result<Self> {
        let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            changes,
            directories: BTreeMap::new(),
            processes: BTreeMap::new(),
            waker: AlarmWaker(Arc::new(waker)),
        })
    }

    /// Returns its bell.
    #[must_use]
    pub fn waker(&self) -> AlarmWaker {
        self.waker.clone()
    }

    /// Watches exactly this from now on. To be called before the things themselves are looked at,
    /// so that a change in between is not missed.
    pub fn watch(&mut self, watched: &WakeSources) -> io::Result<()> {
        let changes = &self.changes;
        self.directories.retain(|path, number| {
            let is_wanted = watched.directories.contains(path);
            if !is_wanted {
                // One that is gone has no watch any more.
                inotify::remove_watch(changes, *number).ok();
            }
            is_wanted
        });
        for path in &watched.directories {
            // Again each time: a directory that was removed and made anew is another one.
            match add(changes, path) {
                Some(number) => drop(self.directories.insert(path.clone(), number)),
                None => drop(self.directories.remove(path)),
            }
        }
        let wanted = &watched.processes;
        self.processes.retain(|name, _| wanted.contains(name));
        for name in wanted {
            if !self.processes.contains_key(name)
                && let Some(held) = hold_process(*name)
            {
                self.processes.insert(*name, held);
            }
        }
        // What has happened so far is about to be looked at.
        self.take_changes()
    }

    /// Sleeps until something watched happens, the bell rings, the time is over, or `is_over`.
    pub fn sleep(&mut self, longest: Duration, is_over: &dyn Fn() -> bool) -> io::Result<()> {
        let began = Instant::now();
        while !is_over() {
            let left = longest.saturating_sub(began.elapsed());
            if left.is_zero() || self.wait(left.min(SLICE))? {
                break;
            }
        }
        Ok(())
    }

    /// Waits for an event, and takes it; tells whether there was one.
    fn wait(&mut self, longest: Duration) -> io::Result<bool> {
        let mut fds = vec![
            PollFd::new(&self.changes, PollFlags::IN),
            PollFd::new(&*self.waker.0, PollFlags::IN),
        ];
        let held = self.processes.values();
        fds.extend(held.map(|process| PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)));
        let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&longest)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let has_happened = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let (has_changed, has_ended): (bool, Vec<bool>) = (
            fds.first().is_some_and(has_happened),
            fds.iter().skip(2).map(has_happened).collect(),
        );
        drop(fds);
        let mut ended = has_ended.into_iter();
        self.processes
            .retain(|_, _| !ended.next().unwrap_or_default());
        self.quieten()?;
        if has_changed {
            thread::sleep(GATHER);
            self.take_changes()?;
        }
        Ok(true)
    }

    /// Takes what the bell has rung.
    fn quieten(&self) -> io::Result<()> {
        let mut count = [0; 8];
        match rustix::io::read(&*self.waker.0, &mut count) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_changes(&self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); CHANGES_BYTES];
        for _ in 0..READS_MAX {
            match rustix::io::read(&self.changes, &mut buffer) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Begins to watch a directory; nothing when it is not there, or the system has no watch left.
fn add(changes: &OwnedFd, path: &Path) -> Option<i32> {
    let flags = WatchFlags::ONLYDIR
        | WatchFlags::ATTRIB
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MODIFY
        | WatchFlags::MOVE
        | WatchFlags::MOVE_SELF
        | WatchFlags::CLOSE_WRITE;
    inotify::add_watch(changes, path, flags).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::{Child, Command, Stdio, id};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{Alarm, WakeSources};
    use crate::process::process_name;

    /// Longer than any test takes, so that only an event can have woken it.
    const LONG: Duration = Duration::from_secs(60);

    fn woken_after(alarm: &mut Alarm) -> Duration {
        let began = Instant::now();
        alarm.sleep(LONG, &|| false).unwrap();
        began.elapsed()
    }

    #[test]
    fn a_change_in_a_directory_wakes() {
        let directory = tempfile::tempdir().unwrap();
        let mut alarm = Alarm::new().unwrap();
        let mut watched = WakeSources::default();
        watched.directories.insert(directory.path().to_path_buf());
        watched.directories.insert(directory.path().join("missing"));
        alarm.watch(&watched).unwrap();
        File::create(directory.path().join("new")).unwrap();
        assert!(woken_after(&mut alarm) < LONG);
        alarm.watch(&WakeSources::default()).unwrap();
        File::create(directory.path().join("newer")).unwrap();
        let began = Instant::now();
        alarm.sleep(Duration::from_millis(30), &|| false).unwrap();
        assert!(
            began.elapsed() >= Duration::from_millis(30),
            "nobody watches it"
        );
    }

    #[test]
    fn the_bell_wakes_also_before_the_sleep() {
        let mut alarm = Alarm::new().unwrap();
        alarm.waker().ring();
        assert!(woken_after(&mut alarm) < LONG);
        let waker = alarm.waker();
        let ringer = thread::spawn(move || waker.ring());
        assert!(woken_after(&mut alarm) < LONG);
        ringer.join().unwrap();
    }

    #[test]
    fn what_is_over_is_not_slept_for() {
        let mut alarm = Alarm::new().unwrap();
        let began = Instant::now();
        alarm.sleep(LONG, &|| true).unwrap();
        assert!(began.elapsed() < LONG);
    }

    #[test]
    fn a_process_that_ends_wakes_once() {
        let mut reader = Reader::spawn();
        let name = process_name(reader.0.id()).unwrap();
        let mut alarm = Alarm::new().unwrap();
        let mut watched = WakeSources::default();
        watched.processes.insert(name);
        alarm.watch(&watched).unwrap();
        drop(reader.0.stdin.take());
        assert!(woken_after(&mut alarm) < LONG);
        // Nobody has asked for its end yet, so it is in the table still, and has ended all the same.
        assert_eq!(process_name(name.pid), None);
        alarm.watch(&watched).unwrap();
        assert!(alarm.processes.is_empty());
    }

    /// A process that lives as long as its standard input.
    struct Reader(Child);

    impl Reader {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test holds the other end of its input"
        )]
        fn spawn() -> Self {
            let child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn();
            Self(child.unwrap())
        }
    }

    impl Drop for Reader {
        fn drop(&mut self) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }

    #[test]
    fn a_live_process_has_a_name_and_wakes_nobody() {
        let name = process_name(id()).unwrap();
        let mut alarm = Alarm::new().unwrap();
        let mut watched = WakeSources::default();
        watched.processes.insert(name);
        alarm.watch(&watched).unwrap();
        assert_eq!(alarm.processes.len(), 1);
        let other = crate::process::ProcessName {
            started_ticks: name.started_ticks + 1,
            ..name
        };
        assert!(crate::process::hold_process(other).is_none());
    }
}
