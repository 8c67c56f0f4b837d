//! The corpora that show what a proof of Kapi is worth: cheats beside honest changes, and real
//! projects with a seeded bug.
//!
//! Starts the built program as a person would, and judges it by its exit code and JSON alone. The
//! changes themselves are data below `xtask/corpus`.

mod case_directory;
pub(crate) mod cheats;
mod ecosystem;
mod entry;
mod fetch;
pub(crate) mod ideas;
pub(crate) mod integration;
mod outcome;
mod page;
mod plan;
pub(crate) mod real_repositories;
mod releases;
mod request;
mod results;
mod search;
mod shell;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::tool::ToolCommand;

/// What a corpus is asked to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CorpusOptions {
    /// The program under test; built where nothing is said.
    kapi: Option<PathBuf>,
    /// Only the cases that are marked so.
    quick: bool,
    /// Differences from what is expected are printed and are no failure.
    report_only: bool,
    /// Whether `docs/proof.md` is written.
    write: bool,
    /// Whether the directories of the cases stay.
    keep: bool,
    /// Whether the cases are only listed.
    list: bool,
    /// Only the runs whose name contains one of these.
    only: Vec<String>,
    /// How many cases are under way at once.
    jobs: usize,
    /// How many ways of each change are tried, and nothing by hand; every one where nothing is said.
    ways: Option<usize>,
}

/// How many cases are under way at once, unless it is said.
const JOBS: usize = 2;
/// The most cases at once.
const JOBS_MAX: usize = 16;

impl CorpusOptions {
    fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self {
            jobs: JOBS,
            ..Self::default()
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next();
                value.with_context(|| format!("read the option {word}: it needs a value"))
            };
            match *word {
                "--kapi" => options.kapi = Some(PathBuf::from(value()?)),
                "--quick" => options.quick = true,
                "--report-only" => options.report_only = true,
                "--write" => options.write = true,
                "--keep" => options.keep = true,
                "--list" => options.list = true,
                "--only" => options.only.push((*value()?).to_owned()),
                "--ways" => {
                    let ways = value()?.parse().context("read the number of ways")?;
                    options.ways = Some(ways);
                }
                "--jobs" => options.jobs = value()?.parse().context("read the number of jobs")?,
                other => bail!(
                    "read the option {other:?}: give --kapi PATH, --quick, --only TEXT, --ways N, --jobs N, \
                     --report-only, --write, --keep or --list"
                ),
            }
        }
        options.jobs = options.jobs.clamp(1, JOBS_MAX);
        Ok(options)
    }

    fn takes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    /// Tells whether every change that there is was asked for.
    fn is_whole(&self) -> bool {
        self.only.is_empty() && !self.quick
    }
}

/// Returns the program under test, built first where none is named.
fn program_under_test(root: &Path, options: &CorpusOptions) -> anyhow::Result<PathBuf> {
    if let Some(kapi) = &options.kapi {
        let kapi = kapi.canonicalize();
        return kapi.context("find the program that --kapi names");
    }
    built(root)
}

/// Builds the program and returns where it is.
pub(crate) fn built(root: &Path) -> anyhow::Result<PathBuf> {
    let build = ["build", "--locked", "--quiet", "--package", "kapi-cli"];
    ToolCommand::new(root, "cargo", &build).run()?;
    Ok(target_directory(root)?.join("debug").join("kapi"))
}

/// Returns the directory that builds use.
pub(crate) fn target_directory(root: &Path) -> anyhow::Result<PathBuf> {
    let args = ["metadata", "--format-version=1", "--no-deps"];
    let metadata = ToolCommand::new(root, "cargo", &args).read()?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).context("read what `cargo metadata` printed")?;
    let target = metadata["target_directory"].as_str();
    Ok(PathBuf::from(target.context("find the target directory")?))
}
