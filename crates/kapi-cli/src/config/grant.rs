//! `[sandbox]` and `[network]`: what runs may see, reach and use, and how a project narrows it.
//!
//! Paths are looked at so that a wrong one is refused before anything starts.

use std::path::{Path, PathBuf};

use kapi_check::perform::dependencies::registries;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_gateway::egress::rule::EgressRule;
use kapi_run::grant::{Cassettes, GATEWAY_PORT, Grant, PROXY_PORT};
use kapi_sandbox::podman::options::Ulimit;
use kapi_sandbox::spec::Resources;
use kapi_settings::fault::{Faults, did_you_mean};
use kapi_settings::scalar::{ByteCount, CpuMillis, word};
use kapi_settings::setting::Setting;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::profile::include;

/// Isolation of a run when nothing else is configured.
pub(crate) const LEVEL_DEFAULT: SandboxLevel = SandboxLevel::Native;
/// What an agent can reach besides its model when nothing else is configured.
pub(crate) const NETWORK_DEFAULT: NetworkMode = NetworkMode::Filtered;
/// What the commands of `kapi check` and `kapi prove` can reach when nothing else is configured.
pub(crate) const CHECK_NETWORK_DEFAULT: NetworkMode = NetworkMode::None;
/// Memory of a sandbox when nothing else is configured (Kapsis: 8g).
const MEMORY_DEFAULT: u64 = 8 << 30;
/// Thousandths of a processor when nothing else is configured (Kapsis: 4 processors).
const CPU_MILLIS_DEFAULT: u64 = 4_000;
/// Processes and threads when nothing else is configured; a browser needs some hundred.
const PROCESSES_DEFAULT: u64 = 4_096;

/// `[sandbox]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SandboxTable {
    /// The level when no flag says otherwise.
    pub(crate) level: Option<SandboxLevel>,
    /// Host paths that are visible, read-only, at the same place.
    read_only: Vec<Setting<PathBuf>>,
    /// Whether sandboxes may be made inside.
    nested_namespaces: bool,
    /// The container's image.
    image: Option<String>,
    /// The container runtime, such as `runc`.
    runtime: Option<String>,
    /// Podman's `--ulimit` values.
    ulimits: Vec<UlimitForm>,
    memory: Option<ByteCount>,
    cpus: Option<CpuMillis>,
    processes: Option<u64>,
    open_files: Option<u64>,
    file_size: Option<ByteCount>,
    disk: Option<ByteCount>,
}

/// `[network]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NetworkTable {
    /// The mode when no flag says otherwise.
    pub(crate) mode: Option<NetworkMode>,
    allow: Vec<GrantRuleForm>,
    /// Ecosystems whose registries may be reached.
    registries: Vec<EcosystemForm>,
    forward: Vec<PortForm>,
    /// A directory to record what is said to models in.
    record: Option<Setting<PathBuf>>,
    /// A directory to answer from instead of asking models.
    replay: Option<Setting<PathBuf>>,
}

#[derive(Debug, Clone)]
struct GrantRuleForm(EgressRule);

impl<'de> Deserialize<'de> for GrantRuleForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, usize::MAX, |text| {
            match EgressRule::parse(text) {
                Ok(rule) => Ok(Self(rule)),
                Err(error) => Err(format!(
                    "{error}\nwrite a rule as `host`, `host:port`, `*.host` or `GET host/path`"
                )),
            }
        })
    }
}

/// The name of an ecosystem whose clients say which registries they ask.
#[derive(Debug, Clone)]
struct EcosystemForm(String);

impl<'de> Deserialize<'de> for EcosystemForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let known =
            registries::ecosystems().map_err(|failure| D::Error::custom(failure.message))?;
        word(deserializer, usize::MAX, |text| {
            if known.contains(&text) {
                return Ok(Self(text.to_owned()));
            }
            let remedy = did_you_mean(text, &known, "use");
            Err(format!(
                "{text:?} is no ecosystem with registries\n{remedy}"
            ))
        })
    }
}

/// A port that can listen inside, and where Kapi itself does not.
#[derive(Debug, Clone, Copy)]
struct PortForm(u16);

impl<'de> Deserialize<'de> for PortForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = match u16::deserialize(deserializer)? {
            0 => "0 is not a port\ngive your server's port",
            GATEWAY_PORT | PROXY_PORT => {
                "Kapi itself listens on this port inside the sandbox\nuse another port for your server"
            }
            port => return Ok(Self(port)),
        };
        Err(D::Error::custom(wrong))
    }
}

/// `nofile=1024:2048` or `nofile=1024`.
#[derive(Debug, Clone)]
struct UlimitForm(Ulimit);

impl<'de> Deserialize<'de> for UlimitForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, usize::MAX, |text| {
            let parsed = text.split_once('=').and_then(|(name, limits)| {
                let (soft, hard) = limits.split_once(':').unwrap_or((limits, limits));
                Some(Self(Ulimit {
                    name: name.to_owned(),
                    soft: soft.parse().ok()?,
                    hard: hard.parse().ok()?,
                }))
            });
            parsed.ok_or_else(|| {
                format!(
                    "{text:?} is not a limit\nwrite it as `name=soft:hard`, for instance \
                     `nofile=1024:2048`"
                )
            })
        })
    }
}

