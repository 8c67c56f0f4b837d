//! Lending what was found to one sandbox: mounts over layers, and the variables that lead there.
//!
//! A command gets fresh layers each time. An agent keeps what it installed into the project's own
//! directories for its next turns; no other sandbox is ever given those layers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_git::layer::{Layer, Marks};
use kapi_git::owned_dir;
use kapi_run::confine::{WORKSPACE_INSIDE, read_only};
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_run::ignored::{MountPoints, is_way_clear, layer_name};
use kapi_sandbox::spec::{Mount, MountAccess, OverlayLayer};
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use super::credentials::blank;
use super::prepared::copy_tree;
use super::{Dependencies, Writes};

/// Where a layer has what was written.
const UPPER: &str = "upper";
/// Who a layer belongs to.
const OWNER: &str = "a sandbox that shares dependencies";

/// Whom it is lent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Borrower {
    /// A command that decides something: nothing of an earlier run is there.
    Command,
    /// The agent, at the turns of one goal.
    Agent,
}

/// To what kind of sandbox it is lent.
#[derive(Debug, Clone, Copy)]
pub struct Lending<'a> {
    /// Kapi's own directory for the layers; no two sandboxes at once share one.
    pub layers: &'a Path,
    /// The host's directory that will be the workspace.
    pub workspace: &'a Path,
    /// Whom for.
    pub borrower: Borrower,
    /// What it can reach.
    pub network: NetworkMode,
    /// The isolation; only a native sandbox shows the host's programs.
    pub level: SandboxLevel,
}

/// What a sandbox is lent, as long as this is held.
#[derive(Debug, Default)]
pub struct MountedDependencies {
    /// To be mounted after the workspace.
    pub mounts: Vec<Mount>,
    /// To be set.
    pub env: BTreeMap<OsString, OsString>,
    /// What could not be lent, as sentences.
    pub notes: Vec<String>,
    layers: Vec<Layer>,
}

impl Dependencies {
    /// Lends everything to one sandbox.
    ///
    /// # Errors
    /// When a layer cannot be made, or another sandbox uses it.
    pub fn lend(
        &self,
        grants: &HostGrants,
        lending: &Lending<'_>,
    ) -> Result<MountedDependencies, Failure> {
        let mut shared_in = MountedDependencies::default();
        if lending.network == NetworkMode::None {
            shared_in.env.clone_from(&self.offline);
        }
        if lending.level != SandboxLevel::Native {
            return Ok(shared_in);
        }
        shared_in.env.extend(self.variables.clone());
        self.copy_installed(lending.workspace)?;
        let mounted = MountPoints::read()?;
        fs::create_dir_all(lending.layers)
            .map_err(|error| failure::file("create", lending.layers, &error))?;
        let mut open = OpenLending {
            lending,
            is_fit: mounted.unfit(lending.layers).is_none(),
            mounted,
            begins_with: self.begins_with.as_deref(),
            shared_in,
        };
        if !open.is_fit && !self.directories.is_empty() {
            let note = "dependencies are shared read-only: the file system of Kapi's state does not \
                 support layers";
            open.shared_in.notes.push(note.to_owned());
        }
        for (n, root) in self.roots.iter().enumerate() {
            open.root(n, root)?;
        }
        for shared in &self.shared {
            let inside = shared.inside.clone();
            open.add(&shared.host, inside, shared.writes, LayerLifetime::ForOnce)?;
            open.cover(&shared.inside, &shared.covered)?;
        }
        let kept = match lending.borrower {
            Borrower::Command => LayerLifetime::ForOnce,
            Borrower::Agent => LayerLifetime::ForTheGoal,
        };
        for directory in &self.directories {
            if !is_way_clear(lending.workspace, &directory.relative) {
                open.shared_in.notes.push(format!(
                    "{} is not shared: the work has something else at its path",
                    directory.relative.display()
                ));
                continue;
            }
            if directory.is_output && !open.can_layer(&directory.host) {
                continue;
            }
            let inside = Path::new(WORKSPACE_INSIDE).join(&directory.relative);
            open.add(&directory.host, inside.clone(), Writes::Layered, kept)?;
            open.cover(&inside, &directory.covered)?;
        }
        let mut shared_in = open.shared_in;
        if lending.borrower == Borrower::Command {
            shared_in.env.insert("PATH".into(), self.path(grants));
        }
        Ok(shared_in)
    }

