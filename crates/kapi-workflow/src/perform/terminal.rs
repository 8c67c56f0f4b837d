//! One place to watch a workflow's workers: a tmux session with a window for each.
//!
//! Only what Kapi made is ever touched: a session carries the workflow's name in an option of its
//! own, which is read before anything is done with it. Nothing depends on anybody watching.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, FinishedProcess, ProcessEnd, ProcessLimits, Program};

use crate::rules::worker::WorkerId;

/// The option that says whose a session is.
const OPTION: &str = "@kapi_workflow";
/// The longest that tmux may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// Bytes of its output that are read.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Variables that tmux is given of this process's own.
const VARIABLES: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMUX_TMPDIR",
    "USER",
];
/// Characters of the project's key in a name that another project's session had already.
const KEY_CHARS: usize = 6;

/// The workflow whose workers are watched.
#[derive(Debug, Clone, Copy)]
pub struct WatchedWorkflow<'a> {
    /// It.
    pub workflow: &'a GoalId,
    /// The project's key.
    pub project_key: &'a str,
    /// The project: where the commands run.
    pub project: &'a Path,
}

/// What became of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// It is gone.
    Session,
    /// There was none of ours.
    Nothing,
}

/// Tells whether there is a tmux to watch in.
#[must_use]
pub fn has_tmux(grants: &HostGrants) -> bool {
    process::find_in_path(OsStr::new("tmux"), &grants.path_variable()).is_some()
}

/// Shows a worker in a window of the workflow's tmux session, and returns where: `session:window`.
/// A worker that has a window keeps it. `None` where there is no tmux.
///
/// # Errors
/// When tmux refuses, or sessions of these names are somebody else's.
pub fn watch_in_tmux(
    grants: &HostGrants,
    watched: WatchedWorkflow<'_>,
    worker: &WorkerId,
    command: &[OsString],
) -> Result<Option<String>, Failure> {
    let Some(tmux) = Tmux::find(grants, watched) else {
        return Ok(None);
    };
    let window = worker.to_string();
    let target = |session: &str| Some(format!("{session}:{window}"));
    for session in tmux.names() {
        match tmux.owner(&session)? {
            SessionOwner::Nobody => {
                tmux.create(&session, &window, command)?;
                return Ok(target(&session));
            }
            SessionOwner::Us => {
                tmux.add(&session, &window, command)?;
                return Ok(target(&session));
            }
            SessionOwner::Other => {}
        }
    }
    Err(Failure {
        message: format!(
            "create the tmux session {}: it already exists and is not Kapi's",
            tmux.names().join(" or ")
        ),
        hint: Some("rename it with `tmux rename-session`, or run without `--watch`.".to_owned()),
    })
}

/// Ends the workflow's tmux session, if it has one.
///
/// # Errors
/// When tmux refuses.
pub fn end_tmux(grants: &HostGrants, watched: WatchedWorkflow<'_>) -> Result<SessionEnd, Failure> {
    let Some(tmux) = Tmux::find(grants, watched) else {
        return Ok(SessionEnd::Nothing);
    };
    for session in tmux.names() {
        if tmux.owner(&session)? == SessionOwner::Us {
            tmux.done(&["kill-session", "-t", &exact(&session)], &[])?;
            return Ok(SessionEnd::Session);
        }
    }
    Ok(SessionEnd::Nothing)
}

/// Whose a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionOwner {
    /// There is none.
    Nobody,
    /// Kapi made it for this workflow.
    Us,
    /// Anybody else's.
    Other,
}

struct Tmux<'a> {
    path: PathBuf,
    env: BTreeMap<OsString, OsString>,
    watched: WatchedWorkflow<'a>,
    /// What the option holds where a session is ours.
    tag: String,
}

impl<'a> Tmux<'a> {
    fn find(grants: &HostGrants, watched: WatchedWorkflow<'a>) -> Option<Self> {
        let path = process::find_in_path(OsStr::new("tmux"), &grants.path_variable())?;
        let variable = |name: &&str| {
            let value = grants.env.get(OsStr::new(name))?;
            Some((OsString::from(name), value.clone()))
        };
        Some(Self {
            path,
            env: VARIABLES.iter().filter_map(variable).collect(),
            tag: format!("{}/{}", watched.project_key, watched.workflow),
            watched,
        })
    }

