//! Trials: the launcher trying its own steps, and a layer to try a copy-on-write mount with.
//!
//! Does not know what a refusal means.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{ProcessEnd, ProcessLimits};
use rustix::io::Errno;
use rustix::process::getpid;

use crate::callbacks::RunCallbacks;
use crate::error::SandboxError;
use crate::guard::Guard;
use crate::launch::{LaunchContext, LaunchInput, LauncherRun, perform};
use crate::order::{Bind, LauncherWork};
use crate::spec::{MountAccess, OverlayLayer};
use crate::status::{LauncherMessage, StepFailure};

/// How long all steps together may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Directories that the kernel makes below a layer's, and into which their owner may not look.
const CLOSED: &[&str] = &[
    "work/work",
    "work/work/incompat",
    "work/work/incompat/volatile",
];

/// Has the launcher try every step, and these mounts.
pub(super) fn statuses(
    self_exe: &Path,
    binds: Vec<Bind>,
) -> Result<Vec<LauncherMessage>, SandboxError> {
    let limits = ProcessLimits {
        deadline: DEADLINE,
        idle: None,
        tail_bytes_max: 64 * 1024,
        line_bytes_max: 1024,
    };
    let input = LaunchInput {
        stdin: Vec::new(),
        fds: Vec::new(),
        limits,
    };
    let callbacks = RunCallbacks {
        on_line: &mut |_| {},
        on_listeners: &mut drop,
    };
    let context = LaunchContext {
        self_exe,
        guard: &Guard::none(),
    };
    let LauncherRun { over, statuses, .. } = perform(
        context,
        LauncherWork::Probe { binds },
        input,
        &Cancel::new(),
        callbacks,
    )?;
    let finished = over.wait().map_err(SandboxError::Launch)?;
    if finished.end != ProcessEnd::Exited(0) || statuses.is_empty() {
        return Err(SandboxError::Launcher {
            end: finished.end,
            output: finished.stderr.text(),
        });
    }
    Ok(statuses)
}

/// Directories for one copy-on-write mount; removed when dropped.
#[derive(Debug)]
pub(super) struct TrialLayer {
    top: PathBuf,
}

impl TrialLayer {
    /// Makes them on the file system on which a directory lies or would lie.
    pub(super) fn new(sandboxes: &Path) -> Result<Self, StepFailure> {
        let existing = sandboxes.ancestors().find(|path| path.is_dir());
        let own = getpid().as_raw_nonzero();
        let top = existing
            .unwrap_or(sandboxes)
            .join(format!(".kapi-trial-{own}"));
        let layer = Self { top };
        for name in ["", "lower", "upper", "work"] {
            let path = layer.top.join(name);
            let made = fs::DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                StepFailure::new("mkdir", &path.display().to_string(), errno)
            })?;
        }
        Ok(layer)
    }

    /// Returns the mount to try.
    pub(super) fn bind(&self) -> Bind {
        let layer = OverlayLayer {
            upper: self.top.join("upper"),
            work: self.top.join("work"),
            beneath: Vec::new(),
        };
        Bind::new(
            &self.top.join("lower"),
            Path::new("/workspace"),
            &MountAccess::CopyOnWrite(layer),
        )
    }
}

impl Drop for TrialLayer {
    fn drop(&mut self) {
        for closed in CLOSED {
            match fs::set_permissions(self.top.join(closed), fs::Permissions::from_mode(0o700)) {
                // Without a mount there is no such directory.
                Ok(()) | Err(_) => {}
            }
        }
        match fs::remove_dir_all(&self.top) {
            // What cannot be removed is empty and says by its name what it is.
            Ok(()) | Err(_) => {}
        }
    }
}
