//! One shell line in a sandbox of its own, in a copy-on-write view of the whole working tree.
//!
//! The line stands where the root is on the host, so that what tools wrote down before is still
//! right. Its home is empty but for what was downloaded before, lent in the same way.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use kapi_core::checks::Root;
use kapi_core::goal::contract::{NetworkMode, SandboxLevel};
use kapi_core::goal::outcome::Failure;
use kapi_engine::world::{Activity, Watch};
use kapi_git::layer::{Layer, Marks};
use kapi_git::owned_dir;
use kapi_sandbox::outcome::Ran;
use kapi_sandbox::spec::{Access, Layer as LayerMount, Mount};

use super::Event;
use super::perform::Work;
use crate::confine::{Cell, WorksAt};
use crate::run_dir::RunDir;
use crate::shell::{self, Listener, ShellLine};
use crate::{failure, home};

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
/// Variables that keep tools from waiting for a network that is not there.
const OFFLINE: &[(&str, &str)] = &[
    ("CARGO_NET_OFFLINE", "true"),
    ("GOPROXY", "off"),
    ("MISE_OFFLINE", "1"),
    ("UV_OFFLINE", "1"),
    ("npm_config_offline", "true"),
];

/// A line to run.
pub(super) struct Line<'a> {
    /// Where.
    pub(super) root: &'a Root,
    /// The line.
    pub(super) text: &'a str,
    /// What tells its sandbox from others of this process.
    pub(super) name: &'a str,
    /// The longest it may take.
    pub(super) deadline: Duration,
}

impl Work<'_> {
    /// Runs a line to its end; nothing of it is left.
    pub(super) fn run(&self, line: &Line<'_>) -> Result<Ran, Failure> {
        let dir = self.scratch.join(line.name);
        let ran = self.run_in(&dir, line);
        let wiped = owned_dir::wipe(&dir).map_err(|error| failure::plain(&error));
        let ran = ran?;
        wiped?;
        Ok(ran)
    }

    fn run_in(&self, dir: &Path, line: &Line<'_>) -> Result<Ran, Failure> {
        let mut layers = Layers {
            dir,
            held: Vec::new(),
        };
        let level = self.setting.level;
        let (access, mounts) = match level {
            SandboxLevel::None => (Access::ReadWrite, Vec::new()),
            SandboxLevel::Native => (layers.add("tree")?, self.mounts(&mut layers, line.root)?),
            SandboxLevel::Podman => (
                layers.add("tree")?,
                shell::state_cover(&self.discovery.top, dir)?,
            ),
        };
        let name = format!("check-{}-{}", std::process::id(), line.name);
        let cell = Cell {
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
                (self.told.notice)(Event::Note(&text));
            }
        };
        let watch = Watch {
            cancel: self.told.cancel,
            notice: &notice,
        };
        let run_dir = RunDir::open(dir, "run")?;
        let below = Path::new(&line.root.path);
        let own = line.root.first_on_path.iter().map(|name| below.join(name));
        let (here, seen) = (&self.discovery.top, cell.workspace_seen(self.book));
        let there = own.filter(|path| here.join(path).is_dir());
        let line = ShellLine {
            text: line.text,
            network: self.setting.network,
            below,
            path_first: there.map(|path| seen.join(path)).collect(),
            env: self.variables(),
        };
        let listener = Listener {
            watch: &watch,
            run_dir: &run_dir,
        };
        line.run(&cell, self.book, listener)
    }

    fn variables(&self) -> BTreeMap<OsString, OsString> {
        let offline = match self.setting.network {
            NetworkMode::None => OFFLINE,
            NetworkMode::Filtered | NetworkMode::Open => &[],
        };
        let fixed = VARIABLES.iter().chain(offline);
        let mut env: BTreeMap<OsString, OsString> = fixed
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        let top = self.discovery.top.clone().into_os_string();
        env.insert("MISE_TRUSTED_CONFIG_PATHS".into(), top);
        env
    }

    /// Returns what lies over the working tree and in the home.
    fn mounts(&self, layers: &mut Layers<'_>, root: &Root) -> Result<Vec<Mount>, Failure> {
        let mut mounts = shell::state_cover(&self.discovery.top, layers.dir)?;
        for (n, cache) in root.caches.iter().enumerate() {
            let host = self.book.home.join(cache);
            if !is_own_directory(&host) {
                continue;
            }
            mounts.push(Mount {
                inside: host.clone(),
                host,
                access: layers.add(&format!("cache-{n}"))?,
            });
        }
        Ok(mounts)
    }
}

/// The layers of one line, held until it has ended.
struct Layers<'a> {
    dir: &'a Path,
    held: Vec<Layer>,
}

impl Layers<'_> {
    /// Makes an empty layer.
    fn add(&mut self, name: &str) -> Result<Access, Failure> {
        let failed = |error: &dyn std::error::Error| failure::plain(error);
        let layer = Layer::open(&self.dir.join(name), Marks::User, OWNER);
        let layer = layer.map_err(|error| failed(&error))?;
        let work = layer.fresh_work().map_err(|error| failed(&error))?;
        let upper = layer.upper();
        self.held.push(layer);
        Ok(Access::CopyOnWrite(LayerMount { upper, work }))
    }
}

/// Tells whether a path is a directory of the person; a layer over any other could not be written.
fn is_own_directory(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == own)
}
