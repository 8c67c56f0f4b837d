//! Tries every step of building a sandbox on its own, each in a process that is then thrown away.
//!
//! The steps are the real functions, so a probe cannot say yes to what a run would be refused. Leaves
//! nothing behind on the host.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, mount_change};
use rustix::process::{Pid, WaitOptions, umask, waitpid};
use rustix::thread::UnshareFlags;

use super::layer::LayerMounts;
use super::mount::{DetachedMount, MountRights, NewFileSystem, NewRoot};
use super::seccomp::SeccompProfile;
use super::{
    NOT_RUN, device, die_with_parent, host_root, landlock, layer, limit, namespace, network,
    notify, privilege, process_view, root, seccomp,
};
use crate::order::{Bind, Enclosure, OrderedAccess, OrderedLimits, OrderedNetwork, SystemText};
use crate::status::{LauncherMessage, StepFailure};
use crate::syscall::{Fork, exit_now, fork};

/// A step: what it is called and what it does.
struct ProbeStep {
    name: &'static str,
    start: fn() -> Result<(), StepFailure>,
    /// Done in the first process of the new pid namespace, if the start made one.
    finish: Option<fn() -> Result<(), StepFailure>>,
}

/// What each mount to be tried is called.
pub(crate) const OVERLAY: &str = "copy-on-write mount";
/// The steps without which there is still a sandbox.
pub(crate) const LANDLOCK: &str = "landlock";

const STEPS: &[ProbeStep] = &[
    ProbeStep {
        name: "user namespace",
        start: namespace::enter_user,
        finish: None,
    },
    ProbeStep {
        name: "mount namespace",
        start: private_mounts,
        finish: None,
    },
    ProbeStep {
        name: "pid namespace",
        start: || with_user(UnshareFlags::NEWPID, "CLONE_NEWPID"),
        finish: Some(|| Ok(())),
    },
    ProbeStep {
        name: "ipc namespace",
        start: || with_user(UnshareFlags::NEWIPC, "CLONE_NEWIPC"),
        finish: None,
    },
    ProbeStep {
        name: "uts namespace",
        start: || with_user(UnshareFlags::NEWUTS, "CLONE_NEWUTS"),
        finish: None,
    },
    ProbeStep {
        name: "cgroup namespace",
        start: || with_user(UnshareFlags::NEWCGROUP, "CLONE_NEWCGROUP"),
        finish: None,
    },
    ProbeStep {
        name: "network namespace",
        start: own_network,
        finish: None,
    },
    ProbeStep {
        name: "read-only bind mounts",
        start: binds,
        finish: None,
    },
    ProbeStep {
        name: "memory file system",
        start: memory,
        finish: None,
    },
    ProbeStep {
        name: "devices",
        start: || private_mounts().and_then(|()| device::gather()).map(drop),
        finish: None,
    },
    ProbeStep {
        name: "change of root",
        start: change_root,
        finish: None,
    },
    ProbeStep {
        name: "process view",
        start: first_process,
        finish: Some(processes),
    },
    ProbeStep {
        name: "privileges given up",
        start: privileges,
        finish: None,
    },
    ProbeStep {
        name: LANDLOCK,
        start: || privilege::forbid_gains().and_then(|()| landlock::attempt()),
        finish: None,
    },
    ProbeStep {
        name: "filter of system calls",
        start: || privilege::forbid_gains().and_then(|()| seccomp::install(SeccompProfile::Strict)),
        finish: None,
    },
    ProbeStep {
        name: "whole sandbox",
        start: everything,
        finish: Some(whole),
    },
];

/// Tries them all in order and sends one message for each.
pub(super) fn try_all(status: BorrowedFd<'_>, binds: &[Bind]) -> Result<(), StepFailure> {
    for bind in binds {
        apart(OVERLAY, status, || {
            report(
                OVERLAY,
                status,
                private_mounts().and_then(|()| overlay(bind)).err(),
            );
            0
        })?;
    }
    for step in STEPS {
        apart(step.name, status, || attempt(step, status))?;
    }
    Ok(())
}

/// Has something tried in a process of its own, which returns 0 when it has reported.
fn apart(
    name: &'static str,
    status: BorrowedFd<'_>,
    attempt: impl FnOnce() -> i32,
) -> Result<(), StepFailure> {
    let failed = |call: &'static str| move |errno: Errno| StepFailure::new(call, name, errno);
    match fork().map_err(failed("fork"))? {
        Fork::Child => exit_now(attempt()),
        Fork::Parent(child) => {
            if outcome(child).map_err(failed("waitpid"))? != Some(0) {
                // The attempt died without a word, which no refused call explains.
                report(name, status, Some(failed("fork")(Errno::CHILD)));
            }
            Ok(())
        }
    }
}

