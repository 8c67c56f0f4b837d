//! Every path of a project's state directory and of the person's own.
//!
//! Pure: names only, nothing is created here.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::state_directory::STATE_DIRECTORY;

use crate::hash::sha256_hex;

/// The most bytes of a directory's name that a project key repeats.
const KEY_NAME_BYTES_MAX: usize = 40;
/// Hexadecimal digits of the path's hash in a project key.
const KEY_HASH_DIGITS: usize = 12;

/// The paths inside one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLayout {
    root: PathBuf,
}

impl ProjectLayout {
    /// Names the paths of the project at `root`.
    #[must_use]
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the project's directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the state directory.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.root.join(STATE_DIRECTORY)
    }

    /// Returns the file that makes git ignore the state directory.
    #[must_use]
    pub fn gitignore(&self) -> PathBuf {
        self.state_dir().join(".gitignore")
    }

    /// Returns the project's configuration.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.state_dir().join("config.toml")
    }

    /// Returns what the last audits found.
    #[must_use]
    pub fn damage(&self) -> PathBuf {
        self.state_dir().join("damage.json")
    }

    /// Returns the inventory.
    #[must_use]
    pub fn inventory(&self) -> PathBuf {
        self.state_dir().join("inventory.json")
    }

    /// Returns the lock held while the inventory is changed.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.state_dir().join("lock")
    }

    /// Returns the directory of all goals.
    #[must_use]
    pub fn goals_dir(&self) -> PathBuf {
        self.state_dir().join("goals")
    }

    /// Returns the directory of the kernel: its tasks and what is known of its loops.
    #[must_use]
    pub fn kernel_dir(&self) -> PathBuf {
        self.state_dir().join("kernel")
    }

    /// Returns the directory of all workflows, which hold one directory for each mode.
    #[must_use]
    pub fn workflows_dir(&self) -> PathBuf {
        self.state_dir().join("workflows")
    }

    /// Returns the paths of one goal.
    #[must_use]
    pub fn goal(&self, goal: &GoalId) -> GoalLayout {
        GoalLayout {
            dir: self.goals_dir().join(goal.to_string()),
        }
    }

    /// Returns the directory of all workflows of a mode.
    #[must_use]
    pub fn mode_dir(&self, mode: Mode) -> PathBuf {
        self.workflows_dir().join(mode.as_str())
    }

    /// Returns the paths of one workflow.
    #[must_use]
    pub fn workflow(&self, mode: Mode, workflow: &GoalId) -> WorkflowLayout {
        WorkflowLayout {
            dir: self.mode_dir(mode).join(workflow.to_string()),
        }
    }

    /// Returns the directory of one agent process or verification.
    #[must_use]
    pub fn run(&self, run: &str) -> PathBuf {
        self.state_dir().join("runs").join(run)
    }
}

/// The paths of one goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalLayout {
    dir: PathBuf,
}

impl GoalLayout {
    /// Returns the goal's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the log.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.dir.join("events.jsonl")
    }

    /// Returns the fold.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.dir.join("state.json")
    }

    /// Returns the public view.
    #[must_use]
    pub fn snapshot(&self) -> PathBuf {
        self.dir.join("snapshot.json")
    }

    /// Returns the contract for people to read.
    #[must_use]
    pub fn contract(&self) -> PathBuf {
        self.dir.join("contract.yaml")
    }

    /// Returns the agent's task list for people to read.
    #[must_use]
    pub fn tasks(&self) -> PathBuf {
        self.dir.join("tasks.yaml")
    }

    /// Returns the account of a goal that is done.
    #[must_use]
    pub fn distilled(&self) -> PathBuf {
        self.dir.join("distilled.md")
    }

    /// Returns the record of who won the race that this goal began.
    #[must_use]
    pub fn race(&self) -> PathBuf {
        self.dir.join("race.json")
    }

    /// Returns the lock held over load, decide and append.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Returns the lock held by the process that drives the goal.
    #[must_use]
    pub fn drive_lock(&self) -> PathBuf {
        self.dir.join("drive.lock")
    }

    /// Returns where goals from before keep their copy of the hidden checks; see
    /// [`HomeLayout::hidden`].
    #[must_use]
    pub fn hidden(&self) -> PathBuf {
        self.dir.join("hidden")
    }
}

