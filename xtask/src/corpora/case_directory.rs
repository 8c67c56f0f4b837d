//! A machine in a directory, for one case: a home of its own, and a repository with the base project.
//!
//! Knows how to lay it out and to clear it away; what is tried there is the caller's affair.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use super::shell::Shell;

/// The search path of every case, after the home's own programs.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Tool-chains of the developer's home that a person would have in theirs.
const LINKED: &[&str] = &[".rustup", ".cargo/bin"];
const GIT_CONFIG: &str = "[user]\n\tname = Ada\n\temail = ada@example.invalid\n\
                          [init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n";

/// A directory with a home and a repository; removed when it is dropped.
#[derive(Debug)]
pub(super) struct CaseDirectory {
    root: PathBuf,
    keep: bool,
}

impl CaseDirectory {
    /// Makes one, empty, below `location`.
    pub(super) fn new(location: &Path, name: &str, keep: bool) -> anyhow::Result<Self> {
        let root = location.join(name.replace(['/', ' '], "-"));
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("clear {}", root.display()))?;
        }
        let this = Self { root, keep };
        for directory in [this.home(), this.repository()] {
            make(&directory)?;
        }
        write(&this.home().join(".gitconfig"), GIT_CONFIG)?;
        this.link_tool_chains()?;
        Ok(this)
    }

    /// Returns the person's home.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.root.join("app")
    }

    /// Returns the directory that holds both.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns how programs are started in the repository.
    pub(super) fn shell(&self, deadline: Duration) -> Shell {
        let home = self.home();
        let path = format!(
            "{0}/.cargo/bin:{0}/.local/bin:{SYSTEM_PATH}",
            home.display()
        );
        let mut variables = BTreeMap::new();
        for (name, value) in [
            ("HOME", home.as_os_str().to_owned()),
            ("PATH", path.into()),
            ("LANG", "C.UTF-8".into()),
            ("KAPI_SESSION", "corpus".into()),
        ] {
            variables.insert(OsString::from(name), value);
        }
        Shell {
            directory: self.repository(),
            variables,
            deadline,
        }
    }

    /// Writes files below a directory of the case.
    pub(super) fn write_all(
        directory: &Path,
        files: &BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        for (name, text) in files {
            let path = directory.join(name);
            write(&path, text)?;
            if text.starts_with("#!") {
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(&path, mode)
                    .with_context(|| format!("make {} executable", path.display()))?;
            }
        }
        Ok(())
    }

    fn link_tool_chains(&self) -> anyhow::Result<()> {
        let Some(home) = std::env::home_dir() else {
            return Ok(());
        };
        for name in LINKED {
            let (from, to) = (home.join(name), self.home().join(name));
            if !from.is_dir() {
                continue;
            }
            if let Some(parent) = to.parent() {
                make(parent)?;
            }
            symlink(&from, &to).with_context(|| format!("link {}", to.display()))?;
        }
        Ok(())
    }
}

impl Drop for CaseDirectory {
    fn drop(&mut self) {
        if !self.keep {
            // What is left is cleared by the next case of this name.
            drop(fs::remove_dir_all(&self.root));
        }
    }
}

/// Writes a file with its missing directories.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        make(parent)?;
    }
    let writing = || format!("write {}", path.display());
    RealDisk.write(path, text.as_bytes()).with_context(writing)
}

fn make(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))
}
