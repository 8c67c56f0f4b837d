//! The process whose end is the end of everything in a sandbox.
//!
//! Confined, it is process 1 of the pid namespace and the kernel kills the rest with it. Supervising,
//! it is the subreaper of all descendants and kills them itself. Does not know why it is asked to end.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    set_child_subreaper, setsid, umask, wait,
};

use super::payload::become_payload;
use super::{
    LauncherTasks, LeaderChannels, NOT_RUN, benchmark, die_with_parent, hand_over_listeners,
    landlock, limit, notify, privilege, release_standard_streams, root, seccomp,
};
use crate::order::{Enclosure, PayloadProgram};
use crate::status::{LauncherMessage, PayloadEnd, StepFailure, send};
use crate::syscall::borrow::start_borrowing;

/// How often a supervisor collects orphans that ended.
const COLLECT_EVERY_MS: u64 = 250;
/// How long a supervisor tries to end its descendants, in passes of one millisecond.
const PASSES_MAX: u32 = 2_000;

/// Builds the enclosure around itself, gives up all rights, and runs the payload to its end.
pub(super) fn confine(
    enclosure: &Enclosure,
    payload: &PayloadProgram,
    beside: &LauncherTasks,
    ties: LeaderChannels<'_>,
) -> Result<i32, StepFailure> {
    let LeaderChannels { status, life } = ties;
    die_with_parent()?;
    if !may_go(status, life)? {
        return Ok(NOT_RUN);
    }
    umask(Mode::empty());
    root::enter(enclosure, &beside.layers)?;
    beside.host_root.leave()?;
    if let Some(network) = &beside.network {
        network.follow()?;
        hand_over_listeners(enclosure, status)?;
    }
    limit::lower(&enclosure.limits)?;
    let counting = benchmark::begin(payload)?;
    privilege::give_up_all()?;
    landlock::restrict(enclosure)?;
    seccomp::install(seccomp::SeccompProfile::of(enclosure))?;
    if !payload.processors.is_empty() {
        seccomp::hold_processors()?;
    }
    beside.host_root.await_gone()?;
    let child = spawn(payload, status)?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, ended))) if pid == child => {
                counting.report(status)?;
                return Ok(report(status, ended));
            }
            // An orphan of the payload: collecting it is all there is to do.
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(StepFailure::new("wait4", "the payload", errno)),
        }
    }
}

/// Runs the payload on the host, and ends all its descendants when it, the launcher or the host side
/// ends.
pub(super) fn supervise(
    payload: &PayloadProgram,
    ties: LeaderChannels<'_>,
) -> Result<i32, StepFailure> {
    let LeaderChannels { status, life } = ties;
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the leader", errno);
    // Out of the launcher's process group: a kill of the group must leave somebody to end the others.
    setsid().map_err(failed("setsid"))?;
    set_child_subreaper(Some(getpid())).map_err(failed("prctl(PR_SET_CHILD_SUBREAPER)"))?;
    privilege::hide_from_others()?;
    if !may_go(status, life)? {
        return Ok(NOT_RUN);
    }
    let counting = benchmark::begin(payload)?;
    let ended = spawn(payload, status).and_then(|child| watch(child, life));
    counting.report(status)?;
    if let Err(failure) = end_descendants() {
        notify(status.as_fd(), &LauncherMessage::Survived(failure));
        return Ok(NOT_RUN);
    }
    Ok(ended?.map_or(NOT_RUN, |ended| report(status, ended)))
}

/// Gives the host side this process's pidfd, and tells whether the launcher is still alive after the
/// death signal was set.
fn may_go(status: &OwnedFd, life: &OwnedFd) -> Result<bool, StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the launcher", errno);
    let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(failed("pidfd_open"))?;
    send(status.as_fd(), &LauncherMessage::Leader, &[own.as_fd()]).map_err(failed("sendmsg"))?;
    let mut polled = [PollFd::new(life, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).map_err(failed("poll"))?;
    Ok(!polled
        .iter()
        .any(|one| one.revents().contains(PollFlags::HUP)))
}

