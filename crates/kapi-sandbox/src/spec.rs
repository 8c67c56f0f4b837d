//! What a sandbox is asked to be: level, mounts, home, files and network.
//!
//! Pure data. Does not know how any of it is made, nor what will run in it.

use std::path::PathBuf;

/// How much of the host a program is kept away from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Own namespaces and a minimal read-only root; the only writable places are the ones given.
    Native,
    /// No isolation: the program sees the host, its paths are the host's, and mounts, home, files, host
    /// name and network of the spec are not used. Its descendants are still ended with it.
    None,
}

/// What a native sandbox can reach over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The host's network, its loopback and abstract sockets included.
    Host,
    /// An own network with nothing in it but a loopback of its own.
    Loopback,
}

/// Whether a mount can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Writes fail with `EROFS`.
    ReadOnly,
    /// Writes reach the host's directory.
    ReadWrite,
}

/// A host file or directory that is visible inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The host's path; symbolic links in it are followed, so it must not be chosen by foreign text.
    pub host: PathBuf,
    /// The absolute path inside, without `..`; missing parents are made, links are not followed.
    pub inside: PathBuf,
    /// Whether it can be written.
    pub access: Access,
}

/// A sandbox to run a program in.
#[derive(Debug, Clone)]
pub struct Spec {
    /// How much isolation; never weakened silently.
    pub level: Level,
    /// The host name inside, at most 64 bytes.
    pub hostname: String,
    /// What is visible besides the minimal root, mounted in this order.
    pub mounts: Vec<Mount>,
    /// The host's directory that becomes the private home.
    pub home_host: PathBuf,
    /// Where the home appears inside.
    pub home_inside: PathBuf,
    /// Small files made inside, read-only whatever they lie on. They are not written on the host.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// What can be reached.
    pub network: Network,
    /// The program that calls [`crate::init::init_main`] when its first argument is
    /// [`crate::init::ARGUMENT`].
    pub self_exe: PathBuf,
}
