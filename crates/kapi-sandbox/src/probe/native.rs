//! The support of the native level: its steps, the version of Landlock, the control groups.
//!
//! Does not know other levels.

use std::path::Path;

use super::trial::{TrialLayer, statuses};
use super::{HostFact, LevelSupport, MissingFeature};
use crate::cgroup::{self, CgroupVersion, Controller};
use crate::error::SandboxError;
use crate::hint::{HostRestrictions, overlay_hint};
use crate::init::landlock::usable_version;
use crate::init::steps::{LANDLOCK, OVERLAY};
use crate::spec::{IsolationLevel, Resources};
use crate::status::{LauncherMessage, StepFailure};

/// Limits that nothing on a trial could meet.
const TRIAL: Resources = Resources {
    memory_bytes: Some(1 << 30),
    processes: Some(1 << 10),
    cpu_millis: Some(1_000),
    open_files: None,
    file_bytes: None,
    disk_bytes: None,
};

/// Tries the level and returns what was seen besides.
pub(super) fn probe(
    self_exe: &Path,
    sandboxes: &Path,
    host: &HostRestrictions,
) -> Result<(LevelSupport, Vec<HostFact>), SandboxError> {
    let layer = TrialLayer::new(sandboxes);
    let binds = layer.iter().map(TrialLayer::bind).collect();
    let mut support = LevelSupport {
        level: IsolationLevel::Native,
        works: true,
        gives: vec![
            "separate files, processes, users, host name and network".to_owned(),
            "system read-only, home and temporary files private".to_owned(),
            "no privileges, system calls filtered".to_owned(),
        ],
        missing: Vec::new(),
    };
    let mut copies_on_write = layer.is_ok();
    for status in statuses(self_exe, binds)? {
        let LauncherMessage::Probed {
            step,
            failure: Some(failure),
        } = status
        else {
            continue;
        };
        copies_on_write &= step != OVERLAY;
        add(&mut support, &step, failure, sandboxes, host);
    }
    if let Err(failure) = layer {
        support
            .missing
            .push(MissingFeature::new(OVERLAY, failure, host));
    }
    if copies_on_write {
        support.gives.push("copy-on-write workspaces".to_owned());
    }
    if let Ok(version) = usable_version() {
        support.gives.push(format!("Landlock {version}"));
    }
    let facts = groups(&mut support, host);
    if !support.works {
        support.gives.clear();
    }
    support.missing.sort_by_key(|missing| !missing.is_necessary);
    Ok((support, facts))
}

fn add(
    support: &mut LevelSupport,
    step: &str,
    failure: StepFailure,
    sandboxes: &Path,
    host: &HostRestrictions,
) {
    let is_overlay = step == OVERLAY;
    let advice = is_overlay
        .then(|| overlay_hint(&failure, sandboxes))
        .flatten();
    let missing = MissingFeature::new(step, failure, host);
    let missing = MissingFeature {
        hint: advice.or(missing.hint),
        ..missing
    };
    if is_overlay || step == LANDLOCK {
        support.missing.push(missing);
    } else {
        support.works = false;
        support.missing.push(missing.necessary());
    }
}

/// Makes control groups as a run would, and tells what holds each limit.
fn groups(support: &mut LevelSupport, host: &HostRestrictions) -> Vec<HostFact> {
    let (group, unavailable) = cgroup::create("probe", &TRIAL);
    let mut held = Vec::new();
    for controller in Controller::ALL {
        let what = match controller {
            Controller::Memory => "memory",
            Controller::Processes => "processes",
            Controller::Processor => "cpu",
        };
        match group.holds(controller) {
            Some(version) => {
                let version = match version {
                    CgroupVersion::One => "v1",
                    CgroupVersion::Two => "v2",
                };
                held.push(format!("{} {version}", controller.name()));
                support
                    .gives
                    .push(format!("{what} limit by cgroup {version}"));
            }
            None => {
                let instead = match controller {
                    Controller::Memory => Some("memory limit by sampling"),
                    Controller::Processes => Some("processes limit by rlimit"),
                    Controller::Processor => None,
                };
                support.gives.extend(instead.map(str::to_owned));
            }
        }
    }
    support
        .gives
        .push("limits of open files, file size and disk".to_owned());
    for one in unavailable {
        let what = format!("control group for {}", one.controller.name());
        support
            .missing
            .push(MissingFeature::new(&what, one.failure, host));
    }
    let value = if held.is_empty() {
        "none can be created here".to_owned()
    } else {
        held.join(", ")
    };
    vec![HostFact {
        name: "control groups",
        value,
    }]
}
