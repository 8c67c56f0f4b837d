//! What must be visible so that a program of the host runs inside: its file or installation, and the
//! interpreters its first line asks for.
//!
//! Only reads the host. Does not know which toolchains a task needs; that is `toolchain`.

mod script;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use kapi_sys::process::find_in_path;
use script::{Interpreter, interpreter};

use crate::error::SandboxError;
use crate::spec::{Mount, MountAccess};
use crate::toolchain::{TOOLCHAINS, same_location};

/// Directories that every sandbox shows anyway.
const ALWAYS_VISIBLE: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
];
/// Directory names under which package managers keep everything a package needs.
const PACKAGE_STORES: &[&str] = &["node_modules", ".pnpm"];
/// Names beside `bin` that show an installation, and not just a place for programs.
const INSTALLATION_MARKS: &[&str] = &["lib", "lib64", "libexec", "include", "pyvenv.cfg"];
/// What programs of Homebrew need of its prefix; its settings and databases are not shown.
const HOMEBREW_PARTS: &[&str] = &["Cellar", "bin", "lib", "opt", "sbin", "share"];
/// How many interpreters of interpreters are followed.
const INTERPRETERS_MAX: usize = 4;
/// How many entries of a directory are looked at for shared objects.
const ENTRIES_MAX: usize = 2_000;

/// What a program needs inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedProgram {
    /// The path to execute inside.
    pub program: PathBuf,
    /// What to mount, read-only; empty for a program of the system.
    pub mounts: Vec<Mount>,
    /// Directories to put at the front of `PATH` inside, so that the interpreters are found.
    pub path: Vec<PathBuf>,
}

/// Finds out what must be mounted so that a program runs inside.
///
/// A bare name is looked up in `path_var`. The rules, first match: visible anyway, nothing; in a
/// `node_modules`, the outermost one; in Homebrew, its programs and libraries; in an installation
/// (`bin` beside `lib`), the installation; in a known toolchain of the home, that; beside shared
/// objects, the directory; else the one file. A directory that is the home, or holds it, is never
/// mounted. An interpreter that is looked up by name is first looked for beside the program.
pub fn expose(
    program: &Path,
    path_var: &OsStr,
    home: &Path,
) -> Result<ExposedProgram, SandboxError> {
    let found = locate(program, path_var)?;
    let mut exposure = Exposure {
        home,
        path_var,
        mounts: Vec::new(),
        path: BTreeSet::new(),
    };
    let program = exposure.add(&found)?;
    exposure.follow_interpreters(&found)?;
    Ok(ExposedProgram {
        program,
        mounts: exposure.mounts,
        path: exposure.path.into_iter().collect(),
    })
}

/// An exposure in the making.
struct Exposure<'a> {
    home: &'a Path,
    path_var: &'a OsStr,
    mounts: Vec<Mount>,
    path: BTreeSet<PathBuf>,
}

impl Exposure<'_> {
    /// Makes one file usable and returns the path to use it by.
    fn add(&mut self, found: &Path) -> Result<PathBuf, SandboxError> {
        let real = real_path(found)?;
        // A virtual environment is recognised by where its interpreter was called, not by what it leads to.
        let called = installation(found, self.home).filter(|root| root.join("pyvenv.cfg").exists());
        if let Some(root) = called {
            self.mount(same_location(root));
            self.add_real(&real);
            return Ok(found.to_path_buf());
        }
        if is_visible(found) {
            self.add_real(&real);
            let is_reached = is_visible(&real) || leads_straight(found, &real);
            return Ok(if is_reached {
                found.to_path_buf()
            } else {
                real
            });
        }
        if real.file_name() == found.file_name() || store(&real).is_some() {
            self.add_real(&real);
            return Ok(real);
        }
        // Programs that act by the name they are called by keep that name.
        if let Some(root) = TOOLCHAINS
            .iter()
            .map(|name| self.home.join(name))
            .find(|root| found.starts_with(root))
        {
            self.mount(same_location(root));
            self.add_real(&real);
            return Ok(if leads_straight(found, &real) {
                found.to_path_buf()
            } else {
                real
            });
        }
        if is_visible(&real) || self.location(&real) != real {
            self.add_real(&real);
            return Ok(real);
        }
        self.mount(Mount {
            host: real,
            inside: found.to_path_buf(),
            access: MountAccess::ReadOnly,
        });
        Ok(found.to_path_buf())
    }

    /// Returns what to mount for a file: the file itself or what it belongs to.
    fn location(&self, real: &Path) -> PathBuf {
        store(real)
            .or_else(|| installation(real, self.home))
            .or_else(|| managed(real, self.home))
            .or_else(|| bundle(real, self.home))
            .unwrap_or_else(|| real.to_path_buf())
    }

    fn add_real(&mut self, real: &Path) {
        if is_visible(real) {
            return;
        }
        if let Some(prefix) = homebrew(real) {
            let parts = HOMEBREW_PARTS.iter().map(|part| prefix.join(part));
            for part in parts.filter(|part| part.is_dir()) {
                self.mount(same_location(part));
            }
            return;
        }
        self.mount(same_location(self.location(real)));
        if let Some(packages) = pnpm_packages(real) {
            self.mount(same_location(packages));
        }
    }

    /// Adds a mount unless a wider one shows it already; a wider one replaces what it shows.
    fn mount(&mut self, mount: Mount) {
        if self
            .mounts
            .iter()
            .any(|known| mount.inside.starts_with(&known.inside))
        {
            return;
        }
        self.mounts.retain(|known| {
            !(known.inside.starts_with(&mount.inside) && known.host.starts_with(&mount.host))
        });
        self.mounts.push(mount);
    }

    fn follow_interpreters(&mut self, program: &Path) -> Result<(), SandboxError> {
        let mut script = program.to_path_buf();
        let beside = program.parent().unwrap_or(Path::new("")).as_os_str();
        for _ in 0..INTERPRETERS_MAX {
            let Some(wanted) = interpreter(&script)? else {
                return Ok(());
            };
            let found = match &wanted {
                Interpreter::At(path) => locate(path, self.path_var).ok(),
                // What a program was installed with is beside it, and may not be on PATH.
                Interpreter::Named(name) => {
                    find_in_path(name, beside).or_else(|| find_in_path(name, self.path_var))
                }
            };
            let found = found.ok_or_else(|| SandboxError::NoInterpreter {
                program: script.clone(),
                interpreter: wanted.to_string(),
            })?;
            let usable = self.add(&found)?;
            match wanted {
                Interpreter::At(_) => {}
                Interpreter::Named(_) => self.reach(&found, &usable),
            }
            script = found;
        }
        Ok(())
    }

    /// Makes an interpreter that is looked up by name found under that name.
    fn reach(&mut self, found: &Path, usable: &Path) {
        let named = if usable.file_name() == found.file_name() {
            usable
        } else {
            found
        };
        if named == found && usable != found && !is_visible(found) {
            let host = found.canonicalize().unwrap_or_else(|_| found.to_path_buf());
            self.mount(Mount {
                host,
                inside: found.to_path_buf(),
                access: MountAccess::ReadOnly,
            });
        }
        if let Some(directory) = named.parent()
            && !ALWAYS_VISIBLE
                .iter()
                .any(|root| directory.starts_with(root) && directory.ends_with("bin"))
        {
            self.path.insert(directory.to_path_buf());
        }
    }
}

