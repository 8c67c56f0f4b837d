//! The one writer of one run's status file.
//!
//! The host's word (phase, end, identity) and an agent's (tools, steps, notes) come in through
//! different methods: no method that an agent's text can reach sets an exit code, an end, an
//! address or a name. Shared between threads by reference.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kapi_sys::clock::Clock;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use super::StatusError;
use super::ownership::{self, Ownership, StatusSubject, WriteOutcome};
use super::private_file::{self, Durability};
use crate::file::{ErrorClass, SandboxMode, StatusFile, VERSION, timestamp};
use crate::rules::mapping::Mapping;
use crate::rules::phase::{StatusPhase, ToolCategory};
use crate::rules::progress::RunProgress;

/// Bytes of a status file that are read back.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// How long a file may say nothing new before it shows that its run lives.
const HEARTBEAT_MS: i64 = 10_000;

/// Characters of a step's description, so that its numbers are seen, too.
const STEP_CHARS_MAX: usize = 140;

/// Whose status it is; set once by the host.
#[derive(Debug, Clone, Copy)]
pub struct StatusIdentity<'a> {
    /// The run's id.
    pub agent_id: &'a str,
    /// The project's name, mostly its directory's.
    pub project: &'a str,
    /// The canonical path of the project: two projects of one name are told apart by it.
    pub project_root: &'a Path,
    /// The branch the work goes to.
    pub branch: Option<&'a str>,
    /// Where the workspace comes from.
    pub sandbox_mode: SandboxMode,
    /// The worktree on the host.
    pub worktree_path: Option<&'a Path>,
}

/// A run that nobody performs any more.
#[derive(Debug, Clone, Copy)]
pub struct AbandonedRun<'a> {
    /// The run's id.
    pub agent_id: &'a str,
    /// The project's name, as the run's own writer gave it.
    pub project: &'a str,
    /// The canonical path of the project.
    pub project_root: &'a Path,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCompletion {
    /// The exit code of the whole run.
    pub exit_code: i32,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Whose failure it was.
    pub class: Option<ErrorClass>,
    /// What to do about it.
    pub advice: Option<String>,
    /// The pull request, if the remote named one.
    pub pr_url: Option<String>,
}

impl LaunchCompletion {
    fn tell(&self, file: &mut StatusFile) {
        file.exit_code = Some(self.exit_code);
        file.error.clone_from(&self.error);
        file.error_class = self.class;
        file.advice.clone_from(&self.advice);
        file.pr_url.clone_from(&self.pr_url);
        file.message = if self.exit_code == 0 {
            "Complete".to_owned()
        } else {
            format!("Failed with exit code {}", self.exit_code)
        };
    }
}

/// Notes the end of a run whose own writer is gone; what has ended already stays as it is. The caller
/// knows that nobody performs the run.
///
/// # Errors
/// When the file cannot be read or replaced.
pub fn complete_abandoned(
    dir: &Path,
    subject: &AbandonedRun<'_>,
    completion: &LaunchCompletion,
    now_ms: i64,
) -> Result<StatusUpdate, StatusError> {
    let subject = StatusSubject {
        project: subject.project.to_owned(),
        root: subject.project_root.to_path_buf(),
        agent_id: subject.agent_id.to_owned(),
    };
    let Some(ownership) = Ownership::of(dir, &subject)? else {
        return Ok(StatusUpdate::Superseded);
    };
    let read = private_file::read(ownership.path(), FILE_BYTES_MAX)?;
    let file: Option<StatusFile> = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(mut file) = file.filter(|file| file.phase != StatusPhase::Complete) else {
        return Ok(StatusUpdate::TooLate);
    };
    completion.tell(&mut file);
    file.phase = StatusPhase::Complete;
    file.progress = 100;
    // The heartbeat stays: it says when the run was last seen.
    file.updated_at = timestamp(now_ms);
    let bytes = file.to_bytes().map_err(|source| StatusError::Form {
        path: ownership.path().to_path_buf(),
        source,
    })?;
    Ok(match ownership.write(&bytes, Durability::Synced)? {
        WriteOutcome::Written => StatusUpdate::Written,
        WriteOutcome::Superseded => StatusUpdate::Superseded,
    })
}

