//! Where a sandbox's things are, and who holds it.
//!
//! One directory for each sandbox, `<state>/sandboxes/<project key>/<id>`, only its owner's. Knows
//! nothing of what the files in it say.

use std::fs::{self};
use std::io;
use std::path::{Path, PathBuf};

use kapi_run::failure;
use kapi_run::private_dir::make_private;
use kapi_sys::lock::{Lock, LockError};

use super::error::{LaunchError, LaunchErrorKind};

/// The longest id.
const ID_BYTES_MAX: usize = 64;
/// The record's file name, by which a sandbox's directory is known.
const RECORD: &str = "sandbox.json";
/// How long a reader waits for those before it, in milliseconds.
const READERS_WAIT_MS: u64 = 10_000;

/// The name of a sandbox within its project: letters, digits, `_` and `-`, at most 64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SandboxId(String);

impl SandboxId {
    /// Reads an id.
    ///
    /// # Errors
    /// When it is not one: ids become file names, so nothing else is accepted.
    pub fn parse(text: &str) -> Result<Self, LaunchError> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if !text.is_empty() && text.len() <= ID_BYTES_MAX && text.bytes().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(LaunchError::new(
            LaunchErrorKind::Usage,
            format!("{text:?} is not an id"),
            "use 1 to 64 letters, digits, `-` and `_`.",
        ))
    }

    /// Returns it as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// All sandboxes of a person.
#[derive(Debug, Clone)]
pub struct Sandboxes {
    /// The person's state directory, `~/.ilchul`.
    pub state_dir: PathBuf,
}

/// A sandbox that nobody uses while somebody reads it; dropping it ends that.
#[must_use = "the sandbox may be used as soon as it is dropped"]
pub(crate) struct SandboxReading {
    _first: Lock,
    _shared: Lock,
}

/// The paths of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SandboxPaths {
    state_dir: PathBuf,
    project_key: String,
    id: SandboxId,
}

impl Sandboxes {
    /// Returns the paths of a sandbox, there or not.
    #[must_use]
    pub fn location(&self, project_key: &str, id: &SandboxId) -> SandboxPaths {
        SandboxPaths {
            state_dir: self.state_dir.clone(),
            project_key: project_key.to_owned(),
            id: id.clone(),
        }
    }

    /// Returns every sandbox that has a record, sorted; directories of goals are none.
    ///
    /// # Errors
    /// When a directory cannot be listed.
    pub fn all(&self) -> Result<Vec<SandboxPaths>, LaunchError> {
        let mut found = Vec::new();
        for key in names(&self.root())? {
            let ids = names(&self.root().join(&key))?.into_iter();
            let ids = ids.filter_map(|name| SandboxId::parse(&name).ok());
            let locations = ids.map(|id| self.location(&key, &id));
            found.extend(locations.filter(|location| location.record().is_file()));
        }
        found.sort();
        Ok(found)
    }

    /// Returns the directory of the status files.
    #[must_use]
    pub fn status_dir(&self) -> PathBuf {
        self.state_dir.join("status")
    }

    /// Returns the directory of all sandboxes.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.state_dir.join("sandboxes")
    }
}

impl SandboxPaths {
    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &SandboxId {
        &self.id
    }

    /// Returns the key of its project.
    #[must_use]
    pub fn project_key(&self) -> &str {
        &self.project_key
    }

    /// Returns all sandboxes it is one of.
    #[must_use]
    pub fn sandboxes(&self) -> Sandboxes {
        Sandboxes {
            state_dir: self.state_dir.clone(),
        }
    }

