//! The one place that builds and runs a git command.
//!
//! Environment and configuration are stated in full on every call, so that neither the person's
//! settings nor an agent's can make git run another program. Of a subcommand it knows only whether it may
//! be run again.

mod repeat;
mod settings;
mod version;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{
    self, FinishedProcess, OutputLine, ProcessEnd, ProcessError, ProcessLimits, Program,
};
use kapi_sys::shortage;

use self::settings::{ALWAYS, REMOTE_SETTINGS, SEALED, SETTINGS, UNATTENDED};
use crate::owned_dir;

/// The oldest git this crate works with: major and minor version.
pub const GIT_VERSION_MIN: (u32, u32) = (2, 34);

/// The subcommand that tells the version.
const VERSION: &str = "version";

/// The number of SIGKILL, which most often is the kernel's, for want of memory.
const KILL: i32 = 9;

/// The longest one git command may run.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// The most output one git command may give; more is an error, never a cut list.
pub const OUTPUT_BYTES_MAX: usize = 256 << 20;

/// Bytes of standard error kept for an error message.
const STDERR_BYTES_MAX: usize = 4096;

/// A git command that did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program could not be started or watched.
    #[error("run git {subcommand}")]
    Process {
        /// The git subcommand.
        subcommand: String,
        /// What the system said.
        #[source]
        source: ProcessError,
    },
    /// Git ended with a code that means failure.
    #[error("run git {subcommand}: exit code {code}: {stderr}")]
    Exit {
        /// The git subcommand.
        subcommand: String,
        /// Its exit code.
        code: i32,
        /// The end of its standard error; foreign text.
        stderr: String,
    },
    /// Git failed for want of something that the machine is short of: that is no answer to anything.
    #[error("run git {subcommand}")]
    Shortage {
        /// The git subcommand.
        subcommand: String,
        /// What is short.
        #[source]
        source: io::Error,
    },
    /// Git did not end by itself.
    #[error("finish git {subcommand}: {end:?}")]
    Ended {
        /// The git subcommand.
        subcommand: String,
        /// How it ended.
        end: ProcessEnd,
    },
    /// Git wrote more than can be taken.
    #[error("read the output of git {subcommand}: {bytes} bytes, more than {OUTPUT_BYTES_MAX}")]
    OutputTooLarge {
        /// The git subcommand.
        subcommand: String,
        /// How much it wrote.
        bytes: u64,
    },
    /// Git wrote something that is not what its manual says.
    #[error("understand the output of git {subcommand}")]
    Unexpected {
        /// The git subcommand.
        subcommand: String,
    },
    /// The installed git is older than [`GIT_VERSION_MIN`].
    #[error(
        "use git {found}: at least {}.{} is needed",
        GIT_VERSION_MIN.0,
        GIT_VERSION_MIN.1
    )]
    TooOld {
        /// What `git version` said.
        found: String,
    },
}

impl GitError {
    /// Returns the failure of a command that ended with a code that means failure.
    fn of_exit(subcommand: String, code: i32, stderr: String) -> Self {
        match shortage::named_in(&stderr) {
            Some(source) => Self::Shortage { subcommand, source },
            None => Self::Exit {
                subcommand,
                code,
                stderr,
            },
        }
    }
}

/// An installed git, which has to be new enough for the first command.
#[derive(Debug, Clone)]
pub struct Git {
    binary: PathBuf,
    cancel: Cancel,
}

impl Git {
    /// Returns the git at `binary` (an absolute path), which has to be there.
    ///
    /// Its version is checked before its first command and not here, because what is done without
    /// any is quicker than the question. Raising `cancel` ends any command that is under way; every
    /// operation may be repeated.
    pub fn open(binary: &Path, cancel: &Cancel) -> Result<Self, GitError> {
        if !binary.is_file() {
            return Err(GitError::Process {
                subcommand: VERSION.to_owned(),
                source: ProcessError::NotFound {
                    path: binary.to_path_buf(),
                },
            });
        }
        Ok(Self {
            binary: binary.to_path_buf(),
            cancel: cancel.clone(),
        })
    }

    /// Returns a command to run in the directory `cwd`.
    pub(crate) fn call(&self, cwd: &Path, subcommand: &str) -> GitCall<'_> {
        GitCall {
            git: self,
            subcommand: subcommand.to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            settings: Vec::new(),
            cwd: cwd.to_path_buf(),
            stdin: Vec::new(),
            surroundings: GitEnvironment::Sealed,
            deadline: DEADLINE,
            own_lock: None,
        }
    }
}

/// What a git command sees of the person's environment and configuration.
#[derive(Debug)]
enum GitEnvironment {
    /// Nothing: for all work on what an agent may have written.
    Sealed,
    /// Their environment and configuration, for talking to their remotes; still no hook, monitor,
    /// prompt or maintenance.
    Person(BTreeMap<OsString, OsString>),
}

