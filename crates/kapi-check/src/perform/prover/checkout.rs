//! A clean checkout in which lines are run one after the other, each in a sandbox of its own.
//!
//! Sealed files are put there anew before each line, cannot be written while it runs, and are
//! compared after it. What comes of a line is the caller's business.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::isolation::NetworkMode;
use kapi_core::quote::tail;
use kapi_core::text::{limit_key, limit_met, limit_text};
use kapi_git::checkout::CheckoutPlan;
use kapi_git::hidden::copy_hidden;
use kapi_git::owned_dir;
use kapi_git::private_view::PrivateFiles;
use kapi_machine::watch::Activity;
use kapi_run::confine::{SandboxConfig, WorksAt};
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::{GitViewPlan, ShownAt};
use kapi_run::shell::{Listener, ShellLine};
use kapi_run::{failure, home, shell};
use kapi_sandbox::counter::KernelCounter;
use kapi_sandbox::outcome::SandboxRun;
use kapi_sandbox::spec::{BenchmarkSetup, Mount, MountAccess};
use kapi_sys::disk::Disk as _;
use kapi_sys::process::{OutputLine, ProcessEnd};
use kapi_sys::real_disk::RealDisk;

use super::seal::Seal;
use super::{Prover, UnseenChecks, WorkToProve};
use crate::perform::dependencies::Dependencies;
use crate::perform::dependencies::lend::{Borrower, Lending};
use crate::perform::hidden;
use crate::rules::proof::tally::tally;
use crate::rules::proof::verify_run::{Checks, VerifyRun};

/// Bytes of a line's output that are recorded.
const OUTPUT_TAIL_BYTES: usize = 4_000;
/// The exit code of a line that SIGKILL ended.
const KILLED: i32 = 128 + 9;

/// What of a checkout is not as committed, beside protected files.
#[derive(Debug, Clone, Default)]
pub(super) struct PutBack {
    /// Files that are as at the base.
    pub(super) files: Vec<String>,
    /// Contents that stand in the place of files; nothing where a file is not there.
    pub(super) texts: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// Files that are laid over it and sealed.
    pub(super) laid_over: Vec<(PathBuf, Vec<u8>)>,
}

/// By what means a line is run.
pub(super) struct LineResources<'a> {
    /// What may be used of the host.
    pub(super) grants: &'a HostGrants,
    /// What it can reach.
    pub(super) network: NetworkMode,
    /// The dependencies it sees.
    pub(super) dependencies: &'a Dependencies,
    /// Where the layers over that are.
    pub(super) layers: &'a Path,
    /// What is mounted besides.
    pub(super) mounts: Vec<Mount>,
    /// Variables besides.
    pub(super) env: BTreeMap<OsString, OsString>,
    /// The directory it is run in, below the top.
    pub(super) below: &'a Path,
    /// The longest it may take, in milliseconds.
    pub(super) timeout_ms: u64,
    /// What holds while it is measured.
    pub(super) benchmark: BenchmarkSetup,
    /// Who hears of it.
    pub(super) listener: Listener<'a>,
}

/// A line that is run on sealed files.
pub(super) struct CheckoutLine<'a> {
    /// The line.
    pub(super) text: &'a str,
    /// What is laid over the checkout for it.
    pub(super) checks: Checks,
    /// The longest it may take, in milliseconds.
    pub(super) timeout_ms: u64,
    /// What holds while it is measured.
    pub(super) benchmark: BenchmarkSetup,
}

/// A line that has ended by itself or at a limit.
#[derive(Debug)]
pub struct LineResult {
    /// How.
    pub run: VerifyRun,
    /// All that it wrote, as far as it was kept.
    pub output: String,
    /// What it wrote to standard output.
    pub stdout: String,
    /// Sealed files that are not what they were before it.
    pub tampered: Vec<String>,
    /// What the kernel counted.
    pub counted: Vec<(KernelCounter, u64)>,
}

/// A checkout.
pub(super) struct Checkout<'a> {
    prover: &'a Prover<'a>,
    work: WorkToProve<'a>,
    /// The protected patterns, those of files that are put back included.
    protect: Vec<String>,
    /// Contents that stand in the place of files; nothing where a file is not there.
    texts: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// Files that are laid over it anew before each line, and sealed.
    laid_over: Vec<(PathBuf, Vec<u8>)>,
    /// Whether protected files may not be as the checkout made them.
    is_used: bool,
    to: PathBuf,
}

impl<'a> Checkout<'a> {
    /// Fills a directory of the prover.
    pub(super) fn make(
        prover: &'a Prover<'a>,
        work: &WorkToProve<'a>,
        put_back: PutBack,
    ) -> Result<Self, Failure> {
        let PutBack {
            files,
            texts,
            laid_over,
        } = put_back;
        let mut protect = work.protect.to_vec();
        protect.extend(files.iter().map(literal));
        let checkout = Self {
            prover,
            work: work.clone(),
            protect,
            is_used: !texts.is_empty(),
            texts,
            laid_over,
            to: prover.site.scratch.join("verify"),
        };
        prover.repo.checkout(&checkout.plan())?;
        checkout.write_texts()?;
        Ok(checkout)
    }

