//! What installs the dependencies that lock files name, and what of it is kept for the next time.
//!
//! A directory for each content of lock files: the directories of the project that were made, and what
//! was written into caches. Nothing here runs a program of the work: that is the prover's business.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::glob::Glob;
use kapi_core::pattern;
use kapi_core::quote::shell_word;
use kapi_git::owned_dir;
use kapi_git::repository::Repository;
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_sys::disk::{Disk as _, replace_derived};
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};
use kapi_sys::real_disk::RealDisk;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::pattern::PathPattern;
use super::{Dependencies, registries};
use crate::rules::proof::ecosystem::EcosystemTable;

/// Says that a kept directory is whole, and which directories of the project are in it.
const RECORD: &str = "prepared.json";
/// What was written into caches.
const LAYERS: &str = "layers";
/// How long one is kept after it was last used.
const KEPT: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Bytes that are read of what copying complains about.
const COMPLAINT_BYTES_MAX: usize = 64 << 10;

/// Variables by which clients of registries are told where and how to ask, passed on where they hold no
/// password.
const CLIENT_VARIABLES: &[&str] = &[
    "BUNDLE_MIRROR__ALL",
    "CARGO_HTTP_CAINFO",
    "CARGO_REGISTRIES_CRATES_IO_INDEX",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GONOSUMDB",
    "GOPROXY",
    "GOSUMDB",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_REGISTRY",
    "PIP_CERT",
    "PIP_INDEX_URL",
    "PUB_HOSTED_URL",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "YARN_NPM_REGISTRY_SERVER",
    "npm_config_registry",
];

/// Installing what one lock file names.
#[derive(Debug, Clone)]
pub(crate) struct InstallStep {
    /// The lock file, below the top.
    pub(crate) lock: PathBuf,
    /// The line that installs, run beside it.
    pub(crate) line: String,
    /// Lines by which the client says which registries it asks.
    registries: Vec<String>,
    /// Where it may install to, below the top.
    directories: Vec<PathBuf>,
    /// Whether it lies where the checks are seldom installed from.
    is_aside: bool,
}

/// What a kept directory holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PreparedRecord {
    /// Directories of the project, by the numbers of their trees.
    directories: Vec<PathBuf>,
}

/// Where the dependencies for one content of lock files are kept.
#[derive(Debug, Clone)]
pub(crate) struct PreparedStore {
    at: PathBuf,
}

impl InstallStep {
    /// Returns what installs the dependencies that these lock files name.
    pub(crate) fn all(table: &EcosystemTable, locks: &[String]) -> Vec<Self> {
        locks
            .iter()
            .filter_map(|lock| Self::of(table, Path::new(lock)))
            .collect()
    }

    fn of(table: &EcosystemTable, lock: &Path) -> Option<Self> {
        let name = lock.file_name()?.to_string_lossy();
        let beside = lock.parent().unwrap_or(Path::new(""));
        let mut aside = table.all.iter().flat_map(|ecosystem| &ecosystem.aside);
        let lies_in = |pattern: &String| {
            let glob = Glob::new(&format!("**/{pattern}"));
            lock.to_str().is_some_and(|path| glob.matches(path))
        };
        let is_aside = aside.any(lies_in);
        table.all.iter().find_map(|ecosystem| {
            let is_meant = |pattern: &str| {
                let pattern = PathPattern::new(pattern);
                pattern.names().any(|one| pattern::is_name(one, &name))
            };
            let prepare = ecosystem.prepare.iter().find(|one| is_meant(&one.lock))?;
            let patterns = ecosystem.dependencies.iter();
            let patterns: Vec<PathPattern> = patterns.map(|text| PathPattern::new(text)).collect();
            let directories = patterns.iter().flat_map(PathPattern::literals);
            Some(Self {
                lock: lock.to_path_buf(),
                line: prepare.run.replace("{lock}", &name),
                registries: prepare.registries.clone(),
                directories: directories.map(|name| beside.join(name)).collect(),
                is_aside,
            })
        })
    }