    /// Returns the names that the session may have, the plain one first.
    fn names(&self) -> [String; 2] {
        let plain = format!("kapi-{}", self.watched.workflow);
        let key: Vec<char> = self.watched.project_key.chars().collect();
        let end = key.len().saturating_sub(KEY_CHARS);
        let end: String = key.get(end..).unwrap_or_default().iter().collect();
        [plain.clone(), format!("{plain}-{end}")]
    }

    /// Looks whose a session is. Changes nothing.
    fn owner(&self, session: &str) -> Result<SessionOwner, Failure> {
        let is_there = self.run(&["has-session", "-t", &exact(session)], &[])?;
        if is_there.end != ProcessEnd::Exited(0) {
            return Ok(SessionOwner::Nobody);
        }
        let target = format!("{}:", exact(session));
        let asked = ["show-options", "-q", "-v", "-t", &target, OPTION];
        let found = self.done(&asked, &[])?;
        let is_ours = found.stdout.text().trim_end_matches('\n') == self.tag;
        Ok(if is_ours {
            SessionOwner::Us
        } else {
            SessionOwner::Other
        })
    }

    /// Makes a session with its first window. Its owner is set in the same breath, so that there is
    /// never a session of ours that does not say so.
    fn create(&self, session: &str, window: &str, command: &[OsString]) -> Result<(), Failure> {
        let begin = ["new-session", "-d", "-s", session, "-n", window];
        let mut words: Vec<OsString> = begin.iter().map(OsString::from).collect();
        words.extend(command.iter().map(|word| escaped(word)));
        let target = format!("{}:", exact(session));
        let tag = [";", "set-option", "-t", &target, OPTION, &self.tag];
        words.extend(tag.iter().map(OsString::from));
        let finished = self.start(words)?;
        Self::check(finished, "new-session").map(drop)
    }

    /// Adds a window, unless there is one of this name.
    fn add(&self, session: &str, window: &str, command: &[OsString]) -> Result<(), Failure> {
        let target = exact(session);
        let listed = self.done(
            &["list-windows", "-t", &target, "-F", "#{window_name}"],
            &[],
        )?;
        if listed.stdout.text().lines().any(|name| name == window) {
            return Ok(());
        }
        let target = format!("{target}:");
        let words = ["new-window", "-d", "-t", &target, "-n", window];
        self.done(&words, command).map(drop)
    }

    fn done(&self, words: &[&str], command: &[OsString]) -> Result<FinishedProcess, Failure> {
        let finished = self.run(words, command)?;
        Self::check(finished, words.first().copied().unwrap_or_default())
    }

    fn run(&self, words: &[&str], command: &[OsString]) -> Result<FinishedProcess, Failure> {
        let mut all: Vec<OsString> = words.iter().map(OsString::from).collect();
        all.extend(command.iter().map(|word| escaped(word)));
        self.start(all)
    }

    fn check(finished: FinishedProcess, what: &str) -> Result<FinishedProcess, Failure> {
        if finished.end == ProcessEnd::Exited(0) {
            return Ok(finished);
        }
        Err(Failure {
            message: format!(
                "run tmux {what}: {:?}: {}",
                finished.end,
                finished.stderr.text().trim()
            ),
            hint: None,
        })
    }

    fn start(&self, args: Vec<OsString>) -> Result<FinishedProcess, Failure> {
        let program = Program {
            path: self.path.clone(),
            args,
            env: self.env.clone(),
            cwd: self.watched.project.to_path_buf(),
            stdin: Vec::new(),
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: DEADLINE,
                idle: None,
                tail_bytes_max: OUTPUT_BYTES_MAX,
                line_bytes_max: OUTPUT_BYTES_MAX,
            },
        };
        process::run(program, &Cancel::new(), &mut |_| {}).map_err(|error| failure::plain(&error))
    }
}

/// Returns the target that means this session and no other whose name begins alike.
fn exact(session: &str) -> String {
    format!("={session}")
}

/// Keeps tmux from taking the end of a word for the end of a command.
fn escaped(word: &OsStr) -> OsString {
    match word.to_str().and_then(|word| word.strip_suffix(';')) {
        Some(rest) => OsString::from(format!("{rest}\\;")),
        None => word.to_os_string(),
    }
}
