//! One shell line in a sandbox of its own, in a copy-on-write view of the whole working tree.
//!
//! The line stands where the root is on the host, so that what tools wrote down before is still
//! right. Its home is empty but for what was downloaded before, lent in the same way.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_git::layer::{Layer, Marks};
use kapi_git::owned_dir;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_run::confine::{SandboxConfig, WorksAt};
use kapi_run::host_grants::HostGrants;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::{Listener, ShellLine};
use kapi_run::state_cover::state_cover;
use kapi_run::{failure, home};
use kapi_sandbox::outcome::SandboxRun;
use kapi_sandbox::spec::{BenchmarkSetup, MountAccess, OverlayLayer};

use super::{CheckEvent, CheckObserver, CheckRunSettings, Discovery};
use crate::perform::dependencies::Dependencies;
use crate::perform::dependencies::lend::{Borrower, Lending, MountedDependencies};
use crate::rules::checks::ProjectRoot;

/// Who a layer belongs to.
const OWNER: &str = "kapi check";
/// Variables of every check.
const VARIABLES: &[(&str, &str)] = &[
    // A linked worktree's history is not visible, and no check needs it in what it builds.
    ("GOFLAGS", "-buildvcs=false"),
    // What is there is used, and what is not there is told.
    ("MISE_YES", "1"),
    ("MISE_COLOR", "0"),
    ("MISE_EXEC_AUTO_INSTALL", "0"),
    ("MISE_NOT_FOUND_AUTO_INSTALL", "0"),
    ("MISE_TASK_RUN_AUTO_INSTALL", "0"),
];

/// What every check of a run stands on.
pub(super) struct CheckRun<'a> {
    pub(super) grants: &'a HostGrants,
    pub(super) discovery: &'a Discovery,
    pub(super) setting: &'a CheckRunSettings,
    pub(super) reported: &'a CheckObserver<'a>,
    /// A directory for this run alone.
    pub(super) scratch: &'a Path,
}

/// A line to run.
pub(super) struct CheckLine<'a> {
    /// Where.
    pub(super) root: &'a ProjectRoot,
    /// The line.
    pub(super) text: &'a str,
    /// What tells its sandbox from others of this process.
    pub(super) name: &'a str,
    /// The longest it may take.
    pub(super) deadline: Duration,
}

impl CheckRun<'_> {
    /// Runs a line to its end; nothing of it is left.
    pub(super) fn run(&self, line: &CheckLine<'_>) -> Result<SandboxRun, Failure> {
        let dir = self.scratch.join(line.name);
        let ran = self.run_in(&dir, line);
        let wiped = owned_dir::wipe(&dir).map_err(|error| failure::plain(&error));
        let ran = ran?;
        wiped?;
        Ok(ran)
    }

    fn run_in(&self, dir: &Path, line: &CheckLine<'_>) -> Result<SandboxRun, Failure> {
        let mut layers = CheckLayers {
            dir,
            held: Vec::new(),
        };
        let level = self.setting.level;
        let (access, mut mounts) = match level {
            SandboxLevel::None => (MountAccess::ReadWrite, Vec::new()),
            SandboxLevel::Native | SandboxLevel::Podman => (
                layers.add("tree")?,
                state_cover(&self.discovery.top, &[], &dir.join("cover"))?,
            ),
        };
        let shared_in = self.shared_in(dir, line.root)?;
        mounts.extend(shared_in.mounts.iter().cloned());
        let name = format!("check-{}-{}", std::process::id(), line.name);
        let config = SandboxConfig {
            name: &name,
            level,
            workspace: &self.discovery.top,
            workspace_access: access,
            project: Some(&self.discovery.top),
            works_at: WorksAt::Project,
            home: &home::make_anew(&dir.join("home"))?,
            git_view: None,
            mounts,
            deadline: line.deadline,
            idle: None,
        };
        let notice = |activity: Activity| {
            if let Activity::Note { text } = activity {
                (self.reported.notice)(CheckEvent::Note(&text));
            }
        };
        let watch = EffectWatch {
            cancel: self.reported.cancel,
            notice: &notice,
            room: &unlimited,
        };
        let run_dir = RunDir::open(dir, "run")?;
        let below = Path::new(&line.root.path);
        let own = line.root.first_on_path.iter().map(|name| below.join(name));
        let (here, seen) = (&self.discovery.top, config.workspace_seen(self.grants));
        let there = own.filter(|path| here.join(path).is_dir());
        let shared = shared_in.env.iter().filter(|(name, _)| *name != "PATH");
        let mut env: BTreeMap<OsString, OsString> = shared
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        env.extend(self.variables());
        let line = ShellLine {
            text: line.text,
            network: self.setting.network,
            below,
            path_first: there.map(|path| seen.join(path)).collect(),
            env,
            benchmark: BenchmarkSetup::default(),
        };
        let listener = Listener {
            watch: &watch,
            run_dir: &run_dir,
        };
        line.run(&config, self.grants, listener)
    }

    fn variables(&self) -> BTreeMap<OsString, OsString> {
        let mut env: BTreeMap<OsString, OsString> = VARIABLES
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        let top = self.discovery.top.clone().into_os_string();
        env.insert("MISE_TRUSTED_CONFIG_PATHS".into(), top);
        env
    }

    /// Lends what the root's programs need besides the working tree.
    fn shared_in(&self, dir: &Path, root: &ProjectRoot) -> Result<MountedDependencies, Failure> {
        let top = &self.discovery.top;
        let found = Dependencies::find_shared(self.grants, top, &[PathBuf::from(&root.path)])?;
        let lending = Lending {
            layers: &dir.join("dependencies"),
            workspace: top,
            borrower: Borrower::Command,
            network: self.setting.network,
            level: self.setting.level,
        };
        found.lend(self.grants, &lending)
    }
}

/// The layers of one line, held until it has ended.
struct CheckLayers<'a> {
    dir: &'a Path,
    held: Vec<Layer>,
}

impl CheckLayers<'_> {
    /// Makes an empty layer.
    fn add(&mut self, name: &str) -> Result<MountAccess, Failure> {
        let failed = |error: &dyn std::error::Error| failure::plain(error);
        let layer = Layer::open(&self.dir.join(name), Marks::User, OWNER);
        let layer = layer.map_err(|error| failed(&error))?;
        let work = layer.fresh_work().map_err(|error| failed(&error))?;
        let upper = layer.upper();
        self.held.push(layer);
        Ok(MountAccess::CopyOnWrite(OverlayLayer {
            upper,
            work,
            beneath: Vec::new(),
        }))
    }
}