/// Runs one step in this process or, for the second half, in its child; 0 means that it was reported.
fn attempt(step: &ProbeStep, status: BorrowedFd<'_>) -> i32 {
    if let Err(failure) = die_with_parent().and_then(|()| (step.start)()) {
        report(step.name, status, Some(failure));
        return 0;
    }
    let Some(finish) = step.finish else {
        report(step.name, status, None);
        return 0;
    };
    match fork() {
        Ok(Fork::Child) => {
            report(step.name, status, finish().err());
            exit_now(0)
        }
        Ok(Fork::Parent(child)) => outcome(child).ok().flatten().unwrap_or(NOT_RUN),
        Err(errno) => {
            report(
                step.name,
                status,
                Some(StepFailure::new("fork", step.name, errno)),
            );
            0
        }
    }
}

fn outcome(child: Pid) -> Result<Option<i32>, Errno> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(ended) => return Ok(ended.and_then(|(_, ended)| ended.exit_status())),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn report(step: &str, status: BorrowedFd<'_>, failure: Option<StepFailure>) {
    notify(
        status,
        &LauncherMessage::Probed {
            step: step.to_owned(),
            failure,
        },
    );
}

fn with_user(flag: UnshareFlags, name: &str) -> Result<(), StepFailure> {
    namespace::enter_user()?;
    namespace::enter_one(flag, name)
}

fn private_mounts() -> Result<(), StepFailure> {
    with_user(UnshareFlags::NEWNS, "CLONE_NEWNS")?;
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .map_err(|errno| StepFailure::new("mount(MS_PRIVATE)", "/", errno))
}

fn privileges() -> Result<(), StepFailure> {
    namespace::enter_user()?;
    privilege::give_up_all()
}

fn own_network() -> Result<(), StepFailure> {
    namespace::enter_user()?;
    network::enter()
}

/// Mounts one of the mounts to be tried.
fn overlay(bind: &Bind) -> Result<(), StepFailure> {
    match &bind.access {
        OrderedAccess::CopyOnWrite {
            upper,
            work,
            beneath,
        } => layer::mount(&bind.host, beneath, [upper, work]).map(drop),
        OrderedAccess::ReadOnly => {
            DetachedMount::clone_of(&bind.host.path(), MountRights::Read).map(drop)
        }
        OrderedAccess::ReadWrite => {
            DetachedMount::clone_of(&bind.host.path(), MountRights::Write).map(drop)
        }
    }
}

fn binds() -> Result<(), StepFailure> {
    private_mounts()?;
    DetachedMount::clone_of(Path::new("/usr"), MountRights::Read).map(drop)
}

const MEMORY: NewFileSystem = NewFileSystem {
    kind: "tmpfs",
    options: &[("mode", "0755"), ("size", "1m")],
    attributes: MountAttrFlags::empty(),
};

fn memory_root() -> Result<NewRoot, StepFailure> {
    NewRoot::new(
        DetachedMount::fresh(&MEMORY)?,
        Path::new(root::BUILD_DIRECTORY),
    )
}

fn memory() -> Result<(), StepFailure> {
    private_mounts()?;
    memory_root().map(drop)
}

fn change_root() -> Result<(), StepFailure> {
    private_mounts()?;
    root::pivot(&memory_root()?)?;
    host_root::take_own_away()
}

fn first_process() -> Result<(), StepFailure> {
    private_mounts()?;
    namespace::enter_one(UnshareFlags::NEWPID, "CLONE_NEWPID")
}

fn processes() -> Result<(), StepFailure> {
    process_view::put(&memory_root()?)
}

fn empty_enclosure() -> Enclosure {
    Enclosure {
        hostname: "kapi-probe".to_owned(),
        binds: Vec::new(),
        home: SystemText::new(b"/home/agent"),
        files: Vec::new(),
        aliases: Vec::new(),
        listeners: Vec::new(),
        nested_namespaces: false,
        group_files: Vec::new(),
        landlock: 0,
        limits: OrderedLimits::default(),
        network: OrderedNetwork::Loopback,
    }
}

fn everything() -> Result<(), StepFailure> {
    namespace::enter(&empty_enclosure())?;
    network::enter()
}

fn whole() -> Result<(), StepFailure> {
    umask(Mode::empty());
    root::enter(&empty_enclosure(), &LayerMounts::none())?;
    host_root::take_all_away()?;
    limit::lower(&OrderedLimits::default())?;
    privilege::give_up_all()?;
    seccomp::install(SeccompProfile::Strict)
}