    /// Removes the directory.
    pub(crate) fn discard(self) -> Result<(), Failure> {
        owned_dir::discard(&self.to).map_err(|error| failure::plain(&error))
    }

    /// Runs a line; nothing where it was called off.
    pub(crate) fn run(
        &mut self,
        line: &str,
        checks: Checks,
        timeout_ms: u64,
    ) -> Result<Option<LineResult>, Failure> {
        let line = CheckoutLine {
            text: line,
            checks,
            timeout_ms,
            benchmark: BenchmarkSetup::default(),
        };
        self.run_heard(&line, &mut |_| {})
    }

    /// Does the same, and tells each line of its output as it passes.
    pub(super) fn run_heard(
        &mut self,
        line: &CheckoutLine<'_>,
        on_line: &mut dyn FnMut(OutputLine<'_>),
    ) -> Result<Option<LineResult>, Failure> {
        let prover = self.prover;
        (prover.listener.watch.notice)(Activity::Verifying {
            command: line.text.to_owned(),
        });
        let seal = self.seal(line.checks)?;
        self.is_used = true;
        let ran = self.run_sealed(line, &seal, on_line)?;
        if ran.finished.end == ProcessEnd::Cancelled {
            return Ok(None);
        }
        // The one that explains the end stands in the output, which the next turn reads.
        for met in &ran.met {
            let text = limit_met(met.resource, &met.limit);
            (prover.listener.watch.notice)(Activity::Note { text });
        }
        let run = verify_run(line.text, line.checks, &ran);
        let output = shell::output(&ran.finished);
        let counted = ran.counted.clone();
        let stdout = ran.finished.stdout.text();
        // Nothing of the sandbox is alive once this is gone.
        drop(ran);
        let tampered = self.tampered(&seal)?;
        Ok(Some(LineResult {
            run,
            output,
            stdout,
            tampered,
            counted,
        }))
    }

    fn plan(&self) -> CheckoutPlan<'_> {
        CheckoutPlan {
            commit: &self.work.commit,
            base: &self.work.base,
            protect: &self.protect,
            to: &self.to,
        }
    }

    /// Puts sealed files there as they have to be, and notes what they are.
    fn seal(&self, checks: Checks) -> Result<Seal, Failure> {
        let repository = &self.prover.repo.repository;
        if self.is_used {
            repository
                .restore_protected(&self.plan())
                .map_err(|error| failure::plain(&error))?;
        }
        let mut laid_over = Vec::new();
        if checks == Checks::Hidden
            && let Some(checks) = self.prover.site.hidden
        {
            laid_over = match checks {
                UnseenChecks::Kept { approved, at } => hidden::lay_over(approved, at, &self.to)?,
                UnseenChecks::Directory(from) => {
                    let copied = copy_hidden(from, &self.to);
                    copied.map_err(|error| failure::plain(&error))?.paths
                }
            };
        }
        for (path, bytes) in &self.laid_over {
            self.write_text(path, Some(bytes))?;
            laid_over.push(path.clone());
        }
        let protected = repository
            .tracked_files_matching(&self.work.base, &self.protect)
            .map_err(|error| failure::plain(&error))?;
        let tests = self.work.change.test_code.clone();
        Seal::of(&self.to, [protected, laid_over, tests].concat())
    }

    /// Returns sealed files that differ, and files that appeared where only the base's may be.
    fn tampered(&self, seal: &Seal) -> Result<Vec<String>, Failure> {
        let mut found = seal.broken(&self.to)?;
        let repository = &self.prover.repo.repository;
        let protected = repository
            .tracked_files_matching(&self.work.base, &self.protect)
            .map_err(|error| failure::plain(&error))?;
        let are_as_sealed = found.is_empty() && protected.iter().all(|path| seal.holds(path));
        let restored = if are_as_sealed {
            repository.remove_unknown_protected(&self.plan())
        } else {
            repository.restore_protected(&self.plan())
        };
        let restored = restored.map_err(|error| failure::plain(&error))?;
        let appeared = restored
            .iter()
            .filter(|path| !seal.holds(path) && !is_output(path))
            .filter(|path| !self.prover.site.dependencies.is_installed(path));
        found.extend(appeared.map(|path| path.display().to_string()));
        Ok(found)
    }

