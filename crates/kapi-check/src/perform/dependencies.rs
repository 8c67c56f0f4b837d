//! What a project's programs need and git does not track: dependencies, package caches, tool chains.
//!
//! Found where the person has it and lent to sandboxes copy-on-write, so that nothing flows back and
//! nothing that an agent wrote reaches a check. Files with secrets are covered; what the person built
//! is not lent. Downloads nothing.

mod credentials;
mod directories;
mod installed;
mod leading_out;
pub mod lend;
mod location;
mod pattern;
pub(crate) mod prepared;
pub mod registries;
pub mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_git::repository::Repository;
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;

use self::credentials::{CredentialFinder, Depth};
use self::directories::{ProjectEcosystems, TrackedFiles};
use self::installed::InstalledFile;
use self::leading_out::Needs;
use self::location::{LocationOnHost, Locations, is_visible, may_be_lent};
use crate::perform::ecosystems;
use crate::rules::proof::ecosystem::EcosystemTable;

/// Names beside a `bin` of the person's `PATH` that show an installation.
const INSTALLATION_MARKS: &[&str] = &[
    "lib",
    "lib64",
    "libexec",
    "include",
    "pyvenv.cfg",
    "pkg",
    "VERSION",
];

/// What was found for one project.
#[derive(Debug, Clone)]
pub struct Dependencies {
    /// The project's top directory.
    project: PathBuf,
    /// Its directories of dependencies.
    directories: Vec<DependencyDirectory>,
    /// Files among its sources that installing it wrote.
    installed: Vec<InstalledFile>,
    /// Caches, tool chains and linked packages.
    shared: Vec<SharedLocation>,
    /// Directories that variables name: programs write beside what is lent in them.
    roots: BTreeSet<PathBuf>,
    /// Variables that lead to what is lent.
    variables: BTreeMap<OsString, OsString>,
    /// Variables that keep tools from waiting for a network.
    offline: BTreeMap<OsString, OsString>,
    /// Directories of programs in the project, below its top.
    programs: Vec<PathBuf>,
    /// What layers begin with, where something was installed for the work.
    begins_with: Option<PathBuf>,
    /// What the person should know, as sentences.
    pub notes: Vec<String>,
}

/// A directory of the project with what was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DependencyDirectory {
    /// Where, below the project's top.
    relative: PathBuf,
    /// Its real place on the host.
    host: PathBuf,
    /// Files in it that are covered.
    covered: Vec<PathBuf>,
    /// It is of no use where nothing can be written into it.
    is_output: bool,
}

/// Something outside of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SharedLocation {
    host: PathBuf,
    inside: PathBuf,
    covered: Vec<PathBuf>,
    writes: Writes,
}

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    /// It goes to a layer.
    Layered,
    /// It is refused.
    Refused,
}

impl Dependencies {
    /// Finds what a repository's project needs.
    ///
    /// # Errors
    /// When git fails or a directory of the person cannot be listed.
    pub fn find(grants: &HostGrants, repository: &Repository) -> Result<Self, Failure> {
        Self::find_with(grants, repository, None)
    }

    /// Finds the same with directories of the project, and their real places, that are known.
    fn find_with(
        grants: &HostGrants,
        repository: &Repository,
        known: Option<Vec<(PathBuf, PathBuf)>>,
    ) -> Result<Self, Failure> {
        let table = ecosystems::table()?;
        let top = repository.top_level();
        let tracked = TrackedFiles::of(repository)?;
        let concerned = ProjectEcosystems::of(table, &tracked);
        let mut found = Self::shared(grants, top, table, &concerned)?;
        let holds_home = |home: &Path| home.starts_with(top);
        let real_home = grants.home.canonicalize();
        if !holds_home(&grants.home) && !real_home.is_ok_and(|home| holds_home(&home)) {
            let directories = match known {
                Some(known) => known,
                None => directories::find(repository, table, &concerned, &tracked)?,
            };
            found.take(grants, table, directories)?;
            found.installed = installed::find(repository, table, &concerned)?;
        }
        Ok(found)
    }

