//! The command line of one container.
//!
//! Every value on it was checked or stands in a quoted field; the payload, its arguments and its
//! environment are not on it at all. Pure.

use std::ffi::OsString;
use std::path::Path;

use super::cleanup::{MANAGED, RUN_DIRECTORY, layer_volume};
use super::host::PodmanHost;
use super::layout::{BindRights, ContainerEntryKind, ContainerLayout};
use super::loader::DynamicLinks;
use super::options::{CgroupManager, Userns};
use super::owner::OWNER;
use super::relay::{N_STANDARD, PAYLOAD_FDS_FROM};
use crate::podman::error::PodmanError;
use crate::podman::{ARGUMENT, INSIDE};
use crate::spec::{NetworkIsolation, SandboxSpec};

/// Where our own program stands in the container, out of sight of a `*`.
const OURS: &str = "/run/.kapi";
/// Temporary places: path, mode, size where memory is not limited, and which part of the memory it is
/// where memory is. Together they are no more than the memory: where no control group counts what is
/// in them, nothing else does.
const TEMPORARY: &[(&str, &str, u64, u64)] = &[
    ("/tmp", "1777", 4 << 30, 2),
    ("/var/tmp", "1777", 4 << 30, 4),
    ("/run", "1777", 64 << 20, 16),
];
/// Bytes of shared memory where memory is not limited, and which part of the memory it is otherwise.
const SHARED_BYTES: u64 = 1 << 30;
const SHARED_PART: u64 = 8;
/// Numbers above this have no room in images.
const UID_MAX: u32 = 60_000;
/// The number they get instead.
const ORDINARY_UID: u32 = 1000;

/// What the command line is made of besides the spec.
pub(super) struct CommandParts<'a> {
    /// The host.
    pub host: &'a PodmanHost,
    /// The name of the run directory.
    pub directory: &'a str,
    /// The mounts and volumes, and where they stand.
    pub layout: &'a ContainerLayout,
    /// Overlayfs's options of each layer.
    pub layer_options: &'a [String],
    /// What our own program needs.
    pub linked: Option<&'a DynamicLinks>,
    /// Who makes the container, as a label.
    pub owner: String,
    /// How many descriptors the payload gets.
    pub n_fds: usize,
}

/// Returns podman's arguments.
pub(super) fn arguments(
    spec: &SandboxSpec,
    parts: &CommandParts<'_>,
) -> Result<Vec<OsString>, PodmanError> {
    let mut words = global(spec);
    words.extend(fixed(spec, parts));
    words.extend(identity(spec, parts.host)?);
    words.extend(resources(spec, parts.host));
    words.extend(mounts(spec, parts));
    let program = format!("{OURS}/kapi");
    let (entry, before) = match parts.linked {
        None => (program, Vec::new()),
        Some(_) => (
            format!("{OURS}/loader"),
            vec!["--library-path".to_owned(), format!("{OURS}/lib"), program],
        ),
    };
    words.push(format!("--entrypoint={entry}"));
    words.push(spec.podman.image.clone());
    words.extend(before);
    words.extend([ARGUMENT.to_owned(), INSIDE.to_owned()]);
    Ok(words.into_iter().map(OsString::from).collect())
}

fn global(spec: &SandboxSpec) -> Vec<String> {
    let options = &spec.podman;
    let runtime = options
        .runtime
        .as_ref()
        .map(|runtime| format!("--runtime={runtime}"));
    let manager = match options.cgroup_manager {
        CgroupManager::Configured => None,
        CgroupManager::Cgroupfs => Some("--cgroup-manager=cgroupfs".to_owned()),
        CgroupManager::Systemd => Some("--cgroup-manager=systemd".to_owned()),
    };
    runtime
        .into_iter()
        .chain(manager)
        .chain(["run".to_owned()])
        .collect()
}

