//! The prover: the one place that runs a person's checks on somebody's work.
//!
//! Each claim is proved on clean checkouts: nothing an agent left running, ignored or uncommitted is
//! there. Protected files, tests and hidden checks cannot be written while a command runs, and are
//! compared afterwards all the same. What a report means is decided in core.

use std::path::Path;

use kapi_core::failure::Failure;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_git::id::{CommitId, TreeId};
use kapi_git::repository::Repository;
use kapi_git::repository::range::CommitRange;
use kapi_machine::watch::Activity;
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_run::shell::Listener;
use kapi_sys::clock::monotonic_ms;

use self::change::{ChangePart, ProvedChange};
use self::checkout::PutBack;
use self::prepare::WorkDependencies;
use crate::perform::dependencies::Dependencies;
use crate::rules::proof::downloads::Downloads;
use crate::rules::proof::policy::{CheckPolicy, TestPolicy};
use crate::rules::proof::verify_report::VerifyReport;
use crate::rules::proof::verify_run::{Checks, VerifyRun};

pub mod checkout;
pub mod measure;
pub mod regenerate;
pub mod seal;

mod built;
mod change;
mod document;
mod expectations;
mod fakes;
mod listing;
mod prepare;
mod runs;
mod steering;
pub mod strength;
mod test_files;
mod text;

/// How many tampered paths are recorded.
const TAMPERED_MAX: usize = 50;

/// What proves commits of one repository.
pub struct Prover<'a> {
    /// What may be used of the host.
    pub grants: &'a HostGrants,
    /// The repository.
    pub repo: &'a RepositorySession,
    /// Where and in what isolation commands are run.
    pub site: ProverSite<'a>,
    /// Who hears of it.
    pub listener: Listener<'a>,
}

/// Where and in what isolation commands are run.
#[derive(Debug, Clone, Copy)]
pub struct ProverSite<'a> {
    /// The person's own path of the project.
    pub project: &'a Path,
    /// The objects that sandboxes share.
    pub stores: &'a Path,
    /// A directory of the prover's own, for checkouts and homes.
    pub scratch: &'a Path,
    /// The hidden checks, if there are any.
    pub hidden: Option<UnseenChecks<'a>>,
    /// The run's name, which distinguishes its sandboxes from others.
    pub name: &'a str,
    /// The person's dependencies that commands see.
    pub dependencies: &'a Dependencies,
    /// The isolation.
    pub level: SandboxLevel,
    /// What commands can reach.
    pub network: NetworkMode,
    /// What can be reached where the work's dependencies are installed.
    pub downloads: &'a Downloads,
}

/// What a goal's commands are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofSubject {
    /// The work of a turn.
    Candidate,
    /// What it began with.
    Base,
}

/// Checks that the agent never sees.
#[derive(Debug, Clone, Copy)]
pub enum UnseenChecks<'a> {
    /// Those of an approved contract, in the person's home; each use rehashes them.
    Kept {
        /// What was approved.
        approved: &'a HiddenCheckSet,
        /// Where they are kept.
        at: &'a Path,
    },
    /// A directory that a person names now.
    Directory(&'a Path),
}

/// The work that is looked at.
#[derive(Debug, Clone)]
pub struct WorkToProve<'a> {
    /// The branch that git inside seems to be on.
    pub(crate) branch: &'a str,
    /// Where the work began, from which protected files are taken.
    pub(crate) base: CommitId,
    /// The work.
    pub(crate) commit: CommitId,
    /// Patterns of files that stay as they are at the base.
    pub(crate) protect: &'a [String],
    /// What it does to the checks.
    change: ProvedChange,
}

impl<'a> WorkToProve<'a> {
    /// Looks over what lies between a base and the work, its commit.
    pub fn of(
        repository: &Repository,
        branch: &'a str,
        range: CommitRange,
        protect: &'a [String],
    ) -> Result<Self, Failure> {
        let change = ProvedChange::between(repository, &range.base, &range.commit)?;
        Ok(Self::with(change, branch, range, protect))
    }

    /// Takes a commit on which scripts of the person are run: what lies between it and its base is judged
    /// by what they measure, and is not looked over.
    pub(crate) fn to_measure(
        repository: &Repository,
        branch: &'a str,
        range: CommitRange,
        protect: &'a [String],
    ) -> Result<Self, Failure> {
        let change = ProvedChange::between(repository, &range.commit, &range.commit)?;
        Ok(Self::with(change, branch, range, protect))
    }