fn spawn(payload: &PayloadProgram, status: &OwnedFd) -> Result<Pid, StepFailure> {
    let child = start_borrowing(|| become_payload(payload, status))
        .map_err(|errno| StepFailure::new("clone", "the payload", errno))?;
    release_standard_streams()?;
    Ok(child)
}

fn report(status: &OwnedFd, ended: WaitStatus) -> i32 {
    let ending = match (ended.exit_status(), ended.terminating_signal()) {
        (Some(code), _) => PayloadEnd::Exited(code),
        (None, Some(signal)) => PayloadEnd::Signaled(signal),
        (None, None) => return NOT_RUN,
    };
    notify(status.as_fd(), &LauncherMessage::Ended(ending));
    ending.code()
}

/// Waits for the payload or for the launcher's end, whichever is first, collecting orphans meanwhile.
fn watch(child: Pid, life: &OwnedFd) -> Result<Option<WaitStatus>, StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the payload", errno);
    let payload = pidfd_open(child, PidfdFlags::empty()).map_err(failed("pidfd_open"))?;
    let pause = Timespec::try_from(Duration::from_millis(COLLECT_EVERY_MS))
        .map_err(|_| failed("poll")(Errno::INVAL))?;
    loop {
        while let Some((pid, ended)) = collect()? {
            if pid == child {
                return Ok(Some(ended));
            }
        }
        let mut polled = [
            PollFd::new(&payload, PollFlags::IN),
            PollFd::new(life, PollFlags::IN),
        ];
        match poll(&mut polled, Some(&pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failed("poll")(errno)),
        }
        if polled
            .last()
            .is_some_and(|one| one.revents().contains(PollFlags::HUP))
        {
            return Ok(None);
        }
    }
}

fn collect() -> Result<Option<(Pid, WaitStatus)>, StepFailure> {
    match wait(WaitOptions::NOHANG) {
        Ok(ended) => Ok(ended),
        Err(Errno::CHILD) => Ok(None),
        Err(errno) => Err(StepFailure::new("wait4", "the payload", errno)),
    }
}

/// Kills children until there are none. Only children are ever killed, never a number read earlier:
/// a child's number is its own until this process collects it. Grandchildren become children when
/// their parent dies, because this process is their subreaper.
fn end_descendants() -> Result<(), StepFailure> {
    for _ in 0..PASSES_MAX {
        if !has_children_left()? {
            return Ok(());
        }
        for child in children() {
            match kill_process(child, Signal::KILL) {
                // A set-user-id program may run as somebody else; it is waited for.
                Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
                Err(errno) => {
                    let child = child.as_raw_nonzero().to_string();
                    return Err(StepFailure::new("kill", &child, errno));
                }
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(StepFailure::new("kill", "the descendants", Errno::TIMEDOUT))
}

/// Collects every child that has ended and tells whether there are others.
fn has_children_left() -> Result<bool, StepFailure> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(true),
            Err(Errno::CHILD) => return Ok(false),
            Err(errno) => return Err(StepFailure::new("wait4", "a descendant", errno)),
        }
    }
}

/// Lists the processes whose parent is this one.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        // A process that ended since it was listed has no file any more.
        fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| parent_of(&stat) == Some(own.as_str()))
    })
    .filter_map(Pid::from_raw)
    .collect()
}

/// Reads the parent's number; the name in parentheses may hold anything, so it is skipped from behind.
fn parent_of(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)
}

#[cfg(test)]
mod tests {
    use super::parent_of;

    #[test]
    fn the_parent_is_read_behind_any_name() {
        assert_eq!(parent_of("12 (sh) S 7 12 12"), Some("7"));
        assert_eq!(parent_of("12 (a) S 9 b) R 7 12 12"), Some("7"));
        assert_eq!(parent_of("12 (sh"), None);
    }
}
