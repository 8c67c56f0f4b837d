//! What the host side asks of the launcher, written to an anonymous file and never to its arguments
//! or environment, where every process could read it.
//!
//! Both ends are the same binary, so the shape has no version. Knows nothing of how it is carried out.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use kapi_sys::process::Program;
use serde::{Deserialize, Serialize};

use crate::counter::KernelCounter;
use crate::spec::{MountAccess, NetworkIsolation, SandboxSpec};

/// Bytes the system treats as text: readable where they are UTF-8, exact where they are not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum SystemText {
    /// Valid UTF-8.
    #[serde(rename = "t")]
    Utf8(String),
    /// Anything else.
    #[serde(rename = "b")]
    Bytes(Vec<u8>),
}

impl SystemText {
    /// Keeps the bytes of a path, an argument or a file.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes).map_or_else(
            |_| Self::Bytes(bytes.to_vec()),
            |text| Self::Utf8(text.to_owned()),
        )
    }

    /// Keeps the bytes of a text of the system.
    pub(crate) fn of(text: &OsStr) -> Self {
        Self::new(text.as_bytes())
    }

    /// Returns the bytes as they were.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Utf8(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Returns the bytes as a path.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.as_bytes().to_vec()))
    }
}

/// What the launcher is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchOrder {
    /// The process that must still be our parent; if it is not, it died and so do we.
    pub parent_pid: i32,
    /// The work.
    pub work: LauncherWork,
}

/// The launcher's work.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LauncherWork {
    /// Build the enclosure and run the payload in it.
    Confine {
        /// What to build.
        enclosure: Box<Enclosure>,
        /// What to run.
        payload: Box<PayloadProgram>,
    },
    /// Run the payload on the host and end its descendants with it.
    Supervise {
        /// What to run.
        payload: Box<PayloadProgram>,
    },
    /// Try every step on its own, and each of these mounts, and report.
    Probe {
        /// Mounts to try.
        binds: Vec<Bind>,
    },
}

impl LauncherWork {
    /// Tells whether the launcher will hand over listeners.
    pub(crate) fn has_listeners(&self) -> bool {
        match self {
            Self::Confine { enclosure, .. } => {
                enclosure.network == OrderedNetwork::Loopback && !enclosure.listeners.is_empty()
            }
            Self::Supervise { .. } | Self::Probe { .. } => false,
        }
    }
}

/// The private view of a native sandbox.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Enclosure {
    /// The host name inside.
    pub hostname: String,
    /// The caller's mounts, in order; the home is the first.
    pub binds: Vec<Bind>,
    /// Where the home appears.
    pub home: SystemText,
    /// Read-only files: path and content.
    pub files: Vec<(SystemText, SystemText)>,
    /// Places that show once more what another place shows.
    pub aliases: Vec<(SystemText, SystemText)>,
    /// Whether the network is the host's own.
    pub network: OrderedNetwork,
    /// Addresses to listen at for the host side.
    pub listeners: Vec<SocketAddr>,
    /// Whether user namespaces may be made inside.
    pub nested_namespaces: bool,
    /// Limits of each process.
    pub limits: OrderedLimits,
    /// Files into which to write `0`, to join the control groups made for this sandbox.
    #[serde(rename = "doors")]
    pub group_files: Vec<SystemText>,
    /// The version of Landlock to use; 0 for none.
    pub landlock: u32,
}

/// The limits that every process inherits.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct OrderedLimits {
    /// Processes and threads of the user namespace.
    pub processes: Option<u64>,
    /// Bytes of one file.
    pub file_bytes: Option<u64>,
    /// Bytes of memory that one process may map as data, where nothing counts them together.
    pub data_bytes: Option<u64>,
    /// Bytes of each temporary file system.
    pub temporary_bytes: Option<u64>,
}

/// One bind mount.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Bind {
    /// The host's path.
    pub host: SystemText,
    /// The path inside.
    pub inside: SystemText,
    /// Whether it can be written.
    pub access: OrderedAccess,
}

/// [`NetworkIsolation`] as it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OrderedNetwork {
    /// The host's network.
    Host,
    /// A loopback of its own.
    Loopback,
}

/// [`MountAccess`] as it is written down.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum OrderedAccess {
    /// Writes are refused.
    ReadOnly,
    /// Writes reach the host.
    ReadWrite,
    /// Writes go to a layer.
    CopyOnWrite {
        /// The layer's upper directory.
        upper: SystemText,
        /// Its work directory.
        work: SystemText,
        /// What shows through the mounted directory, the topmost first.
        beneath: Vec<SystemText>,
    },
}