    fn with(
        change: ProvedChange,
        branch: &'a str,
        range: CommitRange,
        protect: &'a [String],
    ) -> Self {
        let CommitRange { base, commit } = range;
        Self {
            branch,
            base,
            commit,
            protect,
            change,
        }
    }
}

impl WorkToProve<'_> {
    /// Tells whether it is where the work begins, with nothing done yet.
    fn is_base(&self) -> bool {
        self.base == self.commit
    }
}

/// What is claimed of it: that these commands pass.
#[derive(Debug, Clone, Copy)]
pub struct ProofClaim<'a> {
    /// The shell lines.
    pub commands: &'a [String],
    /// What the checks are held to.
    pub policy: CheckPolicy,
    /// Whether every check passed on the base, so that it is worth knowing whether the change's own
    /// tests fail without the change.
    pub base_is_green: bool,
    /// The longest that taking back each hunk in turn may take, in milliseconds, where that is asked.
    pub strength_ms: Option<u64>,
    /// The longest one line may take, in milliseconds.
    pub timeout_ms: u64,
    /// When all of them have to be over, by [`monotonic_ms`], where something bounds that.
    pub until_ms: Option<u64>,
}

impl ProofClaim<'_> {
    /// Returns the longest the next line may take, in milliseconds.
    fn line_ms(&self) -> u64 {
        let left_ms = self
            .until_ms
            .map(|until| until.saturating_sub(monotonic_ms()));
        left_ms.map_or(self.timeout_ms, |left| left.min(self.timeout_ms))
    }
}

