//! Putting a program into the goal's sandbox: what it sees, what it is told, how long it may take.
//!
//! The same shape for agent, verify command and judge. Inside, the workspace stands at the project's
//! own path and at `/workspace`, the home has the host's path but nothing of its content, and git
//! works on a throw-away view of the repository.

mod project;
mod run;
mod stopping;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_sandbox::podman::caches;
use kapi_sandbox::spec::{BenchmarkSetup, IsolationLevel, Mount, MountAccess, SandboxSpec};
use kapi_sandbox::{expose, toolchain};

use crate::failure;
use crate::grant::PASSED_VARIABLES;
use crate::host_grants::HostGrants;

/// Where the workspace is inside.
pub const WORKSPACE_INSIDE: &str = "/workspace";
/// Where Kapi's own files are inside.
pub const KAPI_INSIDE: &str = "/run/kapi";
/// Bytes kept of each output stream of an agent.
pub const AGENT_TAIL_BYTES_MAX: usize = 64 * 1024;
/// Files that show a project whose build tools publish and share caches unless told otherwise.
const JAVA_BUILDS: &[&str] = &[
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
];

/// Variables that lead toolchains to where they are installed, and where that usually is.
const TOOLCHAIN_HOMES: &[(&str, &str)] = &[
    ("RUSTUP_HOME", ".rustup"),
    ("PYENV_ROOT", ".pyenv"),
    ("NVM_DIR", ".nvm"),
    ("SDKMAN_DIR", ".sdkman"),
];

/// A program and what it gets.
#[derive(Debug)]
pub struct SandboxConfig<'a> {
    /// The run's id, which distinguishes its sandbox from others.
    pub name: &'a str,
    /// The isolation.
    pub level: SandboxLevel,
    /// The host's directory that is the workspace.
    pub workspace: &'a Path,
    /// Whether it can be written.
    pub workspace_access: MountAccess,
    /// The person's own absolute path of what the workspace shows; it stands there too, so that what
    /// tools wrote down with absolute paths is right inside.
    pub project: Option<&'a Path>,
    /// Which of the two is the working directory.
    pub works_at: WorksAt,
    /// The host's directory that is the private home.
    pub home: &'a Path,
    /// The throw-away view of the repository, and the object directories it borrows from.
    pub git_view: Option<GitView>,
    /// Further mounts.
    pub mounts: Vec<Mount>,
    /// Whether a terminal-less, quiet program may take this long.
    pub deadline: Duration,
    /// The longest silence.
    pub idle: Option<Duration>,
}

/// Where a program works, of the two places at which a workspace stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorksAt {
    /// At the project's own path, where that can be shown.
    Project,
    /// At `/workspace`.
    Workspace,
}

/// A throw-away view of the repository.
#[derive(Debug, Clone)]
pub struct GitView {
    /// The view's git directory on the host.
    pub git_dir: PathBuf,
    /// A host file that says where the git directory is inside.
    pub link: PathBuf,
    /// The repository's object directories.
    pub object_dirs: Vec<PathBuf>,
}

/// A program as seen from inside.
#[derive(Debug)]
pub struct SandboxedProgram {
    /// The host path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its variables beyond the common ones.
    pub env: BTreeMap<OsString, OsString>,
    /// Its standard input.
    pub stdin: Vec<u8>,
    /// The directory it works in, below the workspace.
    pub below: PathBuf,
    /// Directories to look for programs in before all others.
    pub path_first: Vec<PathBuf>,
    /// Bytes kept of each output stream.
    pub tail_bytes_max: usize,
    /// What holds while it is measured.
    pub benchmark: BenchmarkSetup,
    /// How long it may take to end by itself when it is no longer wanted: its descriptor 3 hangs up
    /// then. Nothing where it is ended at once.
    pub stop_grace: Option<Duration>,
}

/// The sandbox of one program.
#[derive(Debug)]
pub struct ProgramSandbox {
    /// The sandbox.
    pub spec: SandboxSpec,
    /// The path of the program inside: a link to it may lead through what is not shown.
    pub program: PathBuf,
    /// Directories to look for programs in before all others.
    pub path_first: Vec<PathBuf>,
}

