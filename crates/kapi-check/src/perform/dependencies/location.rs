//! Where caches and tool chains of a person lie: at their usual place, or where a variable says.
//!
//! Only looks. What may never be lent is decided here: the home, what holds it, and places that
//! people keep secrets in.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use kapi_run::host_grants::HostGrants;

use super::credentials::Depth;
use crate::rules::proof::ecosystem::{Location, ProjectEcosystem};

/// Directories of a home that are never lent, nor anything that holds one.
const PRIVATE: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".ilchul",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".mozilla",
    ".claude",
    ".codex",
    ".gemini",
    ".pi",
    ".config/gh",
    ".config/gcloud",
    ".local/share/keyrings",
    "Documents",
    "Desktop",
    "Downloads",
];
/// Directories of a home that hold all kinds of things.
const MIXED: &[&str] = &[
    ".config",
    ".local",
    ".local/share",
    ".local/state",
    ".cache",
    "Library",
];
/// Where every sandbox shows what the host has.
const ALWAYS_VISIBLE: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/nix/store",
];
/// Variables that move what lies below a directory of the home.
const XDG: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// A directory or file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocationOnHost {
    /// Where it is on the host, links followed.
    pub(super) host: PathBuf,
    /// Where programs look for it.
    pub(super) inside: PathBuf,
    /// How deep secrets are looked for in it.
    pub(super) depth: Depth,
}

impl LocationOnHost {
    /// Returns a directory that programs look for where it is.
    pub(super) fn at(path: &Path, depth: Depth) -> Self {
        Self {
            host: path.to_path_buf(),
            inside: path.to_path_buf(),
            depth,
        }
    }
}

/// Everything that was found, and the variables that lead to it.
#[derive(Debug, Default)]
pub(super) struct Locations {
    pub(super) found: BTreeMap<PathBuf, LocationOnHost>,
    pub(super) variables: BTreeMap<OsString, OsString>,
    /// Directories that variables name, outside of the home: programs write beside what is lent.
    pub(super) roots: BTreeSet<PathBuf>,
}

/// A variable's depth does not derive; the two kinds of locations do.
impl Depth {
    const fn of_kind(kind: LocationKind) -> Self {
        match kind {
            LocationKind::Cache => Self::Packages,
            LocationKind::Home => Self::ToolChains,
        }
    }
}

/// What a location is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocationKind {
    Cache,
    Home,
}

impl Locations {
    /// Finds the caches of the ecosystems that concern a project, and the tool chains of all.
    pub(super) fn find<'a>(
        grants: &HostGrants,
        project: &Path,
        all: impl Iterator<Item = (&'a ProjectEcosystem, bool)>,
    ) -> Self {
        let mut locations = Self::default();
        for (ecosystem, concerns) in all {
            let caches = ecosystem.caches.iter().filter(|_| concerns);
            for (location, kind) in caches.map(|cache| (cache, LocationKind::Cache)).chain(
                ecosystem
                    .homes
                    .iter()
                    .map(|home| (home, LocationKind::Home)),
            ) {
                locations.add(grants, project, location, kind);
            }
        }
        locations
    }

    fn add(
        &mut self,
        grants: &HostGrants,
        project: &Path,
        location: &Location,
        kind: LocationKind,
    ) {
        let value = location
            .variable
            .as_deref()
            .and_then(|name| Some((name, grants.env.get(OsStr::new(name))?)));
        let mut locations: Vec<(PathBuf, PathBuf)> = Vec::new();
        if let Some((name, value)) = value {
            let below = location.below.as_deref().unwrap_or_default();
            let all = std::env::split_paths(value).map(|root| (root.join(below), root));
            let is_fit = |path: &Path| path.exists() && may_be_lent(path, &grants.home, project);
            for (path, root) in all.filter(|(path, _)| is_fit(path)) {
                self.variables.insert(name.into(), value.clone());
                let is_beside = !below.is_empty() && !root.starts_with(&grants.home);
                self.roots.extend(Some(root).filter(|_| is_beside));
                locations.push((path.clone(), path));
            }
        }
        if let Some(relative) = &location.home
            && locations.is_empty()
        {
            let usual = grants.home.join(relative);
            locations.push((
                moved(grants, relative).unwrap_or_else(|| usual.clone()),
                usual,
            ));
        }
        if let Some(system) = &location.system {
            locations.push((system.into(), system.into()));
        }
        for (host, inside) in locations {
            let depth = Depth::of_kind(kind);
            self.insert(
                grants,
                project,
                LocationOnHost {
                    host,
                    inside,
                    depth,
                },
            );
        }
    }