impl Prover<'_> {
    /// Runs the commands on the work and says what they show; nothing where it was called off.
    ///
    /// The hidden checks run only after everything visible passed. What is needed to tell what the
    /// proof rests on is run last, and only where all checks pass.
    pub fn prove(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
    ) -> Result<Option<VerifyReport>, Failure> {
        match self.prepare(work, claim)? {
            WorkDependencies::AsLent => self.prove_with(work, claim, self.site.dependencies),
            WorkDependencies::Own(dependencies) => self.prove_with(work, claim, &dependencies),
            WorkDependencies::Cancelled => Ok(None),
            WorkDependencies::Lacking(lacking) => {
                let why = &lacking.why;
                (self.listener.watch.notice)(Activity::Note { text: why.clone() });
                let shared_in = self.site.dependencies;
                let Some(mut report) = self.prove_with(work, claim, shared_in)? else {
                    return Ok(None);
                };
                // It may be why they fail.
                for run in report.runs.iter_mut().filter(|run| !run.passed()) {
                    run.output_tail = format!("{}\n[kapi: {why}]\n", run.output_tail);
                }
                report.inspection.lacking = Some(lacking);
                Ok(Some(report))
            }
        }
    }

    fn prove_with(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        dependencies: &Dependencies,
    ) -> Result<Option<VerifyReport>, Failure> {
        let dependencies = dependencies.after_change(&work.change.code);
        let built = self.with_built(work, &dependencies)?;
        let site = ProverSite {
            dependencies: built.as_ref().unwrap_or(&dependencies),
            ..self.site
        };
        Prover { site, ..*self }.prove_as_it_is(work, claim)
    }

    fn prove_as_it_is(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
    ) -> Result<Option<VerifyReport>, Failure> {
        let mut report = self.report(work, claim.policy)?;
        if !self.run_all(work, claim, Checks::Visible, &mut report)? {
            return Ok(None);
        }
        if self.site.hidden.is_some()
            && report.passed()
            && !self.run_all(work, claim, Checks::Hidden, &mut report)?
        {
            return Ok(None);
        }
        if report.passed() && !self.look_closer(work, claim, &mut report)? {
            return Ok(None);
        }
        Ok(Some(report))
    }

    /// Runs the commands on the base itself, hidden checks included whatever the visible ones say.
    pub fn baseline(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
    ) -> Result<Option<VerifyReport>, Failure> {
        let mut report = VerifyReport {
            commit: work.commit.to_string(),
            tree: self.tree(&work.commit)?.to_string(),
            tampered: Vec::new(),
            runs: Vec::new(),
            inspection: Box::default(),
        };
        if !self.run_all(work, claim, Checks::Visible, &mut report)? {
            return Ok(None);
        }
        if self.site.hidden.is_some() && !self.run_all(work, claim, Checks::Hidden, &mut report)? {
            return Ok(None);
        }
        // What a run changes on the base is the project's own doing.
        report.tampered.clear();
        Ok(Some(report))
    }

    /// Returns a report in which nothing has run yet.
    fn report(&self, work: &WorkToProve<'_>, policy: CheckPolicy) -> Result<VerifyReport, Failure> {
        let tampered = self
            .repo
            .repository
            .protected_changes(&work.base, &work.commit, work.protect)
            .map_err(|error| failure::plain(&error))?;
        let mut tampered: Vec<String> = tampered
            .iter()
            .map(|change| change.path.display().to_string())
            .collect();
        if policy.tests == TestPolicy::Locked {
            let touched = work.change.facts.tests.iter();
            tampered.extend(touched.map(|test| test.path.clone()));
        }
        Ok(VerifyReport {
            commit: work.commit.to_string(),
            tree: self.tree(&work.commit)?.to_string(),
            tampered: first(tampered),
            runs: Vec::new(),
            inspection: Box::new(work.change.inspection()),
        })
    }

    fn tree(&self, commit: &CommitId) -> Result<TreeId, Failure> {
        self.repo
            .repository
            .tree_of(commit)
            .map_err(|error| failure::plain(&error))
    }

    /// Runs all commands on a fresh checkout; `false` when it was called off on the way.
    ///
    /// What one command builds is there for the next. What one could prepare against the next is
    /// not: sealed files, the home and the view of git are made anew for each.
    fn run_all(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        checks: Checks,
        report: &mut VerifyReport,
    ) -> Result<bool, Failure> {
        let Some(ran) = self.runs_on(work, claim, checks, &PutBack::default())? else {
            return Ok(false);
        };
        for ended in ran {
            let log = format!("verify-{}.log", report.runs.len() + 1);
            self.listener.run_dir.keep(&log, ended.output.as_bytes())?;
            report.tampered.extend(ended.tampered);
            report.runs.push(ended.run);
        }
        report.tampered = first(std::mem::take(&mut report.tampered));
        Ok(true)
    }

    /// Runs the commands once more with all that checks as at the base, and, where they fail then,
    /// with each part of it; and with the base's code, where only the change's tests can speak for
    /// it.
    fn look_closer(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        report: &mut VerifyReport,
    ) -> Result<bool, Failure> {
        let parts = work.change.parts_that_check(claim);
        let Some(all) = self.rerun(work, claim, &parts)? else {
            return Ok(false);
        };
        let holds = all.iter().all(VerifyRun::passed);
        let seen = &mut report.inspection;
        for part in [ChangePart::Tests, ChangePart::Steering] {
            if holds || !parts.contains(&part) {
                continue;
            }
            let runs = if parts == [part] {
                Some(all.clone())
            } else {
                self.rerun(work, claim, &[part])?
            };
            let Some(runs) = runs else { return Ok(false) };
            match part {
                ChangePart::Tests => seen.with_base_tests = runs,
                ChangePart::Steering
                | ChangePart::NewTests
                | ChangePart::Code
                | ChangePart::CodeUnderTest => {
                    seen.with_base_steering = runs;
                }
            }
        }
        seen.with_base_checks = all;
        let held = if holds { parts } else { Vec::new() };
        if !claim.policy.flagged_code && !self.look_for_fakes(work, claim, &held, report)? {
            return Ok(false);
        }
        let seen = &mut report.inspection;
        if claim.base_is_green && work.change.brings_tests() {
            match self.rerun(
                work,
                claim,
                &[ChangePart::CodeUnderTest, ChangePart::Steering],
            )? {
                Some(all) => seen.on_base_code = all,
                None => return Ok(false),
            }
        }
        if let Some(budget_ms) = claim.strength_ms {
            let run_ms = report.runs.iter().map(|run| run.duration_ms).sum();
            let budget = strength::MutationBudget { budget_ms, run_ms };
            match self.strength(work, claim, budget)? {
                Some(strength) => {
                    let says_something = strength.hunks > 0 || strength.untried > 0;
                    report.inspection.strength = says_something.then_some(strength);
                }
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Runs the commands with parts of the change put back, if there are any; nothing when it was
    /// called off.
    fn rerun(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        parts: &[ChangePart],
    ) -> Result<Option<Vec<VerifyRun>>, Failure> {
        if parts.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let put_back = work.change.put_back(&self.repo.repository, claim, parts)?;
        let ran = self.runs_on(work, claim, Checks::Visible, &put_back)?;
        Ok(ran.map(|all| all.into_iter().map(|ended| ended.run).collect()))
    }
}

/// Returns paths once each, sorted, as many as are recorded.
fn first(mut paths: Vec<String>) -> Vec<String> {
    paths.sort();
    paths.dedup();
    paths.truncate(TAMPERED_MAX);
    paths
}
