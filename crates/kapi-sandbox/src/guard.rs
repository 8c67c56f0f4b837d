//! What holds a sandbox besides its walls: Landlock, the filter of calls, and whichever mechanism this
//! host has for each limit.
//!
//! Decides before the start, so that the grade of a run is what the run was ordered to have: a step that
//! is then refused fails the run. Does not know how the mechanisms work.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use kapi_sys::process::ProcessEnd;
use rustix::io::Errno;
use rustix::process::{Signal, geteuid};

use crate::cgroup::{self, CgroupVersion, ControlGroup, Controller, Unavailable};
use crate::init::landlock::{SCOPES_SINCE, usable_version};
use crate::order::{Enclosure, PayloadProgram, SystemText};
use crate::outcome::{ExceededLimit, IsolationGrade};
use crate::spec::{IsolationLevel, MountAccess, NetworkIsolation, Resources, SandboxSpec};
use crate::status::StepFailure;
use crate::watchdog::disk::DiskBaseline;
use crate::watchdog::{LimitBreach, Watchdog};

/// What a process may map beyond twice the memory of all, where the kernel does not count what is used:
/// programs reserve far more than they ever touch.
const MAPPED_EXTRA_BYTES: u64 = 1 << 30;
/// What a shell makes of a program that the file size limit ended.
const SHELL_SIGNAL_BASE: i32 = 128;

/// What holds one sandbox.
#[derive(Debug)]
pub(crate) struct Guard {
    group: ControlGroup,
    watchdog: Watchdog,
    resources: Resources,
    landlock: u32,
    /// The isolation the sandbox has if it starts.
    pub grade: IsolationGrade,
}

impl Guard {
    /// Finds what this host has for a spec and makes its control groups.
    pub(crate) fn new(spec: &SandboxSpec) -> Self {
        match spec.level {
            IsolationLevel::Native => Self::native(spec),
            IsolationLevel::Podman | IsolationLevel::None => Self::none(),
        }
    }

    /// Returns a guard that holds nothing.
    pub(crate) fn none() -> Self {
        Self {
            group: ControlGroup::default(),
            watchdog: Watchdog::default(),
            resources: Resources::default(),
            landlock: 0,
            grade: IsolationGrade {
                layers: vec!["no isolation".to_owned()],
                missing: Vec::new(),
            },
        }
    }

    fn native(spec: &SandboxSpec) -> Self {
        let (group, unavailable) = cgroup::create(&spec.name, &spec.resources);
        let landlock = usable_version().and_then(|version| match spec.nested_namespaces {
            true if version < SCOPES_SINCE => Err(Errno::OPNOTSUPP),
            true | false => Ok(version),
        });
        let watchdog = watchdog(spec, &group);
        let mut grade = IsolationGrade {
            layers: vec![match spec.network {
                NetworkIsolation::Loopback => "namespaces".to_owned(),
                NetworkIsolation::Host => "namespaces but for the network".to_owned(),
            }],
            missing: Vec::new(),
        };
        match landlock {
            Ok(version) if spec.nested_namespaces => grade
                .layers
                .push(format!("landlock {version} for sockets and signals")),
            Ok(version) => grade.layers.push(format!("landlock {version}")),
            Err(errno) => grade.missing.push(format!("landlock ({errno})")),
        }
        grade.layers.push(if spec.nested_namespaces {
            "seccomp but for namespaces".to_owned()
        } else {
            "seccomp".to_owned()
        });
        grade_limits(&mut grade, &spec.resources, &group, &unavailable);
        Self {
            group,
            watchdog,
            resources: spec.resources,
            landlock: landlock.unwrap_or(0),
            grade,
        }
    }

    /// Writes into the order what the inside has to do for it.
    pub(crate) fn order(&self, enclosure: &mut Enclosure, payload: &mut PayloadProgram) {
        payload.open_files = self.resources.open_files;
        let group_files = self.group.group_files();
        enclosure.group_files = group_files
            .iter()
            .map(|group_file| SystemText::of(group_file.as_os_str()))
            .collect();
        enclosure.landlock = self.landlock;
        if self.watchdog.memory_bytes.is_some() {
            let twice = self
                .resources
                .memory_bytes
                .map(|bytes| bytes.saturating_mul(2).saturating_add(MAPPED_EXTRA_BYTES));
            enclosure.limits.data_bytes = twice;
        }
    }

    /// Tells whether [`Guard::watch`] has anything to do.
    pub(crate) fn needs_watch(&self) -> bool {
        !self.watchdog.is_idle()
    }

    /// Tells whether there are control groups, which can be removed only when nothing is in them.
    pub(crate) fn holds_groups(&self) -> bool {
        !self.group.group_files().is_empty()
    }

    /// Watches the sandbox from outside until its leading process has ended.
    pub(crate) fn watch(&self, leader: BorrowedFd<'_>) -> Result<Option<LimitBreach>, Errno> {
        self.watchdog.guard(leader)
    }

