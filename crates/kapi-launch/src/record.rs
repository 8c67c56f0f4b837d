//! What is known of a sandbox between launches: `sandbox.json` in its directory.
//!
//! Follows from the sandbox's log, and is replaced in one durable step after it. Written by the
//! process that holds the sandbox; read by all. What it says of being under way is only true while
//! somebody holds the sandbox.

use std::io;
use std::path::{Path, PathBuf};

use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_run::failure;
use kapi_status::file::{ErrorClass, SandboxMode};
use kapi_sys::disk::{self, Disk};
use kapi_sys::real_disk::RealDisk;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use super::error::{LaunchError, LaunchErrorKind};
use super::paths::SandboxPaths;
use super::plan::Push;

/// The version of the shape.
pub const VERSION: u32 = 1;
/// The largest record that is read.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// One sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxRecord {
    /// The shape's version.
    pub version: u32,
    /// Its id.
    pub id: String,
    /// The project's resolved path.
    pub project: PathBuf,
    /// The mode.
    pub mode: SandboxMode,
    /// How the workspace is made.
    pub made: WorkspaceKind,
    /// The isolation.
    pub level: SandboxLevel,
    /// What could be reached at the last launch.
    pub network: NetworkMode,
    /// The agent of the last launch.
    pub agent: String,
    /// The branch, if the work goes to one.
    pub branch: Option<BranchRecord>,
    /// The frozen base that the layer lies over; none where it lies over the project itself.
    #[serde(default)]
    pub base: Option<PathBuf>,
    /// The commit that was checked out in the project when the layer was begun.
    pub below: Option<String>,
    /// The first of the ten ports that are its own.
    pub port_base: u16,
    /// How often it was launched.
    pub launches: u32,
    /// Where the last launch stands.
    pub state: LaunchState,
    /// Where the work in the workspace is.
    pub work: WorkState,
    /// When it was first launched, in milliseconds since the epoch.
    pub created_at_ms: i64,
    /// When this was written.
    pub updated_at_ms: i64,
    /// How the last launch ended.
    pub exit_code: Option<i32>,
    /// Why it failed.
    pub error: Option<String>,
    /// Whose failure it was.
    #[serde(default)]
    pub error_class: Option<ErrorClass>,
    /// What to do about it.
    #[serde(default)]
    pub advice: Option<String>,
    /// The isolation the last launch really had.
    pub grade: Option<String>,
    /// How many paths differed from the start when the last launch ended.
    pub n_changed: usize,
}

/// How a workspace is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceKind {
    /// A copy-on-write layer over the project's own files.
    Layer,
    /// A checkout of its own.
    Checkout,
}

/// Where a launch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchState {
    /// It is under way; if nobody holds the sandbox, it was killed.
    Running,
    /// It came to its end.
    Finished,
}

/// Where the work of a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkState {
    /// Only in the workspace.
    Pending,
    /// All of it is in the branch, or there is none.
    Committed,
}

/// The branch of a sandbox.
#[expect(
    clippy::manual_non_exhaustive,
    reason = "its field without a value is one that earlier versions wrote"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchRecord {
    /// Its name here.
    pub name: String,
    /// The remote.
    pub remote: String,
    /// Its name there.
    pub remote_name: String,
    /// Whether the last launch was to push it.
    pub push: Push,
    /// Below which refs of Kapi's its commits are named.
    pub refs: String,
    /// The commit that the workspace began at.
    pub start: String,
    /// Whether the commits that the agent made by itself are kept on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_commits: bool,
    /// What is being merged into it, if something is.
    #[serde(default)]
    pub merging: Option<MergeRecord>,
    /// What the branch was at here when it was begun; none when it did not exist.
    pub local: Option<String>,
    /// The branch that Kapi made for the workspace because the named one existed.
    pub stand_in: Option<String>,
    /// What earlier versions wrote: always empty where a record is still read.
    #[serde(
        default,
        rename = "masks",
        skip_serializing,
        deserialize_with = "ignored"
    )]
    pub(crate) _masks: (),
    /// The last commit of ours on it.
    pub commit: Option<String>,
    /// The branch that has the commit, where the named one moved while the agent worked.
    #[serde(default)]
    pub landed: Option<String>,
    /// The commit the remote was seen to have.
    pub pushed: Option<String>,
    /// The page for a pull request, if the remote named one.
    pub pr_url: Option<String>,
}

/// A merge that a launch is to resolve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeRecord {
    /// The revision, as it was named.
    pub revision: String,
    /// Where the branch was.
    pub ours: String,
    /// What is merged into it.
    pub theirs: String,
    /// The paths whose lines conflict.
    pub marked: Vec<PathBuf>,
    /// The paths that conflict otherwise.
    pub others: Vec<PathBuf>,
}

