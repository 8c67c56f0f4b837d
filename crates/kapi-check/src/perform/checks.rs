//! A project's own checks: found on disk, probed and run in sandboxes, told as they came out.
//!
//! Each check has a sandbox and a copy-on-write view of the working tree of its own, so none sees
//! what another made and nothing is written back. What is selected is decided in core.

mod declared;
mod parallel;
mod perform;
mod probe;
mod shell;
mod survey;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_run::private_scratch::PrivateScratch;
use kapi_sys::cancel::Cancel;

use self::shell::CheckRun;
use crate::perform::ecosystems;
use crate::rules::checks::profile::{CheckProfiles, TABLE};
use crate::rules::checks::program::programs_of;
use crate::rules::checks::report::{CheckResult, ChecksReport};
use crate::rules::checks::settle::settle;
use crate::rules::checks::stray::{SelectedRoots, strays};
use crate::rules::checks::{Check, CheckChoice, CheckVerb, PlannedCheck, ProjectRoot, select};

/// The projects of a working tree.
#[derive(Debug, Clone)]
pub struct Discovery {
    /// The top of the working tree: the repository's, or the directory itself outside of one.
    pub top: PathBuf,
    /// The projects that are meant, in the order of their paths.
    pub roots: Vec<ProjectRoot>,
    /// What the person should know, as sentences.
    pub notes: Vec<String>,
}

/// How checks are run.
#[derive(Debug, Clone)]
pub struct CheckRunSettings {
    /// A directory of Kapi's own, outside of the working tree, on a disk that layers can lie on.
    pub scratch: PathBuf,
    /// The isolation. Without any, checks write into the working tree.
    pub level: SandboxLevel,
    /// What checks can reach.
    pub network: NetworkMode,
    /// How many are under way at once, at least one.
    pub jobs: usize,
    /// The verbs that are checked; all when empty.
    pub only: BTreeSet<CheckVerb>,
    /// The least that every check may take, whatever its verb is given.
    pub timeout_ms_min: u64,
}

/// Takes what happens, from any thread, and says when to stop.
#[derive(Clone, Copy)]
pub struct CheckObserver<'a> {
    /// Raised when the checks are no longer wanted.
    pub cancel: &'a Cancel,
    /// Takes what happens.
    pub notice: &'a (dyn Fn(CheckEvent<'_>) + Sync),
}

