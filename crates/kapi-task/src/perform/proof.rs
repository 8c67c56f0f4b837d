//! Proving what an attempt left: its verify commands and evals, by the one prover.
//!
//! Says in the words of the kernel how that came out. Knows no rule of its own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::prover::checkout::LineResult;
use kapi_check::perform::prover::{ProofClaim, Prover, ProverSite, WorkToProve, strength};
use kapi_check::rules::proof::assess::Grade;
use kapi_check::rules::proof::downloads::Downloads;
use kapi_check::rules::proof::inspection::Inspection;
use kapi_check::rules::proof::obstacle::Obstacle;
use kapi_check::rules::proof::verify_report::{VerifyReport, run_end};
use kapi_check::rules::proof::verify_run::VerifyRun;
use kapi_check::rules::proof::{assess, baseline, obstacle};
use kapi_core::failure::Failure;
use kapi_core::isolation::NetworkMode;
use kapi_git::id::CommitId;
use kapi_git::owned_dir;
use kapi_git::ref_name::shown_name;
use kapi_git::repository::range::CommitRange;
use kapi_goal::perform::survey::checks_named_in;
use kapi_launch::paths::SandboxPaths;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_run::private_dir::make_private;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;
use kapi_run::{failure, repository_session};
use kapi_sys::clock::monotonic_ms;

use super::Performer;
use super::attempt::TaskAttempt;
use super::ending::{eval_failed, not_launched, not_launched_but, refused};
use crate::rules;
use crate::rules::request::KernelRequest;
use crate::rules::task::End;

/// The longest a verify command may take, in milliseconds: half an hour.
const VERIFY_MS: u64 = 30 * 60 * 1_000;
/// What is under way where no one command is.
const PROOF: &str = "the proof of its work";
/// The branch that git inside a sandbox seems to be on where the work has none.
const NO_BRANCH: &str = "detached";
/// Digits of a project's key that tell its sandboxes from those of others.
const KEY_DIGITS: usize = 12;

/// What proves the work of one attempt.
pub(super) struct TaskProver<'a> {
    performer: &'a Performer<'a>,
    attempt: TaskAttempt<'a>,
    repo: RepositorySession,
    location: SandboxPaths,
    scratch: PathBuf,
}

/// Where the work of an attempt is.
#[derive(Debug, Clone)]
pub(super) struct AttemptWork<'a> {
    /// Its branch, if it changed anything.
    branch: Option<&'a str>,
    /// The revision that its changes begin at, if it made any.
    began_at: Option<String>,
    /// The commit it left, or began at.
    commit: Option<&'a str>,
}

impl<'a> AttemptWork<'a> {
    /// Returns where the work is that a report tells of.
    pub(super) fn of(work: &'a rules::task::AttemptChanges) -> Self {
        Self {
            branch: work.branch.as_deref(),
            began_at: work.began_at(),
            commit: work.commit.as_deref(),
        }
    }
}

/// What checks that pass show of a task's work.
#[derive(Debug)]
pub(super) struct ProvedWork {
    grade: Grade,
    inspection: Box<Inspection>,
}

impl ProvedWork {
    /// Records it with the work.
    pub(super) fn record(self, work: &mut rules::task::AttemptChanges) {
        work.grade = Some(self.grade);
        *work.inspection = self.inspection.without_output();
    }
}

impl<'a> TaskProver<'a> {
    /// Opens the prover of an attempt.
    pub(super) fn open(
        performer: &'a Performer<'a>,
        attempt: TaskAttempt<'a>,
    ) -> Result<Self, End> {
        let TaskAttempt { task, handle, .. } = attempt;
        let root = performer.project.layout.root();
        let repo = RepositorySession::open(&performer.grants, root, handle.cancel());
        let repo = repo.map_err(|failure| refused(&failure))?;
        let id = Performer::sandbox_id(task, handle)?;
        let setting = &performer.setting;
        let location = setting.sandboxes.location(&setting.project_key, &id);
        make_private(&location.dir()).map_err(|error| not_launched(error.message))?;
        let scratch = location.dir().join("proof");
        Ok(Self {
            performer,
            attempt,
            repo,
            location,
            scratch,
        })
    }

