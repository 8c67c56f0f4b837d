//! One shell line in a sandbox of its own, in a copy-on-write view of the whole working tree.
//!
//! The line stands where the root is on the host, so that what tools wrote down before is still
//! right. Its home is empty but for what was downloaded before, lent in the same way.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::checks::Root;
use kapi_core::goal::contract::SandboxLevel;
use kapi_core::goal::outcome::Failure;
use kapi_engine::world::{Activity, Watch};
use kapi_git::layer::{Layer, Marks};
use kapi_git::owned_dir;
use kapi_sandbox::launch::{self, Ears};
use kapi_sandbox::outcome::Ran;
use kapi_sandbox::spec::{Access, Layer as LayerMount, Mount};
use kapi_sys::process::{Limits, Program};

use super::Event;
use super::perform::Work;
use crate::asking::RUN_ID_VARIABLE;
use crate::confine::{Cell, WORKSPACE_INSIDE, WorksAt, read_only};
use crate::dependencies::Dependencies;
use crate::dependencies::lend::{Borrower, Lending, Lent};
use crate::doors::Doors;
use crate::doors::serve::Served;
use crate::run_dir::RunDir;
use crate::{failure, home};

/// What runs the line.
const SHELL: &str = "/bin/sh";
/// Bytes kept of each output stream.
const TAIL_BYTES_MAX: usize = 256 << 10;
/// Who a layer belongs to.
const OWNER: &str = "kapi check";
/// Where Kapi keeps the goals of a project, hidden checks among them.
const STATE: &str = ".ilchul";

/// Variables of every check.
const VARIABLES: &[(&str, &str)] = &[
    // Files that seem to be somebody else's are the person's own.
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
    // A linked worktree's history is not visible, and no check needs it in what it builds.
    ("GOFLAGS", "-buildvcs=false"),
    // What is there is used, and what is not there is told.
    ("MISE_YES", "1"),
    ("MISE_COLOR", "0"),
    ("MISE_EXEC_AUTO_INSTALL", "0"),
    ("MISE_NOT_FOUND_AUTO_INSTALL", "0"),
    ("MISE_TASK_RUN_AUTO_INSTALL", "0"),
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
        let (access, mut mounts) = match level {
            SandboxLevel::None => (Access::ReadWrite, Vec::new()),
            SandboxLevel::Native | SandboxLevel::Podman => (layers.add("tree")?, self.cover(dir)?),
        };
        let lent = self.lent(dir, line.root)?;
        mounts.extend(lent.mounts.iter().cloned());
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
        let doors = Doors::new(level, self.setting.network, &self.book.grant)?;
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
        let served = Served::new(&doors, &watch, &run_dir)?;
        self.start(&cell, &name, (line, &lent), &served)
    }

    fn start(
        &self,
        cell: &Cell<'_>,
        name: &str,
        (line, lent): (&Line<'_>, &Lent),
        served: &Served<'_>,
    ) -> Result<Ran, Failure> {
        let shell = PathBuf::from(SHELL);
        let (mut spec, path_first) = cell.spec(self.book, &shell)?;
        spec.network = served.doors.network();
        spec.listeners = served.doors.addresses();
        let cwd = cell.workspace_seen(self.book).join(&line.root.path);
        let host = self.discovery.top.join(&line.root.path);
        let own = line.root.first_on_path.iter();
        let own = own.filter(|name| host.join(name).is_dir());
        let first: Vec<PathBuf> = own.map(|name| cwd.join(name)).chain(path_first).collect();
        let mut env = cell.environment(self.book, &first, served.doors.environment());
        let lent = lent.env.iter().filter(|(name, _)| *name != "PATH");
        env.extend(lent.map(|(name, value)| (name.clone(), value.clone())));
        env.extend(self.variables(name));
        let program = Program {
            path: shell,
            args: vec!["-c".into(), line.text.into()],
            env,
            cwd,
            stdin: Vec::new(),
            pass_fds: Vec::new(),
            limits: Limits {
                deadline: line.deadline,
                idle: None,
                tail_bytes_max: TAIL_BYTES_MAX,
                line_bytes_max: 0,
            },
        };
        served.open(|on_listeners| {
            let ears = Ears {
                on_line: &mut |_| {},
                on_listeners,
            };
            launch::run(&spec, program, self.told.cancel, ears)
                .map_err(|error| failure::sandbox(&error))
        })
    }

    fn variables(&self, name: &str) -> BTreeMap<OsString, OsString> {
        let mut env: BTreeMap<OsString, OsString> = VARIABLES
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        // What an agent wrote may run here: it has an agent's authority, not the person's.
        env.insert(RUN_ID_VARIABLE.into(), name.into());
        let top = self.discovery.top.clone().into_os_string();
        env.insert("MISE_TRUSTED_CONFIG_PATHS".into(), top);
        env
    }

    /// Lends what the root's programs need besides the working tree.
    fn lent(&self, dir: &Path, root: &Root) -> Result<Lent, Failure> {
        let top = &self.discovery.top;
        let found = Dependencies::find_shared(self.book, top, &[PathBuf::from(&root.path)])?;
        let lending = Lending {
            layers: &dir.join("dependencies"),
            workspace: top,
            borrower: Borrower::Command,
            network: self.setting.network,
            level: self.setting.level,
        };
        found.lend(self.book, &lending)
    }

    /// Returns what hides Kapi's own state in the working tree, if it is there.
    fn cover(&self, dir: &Path) -> Result<Vec<Mount>, Failure> {
        if !self.discovery.top.join(STATE).is_dir() {
            return Ok(Vec::new());
        }
        let blank = dir.join("blank");
        fs::create_dir_all(&blank).map_err(|error| failure::file("create", &blank, &error))?;
        let inside = Path::new(WORKSPACE_INSIDE).join(STATE);
        Ok(vec![read_only(&blank, &inside)])
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
