//! Advice for a refused set-up call on this host.
//!
//! One pure table from call, errno and host facts to what a person can do. Never changes anything.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use crate::status::StepFailure;

/// What about the host decides which advice is right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostRestrictions {
    /// AppArmor lets only profiled programs use user namespaces.
    pub apparmor_restricts: bool,
    /// The Debian switch for user namespaces of ordinary users is off.
    pub clone_disabled: bool,
    /// No user namespace may be made at all.
    pub none_allowed: bool,
    /// We run inside a container.
    pub in_container: bool,
    /// Control groups are of the first generation, which has no part for ordinary users.
    pub groups_are_old: bool,
}

impl HostRestrictions {
    /// Reads the facts.
    pub(crate) fn observe() -> Self {
        let holds = |path: &str, value: &str| {
            fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
        };
        Self {
            groups_are_old: !Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
            apparmor_restricts: holds(
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                "1",
            ),
            clone_disabled: holds("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            none_allowed: holds("/proc/sys/user/max_user_namespaces", "0"),
            in_container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|path| Path::new(path).exists()),
        }
    }
}

/// Returns the advice for a refused call, if there is any better than the message itself.
pub(crate) fn hint(failure: &StepFailure, host: &HostRestrictions) -> Option<String> {
    let errno = Errno::from_raw_os_error(failure.errno);
    let call = failure.call.as_str();
    let advice = if call.starts_with("unshare(")
        || call == "write uid_map"
        || call == "write gid_map"
    {
        namespace_hint(errno, host)
    } else if call.ends_with("(proc)") && errno == Errno::PERM {
        Some(
            "the container around kapi hides parts of /proc; start it with --security-opt systempaths=unconfined \
             (docker) or --security-opt unmask=ALL (podman), or use --sandbox none",
        )
    } else if call.starts_with("landlock_") {
        Some(
            "Landlock needs Linux 5.19 or newer, built with it and with `landlock` in the lsm= list of the kernel's \
             command line; without it the mounts alone keep files apart",
        )
    } else if call == "find cgroup controller" || is_group(failure) {
        group_hint(errno, host)
    } else if errno == Errno::NOSYS {
        Some(
            "the native sandbox needs Linux 5.12 or newer, and a container profile that allows \
             the new mount calls",
        )
    } else if call == "open_tree" && errno == Errno::NOENT {
        Some("a path to mount does not exist on the host")
    } else if call == "execve" && (errno == Errno::NOENT || errno == Errno::ACCESS) {
        Some(
            "the program, or the interpreter its first line names, is not visible inside or is not executable; mount it",
        )
    } else if call == "chdir" {
        Some("the working directory must exist inside the sandbox; mount it")
    } else if errno == Errno::ROFS {
        Some("the path inside is on a read-only mount and cannot be created; choose another")
    } else if errno == Errno::LOOP {
        Some("a part of the path inside is a symbolic link; give the path it leads to")
    } else if errno == Errno::MFILE || errno == Errno::NFILE {
        Some("raise the limit of open files (ulimit -n)")
    } else {
        None
    };
    advice.map(str::to_owned)
}

fn is_group(failure: &StepFailure) -> bool {
    failure.target.starts_with("/sys/fs/cgroup")
}

fn group_hint(errno: Errno, host: &HostRestrictions) -> Option<&'static str> {
    match errno {
        Errno::ACCESS | Errno::PERM if host.groups_are_old => Some(
            "control groups of version 1 are for root only: boot with \
             systemd.unified_cgroup_hierarchy=1; until then, memory is limited by sampling and \
             processes by rlimit",
        ),
        Errno::ACCESS | Errno::PERM | Errno::BUSY => Some(
            "start kapi in a separate group: systemd-run --user --scope -p Delegate=yes kapi …; \
             until then, memory is limited by sampling and processes by rlimit",
        ),
        Errno::ROFS => Some(
            "the container around kapi shows control groups read-only; mount /sys/fs/cgroup writable into it",
        ),
        Errno::NOENT => Some(
            "this controller is not delegated to this user: a drop-in for user@.service with \
             Delegate=cpu cpuset io memory pids does it",
        ),
        _ => None,
    }
}

