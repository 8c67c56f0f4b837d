//! A well-known job queue as a peer: rq, on the same redis.
//!
//! Its workers are the simple ones that run a job in their own process: the quickest it has.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;

use crate::bench::invocation::Invocation;
use crate::tool::ToolCommand;

const PACKAGE: &str = "rq==3.0.0";
/// What its processes do.
const SCRIPT: &str = include_str!("rq.py");
/// The script's name, by which jobs name their functions.
const SCRIPT_FILE: &str = "rq_peer.py";

/// An installed rq.
#[derive(Debug)]
pub(super) struct Rq {
    python: String,
    directory: PathBuf,
    socket: String,
    pub(super) version: String,
}

impl Rq {
    /// Finds it in the directory of what was installed for measuring.
    pub(super) fn find(home: &Path, directory: &Path, socket: &Path) -> anyhow::Result<Self> {
        let python = home.join("rq/bin/python");
        ensure!(
            python.exists(),
            "it is not installed; `--with rq` installs it"
        );
        let python = python.to_string_lossy().into_owned();
        let ask = "import rq; print(rq.__version__)";
        let version = ToolCommand::new(directory, &python, &["-c", ask]).read()?;
        let script = directory.join(SCRIPT_FILE);
        replace_durably(&RealDisk, &script, SCRIPT.as_bytes())?;
        Ok(Self {
            python,
            directory: directory.to_path_buf(),
            socket: socket.to_string_lossy().into_owned(),
            version: version.trim().to_owned(),
        })
    }

    /// Names one of its processes.
    pub(super) fn process(&self, duty: &str, rest: &[&str]) -> Invocation {
        let args = [&[SCRIPT_FILE, duty, &self.socket], rest].concat();
        Invocation::new("rq", &self.directory, &self.python, &args)
    }

    /// Enqueues jobs without work.
    pub(super) fn fill(&self, n_jobs: u64) -> anyhow::Result<()> {
        self.process("fill", &[&n_jobs.to_string()]).read()?;
        Ok(())
    }

    /// Makes sure that nothing is left to do.
    pub(super) fn check_empty(&self) -> anyhow::Result<()> {
        let left = self.process("left", &[]).read()?;
        ensure!(
            left.trim() == "0",
            "work off rq's jobs: {} left",
            left.trim()
        );
        Ok(())
    }
}

/// Installs it into a directory of its own.
pub(super) fn install(home: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(home).with_context(|| format!("create {}", home.display()))?;
    ToolCommand::new(home, "python3", &["-m", "venv", "rq"])
        .without_stdout()
        .run()?;
    let args = ["install", "--quiet", "--disable-pip-version-check", PACKAGE];
    let pip = home.join("rq/bin/pip");
    ToolCommand::new(home, &pip.to_string_lossy(), &args)
        .without_stdout()
        .run()
}
