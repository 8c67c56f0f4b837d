//! What a sandbox is asked to be: level, mounts, home, files, network and resources.
//!
//! Pure data. Does not know how any of it is made, nor what will run in it.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::counter::KernelCounter;
use crate::podman::options::PodmanOptions;

/// How much of the host a program is kept away from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// Own namespaces and a minimal read-only root; the only writable places are the ones given.
    Native,
    /// A rootless container with the root of an image; the same mounts, home, files and network.
    Podman,
    /// No isolation: the program sees the host, its paths are the host's, and mounts, home, files, host
    /// name, network and resources of the spec are not used. Its descendants are still ended with it.
    None,
}

/// What a sandbox can reach over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkIsolation {
    /// The host's network, its loopback and abstract sockets included.
    Host,
    /// An own network with nothing in it but a loopback of its own, and [`SandboxSpec::listeners`].
    Loopback,
}

/// Whether and where a mount can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountAccess {
    /// Writes fail with `EROFS`.
    ReadOnly,
    /// Writes reach the host's directory.
    ReadWrite,
    /// The host's directory is only read; writes go to a layer of their own.
    CopyOnWrite(OverlayLayer),
}

/// The writable part of a copy-on-write mount. Both directories lie on one file system, belong to
/// the user who starts the sandbox, and are used by one sandbox at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayLayer {
    /// What was written, in the form of overlayfs; it stays.
    pub upper: PathBuf,
    /// A directory for overlayfs itself, empty at first. Each run leaves a few empty directories in it;
    /// it is thrown away with them.
    pub work: PathBuf,
    /// Directories that show through the mounted one, the topmost first, at most
    /// [`BENEATH_MAX`]; none for a plain directory. Each may hold marks of overlayfs that hide what
    /// lies further down.
    pub beneath: Vec<PathBuf>,
}

/// The most directories that lie beneath the mounted one of a layer: the kernel takes their names in
/// one short text.
pub const BENEATH_MAX: usize = 8;

/// A host file or directory that is visible inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The host's path; symbolic links in it are followed, so it must not be chosen by foreign text.
    pub host: PathBuf,
    /// The absolute path inside, without `..`; missing parents are made, links are not followed.
    pub inside: PathBuf,
    /// Whether it can be written.
    pub access: MountAccess,
}

/// Limits on what everything in a sandbox together may use; `None` is no limit beyond the host's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Bytes of memory, temporary files included.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes of one file.
    pub file_bytes: Option<u64>,
    /// Bytes that a run may add on disk in all writable mounts together.
    pub disk_bytes: Option<u64>,
}

/// What holds while a program is measured. The default is a program that nobody measures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BenchmarkSetup {
    /// The processors that everything inside runs on, by number, which nothing inside can change; all
    /// that the host grants where this is empty.
    pub processors: Vec<u32>,
    /// What the kernel counts of everything inside.
    pub counters: Vec<KernelCounter>,
}

impl BenchmarkSetup {
    /// Tells whether it asks for nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.processors.is_empty() && self.counters.is_empty()
    }
}

/// A sandbox to run a program in.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// How much isolation; never weakened silently.
    pub level: IsolationLevel,
    /// What names this sandbox among the host's control groups and containers: letters, digits,
    /// `-`, `_` and `.`, unique while it runs.
    pub name: String,
    /// The host name inside, at most 64 bytes.
    pub hostname: String,
    /// What is visible besides the minimal root, mounted in this order.
    pub mounts: Vec<Mount>,
    /// Places inside that show once more what another place inside shows: (shown, also at).
    pub aliases: Vec<(PathBuf, PathBuf)>,
    /// The host's directory that becomes the private home.
    pub home_host: PathBuf,
    /// Where the home appears inside.
    pub home_inside: PathBuf,
    /// Small files made inside, read-only whatever they lie on. They are not written on the host.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// What can be reached.
    pub network: NetworkIsolation,
    /// Loopback addresses that listen inside and are served by the host side; port 0 is any.
    pub listeners: Vec<SocketAddr>,
    /// What may be used.
    pub resources: Resources,
    /// Whether programs inside may make user namespaces of their own, for sandboxes in the sandbox.
    pub nested_namespaces: bool,
    /// What only a container has.
    pub podman: PodmanOptions,
    /// What holds while the program is measured.
    pub benchmark: BenchmarkSetup,
    /// The program that calls [`crate::init::init_main`] when its first argument is
    /// [`crate::init::ARGUMENT`].
    pub self_exe: PathBuf,
}

impl SandboxSpec {
    /// Returns a sandbox without mounts, files, listeners or limits and with a network of its own.
    #[must_use]
    pub fn new(level: IsolationLevel, name: &str, home_host: PathBuf, self_exe: PathBuf) -> Self {
        Self {
            level,
            name: name.to_owned(),
            hostname: "kapi".to_owned(),
            mounts: Vec::new(),
            aliases: Vec::new(),
            home_host,
            home_inside: PathBuf::from("/home/agent"),
            files: Vec::new(),
            network: NetworkIsolation::Loopback,
            listeners: Vec::new(),
            resources: Resources::default(),
            nested_namespaces: false,
            podman: PodmanOptions::default(),
            benchmark: BenchmarkSetup::default(),
            self_exe,
        }
    }
}