/// Returns the advice for a copy-on-write mount that was refused where layers will lie.
pub(crate) fn overlay_hint(failure: &StepFailure, sandboxes: &Path) -> Option<String> {
    let kind = file_system(sandboxes);
    let errno = Errno::from_raw_os_error(failure.errno);
    let is_own_call = failure.call.ends_with("(overlay)");
    let advice = match kind.as_str() {
        "overlay" | "nfs" | "fuse" | "cifs" | "vfat" if is_own_call => format!(
            "layers cannot be on {kind}: put Kapi's directory on a local file system (ext4, \
             xfs, btrfs or tmpfs), in a \
             container on a volume"
        ),
        _ if is_own_call && errno == Errno::NODEV => {
            "the kernel has no overlay file system loaded: sudo modprobe overlay".to_owned()
        }
        _ if is_own_call && errno == Errno::PERM => {
            "overlays for ordinary users need Linux 5.11 or newer; until then ask for a worktree"
                .to_owned()
        }
        _ => return None,
    };
    Some(advice)
}

/// Names the file system on which a directory lies or would lie.
pub(crate) fn file_system(directory: &Path) -> String {
    let existing = directory.ancestors().find(|path| path.is_dir());
    let Some(Ok(stat)) = existing.map(rustix::fs::statfs) else {
        return "unknown".to_owned();
    };
    let names = [
        (0x794C_7630, "overlay"),
        (0x6969, "nfs"),
        (0x6573_5546, "fuse"),
        (0xFF53_4D42, "cifs"),
        (0xFE53_4D42, "cifs"),
        (0x4D44, "vfat"),
        (0xEF53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683E, "btrfs"),
        (0x0102_1994, "tmpfs"),
        (0x2FC1_2FC1, "zfs"),
        (0xF2F5_2010, "f2fs"),
    ];
    let kind = stat.f_type & 0xFFFF_FFFF;
    let named = names.into_iter().find(|(number, _)| *number == kind);
    named.map_or_else(|| format!("{kind:#x}"), |(_, name)| name.to_owned())
}