    /// Returns the person's state directory.
    pub(crate) fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// Returns its directory.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        let root = self.state_dir.join("sandboxes");
        root.join(&self.project_key).join(self.id.as_str())
    }

    /// Returns the record's file.
    #[must_use]
    pub fn record(&self) -> PathBuf {
        self.dir().join(RECORD)
    }

    /// Returns the directory of the copy-on-write layer.
    #[must_use]
    pub fn layer(&self) -> PathBuf {
        self.dir().join("layer")
    }

    /// Returns the worktree, where there is one.
    #[must_use]
    pub fn worktree(&self) -> PathBuf {
        let root = self.state_dir.join("worktrees").join(&self.project_key);
        // Worktrees of goals are there, too: their names begin with digits and a dash.
        root.join(format!("launch-{}", self.id.as_str()))
    }

    /// Returns the directory with one directory for each launch.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.dir().join("runs")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir().join("home")
    }

    pub(crate) fn git_view(&self) -> PathBuf {
        self.dir().join("git")
    }

    pub(crate) fn blank(&self) -> PathBuf {
        self.dir().join("blank")
    }

    /// Returns where the stores of reachable objects are, for all sandboxes.
    pub fn stores(&self) -> PathBuf {
        self.state_dir.join("objects")
    }

    /// Makes its directory, only its owner's.
    pub(crate) fn make(&self) -> Result<(), LaunchError> {
        for dir in [self.dir(), self.blank()] {
            make_private(&dir)?;
        }
        Ok(())
    }

    /// Takes it for this process.
    ///
    /// # Errors
    /// When another process has it; the error says who.
    pub fn hold(&self, owner: &str) -> Result<Lock, LaunchError> {
        Lock::acquire(&self.lock(), owner, 0).map_err(|error| self.lock_failed(&error))
    }

    /// Keeps it from being used while `owner` reads it. Readers follow one another, and none of them
    /// is its [`Self::holder`].
    ///
    /// # Errors
    /// When a process has it; the error says who.
    pub(crate) fn hold_to_read(&self, owner: &str) -> Result<SandboxReading, LaunchError> {
        let shared = Lock::share(&self.lock()).map_err(|error| self.lock_failed(&error))?;
        let path = self.dir().join("read.lock");
        let first = Lock::acquire(&path, owner, READERS_WAIT_MS)
            .map_err(|error| self.lock_failed(&error))?;
        Ok(SandboxReading {
            _first: first,
            _shared: shared,
        })
    }

    fn lock_failed(&self, error: &LockError) -> LaunchError {
        match error {
            LockError::Busy { owner, .. } => LaunchError::new(
                LaunchErrorKind::Busy,
                format!("sandbox {} is in use by {owner}", self.id.as_str()),
                "wait until it ends, or give the launch another id.",
            ),
            LockError::Failed { .. } => LaunchError::failed(error),
        }
    }

    /// Returns who has it now.
    ///
    /// # Errors
    /// When the lock cannot be read.
    pub fn holder(&self) -> Result<Option<String>, LaunchError> {
        Lock::holder(&self.lock()).map_err(|error| LaunchError::failed(&error))
    }

    /// Returns where applying its changes to the project is prepared: on the project's own file
    /// system, because only there a rename is one step.
    pub(crate) fn apply_work(&self, project: &Path) -> PathBuf {
        if same_device(&self.state_dir, project) {
            self.state_dir.join("apply").join(&self.project_key)
        } else {
            project.join(".ilchul").join("apply")
        }
    }

    /// Returns the file that notes when the sandbox began.
    pub(crate) fn began(&self, project: &Path) -> PathBuf {
        if same_device(&self.state_dir, project) {
            self.dir().join("began")
        } else {
            let name = format!("began-{}", self.id.as_str());
            project.join(".ilchul").join(name)
        }
    }

    fn lock(&self) -> PathBuf {
        self.dir().join("launch.lock")
    }
}

fn same_device(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // A directory that is not there yet will be on the file system of the nearest one that is.
    let device = |path: &Path| {
        let there = path.ancestors().find_map(|at| fs::metadata(at).ok());
        there.map(|found| found.dev())
    };
    device(one) == device(other)
}

/// Tells whether there is nothing, or a file in the place of a directory.
fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn names(dir: &Path) -> Result<Vec<String>, LaunchError> {
    let listed = match fs::read_dir(dir) {
        Ok(listed) => listed,
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failure::file("list", dir, &error).into()),
    };
    let names = listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.collect())
}

#[cfg(test)]
mod tests {
    use super::SandboxId;

    #[test]
    fn an_id_is_a_plain_name() {
        for good in ["1", "fix_it-2", &"a".repeat(64)] {
            assert!(SandboxId::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a\n",
            "ä",
            "$(x)",
            &"a".repeat(65),
        ] {
            assert!(SandboxId::parse(bad).is_err(), "{bad}");
        }
    }
}
