//! The second lock on the file system: even where a mount could be written, only the places meant to
//! be written can, and nothing inside reaches a process or socket outside.
//!
//! Mounts are the first lock, and the spec is the source of both. Knows nothing of how mounts are made.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::root::WRITABLE;
use crate::order::{Enclosure, OrderedAccess};
use crate::status::StepFailure;
use crate::syscall::restrict::{
    Ruleset, landlock_allow, landlock_restrict, landlock_ruleset, landlock_version,
};

/// The first version that lets files be renamed from directory to directory; with an older one,
/// ordinary tools would fail.
const VERSION_MIN: u32 = 2;
/// The first versions with rights to shorten files and to control devices, and with scopes.
const TRUNCATE_SINCE: u32 = 3;
const CONTROL_SINCE: u32 = 5;
pub(crate) const SCOPES_SINCE: u32 = 6;

/// `LANDLOCK_ACCESS_FS_*`.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIRECTORY: u64 = 1 << 3;
const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
const TRUNCATE: u64 = 1 << 14;
const CONTROL_DEVICE: u64 = 1 << 15;
/// All of them that version 2 knows.
const ALL_FIRST: u64 = (1 << 14) - 1;
/// Those that make sense for a single file.
const OF_A_FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | CONTROL_DEVICE;
/// `LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET` and `LANDLOCK_SCOPE_SIGNAL`.
const SCOPES: u64 = 0b11;

const READ: u64 = EXECUTE | READ_FILE | READ_DIRECTORY;
/// No place may hold a device that is made inside.
const NEVER: u64 = MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE;

/// Files of the kernel, which decides for itself who writes them.
const KERNEL_FILES: &str = "/proc";
/// Where devices are, which can also be controlled.
const DEVICES: &str = "/dev";

/// What a version of Landlock is asked to handle in a sandbox.
fn handled(version: u32, nested_namespaces: bool) -> Ruleset {
    let since = |first: u32, right: u64| if version >= first { right } else { 0 };
    let files = ALL_FIRST | since(TRUNCATE_SINCE, TRUNCATE) | since(CONTROL_SINCE, CONTROL_DEVICE);
    Ruleset {
        // Whoever has file rules can mount nothing at all, and a sandbox of its own must mount.
        files: if nested_namespaces { 0 } else { files },
        ports: 0,
        scopes: since(SCOPES_SINCE, SCOPES),
    }
}

/// Restricts this process and its descendants; does nothing where the order says that the kernel has
/// nothing to offer. Call inside the finished root.
pub(super) fn restrict(enclosure: &Enclosure) -> Result<(), StepFailure> {
    let handled = handled(enclosure.landlock, enclosure.nested_namespaces);
    if enclosure.landlock < VERSION_MIN || (handled.files, handled.scopes) == (0, 0) {
        return Ok(());
    }
    restrict_to(&handled, enclosure.landlock, &writable(enclosure))
}

fn restrict_to(handled: &Ruleset, version: u32, writable: &[PathBuf]) -> Result<(), StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the leader", errno);
    let ruleset = landlock_ruleset(handled, version).map_err(failed("landlock_create_ruleset"))?;
    if handled.files != 0 {
        allow(&ruleset, Path::new("/"), handled.files & READ)?;
        let write = handled.files & !NEVER & !CONTROL_DEVICE;
        for path in writable {
            allow(&ruleset, path, write)?;
        }
        let devices = handled.files & (READ | WRITE_FILE | TRUNCATE | CONTROL_DEVICE);
        allow(&ruleset, Path::new(DEVICES), devices)?;
    }
    landlock_restrict(ruleset.as_fd()).map_err(failed("landlock_restrict_self"))
}

/// Tries it without any rule for a place.
pub(super) fn attempt() -> Result<(), StepFailure> {
    let failed = |call: &'static str| move |errno: Errno| StepFailure::new(call, "landlock", errno);
    let version = usable_version().map_err(failed("landlock_create_ruleset"))?;
    restrict_to(&handled(version, false), version, &[])
}

/// Returns the version to use, or why there is none.
pub(crate) fn usable_version() -> Result<u32, Errno> {
    match landlock_version() {
        Ok(version) if version < VERSION_MIN => Err(Errno::OPNOTSUPP),
        other => other,
    }
}

