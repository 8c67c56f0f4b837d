//! `[sandbox]` and `[network]`: what runs may see, reach and use, and how a project narrows it.
//!
//! A project's file has tables of its own with fewer keys: what it could only widen does not exist
//! there. Paths are looked at so that a wrong one is refused before anything starts.

use std::path::{Path, PathBuf};

use kapi_core::goal::contract::{NetworkMode, SandboxLevel};
use kapi_gateway::egress::rule::EgressRule;
use kapi_sandbox::podman::options::Ulimit;
use kapi_sandbox::spec::Resources;
use kapi_world::grant::{Cassettes, GATEWAY_PORT, Grant, PROXY_PORT};
use serde::Deserialize;

use crate::amount;
use crate::config::source::Text;
use crate::error::Error;
use crate::profile::include;

/// Memory a sandbox may use when nothing else was said (Kapsis: 8g).
const MEMORY_DEFAULT: u64 = 8 << 30;
/// Thousandths of a processor when nothing else was said (Kapsis: 4 processors).
const CPU_MILLIS_DEFAULT: u64 = 4_000;
/// Processes and threads when nothing else was said; a browser needs some hundred.
const PROCESSES_DEFAULT: u64 = 4_096;

/// `[sandbox]` of the person's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SandboxTable {
    /// The level when no flag says otherwise.
    pub(crate) level: Option<SandboxLevel>,
    /// Host paths that are visible, read-only, at the same place.
    read_only: Vec<PathBuf>,
    /// Whether sandboxes may be made inside.
    nested_namespaces: bool,
    /// The container's image.
    image: Option<String>,
    /// The container runtime, such as `runc`.
    runtime: Option<String>,
    /// Podman's `--ulimit` values.
    ulimits: Vec<String>,
    memory: Option<String>,
    cpus: Option<f64>,
    processes: Option<u64>,
    open_files: Option<u64>,
    file_size: Option<String>,
    disk: Option<String>,
}

impl SandboxTable {
    fn limits(&self) -> LimitsTable {
        LimitsTable {
            memory: self.memory.clone(),
            cpus: self.cpus,
            processes: self.processes,
            open_files: self.open_files,
            file_size: self.file_size.clone(),
            disk: self.disk.clone(),
        }
    }
}

/// The limits, which a project may lower.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsTable {
    memory: Option<String>,
    cpus: Option<f64>,
    processes: Option<u64>,
    open_files: Option<u64>,
    file_size: Option<String>,
    disk: Option<String>,
}

/// `[network]` of the person's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NetworkTable {
    /// The mode when no flag says otherwise.
    pub(crate) mode: Option<NetworkMode>,
    allow: Vec<String>,
    forward: Vec<u16>,
    /// A directory to record what is said to models in.
    record: Option<PathBuf>,
    /// A directory to answer from instead of asking models.
    replay: Option<PathBuf>,
}

/// `[network]` of a project's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProjectNetworkTable {
    pub(crate) mode: Option<NetworkMode>,
}

/// Returns what the person's tables grant.
pub(crate) fn granted(
    file: &Text<'_>,
    sandbox: SandboxTable,
    network: NetworkTable,
    home: &Path,
) -> Result<Grant, Error> {
    let read_only = sandbox
        .read_only
        .iter()
        .map(|shown| lent(file, shown, home))
        .collect::<Result<_, _>>()?;
    let allow = network
        .allow
        .iter()
        .map(|text| {
            EgressRule::parse(text).map_err(|error| {
                let place = file.at("network.allow");
                Error::usage(format!("{place}: `network.allow`: {error}"))
                    .with_hint("write a rule as `host`, `host:port`, `*.host` or `GET host/path`.")
            })
        })
        .collect::<Result<_, _>>()?;
    let cassettes = match (network.record, network.replay) {
        (None, None) => None,
        (Some(dir), None) => {
            let dir = visible(&file.at("network.record"), &dir, home)?;
            Some(Cassettes::Record(dir))
        }
        (None, Some(dir)) => {
            let dir = visible(&file.at("network.replay"), &dir, home)?;
            Some(Cassettes::Replay(dir))
        }
        (Some(_), Some(_)) => {
            return Err(Error::usage(format!(
                "{}: `network.record` and `network.replay` exclude each other",
                file.at("network.replay")
            )));
        }
    };
    check_forward(file, &network.forward)?;
    let mut grant = Grant {
        read_only,
        cassettes,
        allow,
        forward: network.forward,
        resources: resources(file, &sandbox.limits())?,
        nested_namespaces: sandbox.nested_namespaces,
        ..Grant::default()
    };
    if let Some(image) = sandbox.image {
        grant.podman.image = image;
    }
    grant.podman.runtime = sandbox.runtime;
    grant.podman.ulimits = sandbox
        .ulimits
        .iter()
        .map(|text| ulimit(file, text))
        .collect::<Result<_, _>>()?;
    Ok(grant)
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

/// Returns the limits that a project's table names.
pub(crate) fn limits(file: &Text<'_>, table: &LimitsTable) -> Result<Resources, Error> {
    read(file, table)
}

/// Returns the narrower of two modes.
pub(crate) fn narrower(one: NetworkMode, other: NetworkMode) -> NetworkMode {
    let width = |mode| match mode {
        NetworkMode::None => 0,
        NetworkMode::Filtered => 1,
        NetworkMode::Open => 2,
    };
    if width(other) < width(one) {
        other
    } else {
        one
    }
}

fn resources(file: &Text<'_>, table: &LimitsTable) -> Result<Resources, Error> {
    let (said, standard) = (read(file, table)?, standard().resources);
    Ok(Resources {
        memory_bytes: said.memory_bytes.or(standard.memory_bytes),
        processes: said.processes.or(standard.processes),
        cpu_millis: said.cpu_millis.or(standard.cpu_millis),
        ..said
    })
}

fn read(file: &Text<'_>, table: &LimitsTable) -> Result<Resources, Error> {
    let wrong = |key: &str, rule: String| {
        let place = file.at(&format!("sandbox.{key}"));
        Error::usage(format!("{place}: `{key}`: {rule}"))
    };
    let size = |key: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(amount::parse_bytes).transpose();
        parsed.map_err(|rule| wrong(key, rule))
    };
    let cpus = table.cpus.map(|cpus| parse_cpu_millis(&cpus.to_string()));
    Ok(Resources {
        memory_bytes: size("memory", &table.memory)?,
        processes: table.processes,
        cpu_millis: cpus.transpose().map_err(|rule| wrong("cpus", rule))?,
        open_files: table.open_files,
        file_bytes: size("file_size", &table.file_size)?,
        disk_bytes: size("disk", &table.disk)?,
    })
}