    /// Finds the caches and tool chains for a working tree that is shown whole.
    ///
    /// `roots` are the directories of projects in it.
    ///
    /// # Errors
    /// When a directory of the person cannot be listed.
    pub(crate) fn find_shared(
        grants: &HostGrants,
        top: &Path,
        roots: &[PathBuf],
    ) -> Result<Self, Failure> {
        let table = ecosystems::table()?;
        let concerned = ProjectEcosystems::of(table, &TrackedFiles::listed(top, roots));
        Self::shared(grants, top, table, &concerned)
    }

    /// Returns the project's directories that are lent, below its top.
    pub fn shown(&self) -> BTreeSet<PathBuf> {
        self.directories
            .iter()
            .map(|one| one.relative.clone())
            .collect()
    }

    /// Returns the same without the project's own directories.
    pub(crate) fn without_directories(&self) -> Self {
        Self {
            directories: Vec::new(),
            programs: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns the same with directories of output that Kapi's own runs left, all below one.
    pub(crate) fn with_built(&self, all: &Path, built: Vec<PathBuf>) -> Self {
        let mut with = self.clone();
        with.directories
            .extend(built.into_iter().map(|relative| DependencyDirectory {
                host: all.join(&relative),
                relative,
                covered: Vec::new(),
                is_output: true,
            }));
        with
    }

    fn shared(
        grants: &HostGrants,
        top: &Path,
        table: &EcosystemTable,
        concerned: &ProjectEcosystems,
    ) -> Result<Self, Failure> {
        let all = table.all.iter();
        let all = all.map(|one| (one, one.always || concerned.is(&one.id)));
        let mut locations = Locations::find(grants, top, all);
        for entry in std::env::split_paths(&grants.path_variable()) {
            let is_lent_elsewhere = entry.canonicalize().is_ok_and(|real| {
                let mut shared_in = locations.found.values();
                real != entry && shared_in.any(|found| real.starts_with(&found.host))
            });
            if let Some(root) = installation(&entry) {
                locations.insert(grants, top, LocationOnHost::at(&root, Depth::ToolChains));
            } else if is_lent_elsewhere {
                locations.insert(grants, top, LocationOnHost::at(&entry, Depth::ToolChains));
            }
        }
        let mut found = Self {
            project: top.to_path_buf(),
            directories: Vec::new(),
            installed: Vec::new(),
            shared: Vec::new(),
            roots: locations.roots.clone(),
            variables: locations.variables.clone(),
            offline: BTreeMap::new(),
            programs: Vec::new(),
            begins_with: None,
            notes: Vec::new(),
        };
        for ecosystem in table
            .all
            .iter()
            .filter(|one| one.always || concerned.is(&one.id))
        {
            let offline = ecosystem.offline.iter();
            found
                .offline
                .extend(offline.map(|(name, value)| (name.into(), value.into())));
            let programs = ecosystem.path.iter().map(PathBuf::from);
            found
                .programs
                .extend(programs.filter(|path| top.join(path).is_dir()));
        }
        if concerned.is("go") {
            // A view of a repository is no repository that go could read a version from.
            let flags = grants.env.get(std::ffi::OsStr::new("GOFLAGS"));
            let mut flags = flags.cloned().unwrap_or_default();
            flags.push(" -buildvcs=false");
            found.variables.insert("GOFLAGS".into(), flags);
        }
        found.add_locations(grants, table, &locations)?;
        Ok(found)
    }

    fn add_locations(
        &mut self,
        grants: &HostGrants,
        table: &EcosystemTable,
        locations: &Locations,
    ) -> Result<(), Failure> {
        let credentials = CredentialFinder::of(table);
        for found in locations.widest() {
            let is_shown = self.shared.iter().any(|known| known.inside == found.inside);
            if is_shown {
                continue;
            }
            let shown = found
                .inside
                .strip_prefix(&grants.home)
                .unwrap_or(&found.inside);
            let shown = shown.display().to_string();
            let covered = if found.host.is_dir() {
                credentials.within(&found.host, &shown, found.depth)?
            } else if credentials.is_one(&shown) {
                continue;
            } else {
                Vec::new()
            };
            self.shared.push(SharedLocation {
                host: found.host,
                inside: found.inside,
                covered,
                writes: Writes::Layered,
            });
        }
        Ok(())
    }

    /// Takes the project's directories over, with what they lead to.
    fn take(
        &mut self,
        grants: &HostGrants,
        table: &EcosystemTable,
        directories: Vec<(PathBuf, PathBuf)>,
    ) -> Result<(), Failure> {
        let credentials = CredentialFinder::of(table);
        let mut further = Locations::default();
        for (relative, host) in directories {
            let at = self.project.join(&relative);
            let needs = Needs::of(&host, &at, &self.project);
            for root in &needs.installations {
                further.insert(
                    grants,
                    &self.project,
                    LocationOnHost::at(root, Depth::ToolChains),
                );
            }
            for (name, path) in &needs.packages {
                let name = format!("{}/{name}", relative.display());
                self.link(grants, &credentials, &name, path)?;
            }
            if let Ok(real) = at.canonicalize()
                && real != at
                && !real.starts_with(&self.project)
            {
                // It was made there, and says so in its own files.
                let found = LocationOnHost {
                    host: host.clone(),
                    inside: real,
                    depth: Depth::Packages,
                };
                further.insert(grants, &self.project, found);
            }
            let shown = relative.display().to_string();
            let covered = credentials.within(&host, &shown, Depth::Packages)?;
            self.directories.push(DependencyDirectory {
                relative,
                host,
                covered,
                is_output: false,
            });
        }
        self.add_locations(grants, table, &further)
    }

    /// Lends a package that lies elsewhere, and says so.
    fn link(
        &mut self,
        grants: &HostGrants,
        credentials: &CredentialFinder,
        name: &str,
        path: &Path,
    ) -> Result<(), Failure> {
        let what = format!("{name} leads to {}", path.display());
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let is_shown = self
            .shared
            .iter()
            .any(|known| path.starts_with(&known.inside));
        if is_shown || is_visible(&real) && is_visible(path) {
            return Ok(());
        }
        let may_be = |path: &Path| may_be_lent(path, &grants.home, &self.project);
        let is_fit = real.starts_with(&grants.home) && may_be(&real) && may_be(path);
        if !is_fit {
            self.notes.push(format!(
                "{what}, which is not visible in sandboxes; add it to `read_only` under [sandbox]."
            ));
            return Ok(());
        }
        self.notes
            .push(format!("{what}, which is shared read-only."));
        let shown = path
            .strip_prefix(&grants.home)
            .unwrap_or(path)
            .display()
            .to_string();
        let covered = credentials.within(&real, &shown, Depth::ToolChains)?;
        self.shared.push(SharedLocation {
            host: real,
            inside: path.to_path_buf(),
            covered,
            writes: Writes::Refused,
        });
        Ok(())
    }
}

/// Returns where a project's tools leave output that may be kept between Kapi's own runs.
pub(crate) fn reusable(repository: &Repository) -> Result<Vec<PathBuf>, Failure> {
    let table = ecosystems::table()?;
    let tracked = TrackedFiles::of(repository)?;
    Ok(ProjectEcosystems::of(table, &tracked).reusable(table, &tracked))
}

/// Returns the installation that a directory of `PATH` belongs to.
fn installation(entry: &Path) -> Option<PathBuf> {
    let root = entry
        .parent()
        .filter(|_| entry.ends_with("bin") && entry.is_dir())?;
    let is_one = INSTALLATION_MARKS
        .iter()
        .any(|mark| root.join(mark).exists());
    (is_one && !is_visible(root)).then(|| root.to_path_buf())
}

/// Returns the failure for git.
fn git_failed(error: &dyn std::error::Error) -> Failure {
    failure::plain(error)
}