    /// Tells whether commands may need it. What lies aside is of use only where the person has it
    /// installed, too, or where a command names its directory.
    pub(crate) fn is_needed(&self, persons: &Dependencies, commands: &[String]) -> bool {
        let has_it = || {
            let shown = persons.shown();
            self.directories.iter().any(|one| shown.contains(one))
        };
        let names_it = |command: &String| {
            let top = self.lock.iter().next().unwrap_or_default();
            let mut words = command.split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c));
            words.any(|word| top == word)
        };
        !self.is_aside || has_it() || commands.iter().any(names_it)
    }

    /// Returns the line as it is typed at the project's top.
    pub(crate) fn line_at_top(&self) -> String {
        match self.lock.parent().and_then(Path::to_str) {
            None | Some("") => self.line.clone(),
            Some(beside) => format!("cd {} && {}", shell_word(beside), self.line),
        }
    }

    /// Returns the hosts of the registries that the person's own client asks, as `host:port` or `host`;
    /// `away` is a directory apart from every project.
    pub(crate) fn hosts(&self, grants: &HostGrants, away: &Path) -> BTreeSet<String> {
        registries::hosts(&self.registries, &grants.env, away)
    }
}

/// Returns the variables by which the person's clients ask registries.
pub(crate) fn client_variables(grants: &HostGrants) -> BTreeMap<OsString, OsString> {
    let has_password = |value: &OsString| value.to_string_lossy().contains('@');
    let all = CLIENT_VARIABLES.iter().map(OsString::from);
    let known = all.filter_map(|name| grants.env.get(&name).map(|value| (name, value.clone())));
    known.filter(|(_, value)| !has_password(value)).collect()
}

impl PreparedStore {
    /// Returns where a project's dependencies are kept for these lock files with these contents, in a
    /// directory for those of all projects.
    pub(crate) fn of(all: &Path, project: &Path, installs: &[(InstallStep, Vec<u8>)]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(project.as_os_str().as_encoded_bytes());
        hasher.update([0]);
        for (install, content) in installs {
            for part in [
                install.lock.as_os_str().as_encoded_bytes(),
                install.line.as_bytes(),
                content,
            ] {
                hasher.update(part.len().to_le_bytes());
                hasher.update(part);
            }
        }
        let digits: Vec<String> = hasher
            .finalize()
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            at: all.join(digits.concat()),
        }
    }

    /// Returns the dependencies with what is kept here; nothing where nothing is.
    pub(crate) fn found(
        &self,
        grants: &HostGrants,
        repository: &Repository,
        shared_in: &Dependencies,
    ) -> Result<Option<Dependencies>, Failure> {
        let file = self.at.join(RECORD);
        let Ok(bytes) = fs::read(&file) else {
            return Ok(None);
        };
        let Ok(record) = serde_json::from_slice::<PreparedRecord>(&bytes) else {
            return Ok(None);
        };
        // What was used last is kept longest; that it is used now may be forgotten.
        drop(replace_derived(&RealDisk, &file, &bytes));
        let is_replaced = |relative: &Path| record.directories.iter().any(|own| own == relative);
        let kept = shared_in.directories.iter();
        let kept = kept.filter(|one| !is_replaced(&one.relative));
        let kept = kept.map(|one| (one.relative.clone(), one.host.clone()));
        let own = record.directories.iter().enumerate();
        let own = own.map(|(n, relative)| (relative.clone(), self.tree(n)));
        let mut found =
            Dependencies::find_with(grants, repository, Some(kept.chain(own).collect()))?;
        found.begins_with = Some(self.at.join(LAYERS));
        Ok(Some(found))
    }

    /// Keeps what was installed in a checkout, and what was written into the layers of caches.
    pub(crate) fn keep(
        &self,
        installs: &[(InstallStep, Vec<u8>)],
        checkout: &Path,
        layers: &Path,
    ) -> Result<(), Failure> {
        let making = self.at.with_extension(std::process::id().to_string());
        let failed = |what: &'static str, path: &Path, error: &std::io::Error| {
            failure::file(what, path, error)
        };
        if let Some(all) = self.at.parent() {
            sweep(all);
        }
        owned_dir::wipe(&making).map_err(|error| failure::plain(&error))?;
        fs::create_dir_all(&making).map_err(|error| failed("create", &making, &error))?;
        let mut record = PreparedRecord {
            directories: Vec::new(),
        };
        let directories = installs
            .iter()
            .flat_map(|(install, _)| &install.directories);
        for relative in directories.collect::<BTreeSet<_>>() {
            let from = checkout.join(relative);
            let is_within = record
                .directories
                .iter()
                .any(|own| relative.starts_with(own));
            if is_within || !fs::symlink_metadata(&from).is_ok_and(|found| found.is_dir()) {
                continue;
            }
            let to = making.join(format!("tree-{}", record.directories.len()));
            move_tree(&from, &to)?;
            record.directories.push(relative.clone());
        }
        move_tree(layers, &making.join(LAYERS))?;
        let bytes = serde_json::to_vec(&record).map_err(|error| failure::plain(&error))?;
        let written = RealDisk.write(&making.join(RECORD), &bytes);
        written.map_err(|error| failure::plain(&error))?;
        match fs::rename(&making, &self.at) {
            Ok(()) => Ok(()),
            // Somebody else was faster, with the same.
            Err(_) if self.at.join(RECORD).is_file() => {
                owned_dir::wipe(&making).map_err(|error| failure::plain(&error))
            }
            Err(error) => Err(failed("make", &self.at, &error)),
        }
    }

    fn tree(&self, n: usize) -> PathBuf {
        self.at.join(format!("tree-{n}"))
    }
}