/// The paths of one workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowLayout {
    dir: PathBuf,
}

impl WorkflowLayout {
    /// Returns the workflow's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the log.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.dir.join("events.jsonl")
    }

    /// Returns the fold.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.dir.join("state.json")
    }

    /// Returns the public view.
    #[must_use]
    pub fn snapshot(&self) -> PathBuf {
        self.dir.join("snapshot.json")
    }

    /// Returns an artifact, `spec.md`.
    #[must_use]
    pub fn document(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the lock held over load, decide and append.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Returns the lock held by the process that drives the workflow.
    #[must_use]
    pub fn drive_lock(&self) -> PathBuf {
        self.dir.join("drive.lock")
    }
}

/// The paths below a person's own state directory, `~/.ilchul`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeLayout {
    state_dir: PathBuf,
}

impl HomeLayout {
    /// Names the paths below a home directory.
    #[must_use]
    pub fn new(home: &Path) -> Self {
        Self {
            state_dir: home.join(STATE_DIRECTORY),
        }
    }

    /// Returns the state directory.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// Returns the worktree of a goal.
    #[must_use]
    pub fn worktree(&self, project_key: &str, goal: &GoalId) -> PathBuf {
        self.state_dir
            .join("worktrees")
            .join(project_key)
            .join(goal.to_string())
    }

    /// Returns the directory for everything else a goal's sandboxes keep.
    #[must_use]
    pub fn sandbox(&self, project_key: &str, goal: &GoalId) -> PathBuf {
        self.state_dir
            .join("sandboxes")
            .join(project_key)
            .join(goal.to_string())
    }

    /// Returns where the index is that the person's own checkout of a project is committed with.
    #[must_use]
    pub fn checkout_index(&self, project_key: &str) -> PathBuf {
        self.state_dir
            .join("sandboxes")
            .join(project_key)
            .join(".checkout-index")
    }

    /// Returns the directory of the hidden checks of all goals of a project.
    #[must_use]
    pub fn hidden_dir(&self, project_key: &str) -> PathBuf {
        self.state_dir.join("hidden").join(project_key)
    }

    /// Returns the copy of a goal's hidden checks: out of its project, where agents work.
    #[must_use]
    pub fn hidden(&self, project_key: &str, goal: &GoalId) -> PathBuf {
        self.hidden_dir(project_key).join(goal.to_string())
    }

    /// Returns the directory of the objects that sandboxes are lent.
    #[must_use]
    pub fn stores_dir(&self) -> PathBuf {
        self.state_dir.join("objects")
    }

    /// Returns the directory of status files for outside tools.
    #[must_use]
    pub fn status_dir(&self) -> PathBuf {
        self.state_dir.join("status")
    }
}

/// Returns the name of a project below the person's state directory: its directory's name for
/// people, and a hash of its real path so that two of one name stay apart.
#[must_use]
pub fn project_key(real_path: &Path) -> String {
    let name = real_path.file_name().unwrap_or_default().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .take(KEY_NAME_BYTES_MAX)
        .collect();
    let plain = plain.trim_start_matches(['.', '-']);
    let hash = sha256_hex(real_path.as_os_str().as_bytes());
    let digits: String = hash.chars().take(KEY_HASH_DIGITS).collect();
    let plain = if plain.is_empty() { "project" } else { plain };
    format!("{plain}-{digits}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::project_key;

    #[test]
    fn projects_of_one_name_have_different_keys() {
        let key = |path| project_key(Path::new(path));
        assert_eq!(key("/a/shop"), key("/a/shop"));
        assert_ne!(key("/a/shop"), key("/b/shop"));
        assert!(key("/a/shop").starts_with("shop-"));
    }

    #[test]
    fn keys_are_plain_file_names() {
        for path in ["/", "/a/..hidden", "/a/mit Leer\u{7}zeichen/ü", "/a/---"] {
            let key = project_key(Path::new(path));
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            assert!(
                key.chars().all(is_plain) && !key.starts_with(['.', '-']),
                "{key}"
            );
        }
    }
}
