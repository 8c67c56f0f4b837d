//! Leaves the host's namespaces for new ones.
//!
//! All at once, and after a refusal each on its own, so that it gets a name. Knows nothing of what will
//! fill them.

use std::fs::OpenOptions;
use std::io::Write as _;

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::order::Enclosure;
use crate::status::StepFailure;
use crate::syscall::unshare;

/// The namespaces of every native sandbox but the network, which takes far longer than all of these.
const ALL: UnshareFlags = UnshareFlags::NEWUSER
    .union(UnshareFlags::NEWNS)
    .union(UnshareFlags::NEWPID)
    .union(UnshareFlags::NEWIPC)
    .union(UnshareFlags::NEWUTS)
    .union(UnshareFlags::NEWCGROUP);

/// Who the host's root becomes inside: never root again, so that nothing inside takes itself for it.
const ROOT_BECOMES: u32 = 1000;

/// A user as seen from both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserMapping {
    /// Outside.
    pub host: u32,
    /// Inside.
    pub inside: u32,
}

impl UserMapping {
    fn of(host: u32) -> Self {
        Self {
            host,
            inside: if host == 0 { ROOT_BECOMES } else { host },
        }
    }

    fn map_line(self) -> String {
        format!("{} {} 1", self.inside, self.host)
    }
}

/// Enters every namespace of a native sandbox but the network. The caller's next child is the first of the pid
/// namespace.
pub(super) fn enter(enclosure: &Enclosure) -> Result<(), StepFailure> {
    let users = UserMappings::own();
    if unshare(ALL).is_err() {
        // Nothing was left. One by one, the refusal gets a name.
        enter_each()?;
    }
    users.map()?;
    rustix::system::sethostname(enclosure.hostname.as_bytes())
        .map_err(|errno| StepFailure::new("sethostname", &enclosure.hostname, errno))
}

fn enter_each() -> Result<(), StepFailure> {
    enter_one(UnshareFlags::NEWUSER, "CLONE_NEWUSER")?;
    enter_one(UnshareFlags::NEWNS, "CLONE_NEWNS")?;
    enter_one(UnshareFlags::NEWPID, "CLONE_NEWPID")?;
    enter_one(UnshareFlags::NEWIPC, "CLONE_NEWIPC")?;
    enter_one(UnshareFlags::NEWUTS, "CLONE_NEWUTS")?;
    enter_cgroup()
}

/// Makes a user namespace in which this user is one ordinary user and nobody else exists.
pub(super) fn enter_user() -> Result<(), StepFailure> {
    let users = UserMappings::own();
    enter_one(UnshareFlags::NEWUSER, "CLONE_NEWUSER")?;
    users.map()
}

/// The user and group that exist inside.
#[derive(Debug, Clone, Copy)]
struct UserMappings {
    user: UserMapping,
    group: UserMapping,
}

impl UserMappings {
    /// Returns this process's own, as they are before it leaves the namespace they have a number in.
    fn own() -> Self {
        Self {
            user: UserMapping::of(geteuid().as_raw()),
            group: UserMapping::of(getegid().as_raw()),
        }
    }

    fn map(self) -> Result<(), StepFailure> {
        write_own("setgroups", "deny")?;
        write_own("uid_map", &self.user.map_line())?;
        write_own("gid_map", &self.group.map_line())
    }
}

/// Leaves one kind of namespace.
pub(super) fn enter_one(flag: UnshareFlags, name: &str) -> Result<(), StepFailure> {
    unshare(flag)
        .map_err(|errno| StepFailure::new(&format!("unshare({name})"), "the launcher", errno))
}

/// Hides the host's cgroup paths where the kernel can; nothing relies on it.
fn enter_cgroup() -> Result<(), StepFailure> {
    match unshare(UnshareFlags::NEWCGROUP) {
        // No cgroup file system is mounted inside, so an old kernel shows one path name and no more.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(StepFailure::new(
            "unshare(CLONE_NEWCGROUP)",
            "the launcher",
            errno,
        )),
    }
}

fn write_own(file: &str, line: &str) -> Result<(), StepFailure> {
    let path = format!("/proc/self/{file}");
    OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut open| open.write_all(line.as_bytes()))
        .map_err(|error| {
            StepFailure::new(
                &format!("write {file}"),
                &path,
                Errno::from_io_error(&error).unwrap_or(Errno::IO),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::UserMapping;

    #[test]
    fn root_is_never_root_inside_and_others_keep_their_number() {
        assert_eq!(UserMapping::of(0).map_line(), "1000 0 1");
        assert_eq!(UserMapping::of(1234).map_line(), "1234 1234 1");
    }
}