/// The program to run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PayloadProgram {
    /// Its path, as seen from where it runs.
    pub path: SystemText,
    /// Its arguments after the name.
    pub args: Vec<SystemText>,
    /// Its whole environment.
    pub env: Vec<(SystemText, SystemText)>,
    /// Its directory.
    pub cwd: SystemText,
    /// How many descriptors it gets from 3 on.
    pub n_fds: usize,
    /// How many files each of its processes may have open.
    pub open_files: Option<u64>,
    /// Whether one more descriptor is a terminal, to become its standard streams.
    pub has_terminal: bool,
    /// The processors that it runs on; all where this is empty.
    pub processors: Vec<u32>,
    /// What is counted of it.
    pub counters: Vec<KernelCounter>,
}

impl Enclosure {
    /// Writes a native spec down.
    pub(crate) fn new(spec: &SandboxSpec) -> Self {
        let home = Bind::new(&spec.home_host, &spec.home_inside, &MountAccess::ReadWrite);
        let mounts = spec
            .mounts
            .iter()
            .map(|mount| Bind::new(&mount.host, &mount.inside, &mount.access));
        Self {
            hostname: spec.hostname.clone(),
            binds: std::iter::once(home).chain(mounts).collect(),
            home: SystemText::of(spec.home_inside.as_os_str()),
            files: spec
                .files
                .iter()
                .map(|(path, content)| (SystemText::of(path.as_os_str()), SystemText::new(content)))
                .collect(),
            aliases: spec
                .aliases
                .iter()
                .map(|(shown, at)| {
                    (
                        SystemText::of(shown.as_os_str()),
                        SystemText::of(at.as_os_str()),
                    )
                })
                .collect(),
            listeners: spec.listeners.clone(),
            nested_namespaces: spec.nested_namespaces,
            group_files: Vec::new(),
            landlock: 0,
            limits: OrderedLimits {
                processes: spec.resources.processes,
                file_bytes: spec.resources.file_bytes,
                data_bytes: None,
                temporary_bytes: spec.resources.memory_bytes,
            },
            network: match spec.network {
                NetworkIsolation::Host => OrderedNetwork::Host,
                NetworkIsolation::Loopback => OrderedNetwork::Loopback,
            },
        }
    }
}

impl Bind {
    /// Writes a mount down.
    pub(crate) fn new(host: &Path, inside: &Path, access: &MountAccess) -> Self {
        Self {
            host: SystemText::of(host.as_os_str()),
            inside: SystemText::of(inside.as_os_str()),
            access: match access {
                MountAccess::ReadOnly => OrderedAccess::ReadOnly,
                MountAccess::ReadWrite => OrderedAccess::ReadWrite,
                MountAccess::CopyOnWrite(layer) => OrderedAccess::CopyOnWrite {
                    upper: SystemText::of(layer.upper.as_os_str()),
                    work: SystemText::of(layer.work.as_os_str()),
                    beneath: layer
                        .beneath
                        .iter()
                        .map(|path| SystemText::of(path.as_os_str()))
                        .collect(),
                },
            },
        }
    }
}

impl PayloadProgram {
    /// Writes a program down; its standard input and descriptors travel as descriptors.
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            path: SystemText::of(program.path.as_os_str()),
            args: program.args.iter().map(|arg| SystemText::of(arg)).collect(),
            env: program
                .env
                .iter()
                .map(|(name, value)| (SystemText::of(name), SystemText::of(value)))
                .collect(),
            cwd: SystemText::of(program.cwd.as_os_str()),
            n_fds: program.pass_fds.len(),
            open_files: None,
            has_terminal: false,
            processors: Vec::new(),
            counters: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SystemText;

    fn check_round_trip(bytes: &[u8]) {
        let line = serde_json::to_string(&SystemText::new(bytes)).unwrap();
        let text: SystemText = serde_json::from_str(&line).unwrap();
        assert_eq!(text.as_bytes(), bytes, "{line}");
    }

    #[test]
    fn bytes_survive_whatever_they_are() {
        check_round_trip(b"");
        check_round_trip(b"/work space/\"quoted\"\n");
        check_round_trip("/tmp/\u{e9}".as_bytes());
        check_round_trip(b"/tmp/\xff\xfe\x00");
    }
}
