//! Which isolation a container really had, and which limits it met, for people.
//!
//! Pure: from what was asked and what the relay found to words.

use kapi_sys::process::ProcessEnd;
use rustix::process::Signal;

use super::channel::{LimitCounts, RelayEnvironment};
use crate::outcome::{ExceededLimit, IsolationGrade};
use crate::spec::{NetworkIsolation, Resources, SandboxSpec};

/// What a shell adds to the number of a signal that ended its program.
const SHELL_SIGNAL_BASE: i32 = 128;

/// Names the layers in force and what this host does not grant.
pub(super) fn grade(
    spec: &SandboxSpec,
    observed: &RelayEnvironment,
    started_by_root: bool,
) -> IsolationGrade {
    let mut grade = IsolationGrade::default();
    let mut add = |is_there: bool, layer: String, lack: &str| {
        if is_there {
            grade.layers.push(layer);
        } else if !lack.is_empty() {
            grade.missing.push(lack.to_owned());
        }
    };
    add(
        true,
        format!("podman container of {}", spec.podman.image),
        "",
    );
    let by_root = "user namespace (podman was started by root; start it as an ordinary user)";
    let without_map = "user namespace (podman created none)";
    let lack = if started_by_root {
        by_root
    } else {
        without_map
    };
    add(observed.is_user_mapped, "user namespace".to_owned(), lack);
    add(true, "no capabilities, no new privileges".to_owned(), "");
    let lack = "system call filter (podman was built or configured without seccomp)";
    add(observed.is_filtered, "seccomp".to_owned(), lack);
    match spec.network {
        NetworkIsolation::Loopback => add(true, "private loopback".to_owned(), ""),
        NetworkIsolation::Host => add(
            false,
            String::new(),
            "private network (the host's was requested)",
        ),
    }
    limits(&spec.resources, observed, &mut grade);
    grade
}

const REMEDY: &str = "this user's containers get no control group with it; use control groups \
                      version 2 and delegate the controllers to the user";

fn limits(wanted: &Resources, observed: &RelayEnvironment, grade: &mut IsolationGrade) {
    if let Some(bytes) = wanted.memory_bytes {
        if observed.memory_bytes.is_some() {
            grade.layers.push(format!("memory {}", size(bytes)));
        } else {
            grade
                .layers
                .push(format!("memory {} for each process", size(bytes)));
            grade
                .missing
                .push(format!("memory limit of all processes together ({REMEDY})"));
        }
    }
    if let Some(count) = wanted.processes {
        if observed.processes.is_some() {
            grade.layers.push(format!("{count} processes"));
        } else if observed.is_user_mapped {
            grade.layers.push(format!("{count} processes of its user"));
        } else {
            grade.missing.push(format!("limit of processes ({REMEDY})"));
        }
    }
    if let Some(millis) = wanted.cpu_millis {
        if observed.cpu_millis.is_some() {
            grade
                .layers
                .push(format!("{}.{:03} processors", millis / 1000, millis % 1000));
        } else {
            grade
                .missing
                .push(format!("limit of processors ({REMEDY})"));
        }
    }
    if wanted.disk_bytes.is_some() {
        grade.layers.push("disk by sampling".to_owned());
    }
}

/// Returns the limit of disk space as one that was met.
pub(super) fn disk(wanted: &Resources) -> Option<ExceededLimit> {
    wanted.disk_bytes.map(|bytes| ExceededLimit {
        resource: "disk",
        limit: size(bytes),
    })
}

/// Tells which limits were met in a container, the one that its end itself names first.
pub(super) fn met(wanted: &Resources, met: LimitCounts, end: ProcessEnd) -> Vec<ExceededLimit> {
    let signal = Signal::XFSZ.as_raw();
    let by_size = end == ProcessEnd::Signaled(signal)
        || end == ProcessEnd::Exited(SHELL_SIGNAL_BASE + signal);
    let file = wanted
        .file_bytes
        .filter(|_| by_size)
        .map(|bytes| ExceededLimit {
            resource: "file size",
            limit: size(bytes),
        });
    let memory = wanted.memory_bytes.filter(|_| met.memory_kills > 0);
    let processes = wanted.processes.filter(|_| met.process_refusals > 0);
    let memory = memory.map(|bytes| ExceededLimit {
        resource: "memory",
        limit: size(bytes),
    });
    let processes = processes.map(|count| ExceededLimit {
        resource: "processes",
        limit: count.to_string(),
    });
    file.into_iter().chain(memory).chain(processes).collect()
}

/// Writes a number of bytes in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fitting = units
        .iter()
        .find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    fitting.map_or_else(
        || format!("{bytes} bytes"),
        |(unit, shift)| format!("{} {unit}", bytes >> shift),
    )
}

#[cfg(test)]
mod tests {
    use kapi_sys::process::ProcessEnd;

    use super::{grade, met, size};
    use crate::podman::channel::{LimitCounts, RelayEnvironment};
    use crate::spec::{IsolationLevel, Resources, SandboxSpec};

    fn spec() -> SandboxSpec {
        let mut spec = SandboxSpec::new(
            IsolationLevel::Podman,
            "t",
            "/tmp".into(),
            "/bin/true".into(),
        );
        spec.podman.image = "localhost/x".to_owned();
        spec.resources = Resources {
            memory_bytes: Some(64 << 20),
            processes: Some(50),
            cpu_millis: Some(1500),
            ..Resources::default()
        };
        spec
    }

    #[test]
    fn what_is_in_force_is_told_apart_from_what_was_asked() {
        let full = RelayEnvironment {
            is_user_mapped: true,
            is_filtered: true,
            memory_bytes: Some(64 << 20),
            processes: Some(50),
            cpu_millis: Some(1500),
        };
        let expected = "podman container of localhost/x, user namespace, no capabilities, no new privileges, \
                        seccomp, private loopback, memory 64 MiB, 50 processes, 1.500 processors";
        assert_eq!(grade(&spec(), &full, false).to_string(), expected);
        let poor = RelayEnvironment {
            is_user_mapped: true,
            is_filtered: true,
            ..RelayEnvironment::default()
        };
        let reported = grade(&spec(), &poor, false);
        assert_eq!(reported.missing.len(), 2, "{reported}");
        assert!(
            reported
                .to_string()
                .contains("memory 64 MiB for each process"),
            "{reported}"
        );
        let root = grade(&spec(), &RelayEnvironment::default(), true);
        assert!(root.to_string().contains("started by root"), "{root}");
        assert!(
            root.to_string().contains("without seccomp") || root.missing.len() == 5,
            "{root}"
        );
    }

    #[test]
    fn every_limit_that_was_met_is_named_and_no_other() {
        let wanted = spec().resources;
        let names = |memory_kills, process_refusals| {
            let counted = LimitCounts {
                memory_kills,
                process_refusals,
            };
            let met = met(&wanted, counted, ProcessEnd::Exited(1)).into_iter();
            met.map(|one| (one.resource, one.limit)).collect::<Vec<_>>()
        };
        let memory = ("memory", "64 MiB".to_owned());
        let processes = ("processes", "50".to_owned());
        assert_eq!(names(1, 1), [memory.clone(), processes.clone()]);
        assert_eq!(names(0, 3), [processes]);
        assert_eq!(names(2, 0), [memory]);
        assert_eq!(names(0, 0), []);
    }

    #[test]
    fn sizes_are_written_in_their_own_unit() {
        let sizes = [2 << 30, 1536 << 20, 1000].map(size);
        assert_eq!(sizes, ["2 GiB", "1536 MiB", "1000 bytes"]);
    }
}