    fn run_sealed(
        &self,
        line: &CheckoutLine<'_>,
        seal: &Seal,
        on_line: &mut dyn FnMut(OutputLine<'_>),
    ) -> Result<SandboxRun, Failure> {
        let (prover, site) = (self.prover, &self.prover.site);
        let layers = site.scratch.join("verify-dependencies");
        let means = LineResources {
            grants: prover.grants,
            network: site.network,
            dependencies: site.dependencies,
            layers: &layers,
            mounts: seal.mounts(&self.to, site.level),
            env: BTreeMap::new(),
            below: Path::new(""),
            timeout_ms: line.timeout_ms,
            benchmark: line.benchmark.clone(),
            listener: prover.listener,
        };
        self.start(line.text, means, on_line)
    }

    /// Runs a line by means of its own, with nothing sealed; nothing where it was called off.
    pub(super) fn run_once(
        &self,
        line: &str,
        checks: Checks,
        means: LineResources<'_>,
    ) -> Result<Option<VerifyRun>, Failure> {
        let ran = self.start(line, means, &mut |_| {})?;
        Ok((ran.finished.end != ProcessEnd::Cancelled).then(|| verify_run(line, checks, &ran)))
    }

    /// Returns the directory.
    pub(super) fn root(&self) -> &Path {
        &self.to
    }

    fn start(
        &self,
        line: &str,
        means: LineResources<'_>,
        on_line: &mut dyn FnMut(OutputLine<'_>),
    ) -> Result<SandboxRun, Failure> {
        let (prover, site) = (self.prover, &self.prover.site);
        let view_dir = site.scratch.join("verify-git");
        let shown = PrivateFiles {
            branch: self.work.branch,
            base: &self.work.base,
            work_tree: &self.to,
            index: None,
            exact_index: None,
            monitor: None,
        };
        let (git_view, git_env) = prover.repo.git_view(&GitViewPlan {
            to: &view_dir,
            shown: &shown,
            commit: &self.work.commit,
            shown_at: ShownAt::of(site.level, &self.to),
            stores: site.stores,
        })?;
        let home = home::make_anew(&site.scratch.join("verify-home"))?;
        let lending = Lending {
            layers: means.layers,
            workspace: &self.to,
            borrower: Borrower::Command,
            network: means.network,
            level: site.level,
        };
        let shared_in = means.dependencies.lend(means.grants, &lending)?;
        let mut env = shared_in.env.clone();
        env.extend(git_env);
        env.extend(means.env);
        let mut mounts = shared_in.mounts.clone();
        mounts.extend(means.mounts);
        let config = SandboxConfig {
            name: site.name,
            level: site.level,
            workspace: &self.to,
            workspace_access: MountAccess::ReadWrite,
            project: Some(site.project),
            works_at: WorksAt::Project,
            home: &home,
            git_view: Some(git_view),
            mounts,
            deadline: Duration::from_millis(means.timeout_ms),
            idle: None,
        };
        let line = ShellLine {
            text: line,
            network: means.network,
            below: means.below,
            path_first: Vec::new(),
            env,
            benchmark: means.benchmark,
        };
        line.run_heard(&config, means.grants, means.listener, on_line)
    }

    fn write_texts(&self) -> Result<(), Failure> {
        for (path, bytes) in &self.texts {
            self.write_text(path, bytes.as_deref())?;
        }
        Ok(())
    }

    /// Puts a content in the place of a file; a script stays one that can be started.
    fn write_text(&self, path: &Path, bytes: Option<&[u8]>) -> Result<(), Failure> {
        let target = self.to.join(path);
        owned_dir::make_way(&self.to, path).map_err(|error| failure::plain(&error))?;
        let mode = fs::symlink_metadata(&target).map(|found| found.permissions());
        owned_dir::wipe(&target).map_err(|error| failure::plain(&error))?;
        let Some(bytes) = bytes else {
            return Ok(());
        };
        let written = RealDisk.write(&target, bytes);
        written.map_err(|error| failure::plain(&error))?;
        if let Ok(mode) = mode {
            let set = fs::set_permissions(&target, mode);
            set.map_err(|error| failure::file("set the mode of", &target, &error))?;
        }
        Ok(())
    }
}

/// Tells whether a path is what runners write beside what they read.
fn is_output(path: &Path) -> bool {
    const WRITTEN: &[&str] = &[
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        "node_modules",
    ];
    let is_written = |name: &str| WRITTEN.contains(&name) || name.ends_with(".pyc");
    path.iter()
        .any(|name| name.to_str().is_some_and(is_written))
}

/// Returns a pattern that matches exactly one path.
fn literal(path: impl AsRef<str>) -> String {
    let mut pattern = String::new();
    for c in path.as_ref().chars() {
        if matches!(c, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn verify_run(line: &str, checks: Checks, ran: &SandboxRun) -> VerifyRun {
    let finished = &ran.finished;
    let mut text = shell::output(finished);
    if let Some(exceeded) = &ran.exceeded {
        text = format!(
            "{text}\n[kapi stopped it at its limit of {}; raise `{}` under [sandbox]]\n",
            limit_text(exceeded.resource, &exceeded.limit),
            limit_key(exceeded.resource)
        );
    }
    let exit_code = shell::exit_code(finished.end);
    // The line's shell says so of what it started last.
    let was_killed = exit_code == Some(KILLED) && ran.exceeded.is_none();
    VerifyRun {
        command: line.to_owned(),
        checks,
        exit_code: exit_code.filter(|_| !was_killed),
        timed_out: exit_code.is_none() && finished.end != ProcessEnd::Cancelled,
        duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        output_tail: tail(&text, OUTPUT_TAIL_BYTES).to_owned(),
        output_bytes: finished
            .stdout
            .bytes_total
            .saturating_add(finished.stderr.bytes_total),
        tally: tally(&text),
    }
}
