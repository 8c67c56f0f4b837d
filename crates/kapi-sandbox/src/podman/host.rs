//! What this host and its user mean for a container: podman itself, ids, limits, environment.
//!
//! Read once for each run; only reads. Decides nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

use kapi_sys::process::{environment, find_in_path};
use rustix::process::{Resource, getegid, geteuid, getrlimit};

use super::error::PodmanError;

/// Where podman is looked for when the environment names no search path.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The variables that podman itself works by. None of them reaches the container.
const PASSED_ON: &[&str] = &[
    "CONTAINERS_CONF",
    "CONTAINERS_REGISTRIES_CONF",
    "CONTAINERS_STORAGE_CONF",
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "REGISTRY_AUTH_FILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "STORAGE_DRIVER",
    "TMPDIR",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// The most open files that podman keeps for itself and so can give.
const FILES_MAX: u64 = 1 << 20;
/// How many processes a machine has at least, where it does not say.
const PROCESSES_MAX: u64 = 1 << 15;

/// The facts.
#[derive(Debug, Clone)]
pub(super) struct PodmanHost {
    /// The podman program.
    pub podman: PathBuf,
    /// What podman is told by the environment.
    pub env: BTreeMap<OsString, OsString>,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The user's private directory for what does not outlive the machine's run, if there is one.
    pub runtime_dir: Option<PathBuf>,
    /// Limits no process of the user may pass: name, soft, hard.
    pub limits: Vec<(&'static str, u64, u64)>,
}

impl PodmanHost {
    /// Reads the facts.
    pub(super) fn observe() -> Result<Self, PodmanError> {
        let all = environment();
        let path = all.get(OsStr::new("PATH")).filter(|path| !path.is_empty());
        let path = path.cloned().unwrap_or_else(|| DEFAULT_PATH.into());
        let podman = find_in_path("podman".as_ref(), &path).ok_or(PodmanError::NotFound)?;
        let passed = PASSED_ON.iter().map(OsString::from);
        let mut env: BTreeMap<OsString, OsString> = passed
            .filter_map(|name| Some((name.clone(), all.get(&name)?.clone())))
            .collect();
        env.insert("PATH".into(), path);
        let runtime_dir = env.get(OsStr::new("XDG_RUNTIME_DIR")).map(PathBuf::from);
        Ok(Self {
            podman,
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            runtime_dir: runtime_dir.filter(|dir| dir.is_absolute() && dir.is_dir()),
            limits: vec![
                limit("nofile", Resource::Nofile, FILES_MAX),
                limit("nproc", Resource::Nproc, processes_max()),
            ],
            env,
        })
    }

    /// Tells whether root starts the containers.
    pub(super) fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// Returns the caller's own limit, or what podman lowers itself to, which is all it can give.
fn limit(name: &'static str, resource: Resource, most: u64) -> (&'static str, u64, u64) {
    let found = getrlimit(resource);
    let hard = found.maximum.map_or(most, |hard| hard.min(most));
    (
        name,
        found.current.map_or(hard, |soft| soft.min(hard)),
        hard,
    )
}

/// Reads how many processes the machine can have.
fn processes_max() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(PROCESSES_MAX)
}
