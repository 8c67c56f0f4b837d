//! Proving what an attempt left: shell commands, each in a fresh sandbox on a clean checkout of a
//! commit, without a network and without keys.
//!
//! Nothing that an agent left running or uncommitted is there. What a command means is the caller's
//! affair.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kapi_core::goal::contract::{NetworkMode, SandboxLevel};
use kapi_core::goal::outcome::Failure;
use kapi_core::goal::quote::tail;
use kapi_core::goal::words;
use kapi_core::kernel::task::{End, Task};
use kapi_engine::kernel::worker::Hands;
use kapi_engine::world::{Activity, Watch};
use kapi_git::checkout::CheckoutPlan;
use kapi_git::id::CommitId;
use kapi_git::owned_dir;
use kapi_sandbox::outcome::Ran;
use kapi_sandbox::spec::Access;
use kapi_sys::process;

use super::Performer;
use super::ending::{not_launched, refused};
use crate::asking::RUN_ID_VARIABLE;
use crate::confine::{Cell, GitView, Payload, WorksAt};
use crate::doors::Doors;
use crate::doors::serve::Served;
use crate::launching::head_view;
use crate::launching::place::{SandboxPlace, make_private};
use crate::run_dir::RunDir;
use crate::verify::checkout;
use crate::workshop::{self, Workshop};
use crate::{failure, home};

/// The longest a verify command may take, in milliseconds: half an hour.
pub(super) const VERIFY_MS: u64 = 30 * 60 * 1_000;
/// Bytes of an output that are told.
const TAIL_BYTES: usize = 2_000;
/// Digits of a project's key that tell its sandboxes from those of others.
const KEY_DIGITS: usize = 12;

/// Where an attempt's work is proved.
pub(super) struct Bench<'a> {
    performer: &'a Performer<'a>,
    task: &'a Task,
    hands: &'a Hands<'a>,
    workshop: Workshop,
    commit: CommitId,
    place: SandboxPlace,
    n_runs: AtomicU32,
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proved {
    /// Its exit code; none when it was ended at its time limit.
    pub(super) exit_code: Option<i32>,
    /// What it wrote to standard output, the end of it.
    pub(super) stdout: String,
    /// All that it wrote, the end of it.
    pub(super) output: String,
    /// How long it might have taken, in milliseconds.
    pub(super) timeout_ms: u64,
}

impl Proved {
    /// Tells whether it ended well.
    pub(super) fn passed(&self) -> bool {
        self.exit_code == Some(0)
    }

    /// Says how it ended, with the end of what it wrote.
    pub(super) fn words(&self) -> String {
        let how = match self.exit_code {
            Some(code) => format!("exit code {code}"),
            None => format!("ended after {} s", self.timeout_ms / 1_000),
        };
        match self.output.trim() {
            "" => how,
            output => format!("{how}\n{output}"),
        }
    }

    /// Says how a command ended.
    pub(super) fn sentence(&self, command: &str) -> String {
        format!(
            "`{command}` did not pass on a clean checkout: {}",
            self.words()
        )
    }
}

