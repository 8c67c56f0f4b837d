//! The prover: the one place that runs a person's checks on somebody's work.
//!
//! Each claim is proved on clean checkouts: nothing an agent left running, ignored or uncommitted is
//! there. Protected files, tests and hidden checks cannot be written while a command runs, and are
//! compared afterwards all the same. What a report means is decided in core.

use std::path::Path;

use kapi_core::goal::contract::{Hidden, NetworkMode, SandboxLevel};
use kapi_core::goal::outcome::{Checks, Failure, VerifyReport, VerifyRun};
use kapi_core::proof::inspection::Inspection;
use kapi_core::proof::policy::{CheckPolicy, TestPolicy};
use kapi_engine::drive::monotonic_ms;
use kapi_git::id::{CommitId, TreeId};
use kapi_git::repository::Repository;

use self::change::Change;
use self::checkout::{Checkout, Content};
use crate::book::Book;
use crate::dependencies::Dependencies;
use crate::failure;
use crate::shell::Listener;
use crate::workshop::Workshop;

pub(crate) mod checkout;

mod change;
mod document;
mod seal;
mod strength;
mod text;

/// How many tampered paths are recorded.
const TAMPERED_MAX: usize = 50;

/// What proves commits of one repository.
pub(crate) struct Prover<'a> {
    /// What may be used of the host.
    pub(crate) book: &'a Book,
    /// The repository.
    pub(crate) workshop: &'a Workshop,
    /// Where and in what isolation commands are run.
    pub(crate) site: Site<'a>,
    /// Who hears of it.
    pub(crate) listener: Listener<'a>,
}

/// Where and in what isolation commands are run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'a> {
    /// The person's own path of the project.
    pub(crate) project: &'a Path,
    /// The objects that sandboxes are lent.
    pub(crate) stores: &'a Path,
    /// A directory of the prover's own, for checkouts and homes.
    pub(crate) scratch: &'a Path,
    /// The hidden checks, if there are any.
    pub(crate) hidden: Option<HiddenChecks<'a>>,
    /// The run's name, by which its sandboxes can be told from others.
    pub(crate) name: &'a str,
    /// What commands are lent of the person's dependencies.
    pub(crate) dependencies: &'a Dependencies,
    /// The isolation.
    pub(crate) level: SandboxLevel,
    /// What commands can reach.
    pub(crate) network: NetworkMode,
}

/// Checks that the agent never sees.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HiddenChecks<'a> {
    /// Those of an approved contract, in the person's home; each use rehashes them.
    Kept {
        /// What was approved.
        approved: &'a Hidden,
        /// Where they are kept.
        at: &'a Path,
    },
    /// A directory that a person names now.
    Directory(&'a Path),
}

/// The work that is looked at.
#[derive(Debug, Clone)]
pub(crate) struct Work<'a> {
    /// The branch that git inside seems to be on.
    pub(crate) branch: &'a str,
    /// Where the work began, from which protected files are taken.
    pub(crate) base: CommitId,
    /// The work.
    pub(crate) commit: CommitId,
    /// Patterns of files that stay as they are at the base.
    pub(crate) protect: &'a [String],
    /// What it does to the checks.
    change: Change,
}

impl<'a> Work<'a> {
    /// Looks over what lies between two commits, `base` and the work itself.
    pub(crate) fn of(
        repository: &Repository,
        branch: &'a str,
        commits: (CommitId, CommitId),
        protect: &'a [String],
    ) -> Result<Self, Failure> {
        let (base, commit) = commits;
        Ok(Self {
            change: Change::between(repository, &base, &commit)?,
            branch,
            base,
            commit,
            protect,
        })
    }
}

/// What is claimed of it: that these commands pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    /// The shell lines.
    pub(crate) commands: &'a [String],
    /// What the checks are held to.
    pub(crate) policy: CheckPolicy,
    /// The longest one line may take, in milliseconds.
    pub(crate) timeout_ms: u64,
    /// When all of them have to be over, by [`monotonic_ms`], where something bounds that.
    pub(crate) until_ms: Option<u64>,
}

impl Claim<'_> {
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
    pub(crate) fn prove(
        &self,
        work: &Work<'_>,
        claim: &Claim<'_>,
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
    pub(crate) fn baseline(
        &self,
        work: &Work<'_>,
        claim: &Claim<'_>,
    ) -> Result<Option<VerifyReport>, Failure> {
        let mut report = VerifyReport {
            commit: work.commit.to_string(),
            tree: self.tree(&work.commit)?.to_string(),
            tampered: Vec::new(),
            runs: Vec::new(),
            inspection: Inspection::default(),
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

    /// Runs one line on a checkout of its own.
    pub(crate) fn run_once(
        &self,
        work: &Work<'_>,
        line: &str,
        timeout_ms: u64,
    ) -> Result<Option<checkout::Ended>, Failure> {
        let mut checkout = Checkout::make(self, work, Content::AsCommitted)?;
        let ended = checkout.run(line, Checks::Visible, timeout_ms);
        checkout.discard()?;
        ended
    }

    /// Returns a report in which nothing has run yet.
    fn report(&self, work: &Work<'_>, policy: CheckPolicy) -> Result<VerifyReport, Failure> {
        let tampered = self
            .workshop
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
            inspection: work.change.inspection(),
        })
    }

    fn tree(&self, commit: &CommitId) -> Result<TreeId, Failure> {
        self.workshop
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
        work: &Work<'_>,
        claim: &Claim<'_>,
        checks: Checks,
        report: &mut VerifyReport,
    ) -> Result<bool, Failure> {
        let Some(ran) = self.runs_on(work, claim, checks, Content::AsCommitted)? else {
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

    /// Runs all commands on a fresh checkout with some content; nothing when it was called off.
    fn runs_on(
        &self,
        work: &Work<'_>,
        claim: &Claim<'_>,
        checks: Checks,
        content: Content<'_>,
    ) -> Result<Option<Vec<checkout::Ended>>, Failure> {
        let mut checkout = Checkout::make(self, work, content)?;
        let mut all = Vec::new();
        for command in claim.commands {
            let Some(ended) = checkout.run(command, checks, claim.line_ms())? else {
                checkout.discard()?;
                return Ok(None);
            };
            all.push(ended);
        }
        checkout.discard()?;
        Ok(Some(all))
    }

    /// Runs the commands once more with the base's tests, and with its steering files, where the
    /// change touched these.
    fn look_closer(
        &self,
        work: &Work<'_>,
        claim: &Claim<'_>,
        report: &mut VerifyReport,
    ) -> Result<bool, Failure> {
        let change = &work.change;
        let tests = change.tests_touched();
        if !tests.is_empty() {
            let content = Content::BaseFiles(&tests);
            match self.runs_on(work, claim, Checks::Visible, content)? {
                Some(all) => report.inspection.with_base_tests = runs(all),
                None => return Ok(false),
            }
        }
        if change.steers() && !claim.policy.changed_steering {
            let content = Content::BaseSteering(change);
            match self.runs_on(work, claim, Checks::Visible, content)? {
                Some(all) => report.inspection.with_base_steering = runs(all),
                None => return Ok(false),
            }
        }
        if claim.policy.strength {
            match self.strength(work, claim)? {
                Some(strength) => report.inspection.strength = Some(strength),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn runs(all: Vec<checkout::Ended>) -> Vec<VerifyRun> {
    all.into_iter().map(|ended| ended.run).collect()
}

/// Returns paths once each, sorted, as many as are recorded.
fn first(mut paths: Vec<String>) -> Vec<String> {
    paths.sort();
    paths.dedup();
    paths.truncate(TAMPERED_MAX);
    paths
}
