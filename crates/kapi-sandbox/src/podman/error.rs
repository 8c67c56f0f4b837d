//! What can go wrong around a container, as the sandbox's errors show it.
//!
//! Does not know the commands; it only words what came of them.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::error::SandboxError;

/// A container that could not be asked for, made or cleared.
#[derive(Debug, thiserror::Error)]
pub enum PodmanError {
    /// A value would not be taken for what it is, or asks for more than a container may have.
    #[error("use {value:?} as {what}: {why}")]
    Refused {
        /// What it should be.
        what: &'static str,
        /// The value, without control characters.
        value: String,
        /// Why it is refused.
        why: &'static str,
    },
    /// There is no podman.
    #[error("find podman on the search path")]
    NotFound,
    /// Podman said no.
    #[error("run podman {command}: {output}")]
    Said {
        /// The podman command.
        command: &'static str,
        /// What it wrote to standard error.
        output: String,
    },
    /// A podman command could not be run at all.
    #[error("run podman {command}")]
    Run {
        /// The podman command.
        command: &'static str,
        /// What happened.
        #[source]
        source: Box<kapi_sys::process::ProcessError>,
    },
    /// A file or directory of ours could not be made or read.
    #[error("{action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A library that the program in the container needs is in none of the usual places.
    #[error("find {library}, which {} is linked to", program.display())]
    NoLibrary {
        /// The program.
        program: PathBuf,
        /// The library.
        library: String,
    },
    /// A system call of ours failed.
    #[error("{call}")]
    Call {
        /// The call.
        call: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// What was left of a container did not go away.
    #[error("remove container {name} within {waited_ms} ms")]
    Remains {
        /// Its name.
        name: String,
        /// How long was tried.
        waited_ms: u64,
    },
}

impl PodmanError {
    /// Wraps a failed call.
    pub(super) fn call(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Call {
            call,
            source: errno.into(),
        }
    }

    /// Wraps a failed file operation.
    pub(super) fn file(action: &'static str, path: &std::path::Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File {
            action,
            path: path.clone(),
            source,
        }
    }

    /// Returns what a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotFound => Some("install it: apt-get install podman runc uidmap"),
            Self::Said { output, .. } => advice(output),
            Self::NoLibrary { .. } => {
                Some("use a statically linked kapi, as the releases are, or install the library")
            }
            Self::File {
                action: "mount", ..
            } => Some("a path to mount does not exist on the host"),
            Self::Remains { .. } => Some("remove it by hand: podman rm --force"),
            Self::Refused { .. } | Self::Run { .. } | Self::File { .. } | Self::Call { .. } => None,
        }
    }
}

/// What podman's words mean for the person.
const ADVICE: &[(&str, &str)] = &[
    (
        "image not known",
        "build the image with kapi sandbox image, or allow fetching it (pull: missing)",
    ),
    (
        "subuid",
        "give the user subordinate ids, one line each in /etc/subuid and /etc/subgid: \
         usermod --add-subuids 100000-165535 --add-subgids 100000-165535 <user>",
    ),
    (
        "newuidmap",
        "install the helpers for user ids: apt-get install uidmap",
    ),
    (
        "is already in use",
        "another container has this name; stop it, or remove it: podman rm --force <name>",
    ),
    (
        "default OCI runtime",
        "install a runtime (apt-get install crun or runc), or name one in the configuration",
    ),
    (
        "OCI runtime not found",
        "install the runtime, or name an installed one in the configuration",
    ),
    (
        "systemd cgroup",
        "this host has no service manager for control groups: set cgroup manager cgroupfs",
    ),
    (
        "rlimit",
        "the container may not have higher limits than the caller: lower ulimits in the configuration",
    ),
    (
        "XDG_RUNTIME_DIR",
        "log in properly, or set XDG_RUNTIME_DIR to a private directory of the user",
    ),
];

fn advice(output: &str) -> Option<&'static str> {
    let mut rows = ADVICE.iter();
    rows.find(|(word, _)| output.contains(word))
        .map(|(_, advice)| *advice)
}

impl From<PodmanError> for SandboxError {
    fn from(error: PodmanError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::Setup {
            call: "make".to_owned(),
            target: "the container".to_owned(),
            source: io::Error::other(error),
            hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PodmanError;

    fn check(output: &str, expected: &str) {
        let said = PodmanError::Said {
            command: "run",
            output: output.to_owned(),
        };
        assert!(said.hint().unwrap_or("none").contains(expected), "{output}");
    }

    #[test]
    fn what_podman_says_leads_to_the_remedy() {
        check("Error: localhost/x: image not known", "kapi sandbox image");
        check(
            "no subuid ranges found for user \"x\" in /etc/subuid",
            "usermod",
        );
        check(
            "exec: \"newuidmap\": executable file not found in $PATH",
            "uidmap",
        );
        check("error setting rlimits for ready process", "ulimits");
        check("something new", "none");
    }
}
