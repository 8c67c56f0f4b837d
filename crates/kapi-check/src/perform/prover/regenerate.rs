//! Writing files anew with the tools that write them, such as lock files after a merge.
//!
//! Each line runs beside its file as a check does: on a clean checkout, in a sandbox, and without network
//! where what was downloaded before is enough. Which tool writes which file is not known here.

use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::isolation::NetworkMode;
use kapi_git::apply::beneath::plain_file;
use kapi_machine::watch::Activity;
use kapi_run::failure;
use kapi_sandbox::spec::BenchmarkSetup;

use super::checkout::{Checkout, LineResources, PutBack};
use super::prepare::InstallSource;
use super::{Prover, WorkToProve};
use crate::perform::dependencies::prepared::InstallStep;
use crate::perform::ecosystems;
use crate::rules::proof::verify_run::{Checks, VerifyRun};

/// The most bytes of a file that a tool writes.
const BYTES_MAX: u64 = 64 << 20;

/// A file that a tool writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// The file, below the top.
    pub path: PathBuf,
    /// The shell line that writes it, run beside it.
    pub line: String,
}

/// What a tool made of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedContent {
    /// How the line ended.
    pub run: VerifyRun,
    /// What the file is now; nothing where the line failed or left no plain file.
    pub bytes: Option<Vec<u8>>,
}

/// What is written anew.
#[derive(Debug, Clone, Copy)]
pub struct RegenerationPlan<'a> {
    /// The files, in the order in which they are written.
    pub files: &'a [GeneratedFile],
    /// The longest one line may take, in milliseconds.
    pub timeout_ms: u64,
}

impl Prover<'_> {
    /// Writes files anew, one after the other; nothing where it was called off. Ends with the first that
    /// cannot be written.
    ///
    /// # Errors
    /// When a checkout or a sandbox cannot be made.
    pub fn regenerate(
        &self,
        work: &WorkToProve<'_>,
        plan: RegenerationPlan<'_>,
    ) -> Result<Option<Vec<GeneratedContent>>, Failure> {
        let is_whole = |made: &[GeneratedContent]| made.iter().all(|it| it.bytes.is_some());
        let mut made = self.regenerate_by(work, plan, InstallSource::Offline)?;
        let has_failed = made.as_deref().is_some_and(|made| !is_whole(made));
        if has_failed && self.site.downloads.network != NetworkMode::None {
            made = self.regenerate_by(work, plan, InstallSource::Download)?;
        }
        for (number, made) in (1_u32..).zip(made.iter().flatten()) {
            let log = format!("regenerate-{number}.log");
            let output = made.run.output_tail.as_bytes();
            self.listener.run_dir.keep(&log, output)?;
        }
        Ok(made)
    }

    fn regenerate_by(
        &self,
        work: &WorkToProve<'_>,
        plan: RegenerationPlan<'_>,
        source: InstallSource,
    ) -> Result<Option<Vec<GeneratedContent>>, Failure> {
        let paths = plan.files.iter().map(|it| it.path.display().to_string());
        let steps = InstallStep::all(ecosystems::table()?, &paths.collect::<Vec<_>>());
        let reach = self.reach(&steps.iter().collect::<Vec<_>>(), source)?;
        let layers = self.site.scratch.join("regenerate-dependencies");
        let shared = self.site.dependencies.without_directories();
        let checkout = Checkout::make(self, work, PutBack::default())?;
        let mut all = Vec::new();
        for file in plan.files {
            (self.listener.watch.notice)(Activity::Verifying {
                command: file.line.clone(),
            });
            let means = LineResources {
                grants: &reach.grants,
                network: reach.network,
                dependencies: &shared,
                layers: &layers,
                mounts: Vec::new(),
                env: reach.env.clone(),
                below: file.path.parent().unwrap_or(Path::new("")),
                timeout_ms: plan.timeout_ms,
                benchmark: BenchmarkSetup::default(),
                listener: self.listener,
            };
            let Some(run) = checkout.run_once(&file.line, Checks::Visible, means)? else {
                checkout.discard()?;
                return Ok(None);
            };
            let made = content(checkout.root(), file, run)?;
            let is_written = made.bytes.is_some();
            all.push(made);
            if !is_written {
                break;
            }
        }
        checkout.discard()?;
        Ok(Some(all))
    }
}

/// Returns what a line made of its file.
fn content(
    root: &Path,
    file: &GeneratedFile,
    mut run: VerifyRun,
) -> Result<GeneratedContent, Failure> {
    let bytes = if run.passed() {
        let found = plain_file(root, &file.path, BYTES_MAX);
        found.map_err(|error| failure::plain(&error))?
    } else {
        None
    };
    if run.passed() && bytes.is_none() {
        run.output_tail = format!(
            "{}\n[kapi: it left no plain file {} of a usual size]\n",
            run.output_tail,
            file.path.display()
        );
    }
    Ok(GeneratedContent { run, bytes })
}