/// Removes what was not used for a while. What cannot be removed now is another time.
fn sweep(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let at = entry.path();
        let used = fs::metadata(at.join(RECORD)).or_else(|_| fs::metadata(&at));
        let used = used.and_then(|found| found.modified());
        let is_old = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > KEPT));
        if is_old {
            drop(owned_dir::wipe(&at));
        }
    }
}

/// Moves a directory, also to another file system, with the marks of its layer.
fn move_tree(from: &Path, to: &Path) -> Result<(), Failure> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    copy_tree(from, to)
}

/// Copies a directory with everything that its file system keeps of it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<(), Failure> {
    let args = ["-a", "--reflink=auto", "--no-target-directory", "--"];
    let mut args: Vec<OsString> = args.iter().map(OsString::from).collect();
    args.extend([from.into(), to.into()]);
    let finished = process::run_quiet(Program {
        path: PathBuf::from("/bin/cp"),
        args,
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: Duration::from_secs(10 * 60),
            idle: None,
            tail_bytes_max: COMPLAINT_BYTES_MAX,
            line_bytes_max: COMPLAINT_BYTES_MAX,
        },
    });
    let finished = finished.map_err(|error| failure::plain(&error))?;
    if finished.end == ProcessEnd::Exited(0) {
        return Ok(());
    }
    Err(Failure {
        message: format!(
            "copy {} to {}: {}",
            from.display(),
            to.display(),
            finished.stderr.text().trim()
        ),
        hint: None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::InstallStep;
    use crate::perform::ecosystems;

    #[test]
    fn a_lock_file_names_what_installs_it_and_where_to() {
        let table = ecosystems::table().unwrap();
        let locks = ["web/package-lock.json", "requirements-dev.txt", "go.sum"];
        let locks = locks.map(str::to_owned);
        let installs = InstallStep::all(table, &locks);
        let lines: Vec<&str> = installs.iter().map(|one| one.line.as_str()).collect();
        let python = "python3 -m venv .venv && .venv/bin/pip install -r requirements-dev.txt";
        assert_eq!(lines, ["npm ci", python, "go mod download"]);
        let directories = &installs[0].directories;
        assert!(directories.contains(&Path::new("web/node_modules").to_path_buf()));
        assert!(InstallStep::all(table, &["README.md".to_owned()]).is_empty());
        assert_eq!(installs[0].line_at_top(), "cd web && npm ci");
        assert_eq!(installs[1].line_at_top(), python);
    }
}