/// What every container of ours has.
fn fixed(spec: &SandboxSpec, parts: &CommandParts<'_>) -> Vec<String> {
    let n_fds =
        usize::try_from(PAYLOAD_FDS_FROM + N_STANDARD - 3).unwrap_or_default() + parts.n_fds;
    let network = match spec.network {
        NetworkIsolation::Loopback => "none",
        NetworkIsolation::Host => "host",
    };
    let mut words = [
        "--rm",
        "--log-driver=none",
        "--security-opt=label=disable",
        "--security-opt=no-new-privileges",
        "--cap-drop=all",
        "--pid=private",
        "--ipc=private",
        "--uts=private",
        "--cgroupns=private",
        "--read-only",
        "--read-only-tmpfs=false",
        "--http-proxy=false",
        "--image-volume=ignore",
        "--no-healthcheck",
        "--systemd=false",
        "--sdnotify=ignore",
        "--workdir=/",
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend([
        format!("--name=kapi-{}", spec.name),
        format!("--label={MANAGED}"),
        format!("--label=kapi.run={}", spec.name),
        format!("--label={RUN_DIRECTORY}={}", parts.directory),
        format!("--label={OWNER}={}", parts.owner),
        format!("--pull={}", spec.podman.pull.word()),
        format!("--network={network}"),
        format!("--preserve-fds={n_fds}"),
        format!("--hostname={}", spec.hostname),
    ]);
    words.extend(
        spec.podman
            .security
            .iter()
            .map(|option| format!("--security-opt={option}")),
    );
    words
}

fn identity(spec: &SandboxSpec, host: &PodmanHost) -> Result<Vec<String>, PodmanError> {
    let named = |uid, gid| {
        vec![
            format!("--userns=keep-id:uid={uid},gid={gid}"),
            format!("--user={uid}:{gid}"),
        ]
    };
    let own = vec![
        "--userns=keep-id".to_owned(),
        format!("--user={}:{}", host.uid, host.gid),
    ];
    match (spec.podman.userns, host.is_root()) {
        (Userns::Auto, true) => Ok(vec!["--userns=host".to_owned(), "--user=0:0".to_owned()]),
        (Userns::Auto, false) if host.uid > UID_MAX => Ok(named(ORDINARY_UID, ORDINARY_UID)),
        (Userns::Auto | Userns::KeepId, false) => Ok(own),
        (Userns::KeepIdAs { uid, gid }, false) => Ok(named(uid, gid)),
        (Userns::KeepId | Userns::KeepIdAs { .. }, true) => Err(PodmanError::Refused {
            what: "user namespace",
            value: "keep-id".to_owned(),
            why: "podman supports it only for unprivileged users; run kapi as one, or keep it automatic",
        }),
    }
}

fn resources(spec: &SandboxSpec, host: &PodmanHost) -> Vec<String> {
    let wanted = &spec.resources;
    let mut words = Vec::new();
    if let Some(bytes) = wanted.memory_bytes {
        words.extend([
            format!("--memory={bytes}b"),
            format!("--memory-swap={bytes}b"),
        ]);
    }
    if let Some(count) = wanted.processes {
        words.push(format!("--pids-limit={count}"));
    }
    if let Some(millis) = wanted.cpu_millis {
        words.push(format!("--cpus={}.{:03}", millis / 1000, millis % 1000));
    }
    if let Some(bytes) = wanted.file_bytes {
        words.push(format!("--ulimit=fsize={bytes}:{bytes}"));
    }
    let own = |name: &str| spec.podman.ulimits.iter().any(|limit| limit.name == name);
    for (name, soft, hard) in &host.limits {
        let asked = wanted.open_files.filter(|_| *name == "nofile");
        let (soft, hard) = asked.map_or((*soft, *hard), |most| (most.min(*soft), most.min(*hard)));
        if !own(name) {
            words.push(format!("--ulimit={name}={soft}:{hard}"));
        }
    }
    let limits = spec.podman.ulimits.iter();
    words.extend(limits.map(|limit| {
        let (soft, hard) = match wanted.open_files.filter(|_| limit.name == "nofile") {
            Some(most) => (limit.soft.min(most), limit.hard.min(most)),
            None => (limit.soft, limit.hard),
        };
        format!("--ulimit={}={soft}:{hard}", limit.name)
    }));
    words
}

fn mounts(spec: &SandboxSpec, parts: &CommandParts<'_>) -> Vec<String> {
    let most = spec.resources.memory_bytes.unwrap_or(u64::MAX);
    let shared = SHARED_BYTES.min(most / SHARED_PART);
    let mut words = vec![format!("--shm-size={shared}b")];
    for (path, mode, bytes, part) in TEMPORARY {
        if parts
            .layout
            .entries
            .iter()
            .all(|one| one.inside != Path::new(path))
        {
            let size = (*bytes).min(most / part);
            words.push(format!(
                "--tmpfs={path}:rw,exec,nosuid,nodev,mode={mode},size={size}"
            ));
        }
    }
    for one in &parts.layout.entries {
        words.push(mount(&one.kind, &one.inside, parts));
    }
    words.push(ours(&spec.self_exe, "kapi"));
    if let Some(linked) = parts.linked {
        words.push(ours(&linked.loader, "loader"));
        let libraries = linked.libraries.iter();
        words.extend(libraries.map(|(name, path)| ours(path, &format!("lib/{name}"))));
    }
    words
}

fn ours(host: &Path, name: &str) -> String {
    bind(host, Path::new(&format!("{OURS}/{name}")), BindRights::Read)
}

fn mount(kind: &ContainerEntryKind, inside: &Path, parts: &CommandParts<'_>) -> String {
    match kind {
        ContainerEntryKind::Bind { host, rights } => bind(host, inside, *rights),
        ContainerEntryKind::Volume { name } => fields(&[
            "type=volume",
            &format!("src={name}"),
            &format!("dst={}", inside.display()),
        ]),
        ContainerEntryKind::Layered { index } => {
            let options = parts.layer_options.get(*index).map_or("", String::as_str);
            fields(&[
                "type=volume",
                &format!("src={}", layer_volume(parts.directory, *index)),
                &format!("dst={}", inside.display()),
                "volume-opt=type=overlay",
                "volume-opt=device=overlay",
                &format!("volume-opt=o={options}"),
            ])
        }
    }
}

fn bind(host: &Path, inside: &Path, rights: BindRights) -> String {
    let (source, location) = (
        format!("src={}", host.display()),
        format!("dst={}", inside.display()),
    );
    match rights {
        BindRights::Write => fields(&["type=bind", &source, &location]),
        // Without what is mounted below: only the mount itself would be read-only.
        BindRights::Read => fields(&[
            "type=bind",
            &source,
            &location,
            "ro=true",
            "bind-nonrecursive=true",
        ]),
    }
}

/// Joins the fields of a mount as the comma separated values that podman reads.
fn fields(fields: &[&str]) -> String {
    let quoted = fields.iter().map(|field| {
        if field.contains([',', '"']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            (*field).to_owned()
        }
    });
    format!("--mount={}", quoted.collect::<Vec<_>>().join(","))
}