    /// Runs the verify commands on what the attempt begins at. A command that cannot work there is
    /// the end of it, before an agent is asked anything.
    ///
    /// At most half of the time that is left goes to this. Where that is too little, nothing is known
    /// of the base.
    pub(super) fn baseline(&self) -> Result<Option<VerifyReport>, End> {
        self.baseline_at(self.request().base.as_deref().unwrap_or("HEAD"))
    }

    /// Does the same on what a run began at that has ended.
    pub(super) fn baseline_of(&self, left: &AttemptWork<'_>) -> Result<Option<VerifyReport>, End> {
        match &left.began_at {
            Some(began_at) => self.baseline_at(began_at),
            None => Ok(None),
        }
    }

    fn baseline_at(&self, named: &str) -> Result<Option<VerifyReport>, End> {
        let commands = &self.request().verify;
        if commands.is_empty() {
            return Ok(None);
        }
        let Ok(commit) = self.repo.repository.resolve_commit(named) else {
            // The launch says what is missing.
            return Ok(None);
        };
        let left = AttemptWork {
            branch: None,
            began_at: None,
            commit: Some(commit.as_str()),
        };
        let claim = ProofClaim {
            commands,
            policy: self.request().checks,
            base_is_green: false,
            strength_ms: None,
            timeout_ms: VERIFY_MS,
            until_ms: self.until_ms(2),
        };
        let report = self.with_prover(&left, |prover, work| prover.baseline(work, &claim))?;
        let was_cut_short = |run: &VerifyRun| run.timed_out && run.duration_ms < VERIFY_MS;
        match baseline::obstacle(&report) {
            None if report.runs.iter().any(was_cut_short) => Ok(None),
            None => Ok(Some(report)),
            Some(obstacle) => Err(cannot_run(obstacle)),
        }
    }

    /// Proves the verify commands on what the attempt left.
    pub(super) fn prove(
        &self,
        left: &AttemptWork<'_>,
        before: Option<&VerifyReport>,
    ) -> Result<ProvedWork, End> {
        let allowance = self.attempt.allowance;
        let claim = ProofClaim {
            commands: &self.request().verify,
            policy: self.request().checks,
            strength_ms: self.request().checks.strength.then_some(strength::ASKED_MS),
            base_is_green: before.is_some_and(baseline::is_green),
            timeout_ms: allowance.bounded(VERIFY_MS)?,
            until_ms: self.until_ms(1),
        };
        let report = self.with_prover(left, |prover, work| prover.prove(work, &claim))?;
        let last = report.all_runs().filter(|run| run.timed_out).last();
        let under_way = last.map_or_else(|| PROOF.to_owned(), |run| format!("`{}`", run.command));
        if let Some(spent) = allowance.spent_in(&under_way) {
            return Err(spent);
        }
        if let Some(obstacle) = report.killed().and_then(obstacle::of_kill) {
            return Err(cannot_run(obstacle));
        }
        if let Some(path) = report.tampered.first() {
            return Err(eval_failed(format!(
                "the protected file {path} was changed, so the checks prove nothing"
            )));
        }
        if let Some(run) = report.runs.iter().find(|run| !run.passed()) {
            return Err(eval_failed(sentence(run)));
        }
        let nothing = BTreeSet::new();
        match assess::objection(&claim.policy, before, &report, &nothing, false) {
            Some(objection) => Err(eval_failed(format!(
                "the checks pass, but {}; review the work and merge it yourself if it is correct",
                objection.words()
            ))),
            None => Ok(ProvedWork {
                grade: assess::grade(before, &report),
                inspection: report.inspection,
            }),
        }
    }

    /// Runs one line on a clean checkout of what the attempt left; nothing of it stays.
    pub(super) fn run_once(
        &self,
        left: &AttemptWork<'_>,
        line: &str,
        timeout_ms: u64,
    ) -> Result<LineResult, End> {
        let ended =
            self.with_prover(left, |prover, work| prover.run_once(work, line, timeout_ms))?;
        match obstacle::of_kill(&ended.run) {
            Some(obstacle) => Err(cannot_run(obstacle)),
            None => Ok(ended),
        }
    }