    /// Returns the person's search path with the project's own programs: those of a virtual
    /// environment before all others, as if it were active, and the rest after them, so that what a
    /// command finds without them stays what it is.
    fn path(&self, grants: &HostGrants) -> OsString {
        let path = grants.path_variable();
        let own = self.programs.iter().map(|path| self.project.join(path));
        let is_environment = |bin: &PathBuf| {
            bin.parent()
                .is_some_and(|root| root.join("pyvenv.cfg").is_file())
        };
        let (first, last): (Vec<PathBuf>, Vec<PathBuf>) = own.partition(is_environment);
        let all = first
            .into_iter()
            .chain(std::env::split_paths(&path))
            .chain(last);
        std::env::join_paths(all).unwrap_or(path)
    }
}

/// How long what is written into a layer stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayerLifetime {
    /// One run.
    ForOnce,
    /// All turns of a goal.
    ForTheGoal,
}

/// A lending under way.
struct OpenLending<'a> {
    lending: &'a Lending<'a>,
    is_fit: bool,
    mounted: MountPoints,
    begins_with: Option<&'a Path>,
    shared_in: MountedDependencies,
}

impl OpenLending<'_> {
    /// Shows something of the person's.
    fn add(
        &mut self,
        host: &Path,
        inside: PathBuf,
        writes: Writes,
        kept: LayerLifetime,
    ) -> Result<(), Failure> {
        let access = if writes == Writes::Layered && self.can_layer(host) {
            self.layer(&inside, kept)?
        } else {
            MountAccess::ReadOnly
        };
        self.shared_in.mounts.push(Mount {
            host: host.to_path_buf(),
            inside,
            access,
        });
        Ok(())
    }

    /// Tells whether a layer can lie over a directory.
    fn can_layer(&self, host: &Path) -> bool {
        let is_own = fs::metadata(host)
            .is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
        self.is_fit && host.is_dir() && is_own && self.mounted.obstacle(host).is_none()
    }

    fn layer(&mut self, inside: &Path, kept: LayerLifetime) -> Result<MountAccess, Failure> {
        let failed = |error: &dyn std::error::Error| failure::plain(error);
        let dir = self.lending.layers.join(layer_name(inside));
        if kept == LayerLifetime::ForOnce {
            owned_dir::wipe(&dir).map_err(|error| failed(&error))?;
        }
        let begins_with = self.begins_with.map(|all| all.join(layer_name(inside)));
        let begins_with = begins_with.map(|dir| dir.join(UPPER));
        if let Some(from) =
            begins_with.filter(|from| kept == LayerLifetime::ForOnce && from.is_dir())
        {
            fs::create_dir_all(&dir).map_err(|error| failure::file("create", &dir, &error))?;
            copy_tree(&from, &dir.join(UPPER))?;
        }
        let layer = Layer::open(&dir, Marks::User, OWNER).map_err(|error| failed(&error))?;
        let work = layer.fresh_work().map_err(|error| failed(&error))?;
        let upper = layer.upper();
        self.shared_in.layers.push(layer);
        Ok(MountAccess::CopyOnWrite(OverlayLayer {
            upper,
            work,
            beneath: Vec::new(),
        }))
    }

    /// Makes a directory that a variable names one that can be written; it is empty but for what is
    /// lent in it.
    fn root(&mut self, n: usize, root: &Path) -> Result<(), Failure> {
        let host = self.lending.layers.join(format!("root-{n}"));
        owned_dir::wipe(&host).map_err(|error| failure::plain(&error))?;
        fs::create_dir(&host).map_err(|error| failure::file("create", &host, &error))?;
        self.shared_in.mounts.push(Mount {
            host,
            inside: root.to_path_buf(),
            access: MountAccess::ReadWrite,
        });
        Ok(())
    }

    /// Puts blank files over those with secrets.
    fn cover(&mut self, inside: &Path, covered: &[PathBuf]) -> Result<(), Failure> {
        for path in covered {
            let content = blank(path);
            let host = self.lending.layers.join(format!("blank-{}", content.len()));
            // Files of the same length are the same: there are few.
            if fs::read(&host).ok().as_deref() != Some(content) {
                let written = RealDisk.write(&host, content);
                written.map_err(|error| failure::plain(&error))?;
            }
            self.shared_in
                .mounts
                .push(read_only(&host, &inside.join(path)));
        }
        Ok(())
    }
}