/// What became of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusUpdate {
    /// The file says it now.
    Written,
    /// It came too late: the agent or the run had ended. The file is as it was.
    TooLate,
    /// A newer run of the same id has the file now. It is that run's.
    Superseded,
}

/// The writer of one run's status file.
pub struct StatusWriter<'a> {
    ownership: Ownership,
    mapping: Mapping,
    clock: &'a dyn Clock,
    state: Mutex<WriterState>,
}

#[derive(Debug)]
struct WriterState {
    file: StatusFile,
    progress: RunProgress,
    written_at_ms: i64,
}

impl<'a> StatusWriter<'a> {
    /// Creates the file in `dir`, at `initializing` and 0 %.
    ///
    /// A file of an earlier run of the same project and id is taken over: its writer, should it
    /// still live, writes no more.
    ///
    /// # Errors
    /// When the directory or the file cannot be written.
    pub fn create(
        dir: &Path,
        identity: &StatusIdentity<'_>,
        mapping: Mapping,
        clock: &'a dyn Clock,
    ) -> Result<Self, StatusError> {
        private_file::make_dir(dir)?;
        let subject = StatusSubject {
            project: identity.project.to_owned(),
            root: identity.project_root.to_path_buf(),
            agent_id: identity.agent_id.to_owned(),
        };
        let now_ms = clock.now_ms();
        let ownership = Ownership::take(dir, &subject, now_ms)?;
        let progress = RunProgress::new();
        let path_text = |path: &Path| path.to_string_lossy().into_owned();
        let file = StatusFile {
            version: VERSION.to_owned(),
            agent_id: identity.agent_id.to_owned(),
            project: identity.project.to_owned(),
            branch: identity.branch.map(ToOwned::to_owned),
            sandbox_mode: identity.sandbox_mode,
            phase: progress.phase(),
            progress: progress.percent(),
            message: "Initializing".to_owned(),
            started_at: timestamp(now_ms),
            updated_at: timestamp(now_ms),
            exit_code: None,
            error: None,
            worktree_path: identity.worktree_path.map(path_text),
            pr_url: None,
            error_class: None,
            advice: None,
            heartbeat_at: timestamp(now_ms),
        };
        let writer = Self {
            ownership,
            mapping,
            clock,
            state: Mutex::new(WriterState {
                file,
                progress,
                written_at_ms: now_ms,
            }),
        };
        writer.write(&mut writer.state(), Durability::Derived)?;
        Ok(writer)
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.ownership.path()
    }

    /// Returns what the file says.
    #[must_use]
    pub fn current(&self) -> StatusFile {
        self.state().file.clone()
    }

    /// Notes where the host says the run stands. `percent` is taken into the phase's range and
    /// never lowers what is shown. For the end there is [`Self::complete`].
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub fn phase(
        &self,
        phase: StatusPhase,
        percent: u8,
        message: &str,
    ) -> Result<StatusUpdate, StatusError> {
        let mut state = self.state();
        if state.progress.is_over() || phase == StatusPhase::Complete {
            return Ok(StatusUpdate::TooLate);
        }
        state.progress.enter(phase, percent);
        message.clone_into(&mut state.file.message);
        self.write(&mut state, Durability::Derived)
    }

    /// Notes a tool call of the agent. `detail` is its command, path or question.
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub fn tool(&self, name: &str, detail: &str) -> Result<StatusUpdate, StatusError> {
        let category = self.mapping.category(name, detail);
        let mut state = self.state();
        if !state.progress.tool(category, self.mapping.range(category)) {
            return Ok(StatusUpdate::TooLate);
        }
        state.file.message = tool_message(category, name, detail);
        self.write(&mut state, Durability::Derived)
    }

    /// Notes that the agent calls itself at step `done` of `total`.
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub fn steps(&self, done: u64, total: u64, message: &str) -> Result<StatusUpdate, StatusError> {
        let mut state = self.state();
        if !state.progress.steps(done, total) {
            return Ok(StatusUpdate::TooLate);
        }
        let message: String = message.chars().take(STEP_CHARS_MAX).collect();
        state.file.message = format!("{message} (step {done}/{total})");
        self.write(&mut state, Durability::Derived)
    }