    /// Returns the limits that were met inside, the likeliest cause of the end first: what the end itself
    /// says, what the watch found, what the kernel counted.
    pub(crate) fn met(&self, beyond: Option<LimitBreach>, end: ProcessEnd) -> Vec<ExceededLimit> {
        let signal = Signal::XFSZ.as_raw();
        let by_size = end == ProcessEnd::Signaled(signal)
            || end == ProcessEnd::Exited(SHELL_SIGNAL_BASE + signal);
        let size = self.resources.file_bytes.filter(|_| by_size);
        let size = size.map(|limit| ExceededLimit {
            resource: "file size",
            limit: bytes_text(limit),
        });
        let counted = self.group.met().into_iter().map(LimitBreach::Counted);
        let counted = counted.filter(|one| beyond != Some(*one));
        let others = beyond.into_iter().chain(counted);
        size.into_iter()
            .chain(others.filter_map(|one| self.exceeded(one)))
            .collect()
    }

    fn exceeded(&self, beyond: LimitBreach) -> Option<ExceededLimit> {
        Some(match beyond {
            LimitBreach::Counted(controller) => ExceededLimit {
                resource: resource(controller),
                limit: limit_text(controller, controller.asked(&self.resources)?),
            },
            LimitBreach::Disk => ExceededLimit {
                resource: "disk",
                limit: bytes_text(self.resources.disk_bytes?),
            },
        })
    }
}

/// Gives the watchdog what neither groups nor the limits of processes hold. Measures the directories,
/// so it must be called before anything runs inside.
fn watchdog(spec: &SandboxSpec, group: &ControlGroup) -> Watchdog {
    let resources = &spec.resources;
    let unless_held = |controller: Controller| match group.holds(controller) {
        Some(_) => None,
        None => controller.asked(resources),
    };
    let processes = unless_held(Controller::Processes);
    let (refused_by_kernel, not_refused) = if exempt_from_process_limit() {
        (None, processes)
    } else {
        (processes, None)
    };
    Watchdog {
        memory_bytes: unless_held(Controller::Memory),
        processes: not_refused,
        processes_noticed: refused_by_kernel,
        disk: resources
            .disk_bytes
            .map(|bytes| (bytes, DiskBaseline::new(&written_locations(spec)))),
    }
}

/// The kernel never refuses the host's root a process, whatever the limit and the namespace.
fn exempt_from_process_limit() -> bool {
    geteuid().is_root()
}

/// Lists the host's directories that the sandbox can write to.
fn written_locations(spec: &SandboxSpec) -> Vec<PathBuf> {
    let mounts = spec.mounts.iter().filter_map(|mount| match &mount.access {
        MountAccess::ReadOnly => None,
        MountAccess::ReadWrite => Some(mount.host.clone()),
        MountAccess::CopyOnWrite(layer) => Some(layer.upper.clone()),
    });
    std::iter::once(spec.home_host.clone())
        .chain(mounts)
        .collect()
}

fn grade_limits(
    grade: &mut IsolationGrade,
    resources: &Resources,
    group: &ControlGroup,
    unavailable: &[Unavailable],
) {
    for controller in Controller::ALL {
        if controller.asked(resources).is_none() {
            continue;
        }
        let name = resource(controller);
        let by = match (group.holds(controller), controller) {
            (Some(CgroupVersion::One), _) => "cgroup v1",
            (Some(CgroupVersion::Two), _) => "cgroup v2",
            (None, Controller::Memory) => "sampling",
            (None, Controller::Processes) if exempt_from_process_limit() => "sampling",
            (None, Controller::Processes) => "rlimit",
            (None, Controller::Processor) => {
                let why = unavailable
                    .iter()
                    .find(|one| one.controller == controller)
                    .map_or_else(String::new, |one| reason(&one.failure));
                grade.missing.push(format!("{name} limit ({why})"));
                continue;
            }
        };
        grade.layers.push(format!("{name} by {by}"));
    }
    for (name, by, asked) in [
        ("open files", "rlimit", resources.open_files),
        ("file size", "rlimit", resources.file_bytes),
        ("disk", "sampling", resources.disk_bytes),
    ] {
        if asked.is_some() {
            grade.layers.push(format!("{name} by {by}"));
        }
    }
}

fn reason(failure: &StepFailure) -> String {
    let errno = Errno::from_raw_os_error(failure.errno);
    format!("{} {}: {errno}", failure.call, failure.target)
}

fn resource(controller: Controller) -> &'static str {
    match controller {
        Controller::Memory => "memory",
        Controller::Processes => "processes",
        Controller::Processor => "cpu",
    }
}

fn limit_text(controller: Controller, limit: u64) -> String {
    match controller {
        Controller::Memory => bytes_text(limit),
        Controller::Processes => limit.to_string(),
        Controller::Processor => format!("{limit} thousandths of a processor"),
    }
}

/// Writes bytes in the largest unit that needs no fraction.
fn bytes_text(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units
        .into_iter()
        .find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(shift, name)| format!("{} {name}", bytes >> shift),
    )
}

#[cfg(test)]
mod tests {
    use super::bytes_text;

    #[test]
    fn sizes_are_written_as_people_gave_them() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1000, "1000 bytes"),
            (1 << 10, "1 KiB"),
            (3 << 29, "1536 MiB"),
            (2 << 30, "2 GiB"),
        ] {
            assert_eq!(bytes_text(bytes), expected);
        }
    }
}
