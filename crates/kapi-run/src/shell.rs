//! A person's shell line in a sandbox: the one place that runs one.
//!
//! Verify commands, evals, conditions, waits and checks all come through here. Which files it sees is
//! the caller's configuration; what its end means is the caller's business. It has the authority of an agent's
//! run and no key of anybody.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::isolation::NetworkMode;
use kapi_machine::watch::EffectWatch;
use kapi_sandbox::outcome::SandboxRun;
use kapi_sandbox::spec::BenchmarkSetup;
use kapi_sys::process::{FinishedProcess, OutputLine, ProcessEnd};

use crate::confine::{SandboxConfig, SandboxedProgram};
use crate::host_grants::HostGrants;
use crate::network::NetworkAccess;
use crate::network::serve::NetworkServices;
use crate::run_dir::RunDir;
use crate::tool_client::RUN_ID_VARIABLE;

/// What runs the line.
const SHELL: &str = "/bin/sh";
/// Bytes kept of each output stream: enough for the closing lines of many test runners in a row.
const TAIL_BYTES_MAX: usize = 4 << 20;

/// Variables of every line.
const VARIABLES: &[(&str, &str)] = &[
    // Files that seem to be somebody else's are the person's own.
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// A line, and what it gets besides the sandbox that it is run in.
#[derive(Debug)]
pub struct ShellLine<'a> {
    /// The line.
    pub text: &'a str,
    /// What it can reach.
    pub network: NetworkMode,
    /// The directory it is run in, below the workspace.
    pub below: &'a Path,
    /// Directories to look for programs in before all others.
    pub path_first: Vec<PathBuf>,
    /// Variables beside those of every line.
    pub env: BTreeMap<OsString, OsString>,
    /// What holds while it is measured.
    pub benchmark: BenchmarkSetup,
}

/// Who hears of a line's run.
#[derive(Clone, Copy)]
pub struct Listener<'a> {
    /// Takes notices and says when it is no longer wanted.
    pub watch: &'a EffectWatch<'a>,
    /// Where its connections are logged.
    pub run_dir: &'a RunDir,
}

impl ShellLine<'_> {
    /// Runs the line to its end.
    pub fn run(
        self,
        config: &SandboxConfig<'_>,
        grants: &HostGrants,
        listener: Listener<'_>,
    ) -> Result<SandboxRun, Failure> {
        self.run_heard(config, grants, listener, &mut |_| {})
    }

    /// Does the same, and tells each line of its output as it passes.
    pub fn run_heard(
        self,
        config: &SandboxConfig<'_>,
        grants: &HostGrants,
        listener: Listener<'_>,
        on_line: &mut dyn FnMut(OutputLine<'_>),
    ) -> Result<SandboxRun, Failure> {
        let fixed = VARIABLES
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let mut env: BTreeMap<OsString, OsString> = fixed.collect();
        env.extend(self.env);
        // What an agent wrote may run here: it has an agent's authority, not the person's.
        env.insert(RUN_ID_VARIABLE.into(), config.name.into());
        let payload = SandboxedProgram {
            program: PathBuf::from(SHELL),
            args: vec!["-c".into(), self.text.into()],
            env,
            stdin: Vec::new(),
            below: self.below.to_path_buf(),
            path_first: self.path_first,
            tail_bytes_max: TAIL_BYTES_MAX,
            benchmark: self.benchmark,
            stop_grace: None,
        };
        let access = NetworkAccess::new(config.level, self.network, &grants.grant)?;
        let served = NetworkServices::new(&access, listener.watch, listener.run_dir)?;
        config.run(grants, payload, &served, on_line)
    }
}

/// Returns all that a line wrote, its standard output first.
pub fn output(finished: &FinishedProcess) -> String {
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    let between = if stdout.is_empty() || stdout.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{stdout}{between}{stderr}")
}

/// Returns the exit code of a line, 128 plus the signal where one ended it; none where it was killed
/// at a limit of time or called off.
pub const fn exit_code(end: ProcessEnd) -> Option<i32> {
    match end {
        ProcessEnd::Exited(code) => Some(code),
        ProcessEnd::Signaled(signal) => Some(128 + signal),
        ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed | ProcessEnd::Cancelled => None,
    }
}