fn locate(program: &Path, path_var: &OsStr) -> Result<PathBuf, SandboxError> {
    let bare = program.components().count() == 1 && !program.is_absolute();
    let found = if bare {
        find_in_path(program.as_os_str(), path_var)
    } else {
        Some(program.to_path_buf())
    };
    found
        .filter(|path| path.is_absolute() && path.is_file())
        .ok_or_else(|| SandboxError::NoProgram {
            program: program.to_path_buf(),
        })
}

fn real_path(path: &Path) -> Result<PathBuf, SandboxError> {
    path.canonicalize()
        .map_err(|source| SandboxError::ReadProgram {
            path: path.to_path_buf(),
            source,
        })
}

/// Tells whether a link names its end itself, so that no other link is needed inside.
fn leads_straight(link: &Path, real: &Path) -> bool {
    let target = fs::read_link(link)
        .ok()
        .zip(link.parent())
        .map(|(target, parent)| parent.join(target));
    target.is_some_and(|target| target == real)
}

fn is_visible(path: &Path) -> bool {
    ALWAYS_VISIBLE.iter().any(|root| path.starts_with(root))
}

/// Tells whether a directory may be mounted whole: not the home nor anything that holds it.
fn is_narrow(directory: &Path, home: &Path) -> bool {
    let wide = [
        home.to_path_buf(),
        home.join(".local"),
        home.join(".config"),
        home.join(".cache"),
    ];
    directory.components().count() > 2
        && !wide.iter().any(|location| location.starts_with(directory))
}

/// Returns the outermost package store a path lies in.
fn store(path: &Path) -> Option<PathBuf> {
    let mut outermost = PathBuf::new();
    for component in path.components() {
        outermost.push(component);
        if let Component::Normal(name) = component
            && PACKAGE_STORES.iter().any(|store| name == *store)
        {
            return Some(outermost);
        }
    }
    None
}

/// Returns the prefix of the Homebrew that a path lies in: its programs need libraries of others.
fn homebrew(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors().skip(1);
    let found = above.find(|prefix| prefix.join("Cellar").is_dir() && prefix.join("opt").is_dir());
    found.map(Path::to_path_buf)
}

/// Returns the packages that a script of pnpm in its home leads to.
fn pnpm_packages(path: &Path) -> Option<PathBuf> {
    let directory = path.parent()?;
    let homes = [Some(directory), directory.parent()];
    let found = homes.into_iter().flatten().map(|home| home.join("global"));
    let has_packages = |global: &PathBuf| {
        let versions = fs::read_dir(global).into_iter().flatten().take(ENTRIES_MAX);
        let mut versions = versions.flatten().map(|entry| entry.path());
        versions.any(|version| version.join("node_modules").is_dir())
    };
    found.into_iter().find(has_packages)
}

/// Returns the installation a program in a `bin` belongs to.
fn installation(path: &Path, home: &Path) -> Option<PathBuf> {
    let bin = path.parent().filter(|parent| parent.ends_with("bin"))?;
    let root = bin
        .parent()
        .filter(|root| is_narrow(root, home) && !is_visible(root))?;
    INSTALLATION_MARKS
        .iter()
        .any(|mark| root.join(mark).exists())
        .then(|| root.to_path_buf())
}

/// Returns the known toolchain directory of the home that a path lies in.
fn managed(path: &Path, home: &Path) -> Option<PathBuf> {
    TOOLCHAINS
        .iter()
        .map(|name| home.join(name))
        .find(|root| !root.ends_with("bin") && path.starts_with(root))
}

/// Returns the directory of a program that keeps its shared objects beside it.
fn bundle(path: &Path, home: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|parent| is_narrow(parent, home))?;
    let entries = fs::read_dir(directory).ok()?.take(ENTRIES_MAX).flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .any(|name| name.ends_with(".so") || name.contains(".so."))
        .then(|| directory.to_path_buf())
}