impl<'a> Bench<'a> {
    /// Opens the bench of an attempt for a commit.
    pub(super) fn new(
        performer: &'a Performer<'a>,
        (task, hands): (&'a Task, &'a Hands<'a>),
        commit: Option<&str>,
    ) -> Result<Self, End> {
        let Some(commit) = commit else {
            return Err(not_launched(
                "failed to make a clean checkout: the project is no git repository with a commit",
            ));
        };
        let root = performer.project.layout.root();
        let workshop = Workshop::open(&performer.book, root, hands.cancel());
        let workshop = workshop.map_err(|failure| refused(&failure))?;
        let id = Performer::sandbox_id(task, hands)?;
        let place = performer
            .setting
            .sandboxes
            .place(&performer.setting.project_key, &id);
        make_private(&place.dir()).map_err(|error| not_launched(error.message))?;
        Ok(Self {
            performer,
            task,
            hands,
            workshop,
            commit: workshop::commit_id(commit).map_err(|failure| refused(&failure))?,
            place,
            n_runs: AtomicU32::new(0),
        })
    }

    /// Runs a command to its end; nothing of it stays.
    pub(super) fn prove(&self, command: &str, timeout_ms: u64) -> Result<Proved, End> {
        let number = self.n_runs.fetch_add(1, Ordering::SeqCst) + 1;
        let dir = self.place.dir().join(format!("prove-{number}"));
        let ran = self.prove_in(&dir, command, timeout_ms);
        let wiped = owned_dir::wipe(&dir).map_err(|error| refused(&failure::plain(&error)));
        let ran = ran.map_err(|failure| self.stopped(&failure))?;
        wiped?;
        if ran.finished.end == process::End::Cancelled {
            return Err(End::Cancelled);
        }
        Ok(proved(&ran, timeout_ms))
    }

    fn stopped(&self, failure: &Failure) -> End {
        if self.hands.cancel().is_raised() {
            return End::Cancelled;
        }
        refused(failure)
    }

    fn prove_in(&self, dir: &Path, command: &str, timeout_ms: u64) -> Result<Ran, Failure> {
        let performer = self.performer;
        let notice = |activity: Activity| (performer.notice)(self.task.id, activity);
        notice(Activity::Verifying {
            command: command.to_owned(),
        });
        owned_dir::wipe(dir).map_err(|error| failure::plain(&error))?;
        fs::create_dir_all(dir).map_err(|error| failure::file("create", dir, &error))?;
        let to = dir.join("checkout");
        checkout(
            &self.workshop,
            &CheckoutPlan {
                commit: &self.commit,
                base: &self.commit,
                protect: &[],
                to: &to,
            },
        )?;
        let level = performer.setting.level;
        let (git_view, mut env) = self.git_view(dir)?;
        let name = self.name(dir);
        env.insert(RUN_ID_VARIABLE.into(), name.clone().into());
        let cell = Cell {
            name: &name,
            level,
            workspace: &to,
            workspace_access: Access::ReadWrite,
            project: Some(self.workshop.repository.top_level()),
            works_at: WorksAt::Project,
            home: &home::make_anew(&dir.join("home"))?,
            git_view,
            mounts: Vec::new(),
            deadline: Duration::from_millis(timeout_ms),
            idle: None,
        };
        let payload = Payload {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), command.into()],
            env,
            stdin: Vec::new(),
        };
        let watch = Watch {
            cancel: self.hands.cancel(),
            notice: &notice,
        };
        let doors = Doors::new(level, NetworkMode::None, &performer.book.grant)?;
        let run_dir = RunDir::open(dir, "run")?;
        let served = Served::new(&doors, &watch, &run_dir)?;
        cell.run(&performer.book, payload, &served, &mut |_| {})
    }

    /// Returns the name of a sandbox, unlike that of any other that runs now.
    fn name(&self, dir: &Path) -> String {
        let key = self.place.project_key();
        let digits = key.get(key.len().saturating_sub(KEY_DIGITS)..);
        let part = dir.file_name().unwrap_or_default().to_string_lossy();
        let id = self.place.id().as_str();
        format!("{}-{id}-{part}", digits.unwrap_or_default())
    }

    /// Shows the commit and what it reaches as a repository; without isolation there is none.
    fn git_view(
        &self,
        dir: &Path,
    ) -> Result<(Option<GitView>, BTreeMap<OsString, OsString>), Failure> {
        if self.performer.setting.level == SandboxLevel::None {
            return Ok((None, BTreeMap::new()));
        }
        let store = self.workshop.store(&self.place.stores(), &self.commit)?;
        let inside: Vec<PathBuf> = (0..store.object_dirs.len())
            .map(GitView::objects_inside)
            .collect();
        let to = dir.join("git");
        head_view::make(&self.workshop.repository, &self.commit, &to, &inside)?;
        let link = dir.join("git-link");
        let run_dir = RunDir::open(dir, ".")?;
        let text = format!("gitdir: {}\n", GitView::git_dir_inside().display());
        run_dir.keep("git-link", text.as_bytes())?;
        let view = GitView {
            git_dir: to,
            link,
            object_dirs: store.object_dirs,
        };
        let env = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
        ];
        let env = env.map(|(name, value)| (name.into(), value.into()));
        Ok((Some(view), env.into()))
    }
}

fn proved(ran: &Ran, timeout_ms: u64) -> Proved {
    let finished = &ran.finished;
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    let mut output = format!("{stdout}{stderr}");
    if let Some(exceeded) = &ran.exceeded {
        let limit = words::limit_text(exceeded.resource, &exceeded.limit);
        output = format!("{output}\n[kapi ended it at its limit of {limit}]\n");
    }
    Proved {
        exit_code: match finished.end {
            process::End::Exited(code) => Some(code),
            process::End::Signaled(signal) => Some(128 + signal),
            process::End::DeadlinePassed | process::End::IdlePassed | process::End::Cancelled => {
                None
            }
        },
        stdout: tail(&stdout, TAIL_BYTES).to_owned(),
        output: tail(&output, TAIL_BYTES).to_owned(),
        timeout_ms,
    }
}
