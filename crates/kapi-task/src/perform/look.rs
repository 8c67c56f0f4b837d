//! A command that a condition names: in a sandbox, on the project as it is, which it cannot change.
//!
//! Its exit code is all that is taken of it. There is no network.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_git::owned_dir;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_run::confine::{SandboxConfig, WorksAt};
use kapi_run::private_dir::make_private;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::{Listener, ShellLine};
use kapi_run::state_cover::state_cover;
use kapi_run::{failure, home};
use kapi_sandbox::spec::{BenchmarkSetup, MountAccess};
use kapi_sys::process::ProcessEnd;

use super::Performer;
use crate::record::worker::LeaseHandle;
use crate::rules::condition::ProbeAnswer;
use crate::rules::task::KernelTask;

/// A command whose exit code answers a condition of a task.
pub(super) struct ConditionCommand<'a> {
    /// The task.
    pub(super) task: &'a KernelTask,
    /// What ties its attempt to the kernel.
    pub(super) handle: &'a LeaseHandle<'a>,
    /// The line.
    pub(super) line: &'a str,
    /// The longest it may take, in milliseconds.
    pub(super) timeout_ms: u64,
}

impl ConditionCommand<'_> {
    /// Runs the command and returns how it ended.
    pub(super) fn answer(&self, performer: &Performer<'_>) -> Result<ProbeAnswer, Failure> {
        if performer.setting.level == SandboxLevel::None {
            return Ok(ProbeAnswer::Unknown {
                why: "without isolation, nothing prevents it from changing the project".to_owned(),
            });
        }
        let id = Performer::sandbox_id(self.task, self.handle).map_err(|_| Failure {
            message: "name its sandbox".to_owned(),
            hint: None,
        })?;
        let location = performer
            .setting
            .sandboxes
            .location(&performer.setting.project_key, &id);
        let made = make_private(&location.dir());
        made.map_err(|error| Failure {
            message: error.message,
            hint: error.hint,
        })?;
        let dir = location.dir().join("look");
        let end = self.run_in(performer, &dir);
        owned_dir::wipe(&dir).map_err(|error| failure::plain(&error))?;
        // Only an empty one goes: a run that was skipped leaves nothing.
        drop(fs::remove_dir(location.dir()));
        Ok(match end? {
            ProcessEnd::Exited(code) => ProbeAnswer::Exit { code },
            ProcessEnd::Signaled(signal) => ProbeAnswer::Exit { code: 128 + signal },
            ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed => ProbeAnswer::TimedOut,
            ProcessEnd::Cancelled => ProbeAnswer::Unknown {
                why: "it was interrupted".to_owned(),
            },
        })
    }

    fn run_in(&self, performer: &Performer<'_>, dir: &Path) -> Result<ProcessEnd, Failure> {
        let (task, handle) = (self.task, self.handle);
        owned_dir::wipe(dir).map_err(|error| failure::plain(&error))?;
        let root = performer.project.layout.root();
        let mounts = state_cover(root, &[], &dir.join("cover"))?;
        let name = format!(
            "look-{}-{}-{}",
            std::process::id(),
            task.id,
            handle.hold().fence
        );
        let level = performer.setting.level;
        let config = SandboxConfig {
            name: &name,
            level,
            workspace: root,
            workspace_access: MountAccess::ReadOnly,
            project: Some(root),
            works_at: WorksAt::Project,
            home: &home::make_anew(&dir.join("home"))?,
            git_view: None,
            mounts,
            deadline: Duration::from_millis(self.timeout_ms),
            idle: None,
        };
        let notice = |activity: Activity| (performer.notice)(task.id, activity);
        let watch = EffectWatch {
            cancel: handle.cancel(),
            notice: &notice,
            room: &unlimited,
        };
        let run_dir = RunDir::open(dir, "run")?;
        let line = ShellLine {
            text: self.line,
            network: NetworkMode::None,
            below: Path::new(""),
            path_first: Vec::new(),
            env: BTreeMap::new(),
            benchmark: BenchmarkSetup::default(),
        };
        let listener = Listener {
            watch: &watch,
            run_dir: &run_dir,
        };
        Ok(line.run(&config, &performer.grants, listener)?.finished.end)
    }
}