/// One git command, not yet run.
#[derive(Debug)]
pub(crate) struct GitCall<'a> {
    git: &'a Git,
    subcommand: String,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    settings: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    stdin: Vec<u8>,
    surroundings: GitEnvironment,
    deadline: Duration,
    /// A lock file that nobody else makes, in a git directory that nobody else uses.
    own_lock: Option<PathBuf>,
}

/// How a git command ended by itself.
#[derive(Debug)]
pub(crate) struct GitExit {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl GitCall<'_> {
    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.into(), value.as_ref().to_owned());
        self
    }

    pub(crate) fn settings(mut self, settings: &[(OsString, OsString)]) -> Self {
        self.settings.extend_from_slice(settings);
        self
    }

    /// Lets it wait for no disk: what it makes is thrown away and need not survive a power cut.
    pub(crate) fn not_synced(self) -> Self {
        self.settings(&[("core.fsync".into(), "none".into())])
    }

    pub(crate) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// Lets it use the credentials, addresses and helpers of the person whose environment this is.
    ///
    /// What would make git look at another repository or run another git is left out.
    pub(crate) fn for_person(mut self, environment: &BTreeMap<OsString, OsString>) -> Self {
        let kept = environment
            .iter()
            .filter(|(name, _)| is_for_remotes(name))
            .map(|(name, value)| (name.clone(), value.clone()));
        self.surroundings = GitEnvironment::Person(kept.collect());
        self
    }

    /// Lets it be run again when it is killed, without the lock file that it leaves.
    pub(crate) fn own_lock(mut self, lock: PathBuf) -> Self {
        self.own_lock = Some(lock);
        self
    }

    pub(crate) fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline.min(DEADLINE);
        self
    }

    /// Runs it and returns its output; any exit code but 0 is an error.
    pub(crate) fn bytes(self) -> Result<Vec<u8>, GitError> {
        Ok(self.exit_up_to(0)?.stdout)
    }

    /// Runs it as a question: exit code 0 is a yes, 1 is a no, and any other is an error.
    pub(crate) fn holds(self) -> Result<bool, GitError> {
        Ok(self.exit_up_to(1)?.code == 0)
    }

    /// Runs it and returns its whole output; an exit code above `code_max` is an error.
    pub(crate) fn exit_up_to(self, code_max: i32) -> Result<GitExit, GitError> {
        let subcommand = self.subcommand.clone();
        let exit = self.exit()?;
        if exit.code <= code_max {
            return Ok(exit);
        }
        Err(GitError::of_exit(subcommand, exit.code, exit.stderr))
    }

    /// Runs it and returns its output as text without the last newline.
    pub(crate) fn text(self) -> Result<String, GitError> {
        let subcommand = self.subcommand.clone();
        let mut bytes = self.bytes()?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        String::from_utf8(bytes).map_err(|_not_text| GitError::Unexpected { subcommand })
    }

    /// Runs it for its effect.
    pub(crate) fn done(self) -> Result<(), GitError> {
        self.bytes().map(drop)
    }

    /// Runs it and returns its exit code, whatever it is, with the whole output. What fails because the
    /// machine is short of something is an error. What is killed by SIGKILL is run once more where that
    /// can be done safely.
    pub(crate) fn exit(self) -> Result<GitExit, GitError> {
        let subcommand = self.subcommand.clone();
        if subcommand != VERSION {
            self.git.check()?;
        }
        let mut finished = self.finish()?;
        if self.may_run_again(finished.end) {
            finished = self.finish()?;
        }
        let ProcessEnd::Exited(code) = finished.end else {
            return Err(GitError::Ended {
                subcommand,
                end: finished.end,
            });
        };
        let bytes = finished.stdout.bytes_total;
        if bytes > finished.stdout.tail.len() as u64 {
            return Err(GitError::OutputTooLarge { subcommand, bytes });
        }
        let errors = finished.stderr.tail;
        let kept = errors
            .get(errors.len().saturating_sub(STDERR_BYTES_MAX)..)
            .unwrap_or_default();
        let stderr = String::from_utf8_lossy(kept).trim().to_owned();
        if code != 0
            && let Some(source) = shortage::named_in(&stderr)
        {
            return Err(GitError::Shortage { subcommand, source });
        }
        Ok(GitExit {
            code,
            stdout: finished.stdout.tail,
            stderr,
        })
    }

    fn finish(&self) -> Result<FinishedProcess, GitError> {
        let program = self.program(OUTPUT_BYTES_MAX);
        let finished = process::run(program, &self.git.cancel, &mut |_line| {});
        finished.map_err(|source| GitError::Process {
            subcommand: self.subcommand.clone(),
            source,
        })
    }

    /// Runs it and returns the first `bytes_max` bytes of its output.
    ///
    /// The command is stopped once there is enough; the flag tells whether output was left out.
    pub(crate) fn beginning(self, bytes_max: usize) -> Result<(Vec<u8>, bool), GitError> {
        self.git.check()?;
        match self.read_beginning(bytes_max) {
            Err(GitError::Ended { end, .. }) if self.may_run_again(end) => {
                self.read_beginning(bytes_max)
            }
            read => read,
        }
    }

    /// Tells whether a command that ended so is run once more; the lock that is its own goes.
    fn may_run_again(&self, end: ProcessEnd) -> bool {
        if end != ProcessEnd::Signaled(KILL) {
            return false;
        }
        match &self.own_lock {
            Some(lock) => owned_dir::wipe(lock).is_ok(),
            None => repeat::is_repeatable(&self.subcommand),
        }
    }

    fn read_beginning(&self, bytes_max: usize) -> Result<(Vec<u8>, bool), GitError> {
        let subcommand = self.subcommand.clone();
        let outer = self.git.cancel.clone();
        let enough = Cancel::new();
        let mut program = self.program(0);
        program.limits.line_bytes_max = bytes_max.saturating_add(1);
        let mut kept = Vec::new();
        let mut is_cut = false;
        let mut take = |line: OutputLine<'_>| {
            if outer.is_raised() {
                enough.raise();
            }
            let OutputLine::Stdout(bytes) = line else {
                return;
            };
            if is_cut {
                return;
            }
            let capacity = bytes_max.saturating_sub(kept.len());
            if bytes.len() + 1 > capacity {
                // A line without an end is still shown as far as it goes.
                kept.extend_from_slice(bytes.get(..capacity).unwrap_or(bytes));
                is_cut = true;
                enough.raise();
                return;
            }
            kept.extend_from_slice(bytes);
            kept.push(b'\n');
        };
        let finished = match process::run(program, &enough, &mut take) {
            Ok(finished) => finished,
            Err(source) => return Err(GitError::Process { subcommand, source }),
        };
        match finished.end {
            ProcessEnd::Exited(0) => Ok((kept, is_cut)),
            ProcessEnd::Cancelled if is_cut && !outer.is_raised() => Ok((kept, is_cut)),
            // Git notices a closed pipe before our signal arrives.
            ProcessEnd::Exited(_) | ProcessEnd::Signaled(_) if is_cut => Ok((kept, is_cut)),
            ProcessEnd::Exited(code) => {
                Err(GitError::of_exit(subcommand, code, finished.stderr.text()))
            }
            end => Err(GitError::Ended { subcommand, end }),
        }
    }

    fn program(&self, tail_bytes_max: usize) -> Program {
        let mut env = self.env.clone();
        let fixed = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        };
        env.extend(fixed(ALWAYS));
        let general = match &self.surroundings {
            GitEnvironment::Sealed => {
                env.extend(fixed(SEALED));
                SETTINGS
            }
            GitEnvironment::Person(environment) => {
                let stated: Vec<_> = env.into_iter().collect();
                env = environment.clone();
                env.extend(stated);
                env.extend(fixed(UNATTENDED));
                REMOTE_SETTINGS
            }
        };
        // By environment and not by `-c`, because a key may contain an equals sign.
        let general = general
            .iter()
            .map(|(key, value)| (key.into(), value.into()));
        let settings: Vec<(OsString, OsString)> =
            general.chain(self.settings.iter().cloned()).collect();
        env.insert("GIT_CONFIG_COUNT".into(), settings.len().to_string().into());
        for (idx, (key, value)) in settings.into_iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{idx}").into(), key);
            env.insert(format!("GIT_CONFIG_VALUE_{idx}").into(), value);
        }
        let mut args: Vec<OsString> = vec!["--no-pager".into(), self.subcommand.clone().into()];
        args.extend(self.args.iter().cloned());
        Program {
            path: self.git.binary.clone(),
            args,
            env,
            cwd: self.cwd.clone(),
            stdin: self.stdin.clone(),
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: self.deadline,
                idle: None,
                tail_bytes_max: tail_bytes_max.max(STDERR_BYTES_MAX),
                line_bytes_max: STDERR_BYTES_MAX,
            },
        }
    }
}

/// Tells whether a variable of the person's is for a command that talks to a remote.
fn is_for_remotes(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return true;
    };
    // Of git's own, only how to reach a remote and which configuration files are the person's.
    const OF_GIT: [&str; 10] = [
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_NO_VERIFY",
        "GIT_PROXY_COMMAND",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
    ];
    !name.starts_with("GIT_") || OF_GIT.contains(&name)
}
