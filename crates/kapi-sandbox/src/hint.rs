//! Advice for a refused set-up call on this host.
//!
//! One pure table from call, errno and host facts to what a person can do. Never changes anything.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use crate::status::Failure;

/// What about the host decides which advice is right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Host {
    /// AppArmor lets only profiled programs use user namespaces.
    pub apparmor_restricts: bool,
    /// The Debian switch for user namespaces of ordinary users is off.
    pub clone_disabled: bool,
    /// No user namespace may be made at all.
    pub none_allowed: bool,
    /// We run inside a container.
    pub in_container: bool,
}

impl Host {
    /// Reads the facts.
    pub(crate) fn observe() -> Self {
        let holds = |path: &str, value: &str| {
            fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
        };
        Self {
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
pub(crate) fn hint(failure: &Failure, host: &Host) -> Option<String> {
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
             (docker) or --security-opt unmask=ALL (podman), or ask for --sandbox none by name",
        )
    } else if errno == Errno::NOSYS {
        Some(
            "the native sandbox needs Linux 5.12 or newer, and a container profile that lets the new mount calls through",
        )
    } else if call == "open_tree" && errno == Errno::NOENT {
        Some("a path to be mounted does not exist on the host")
    } else if call == "execve" && (errno == Errno::NOENT || errno == Errno::ACCESS) {
        Some(
            "the program, or the interpreter its first line names, is not visible inside or is not executable; mount it",
        )
    } else if call == "chdir" {
        Some("the working directory must exist inside the sandbox; mount it")
    } else if errno == Errno::ROFS {
        Some("the place inside lies on a read-only mount, so it cannot be made; choose another")
    } else if errno == Errno::LOOP {
        Some("a part of the path inside is a symbolic link; give the path it leads to")
    } else if errno == Errno::MFILE || errno == Errno::NFILE {
        Some("raise the limit of open files (ulimit -n)")
    } else {
        None
    };
    advice.map(str::to_owned)
}

fn namespace_hint(errno: Errno, host: &Host) -> Option<&'static str> {
    match errno {
        Errno::PERM | Errno::ACCESS if host.apparmor_restricts => Some(
            "AppArmor keeps user namespaces from ordinary programs here: give kapi a profile with the userns rule, or \
             run: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        Errno::PERM if host.clone_disabled => Some(
            "user namespaces are switched off for ordinary users: sudo sysctl kernel.unprivileged_userns_clone=1",
        ),
        Errno::PERM if host.in_container => Some(
            "the container around kapi forbids namespaces; start it with --security-opt seccomp=unconfined \
             --security-opt apparmor=unconfined, or ask for --sandbox none by name",
        ),
        Errno::PERM => Some(
            "a security policy of this host (seccomp, SELinux or AppArmor) forbids it; allow user namespaces for kapi, \
             or ask for --sandbox none by name",
        ),
        Errno::NOSPC | Errno::USERS if host.none_allowed => {
            Some("this host allows no user namespaces: sudo sysctl user.max_user_namespaces=10000")
        }
        Errno::NOSPC | Errno::USERS => Some(
            "the limit of namespaces is reached, or we are already in a sandbox that allows none; see \
             /proc/sys/user/max_*_namespaces",
        ),
        Errno::INVAL | Errno::NOSYS => Some("the kernel was built without this kind of namespace"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::{Host, hint};
    use crate::status::Failure;

    fn check(call: &str, errno: Errno, host: Host, expected: &str) {
        let advice = hint(&Failure::new(call, "x", errno), &host);
        let found = advice.as_deref().unwrap_or("none");
        assert!(found.contains(expected), "{call} {errno}: {found}");
    }

    #[test]
    fn advice_names_the_switch_that_is_off() {
        let plain = Host::default();
        let user = "unshare(CLONE_NEWUSER)";
        check(
            user,
            Errno::PERM,
            Host {
                apparmor_restricts: true,
                ..plain
            },
            "apparmor_restrict_unprivileged_userns=0",
        );
        check(
            "write uid_map",
            Errno::PERM,
            Host {
                apparmor_restricts: true,
                ..plain
            },
            "AppArmor",
        );
        check(
            user,
            Errno::PERM,
            Host {
                clone_disabled: true,
                ..plain
            },
            "unprivileged_userns_clone=1",
        );
        check(
            user,
            Errno::PERM,
            Host {
                in_container: true,
                ..plain
            },
            "seccomp=unconfined",
        );
        check(user, Errno::PERM, plain, "security policy");
        check(
            user,
            Errno::NOSPC,
            Host {
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
        check("open_tree", Errno::IO, plain, "none");
    }
}