/// What happens while checks are run.
#[derive(Debug, Clone, Copy)]
pub enum CheckEvent<'a> {
    /// A check begins.
    Began(&'a Check),
    /// A check came out.
    Ended(&'a CheckResult),
    /// Something that the person should know, as a sentence.
    Note(&'a str),
}

/// Finds the projects that a person means who stands in a directory: the nearest one at or above it,
/// up to the top of the repository, and those below that. Nothing is started.
///
/// # Errors
/// When a directory cannot be listed.
pub fn discover(directory: &Path) -> Result<Discovery, Failure> {
    let directory = real(directory)?;
    let top = top_of(&directory);
    let profiles = profiles()?;
    let surveyed = survey::survey(&profiles, &top, &[directory.as_path()])?;
    let roots = select::roots(&profiles, ecosystems::table()?, &surveyed.directories);
    let at = survey::relative(&top, &directory);
    let within = select::nearest(&roots, &at).map_or("", |root| root.path.as_str());
    let mut notes = surveyed.notes;
    let selected = SelectedRoots {
        profiles: &profiles,
        directories: &surveyed.directories,
        roots: &roots,
    };
    notes.extend(strays(&selected, within));
    Ok(Discovery {
        roots: select::around(&roots, &at),
        notes,
        top,
    })
}

/// Returns the names that make a directory a project, sorted; a `*` stands for any characters.
///
/// # Errors
/// When the table that comes with Kapi cannot be read.
pub fn marks() -> Result<Vec<String>, Failure> {
    let profiles = profiles()?;
    Ok(profiles.marks().into_iter().map(str::to_owned).collect())
}

/// Looks in the sandbox for what the checks need, and returns what is to be run and what is skipped.
///
/// # Errors
/// When a sandbox could not be made. A tool that is missing is none.
pub fn prepare(
    grants: &HostGrants,
    discovery: &Discovery,
    setting: &CheckRunSettings,
    reported: &CheckObserver<'_>,
) -> Result<Vec<PlannedCheck>, Failure> {
    let scratch = PrivateScratch::open(&setting.scratch, &discovery.top, "kapi check")?;
    let work = work(grants, discovery, setting, reported, &scratch);
    let found = parallel::each(setting.jobs, &discovery.roots, |number, root| {
        probe::probe(&work, number, root)
    })?;
    let planned = discovery.roots.iter().zip(&found);
    let planned = planned.flat_map(|(root, found)| settle(root, found));
    let is_wanted =
        |one: &PlannedCheck| setting.only.is_empty() || setting.only.contains(&one.check.verb);
    Ok(planned.filter(is_wanted).collect())
}

/// Looks in the sandbox for the programs that shell lines of the project's top start, and returns
/// those that are missing there, each with why, as a fragment.
///
/// # Errors
/// When a sandbox could not be made.
pub fn missing_programs(
    grants: &HostGrants,
    discovery: &Discovery,
    setting: &CheckRunSettings,
    reported: &CheckObserver<'_>,
    lines: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let scratch = PrivateScratch::open(&setting.scratch, &discovery.top, "kapi doctor")?;
    let work = work(grants, discovery, setting, reported, &scratch);
    let at_top = discovery.roots.iter().find(|root| root.path.is_empty());
    let checks = lines.iter().map(|line| {
        CheckChoice::Check(Check {
            root: String::new(),
            verb: CheckVerb::Test,
            provider: String::new(),
            command: line.clone(),
            timeout_ms: 0,
            needs: programs_of(line),
            nothing: None,
            otherwise: None,
        })
    });
    let root = ProjectRoot {
        path: String::new(),
        profiles: Vec::new(),
        choices: checks.collect(),
        first_on_path: at_top.map_or_else(Vec::new, |root| root.first_on_path.clone()),
        caches: at_top.map_or_else(Vec::new, |root| root.caches.clone()),
    };
    Ok(probe::probe(&work, 0, &root)?.missing)
}

/// Runs what is to be run, a few at a time, and returns how everything came out, in the order given.
///
/// When the flag is raised, what is under way is killed with all it started.
///
/// # Errors
/// When a sandbox could not be made. A check that fails is none.
pub fn run(
    grants: &HostGrants,
    discovery: &Discovery,
    planned: &[PlannedCheck],
    setting: &CheckRunSettings,
    reported: &CheckObserver<'_>,
) -> Result<ChecksReport, Failure> {
    let began = Instant::now();
    let scratch = PrivateScratch::open(&setting.scratch, &discovery.top, "kapi check")?;
    let work = work(grants, discovery, setting, reported, &scratch);
    let checks = parallel::each(setting.jobs, planned, |number, planned| {
        perform::perform(&work, number, planned)
    })?;
    Ok(ChecksReport {
        checks,
        duration_ms: perform::millis(began.elapsed()),
    })
}

fn work<'a>(
    grants: &'a HostGrants,
    discovery: &'a Discovery,
    setting: &'a CheckRunSettings,
    reported: &'a CheckObserver<'a>,
    scratch: &'a PrivateScratch,
) -> CheckRun<'a> {
    CheckRun {
        grants,
        discovery,
        setting,
        reported,
        scratch: scratch.path(),
    }
}

/// Reads the table that comes with Kapi.
fn profiles() -> Result<CheckProfiles, Failure> {
    toml::from_str(TABLE).map_err(|error| Failure {
        message: format!("read the table of profiles: {}", failure::chain(&error)),
        hint: None,
    })
}

fn real(directory: &Path) -> Result<PathBuf, Failure> {
    fs::canonicalize(directory).map_err(|error| failure::file("find", directory, &error))
}

/// Returns the top of the repository that a directory lies in, or the directory itself.
fn top_of(directory: &Path) -> PathBuf {
    let mut above = directory.ancestors();
    above
        .find(|path| path.join(".git").exists())
        .unwrap_or(directory)
        .to_path_buf()
}