impl SandboxConfig<'_> {
    /// Returns where the workspace is for the program.
    pub fn workspace_seen(&self, grants: &HostGrants) -> PathBuf {
        match (self.level, self.works_at, self.project_seen(grants)) {
            (SandboxLevel::None, _, _) => self.workspace.to_path_buf(),
            (_, WorksAt::Project, Some(project)) => project.to_path_buf(),
            (_, WorksAt::Project | WorksAt::Workspace, _) => PathBuf::from(WORKSPACE_INSIDE),
        }
    }

    /// Returns the project's own path, if the workspace stands there too.
    pub(crate) fn project_seen(&self, grants: &HostGrants) -> Option<&Path> {
        match self.level {
            SandboxLevel::Native | SandboxLevel::Podman => self
                .project
                .filter(|project| project::can_be_shown(project, &grants.home)),
            SandboxLevel::None => None,
        }
    }

    /// Returns where the home is for the program.
    pub fn home_seen(&self, grants: &HostGrants) -> PathBuf {
        match self.level {
            SandboxLevel::Native | SandboxLevel::Podman => grants.home.clone(),
            SandboxLevel::None => self.home.to_path_buf(),
        }
    }

    /// Returns the sandbox for a program, and how the program is called in it.
    pub fn spec(&self, grants: &HostGrants, program: &Path) -> Result<ProgramSandbox, Failure> {
        let self_exe = grants.self_exe.clone();
        let mut spec = SandboxSpec::new(
            IsolationLevel::None,
            self.name,
            self.home.to_path_buf(),
            self_exe,
        );
        spec.home_inside.clone_from(&grants.home);
        if self.level == SandboxLevel::None {
            return Ok(ProgramSandbox {
                spec,
                program: program.to_path_buf(),
                path_first: Vec::new(),
            });
        }
        let grant = &grants.grant;
        spec.resources = grant.resources;
        spec.nested_namespaces = grant.nested_namespaces;
        spec.podman = grant.podman.clone();
        if JAVA_BUILDS
            .iter()
            .any(|name| self.workspace.join(name).exists())
        {
            let rules = caches::files(&grants.home, grant.maven_mirror.as_deref());
            spec.files = rules.map_err(|error| failure::plain(&error))?;
        }
        let mut path_first = Vec::new();
        let mut called = program.to_path_buf();
        if self.level == SandboxLevel::Podman {
            spec.level = IsolationLevel::Podman;
        } else {
            spec.level = IsolationLevel::Native;
            spec.mounts = toolchain::toolchains(&grants.home);
            let exposed = expose::expose(program, &grants.search_path(), &grants.home)
                .map_err(|error| failure::sandbox(&error))?;
            spec.mounts.extend(exposed.mounts);
            path_first = exposed.path;
            called = exposed.program;
        }
        spec.mounts
            .extend(grant.read_only.iter().map(|path| read_only(path, path)));
        let mut given = self.mounts.clone();
        if let Some(project) = self.project_seen(grants) {
            let shown = PathBuf::from(WORKSPACE_INSIDE);
            spec.aliases.push((shown, project.to_path_buf()));
            let is_covered = |mount: &Mount| mount.inside.starts_with(project);
            let covered = spec.mounts.extract_if(.., |mount| is_covered(mount));
            let covered: Vec<Mount> = covered.collect();
            given = covered.into_iter().chain(given).collect();
            given = given
                .into_iter()
                .map(|mount| project::moved_onto_workspace(mount, project))
                .collect();
        }
        spec.mounts.push(Mount {
            host: self.workspace.to_path_buf(),
            inside: PathBuf::from(WORKSPACE_INSIDE),
            access: self.workspace_access.clone(),
        });
        if let Some(view) = &self.git_view {
            spec.mounts.extend(view.mounts());
        }
        spec.mounts.extend(given);
        Ok(ProgramSandbox {
            spec,
            program: called,
            path_first,
        })
    }

    /// Returns the variables of what runs inside: those that are passed on, those of the configuration, and these.
    pub fn environment(
        &self,
        grants: &HostGrants,
        path_first: &[PathBuf],
        extra: BTreeMap<OsString, OsString>,
    ) -> BTreeMap<OsString, OsString> {
        let mut env = BTreeMap::new();
        for name in PASSED_VARIABLES {
            if let Some(value) = grants.env.get(OsStr::new(name)) {
                env.insert(OsString::from(name), value.clone());
            }
        }
        env.insert("PATH".into(), joined(path_first, &grants.path_variable()));
        env.insert("HOME".into(), self.home_seen(grants).into_os_string());
        env.insert("TERM".into(), "dumb".into());
        env.insert("SHELL".into(), "/bin/sh".into());
        env.insert("CI".into(), "1".into());
        if self.level != SandboxLevel::None {
            env.insert("TMPDIR".into(), "/tmp".into());
        }
        for (variable, usual_location) in TOOLCHAIN_HOMES {
            let usual = grants.home.join(usual_location);
            let value = match grants.env.get(OsStr::new(variable)) {
                Some(value) => value.clone(),
                None if usual.is_dir() => usual.into_os_string(),
                None => continue,
            };
            env.insert(OsString::from(variable), value);
        }
        env.extend(extra);
        env
    }
}

impl GitView {
    /// Returns where the view's git directory is inside.
    pub fn git_dir_inside() -> PathBuf {
        Path::new(KAPI_INSIDE).join("git")
    }

    /// Returns where the n-th object directory is inside.
    pub fn objects_inside(n: usize) -> PathBuf {
        Path::new(KAPI_INSIDE).join(format!("objects-{n}"))
    }

    fn mounts(&self) -> Vec<Mount> {
        let mut mounts = vec![
            Mount {
                host: self.git_dir.clone(),
                inside: Self::git_dir_inside(),
                access: MountAccess::ReadWrite,
            },
            read_only(&self.link, &Path::new(WORKSPACE_INSIDE).join(".git")),
        ];
        for (n, objects) in self.object_dirs.iter().enumerate() {
            mounts.push(read_only(objects, &Self::objects_inside(n)));
        }
        mounts
    }
}

/// Returns a search path with directories put before it.
fn joined(first: &[PathBuf], path_variable: &OsStr) -> OsString {
    let rest = std::env::split_paths(path_variable);
    let all = first.iter().cloned().chain(rest);
    std::env::join_paths(all).unwrap_or_else(|_| path_variable.to_owned())
}

/// Returns a read-only mount.
pub fn read_only(host: &Path, inside: &Path) -> Mount {
    Mount {
        host: host.to_path_buf(),
        inside: inside.to_path_buf(),
        access: MountAccess::ReadOnly,
    }
}
