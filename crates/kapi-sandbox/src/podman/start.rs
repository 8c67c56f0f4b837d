//! The host stage: moves the caller's pipes out of podman's sight and becomes podman.
//!
//! The payload writes straight into the pipes of the host side; what podman itself says goes to a
//! file of its own, so that neither can pass for the other. Knows nothing of what podman is told.

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, IntoRawFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::channel::{StartOrder, read_order};
use super::relay::{N_STANDARD, PAYLOAD_FDS_FROM, assignment};
use crate::init::NOT_RUN;
use crate::syscall::{close_later_from, execute, location_descriptor, take_descriptor};

/// The descriptor of our order.
const START_FD: i32 = 3;
/// The descriptor of the file for what podman says.
const DIAGNOSIS_FD: i32 = 4;
/// The descriptors of the relay's order and of its channel.
const RELAY_FDS: [i32; 2] = [5, 6];
/// The first of the payload's own descriptors.
const GIVEN_FDS_FROM: i32 = 7;
/// Where descriptors wait while the low numbers are given out; above any of them.
const PARKED_FROM: i32 = 192;

/// Becomes podman; returns an exit code only if that failed.
pub(super) fn start_main() -> i32 {
    let Ok(diagnosis) = park(DIAGNOSIS_FD) else {
        return NOT_RUN;
    };
    let errno = match arrange(&diagnosis) {
        Ok(order) => become_podman(&order),
        Err(errno) => errno,
    };
    let text = format!("start podman: {}\n", std::io::Error::from(errno));
    match rustix::io::write(&diagnosis, text.as_bytes()) {
        // Nobody can be told if this fails; the exit code still says that nothing ran.
        Ok(_) | Err(_) => NOT_RUN,
    }
}

/// Gives podman nothing to read and the file to write, and behind that, in the relay's order, what
/// it must hand to the container.
fn arrange(diagnosis: &OwnedFd) -> Result<StartOrder, Errno> {
    let order: StartOrder = read_order(take_descriptor(START_FD)?.as_fd())?;
    let n_fds = i32::try_from(order.n_fds).map_err(|_| Errno::MFILE)?;
    if PAYLOAD_FDS_FROM + N_STANDARD + n_fds > PARKED_FROM {
        return Err(Errno::MFILE);
    }
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut parked = vec![
        duplicate(&null)?,
        duplicate(diagnosis)?,
        duplicate(diagnosis)?,
    ];
    drop(null);
    let given = GIVEN_FDS_FROM..GIVEN_FDS_FROM + n_fds;
    for number in RELAY_FDS.into_iter().chain(0..N_STANDARD).chain(given) {
        parked.push(park(number)?);
    }
    let mut next = 0;
    for fd in &parked {
        location_descriptor(fd.as_raw_fd(), next)?;
        next += 1;
    }
    close_later_from(u32::try_from(next).map_err(|_| Errno::MFILE)?)?;
    Ok(order)
}

fn duplicate(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(fd, PARKED_FROM)
}

/// Duplicates a descriptor far up and leaves its number open, for another to be placed over.
fn park(number: i32) -> Result<OwnedFd, Errno> {
    let taken = take_descriptor(number)?;
    let parked = duplicate(&taken);
    let left_open = taken.into_raw_fd();
    assert!(
        left_open == number,
        "giving up an owner does not change the number"
    );
    parked
}

fn become_podman(order: &StartOrder) -> Errno {
    let prepared = prepare(order);
    prepared.map_or_else(
        |errno| errno,
        |(path, args, env)| execute(&path, &args, &env),
    )
}

fn prepare(order: &StartOrder) -> Result<(CString, Vec<CString>, Vec<CString>), Errno> {
    let path = c_string(order.path.as_bytes().to_vec())?;
    let args = order
        .args
        .iter()
        .map(|arg| c_string(arg.as_bytes().to_vec()));
    let args = std::iter::once(Ok(path.clone())).chain(args);
    let args = args.collect::<Result<Vec<_>, _>>()?;
    let env = order
        .env
        .iter()
        .map(|(name, value)| c_string(assignment(name, value)));
    Ok((path, args, env.collect::<Result<Vec<_>, _>>()?))
}

fn c_string(bytes: Vec<u8>) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}