fn namespace_hint(errno: Errno, host: &HostRestrictions) -> Option<&'static str> {
    match errno {
        Errno::PERM if host.none_allowed => Some(
            "this is already a sandbox that allows none (user.max_user_namespaces is 0), or \
             this host allows none: \
             sudo sysctl user.max_user_namespaces=10000",
        ),
        Errno::PERM | Errno::ACCESS if host.apparmor_restricts => Some(
            "AppArmor restricts user namespaces here: give kapi a profile with the userns rule, or \
             run: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        Errno::PERM if host.clone_disabled => Some(
            "user namespaces are disabled for unprivileged users: sudo sysctl \
             kernel.unprivileged_userns_clone=1",
        ),
        Errno::PERM if host.in_container => Some(
            "the container around kapi forbids namespaces; start it with --security-opt seccomp=unconfined \
             --security-opt apparmor=unconfined, or use --sandbox none",
        ),
        Errno::PERM => Some(
            "a security policy of this host (seccomp, SELinux or AppArmor) forbids it; allow user namespaces for kapi, \
             or use --sandbox none",
        ),
        Errno::NOSPC | Errno::USERS if host.none_allowed => {
            Some("this host allows no user namespaces: sudo sysctl user.max_user_namespaces=10000")
        }
        Errno::NOSPC | Errno::USERS => Some(
            "the limit of namespaces is reached, or this is already a sandbox that allows none; see \
             /proc/sys/user/max_*_namespaces",
        ),
        Errno::INVAL | Errno::NOSYS => Some("the kernel was built without this kind of namespace"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rustix::io::Errno;

    use super::{HostRestrictions, hint, overlay_hint};
    use crate::status::StepFailure;

    fn check(call: &str, errno: Errno, host: HostRestrictions, expected: &str) {
        let advice = hint(&StepFailure::new(call, "x", errno), &host);
        let found = advice.as_deref().unwrap_or("none");
        assert!(found.contains(expected), "{call} {errno}: {found}");
    }

    #[test]
    fn advice_names_the_switch_that_is_off() {
        let plain = HostRestrictions::default();
        let user = "unshare(CLONE_NEWUSER)";
        check(
            user,
            Errno::PERM,
            HostRestrictions {
                apparmor_restricts: true,
                ..plain
            },
            "apparmor_restrict_unprivileged_userns=0",
        );
        check(
            "write uid_map",
            Errno::PERM,
            HostRestrictions {
                apparmor_restricts: true,
                ..plain
            },
            "AppArmor",
        );
        check(
            user,
            Errno::PERM,
            HostRestrictions {
                clone_disabled: true,
                ..plain
            },
            "unprivileged_userns_clone=1",
        );
        check(
            user,
            Errno::PERM,
            HostRestrictions {
                in_container: true,
                ..plain
            },
            "seccomp=unconfined",
        );
        check(user, Errno::PERM, plain, "security policy");
        check(
            user,
            Errno::NOSPC,
            HostRestrictions {
                none_allowed: true,
                ..plain
            },
            "user.max_user_namespaces=10000",
        );
        check(user, Errno::NOSPC, plain, "limit of namespaces");
        check(
            "unshare(CLONE_NEWNET)",
            Errno::INVAL,
            plain,
            "built without",
        );
        check("fsmount(proc)", Errno::PERM, plain, "unmask=ALL");
        check("mount_setattr", Errno::NOSYS, plain, "Linux 5.12");
        check("open_tree", Errno::NOENT, plain, "does not exist");
        check("execve", Errno::NOENT, plain, "not visible");
        check("chdir", Errno::NOENT, plain, "working directory");
        check("landlock_create_ruleset", Errno::NOSYS, plain, "Linux 5.19");
        check(
            "find cgroup controller",
            Errno::NOENT,
            plain,
            "user@.service",
        );
        check("open_tree", Errno::IO, plain, "none");
    }

    fn check_group(call: &str, errno: Errno, host: HostRestrictions, expected: &str) {
        let failure = StepFailure::new(call, "/sys/fs/cgroup/user.slice/x", errno);
        let advice = hint(&failure, &host).unwrap();
        assert!(advice.contains(expected), "{call} {errno}: {advice}");
    }

    #[test]
    fn control_groups_have_their_own_advice() {
        let plain = HostRestrictions::default();
        let old = HostRestrictions {
            groups_are_old: true,
            ..plain
        };
        check_group("mkdir", Errno::ACCESS, plain, "systemd-run --user --scope");
        check_group("write", Errno::BUSY, plain, "Delegate=yes");
        check_group("mkdir", Errno::ACCESS, old, "unified_cgroup_hierarchy");
        check_group("mkdir", Errno::ROFS, plain, "read-only");
    }

    #[test]
    fn a_refused_overlay_is_explained_by_where_it_would_lie() {
        let failure = |errno| StepFailure::new("fsconfig(overlay)", "/x", errno);
        let here = Path::new("/proc");
        let advice = |errno| overlay_hint(&failure(errno), here);
        assert!(advice(Errno::NODEV).unwrap().contains("modprobe overlay"));
        assert!(advice(Errno::PERM).unwrap().contains("Linux 5.11"));
        assert_eq!(advice(Errno::IO), None);
        let other = StepFailure::new("unshare(CLONE_NEWUSER)", "/x", Errno::PERM);
        assert_eq!(overlay_hint(&other, here), None);
    }
}