    /// Adds a place if it is there, may be lent and is not visible anyway.
    pub(super) fn insert(&mut self, grants: &HostGrants, project: &Path, found: LocationOnHost) {
        let LocationOnHost {
            host,
            inside,
            depth,
        } = found;
        let Ok(real) = host.canonicalize() else {
            return;
        };
        let is_fit = |path: &Path| may_be_lent(path, &grants.home, project);
        if is_visible(&inside) && is_visible(&real) || !is_fit(&real) || !is_fit(&inside) {
            return;
        }
        self.found.entry(inside.clone()).or_insert(LocationOnHost {
            host: real,
            inside,
            depth,
        });
    }

    /// Returns what is lent, a wider place before what lies in it; what a wider one shows anyway is
    /// left out.
    pub(super) fn widest(&self) -> Vec<LocationOnHost> {
        let mut widest: Vec<LocationOnHost> = Vec::new();
        // In the order of paths, a directory stands before what lies in it.
        for found in self.found.values() {
            let is_shown = widest.iter().any(|wider| {
                let below = found.inside.strip_prefix(&wider.inside);
                below.is_ok_and(|below| wider.host.join(below) == found.host)
            });
            if !is_shown {
                widest.push(found.clone());
            }
        }
        widest
    }
}

/// Returns where a variable of XDG moved a path of the home.
fn moved(grants: &HostGrants, relative: &str) -> Option<PathBuf> {
    XDG.iter().find_map(|(variable, usual)| {
        let below = Path::new(relative).strip_prefix(usual).ok()?;
        let value = grants.env.get(OsStr::new(variable))?;
        let at = Path::new(value).join(below);
        (!value.is_empty() && at.exists()).then_some(at)
    })
}

/// Tells whether a sandbox shows a path anyway.
pub(super) fn is_visible(path: &Path) -> bool {
    ALWAYS_VISIBLE.iter().any(|root| path.starts_with(root))
}

/// Tells whether a directory may be lent: it holds neither the home nor the project, nor anything
/// that people keep secrets in, and lies in nothing of that kind.
pub(super) fn may_be_lent(path: &Path, home: &Path, project: &Path) -> bool {
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_text = !path.as_os_str().as_bytes().contains(&b'\n');
    let real_home = home.canonicalize().unwrap_or_else(|_| home.to_path_buf());
    let homes = [home, real_home.as_path()];
    let is_wide = homes
        .iter()
        .any(|home| home.starts_with(path) || MIXED.iter().any(|mixed| home.join(mixed) == path));
    let is_private = homes.iter().any(|home| {
        PRIVATE.iter().any(|private| {
            let private = home.join(private);
            path.starts_with(&private) || private.starts_with(path)
        })
    });
    let is_system = ["/proc", "/sys", "/dev", "/etc", "/run", "/boot"]
        .iter()
        .any(|location| path.starts_with(location));
    is_plain
        && is_text
        && path.is_absolute()
        && path.components().count() > 2
        && !is_wide
        && !is_private
        && !is_system
        && !project.starts_with(path)
        && !path.starts_with(project.join(".ilchul"))
        && !path.starts_with(project.join(".git"))
}