    /// Shows a message about the agent while it may still work; phase and progress stay.
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub fn note(&self, message: &str) -> Result<StatusUpdate, StatusError> {
        let mut state = self.state();
        if !state.progress.is_with_agent() {
            return Ok(StatusUpdate::TooLate);
        }
        message.clone_into(&mut state.file.message);
        self.write(&mut state, Durability::Derived)
    }

    /// Notes the end of the run, durably; the first end counts.
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub fn complete(&self, completion: &LaunchCompletion) -> Result<StatusUpdate, StatusError> {
        let mut state = self.state();
        if state.progress.is_over() {
            return Ok(StatusUpdate::TooLate);
        }
        state.progress.complete();
        completion.tell(&mut state.file);
        self.write(&mut state, Durability::Synced)
    }

    /// Shows that the run still lives, when nothing else did for a while.
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub fn beat(&self) -> Result<StatusUpdate, StatusError> {
        let mut state = self.state();
        let silence_ms = self.clock.now_ms().saturating_sub(state.written_at_ms);
        if state.progress.is_over() || silence_ms < HEARTBEAT_MS {
            return Ok(StatusUpdate::TooLate);
        }
        self.replace(&mut state, Durability::Derived)
    }

    fn write(
        &self,
        state: &mut WriterState,
        durability: Durability,
    ) -> Result<StatusUpdate, StatusError> {
        state.file.phase = state.progress.phase();
        state.file.progress = state.progress.percent();
        state.file.updated_at = timestamp(self.clock.now_ms());
        self.replace(state, durability)
    }

    fn replace(
        &self,
        state: &mut WriterState,
        durability: Durability,
    ) -> Result<StatusUpdate, StatusError> {
        state.written_at_ms = self.clock.now_ms();
        state.file.heartbeat_at = timestamp(state.written_at_ms);
        let bytes = state.file.to_bytes().map_err(|source| StatusError::Form {
            path: self.path().to_path_buf(),
            source,
        })?;
        Ok(match self.ownership.write(&bytes, durability)? {
            WriteOutcome::Written => StatusUpdate::Written,
            WriteOutcome::Superseded => StatusUpdate::Superseded,
        })
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        // A panic elsewhere leaves whole values behind: each is changed before it is written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the status files in a directory that can be read, by path. Others are passed over:
/// the directory is for tools that poll, and a stranger's file there is no error.
///
/// # Errors
/// When the directory cannot be listed.
pub fn list(dir: &Path) -> Result<Vec<(PathBuf, StatusFile)>, StatusError> {
    let names = RealDisk
        .list(dir)
        .map_err(|error| StatusError::at(error.op, dir)(error.source))?;
    let is_status = |name: &String| name.starts_with("kapi-") && name.ends_with(".json");
    let mut found = Vec::new();
    for path in names
        .iter()
        .filter(|name| is_status(name))
        .map(|name| dir.join(name))
    {
        let read = private_file::read(&path, FILE_BYTES_MAX);
        if let Ok(Some(bytes)) = read
            && let Ok(file) = serde_json::from_slice(&bytes)
        {
            found.push((path, file));
        }
    }
    Ok(found)
}

/// Removes a status file with its owner's mark.
///
/// # Errors
/// When something that is there cannot be removed.
pub fn forget(path: &Path) -> Result<(), StatusError> {
    ownership::forget(path)
}

fn tool_message(category: ToolCategory, name: &str, detail: &str) -> String {
    let word = match category {
        ToolCategory::Exploring => "Exploring",
        ToolCategory::Implementing => "Implementing",
        ToolCategory::Building => "Building",
        ToolCategory::Testing => "Testing",
        ToolCategory::Committing => "Committing",
        ToolCategory::Other => "Using a tool",
    };
    let mut lines = detail.lines().map(str::trim);
    match lines.find(|line| !line.is_empty()) {
        Some(line) => format!("{word}: {line}"),
        None => format!("{word}: {name}"),
    }
}