impl BranchRecord {
    /// Returns the branch that has the work.
    #[must_use]
    pub fn holder(&self) -> &str {
        self.landed.as_deref().unwrap_or(&self.name)
    }
}

impl SandboxRecord {
    /// Reads the record of a sandbox; none if there is none.
    ///
    /// # Errors
    /// When it cannot be read or is of another version; it is never replaced then.
    pub fn load(location: &SandboxPaths) -> Result<Option<Self>, LaunchError> {
        Self::load_from(&RealDisk, location)
    }

    /// Does the same on a disk.
    pub(crate) fn load_from(
        disk: &dyn Disk,
        location: &SandboxPaths,
    ) -> Result<Option<Self>, LaunchError> {
        let path = location.record();
        let Some(bytes) = read(disk, &path)? else {
            return Ok(None);
        };
        Self::parse(&bytes).map(Some).map_err(|why| {
            LaunchError::new(
                LaunchErrorKind::Failed,
                format!("read {}: {why}", path.display()),
                "check the files next to it, and move the directory away if you need nothing in it.",
            )
        })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.version != VERSION {
            let version = record.version;
            return Err(format!(
                "version {version} is not supported by this program"
            ));
        }
        let is_over_project = record.made == WorkspaceKind::Layer && record.base.is_none();
        if record.branch.is_some() && is_over_project {
            let why = "an earlier version of Kapi made it, with a branch over your checkout";
            return Err(why.to_owned());
        }
        Ok(record)
    }

    /// Replaces the record; only the log does, after it.
    pub(crate) fn save(&self, disk: &dyn Disk, location: &SandboxPaths) -> Result<(), LaunchError> {
        let path = location.record();
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| {
            let message = format!("write {}: {error}", path.display());
            LaunchError::new(LaunchErrorKind::Failed, message, "use UTF-8 paths.")
        })?;
        bytes.push(b'\n');
        disk::replace_durably(disk, &path, &bytes).map_err(|error| LaunchError::failed(&error))
    }

    /// Returns what a person calls the state, given whether somebody holds the sandbox.
    #[must_use]
    pub fn state_word(&self, is_held: bool) -> &'static str {
        match (self.state, is_held) {
            (_, true) => "running",
            (LaunchState::Running, false) => "stopped",
            (LaunchState::Finished, false) => match self.exit_code {
                Some(0) => "finished",
                Some(_) | None => "failed",
            },
        }
    }
}

/// Returns the error that there is no such sandbox.
pub(crate) fn missing(location: &SandboxPaths) -> LaunchError {
    LaunchError::new(
        LaunchErrorKind::NotFound,
        format!("there is no sandbox {}", location.id().as_str()),
        "`kapi sandbox list` lists the sandboxes.",
    )
}

fn ignored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(deserializer).map(drop)
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>, LaunchError> {
    let failed = |error| LaunchError::failed(&error);
    if disk.len(path).map_err(failed)?.unwrap_or(0) > RECORD_BYTES_MAX {
        let error = io::Error::from(io::ErrorKind::FileTooLarge);
        return Err(failure::file("read", path, &error).into());
    }
    disk.read(path, 0).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::SandboxRecord;

    const SANDBOX: &str = r#"{"version":1,"id":"7","project":"/p","mode":"overlay","made":"layer","level":"native","network":"filtered","agent":"claude","branch":{"name":"b","remote":"origin","remote_name":"b","push":"no","refs":"r","start":"c","local":null,"stand_in":null,"masks":[],"commit":null,"pushed":null,"pr_url":null},"base":"/b","below":null,"port_base":20000,"launches":1,"state":"running","work":"pending","created_at_ms":1,"updated_at_ms":2,"exit_code":null,"error":null,"error_class":null,"advice":null,"grade":null,"n_changed":0}"#;

    #[test]
    fn a_branch_over_the_checkout_is_of_an_earlier_version() {
        let read = |text: &str| SandboxRecord::parse(text.as_bytes());
        let record = read(SANDBOX).unwrap();
        let written = serde_json::to_string(&record).unwrap();
        assert!(!written.contains("masks"), "{written}");
        assert_eq!(read(&written), Ok(record));
        let earlier = SANDBOX.replace(r#""base":"/b","#, "");
        let earlier = earlier.replace(r#""masks":[]"#, r#""masks":["notes"]"#);
        let why = "an earlier version of Kapi made it, with a branch over your checkout";
        assert_eq!(read(&earlier), Err(why.to_owned()));
    }
}