/// Returns what the person's tables grant.
pub(crate) fn granted(
    faults: &mut Faults,
    sandbox: SandboxTable,
    network: NetworkTable,
    home: &Path,
) -> Grant {
    let said = sandbox.limits();
    let standard = standard().resources;
    let read_only = sandbox.read_only.iter();
    let cassettes = match (&network.record, &network.replay) {
        (None, None) => None,
        (Some(dir), None) => visible(dir, home, faults).map(Cassettes::Record),
        (None, Some(dir)) => visible(dir, home, faults).map(Cassettes::Replay),
        (Some(_), Some(replay)) => {
            let what = "`network.record` and `network.replay` cannot be combined";
            faults.at(replay, what, "keep one of them");
            None
        }
    };
    let mut grant = Grant {
        read_only: read_only
            .filter_map(|shown| shared_in(shown, home, faults))
            .collect(),
        cassettes,
        allow: network.allow.into_iter().map(|rule| rule.0).collect(),
        registries: network.registries.into_iter().map(|name| name.0).collect(),
        forward: network.forward.into_iter().map(|port| port.0).collect(),
        resources: Resources {
            memory_bytes: said.memory_bytes.or(standard.memory_bytes),
            processes: said.processes.or(standard.processes),
            cpu_millis: said.cpu_millis.or(standard.cpu_millis),
            ..said
        },
        nested_namespaces: sandbox.nested_namespaces,
        ..Grant::default()
    };
    if let Some(image) = sandbox.image {
        grant.podman.image = image;
    }
    grant.podman.runtime = sandbox.runtime;
    grant.podman.ulimits = sandbox.ulimits.into_iter().map(|limit| limit.0).collect();
    grant
}

/// Returns what a run gets when the person said nothing.
pub(crate) fn standard() -> Grant {
    Grant {
        resources: Resources {
            memory_bytes: Some(MEMORY_DEFAULT),
            processes: Some(PROCESSES_DEFAULT),
            cpu_millis: Some(CPU_MILLIS_DEFAULT),
            ..Resources::default()
        },
        ..Grant::default()
    }
}

/// Lowers limits to those of a project and returns the keys of those that became lower; a higher
/// one changes nothing.
pub(crate) fn narrow(own: &mut Resources, wanted: &Resources) -> Vec<&'static str> {
    let mut lowered = Vec::new();
    for (key, own, wanted) in [
        ("sandbox.memory", &mut own.memory_bytes, wanted.memory_bytes),
        ("sandbox.processes", &mut own.processes, wanted.processes),
        ("sandbox.cpus", &mut own.cpu_millis, wanted.cpu_millis),
        ("sandbox.open_files", &mut own.open_files, wanted.open_files),
        ("sandbox.file_size", &mut own.file_bytes, wanted.file_bytes),
        ("sandbox.disk", &mut own.disk_bytes, wanted.disk_bytes),
    ] {
        let Some(wanted) = wanted else { continue };
        if own.is_none_or(|own| wanted < own) {
            *own = Some(wanted);
            lowered.push(key);
        }
    }
    lowered
}

impl SandboxTable {
    /// Returns the limits that it names.
    pub(crate) fn limits(&self) -> Resources {
        Resources {
            memory_bytes: self.memory.map(|size| size.0),
            processes: self.processes,
            cpu_millis: self.cpus.map(|cpus| cpus.0),
            open_files: self.open_files,
            file_bytes: self.file_size.map(|size| size.0),
            disk_bytes: self.disk.map(|size| size.0),
        }
    }
}

/// Returns a path that may be shown to a run.
fn shared_in(shown: &Setting<PathBuf>, home: &Path, faults: &mut Faults) -> Option<PathBuf> {
    let full = visible(shown, home, faults)?;
    let real = std::fs::canonicalize(&full).unwrap_or_else(|_| full.clone());
    if let Err(rule) = include::check_real(&real, home) {
        let what = format!("{}: {rule}", shown.value.display());
        faults.at(shown, what, "remove it");
        return None;
    }
    Some(full)
}

/// Returns a path that a person wrote, absolute or from their home, which must exist.
pub(crate) fn visible(
    shown: &Setting<PathBuf>,
    home: &Path,
    faults: &mut Faults,
) -> Option<PathBuf> {
    let at_home = shown.value.strip_prefix("~").map(|rest| home.join(rest));
    let full = at_home.unwrap_or_else(|_| shown.value.clone());
    if full.is_absolute() && full.exists() {
        return Some(full);
    }
    let what = format!(
        "{} is not absolute or does not exist",
        shown.value.display()
    );
    faults.at(
        shown,
        what,
        "give an existing absolute path, or one that starts with ~/",
    );
    None
}