    fn request(&self) -> &'a KernelRequest {
        &self.attempt.task.request
    }

    /// Returns when a part of the time that is left is over.
    fn until_ms(&self, n_parts: u64) -> Option<u64> {
        let left_ms = self.attempt.allowance.left_ms()?;
        Some(monotonic_ms().saturating_add(left_ms / n_parts))
    }

    /// Lets the prover do something, in a directory that goes with it.
    fn with_prover<T>(
        &self,
        left: &AttemptWork<'_>,
        act: impl FnOnce(&Prover<'_>, &WorkToProve<'_>) -> Result<Option<T>, Failure>,
    ) -> Result<T, End> {
        let done = self.in_scratch(left, act);
        let wiped = owned_dir::wipe(&self.scratch).map_err(|error| failure::plain(&error));
        let done = done.map_err(|failure| self.stopped(&failure))?;
        wiped.map_err(|failure| refused(&failure))?;
        done.ok_or(End::Cancelled)
    }

    fn in_scratch<T>(
        &self,
        left: &AttemptWork<'_>,
        act: impl FnOnce(&Prover<'_>, &WorkToProve<'_>) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        let Some(commit) = left.commit else {
            return Err(Failure {
                message: "make a clean checkout: the project is not a git repository with a commit"
                    .to_owned(),
                hint: None,
            });
        };
        let repository = &self.repo.repository;
        let base = match &left.began_at {
            Some(began_at) => repository
                .resolve_commit(began_at)
                .map_err(|error| failure::plain(&error))?,
            None => repository_session::commit_id(commit)?,
        };
        let commit = repository_session::commit_id(commit)?;
        let protect = self.protected(&base)?;
        let branch = left.branch.map_or(NO_BRANCH, shown_name);
        let work = WorkToProve::of(repository, branch, CommitRange { base, commit }, &protect)?;
        let notice = |activity: Activity| (self.performer.notice)(self.attempt.task.id, activity);
        let watch = EffectWatch {
            cancel: self.attempt.handle.cancel(),
            notice: &notice,
            room: &unlimited,
        };
        make_private(&self.scratch).map_err(|error| Failure {
            message: error.message,
            hint: error.hint,
        })?;
        let run_dir = RunDir::open(&self.scratch, "run")?;
        let (name, stores) = (self.name(), self.location.stores());
        let dependencies = Dependencies::find(&self.performer.grants, repository)?;
        let prover = Prover {
            grants: &self.performer.grants,
            repo: &self.repo,
            site: ProverSite {
                project: self.performer.project.layout.root(),
                stores: &stores,
                scratch: &self.scratch,
                hidden: None,
                name: &name,
                dependencies: &dependencies,
                level: self.performer.setting.level,
                network: NetworkMode::None,
                downloads: &Downloads::within(self.performer.setting.network),
            },
            listener: Listener {
                watch: &watch,
                run_dir: &run_dir,
            },
        };
        act(&prover, &work)
    }

    /// Returns what was named as protected, and scripts that the commands name, unless the prompt
    /// speaks of them.
    fn protected(&self, base: &CommitId) -> Result<Vec<String>, Failure> {
        let request = self.request();
        let mut protect = request.protect.clone();
        let named = checks_named_in(&self.repo.repository, base, &request.verify)?;
        let is_meant = |path: &String| request.prompt.contains(path.as_str());
        protect.extend(named.into_iter().filter(|path| !is_meant(path)));
        Ok(protect)
    }

    fn stopped(&self, failure: &Failure) -> End {
        if self.attempt.handle.cancel().is_raised() {
            return End::Cancelled;
        }
        refused(failure)
    }

    /// Returns the name of a sandbox, unlike that of any other that runs now.
    fn name(&self) -> String {
        let key = self.location.project_key();
        let digits = key.get(key.len().saturating_sub(KEY_DIGITS)..);
        let id = self.location.id().as_str();
        format!("{}-{id}-proof", digits.unwrap_or_default())
    }
}

/// Says how a line ended, with the end of what it wrote.
pub(super) fn end_of(run: &VerifyRun) -> String {
    let how = run_end(run);
    match run.output_tail.trim() {
        "" => how,
        output => format!("{how}\n{output}"),
    }
}

fn cannot_run(obstacle: Obstacle) -> End {
    not_launched_but(obstacle.sentence(), obstacle.remedy)
}

fn sentence(run: &VerifyRun) -> String {
    format!(
        "`{}` did not pass on a clean checkout: {}",
        run.command,
        end_of(run)
    )
}