/// Lists what the spec and the minimal root mean to be writable.
fn writable(enclosure: &Enclosure) -> Vec<PathBuf> {
    let given = enclosure.binds.iter().filter(|bind| match bind.access {
        OrderedAccess::ReadOnly => false,
        OrderedAccess::ReadWrite | OrderedAccess::CopyOnWrite { .. } => true,
    });
    let given = given.map(|bind| bind.inside.path());
    let own = WRITABLE.iter().map(|(path, _)| PathBuf::from(path));
    own.chain([PathBuf::from(KERNEL_FILES)])
        .chain(given)
        .collect()
}

fn allow(ruleset: &OwnedFd, path: &Path, rights: u64) -> Result<(), StepFailure> {
    let failed = |call: &'static str| {
        move |errno: Errno| StepFailure::new(call, &path.display().to_string(), errno)
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let location = openat(CWD, path, flags, Mode::empty()).map_err(failed("open"))?;
    let rights = rights & sensible(location.as_fd()).map_err(failed("fstat"))?;
    landlock_allow(ruleset.as_fd(), location.as_fd(), rights).map_err(failed("landlock_add_rule"))
}

/// Returns the rights that the kernel accepts for this kind of file.
fn sensible(location: BorrowedFd<'_>) -> Result<u64, Errno> {
    let kind = FileType::from_raw_mode(fstat(location)?.st_mode);
    Ok(match kind {
        FileType::Directory => u64::MAX,
        _ => OF_A_FILE,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};
    use std::path::{Path, PathBuf};
    use std::{fs, thread};

    use super::super::privilege::forbid_gains;
    use super::{handled, restrict_to, usable_version, writable};
    use crate::order::Enclosure;
    use crate::spec::{IsolationLevel, Mount, MountAccess, SandboxSpec};
    use crate::syscall::restrict::Ruleset;

    fn refused<T>(result: io::Result<T>) -> bool {
        result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    }

    /// Does everything to a directory that writing is, and tells whether all or nothing was allowed.
    fn is_writable(location: &Path) -> bool {
        let kept = location.join("kept");
        let refusals = [
            refused(fs::File::create(location.join("new"))),
            refused(fs::create_dir(location.join("directory"))),
            refused(fs::OpenOptions::new().append(true).open(&kept)),
            refused(std::os::unix::fs::symlink("to", location.join("link"))),
            refused(fs::rename(&kept, location.join("renamed"))),
        ];
        assert!(
            refusals.iter().all(|one| *one == refusals[0]),
            "{refusals:?}"
        );
        !refusals[0]
    }

    #[test]
    fn only_what_the_spec_means_to_be_written_can_be() {
        let top = tempfile::tempdir().unwrap();
        let [home, given, read_only, other] =
            ["home", "given", "read-only", "other"].map(|name| top.path().join(name));
        let mut spec = SandboxSpec::new(
            IsolationLevel::Native,
            "x",
            home.clone(),
            PathBuf::from("/x"),
        );
        spec.home_inside = home.clone();
        for (location, access) in [
            (&given, MountAccess::ReadWrite),
            (&read_only, MountAccess::ReadOnly),
        ] {
            spec.mounts.push(Mount {
                host: location.clone(),
                inside: location.clone(),
                access,
            });
        }
        for location in [&home, &given, &read_only, &other] {
            fs::create_dir(location).unwrap();
            fs::File::create(location.join("kept")).unwrap();
        }
        let version = usable_version().unwrap();
        let mut locations = writable(&Enclosure::new(&spec));
        // What every sandbox can write is here the directory that all four lie in.
        locations.retain(|location| !top.path().starts_with(location));
        // The rules hold for the thread that takes them on.
        let restricted = || {
            forbid_gains().unwrap();
            restrict_to(&handled(version, false), version, &locations).unwrap();
            let seen = fs::read(other.join("kept")).unwrap();
            assert_eq!(seen, b"");
            [&home, &given, &read_only, &other].map(|location| is_writable(location))
        };
        let found = thread::scope(|scope| scope.spawn(restricted).join().unwrap());
        assert_eq!(found, [true, true, false, false]);
    }

    fn check(version: u32, nested_namespaces: bool, files: u64, scopes: u64) {
        let expected = Ruleset {
            files,
            ports: 0,
            scopes,
        };
        assert_eq!(handled(version, nested_namespaces), expected, "{version}");
    }

    #[test]
    fn a_kernel_is_asked_only_for_what_it_knows() {
        check(2, false, 0x3FFF, 0);
        check(3, false, 0x7FFF, 0);
        check(4, false, 0x7FFF, 0);
        check(5, false, 0xFFFF, 0);
        check(6, false, 0xFFFF, 3);
        check(9, false, 0xFFFF, 3);
        check(6, true, 0, 3);
        check(5, true, 0, 0);
    }
}