/// Refuses a port that could not listen inside, or where Kapi itself does.
fn check_forward(file: &Text<'_>, ports: &[u16]) -> Result<(), Error> {
    for port in ports {
        let (rule, hint) = match *port {
            0 => ("0 is no port", "name the port of your own server."),
            GATEWAY_PORT | PROXY_PORT => (
                "Kapi itself listens at this port inside",
                "let your own server listen at another port.",
            ),
            _ => continue,
        };
        let place = file.at("network.forward");
        return Err(
            Error::usage(format!("{place}: `network.forward`: {port}: {rule}")).with_hint(hint),
        );
    }
    Ok(())
}

/// Reads a number of processors, such as `1.5`, in thousandths.
pub(crate) fn parse_cpu_millis(text: &str) -> Result<u64, String> {
    let cpus: Option<f64> = text.trim().parse().ok();
    let millis = cpus.and_then(|cpus| format!("{:.0}", cpus * 1000.0).parse::<u64>().ok());
    let fits = |millis: &u64| (10..=1_024_000).contains(millis);
    millis
        .filter(fits)
        .ok_or_else(|| format!("it must be between 0.01 and 1024 processors, not {text}"))
}

/// Reads `nofile=1024:2048` or `nofile=1024`.
fn ulimit(file: &Text<'_>, text: &str) -> Result<Ulimit, Error> {
    let parsed = text.split_once('=').and_then(|(name, limits)| {
        let (soft, hard) = limits.split_once(':').unwrap_or((limits, limits));
        Some(Ulimit {
            name: name.to_owned(),
            soft: soft.parse().ok()?,
            hard: hard.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| {
        let place = file.at("sandbox.ulimits");
        Error::usage(format!("{place}: `ulimits`: {text:?} is no limit"))
            .with_hint("write it as `name=soft:hard`, for instance `nofile=1024:2048`.")
    })
}

/// Returns a path that may be shown to a run.
fn lent(file: &Text<'_>, shown: &Path, home: &Path) -> Result<PathBuf, Error> {
    let place = file.at("sandbox.read_only");
    let full = visible(&place, shown, home)?;
    let real = std::fs::canonicalize(&full).unwrap_or_else(|_| full.clone());
    include::check_real(&real, home).map_err(|rule| {
        let shown = shown.display();
        Error::usage(format!("{place}: `sandbox.read_only`: {shown}: {rule}"))
    })?;
    Ok(full)
}

/// Returns a path that a person wrote at a place, absolute or from their home, which must exist.
pub(crate) fn visible(place: &str, shown: &Path, home: &Path) -> Result<PathBuf, Error> {
    let at_home = shown.strip_prefix("~").map(|rest| home.join(rest));
    let full = at_home.unwrap_or_else(|_| shown.to_path_buf());
    if full.is_absolute() && full.exists() {
        return Ok(full);
    }
    Err(Error::usage(format!(
        "{place}: path {} must be absolute (or begin with ~/) and exist",
        shown.display()
    )))
}
