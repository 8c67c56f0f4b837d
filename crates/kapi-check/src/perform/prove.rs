//! Proving a change that Kapi did not make: any commit, branch or range, without a goal or an agent.
//!
//! The same prover and the same judge as everywhere; nothing is recorded, and the repository is only
//! read.

use std::path::PathBuf;
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::verdict::JudgeRun;
use kapi_git::repository::range::CommitRange;
use kapi_machine::watch::EffectWatch;
use kapi_run::gate::GateRules;
use kapi_run::host_grants::HostGrants;
use kapi_run::private_scratch::PrivateScratch;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;
use kapi_run::{failure, repository_session};
use kapi_spend::rules::day::Day;

use crate::perform::dependencies::Dependencies;
use crate::perform::judge;
use crate::perform::judge::evidence::JudgedChange;
use crate::perform::judge::{JudgeQuestion, JudgeRetry, Judgement};
use crate::perform::prover::{ProofClaim, Prover, ProverSite, UnseenChecks, WorkToProve, strength};
use crate::rules::proof::baseline;
use crate::rules::proof::conclusion::{Conclusion, ProofFindings, ProofStatus};
use crate::rules::proof::downloads::{Downloads, Lacking};
use crate::rules::proof::judge_prompt::{JudgeSubject, NamedReport, instructions, material};
use crate::rules::proof::policy::CheckPolicy;
use crate::rules::proof::verify_report::VerifyReport;

/// The branch that git inside a sandbox seems to be on.
const BRANCH: &str = "change";
/// The longest a judge may take.
const JUDGE_DEADLINE: Duration = Duration::from_secs(10 * 60);

/// What is to be proved, and how.
#[derive(Debug, Clone)]
pub struct ProofRequest {
    /// The project: the repository's top level.
    pub project: PathBuf,
    /// A commit, a branch or a range.
    pub target: String,
    /// What it is compared with, where that is said.
    pub base: Option<String>,
    /// The commands that must pass.
    pub verify: Vec<String>,
    /// Patterns of files that stay as they are at the base.
    pub protect: Vec<String>,
    /// A directory of checks that lie over the change.
    pub hidden: Option<PathBuf>,
    /// What the checks are held to.
    pub policy: CheckPolicy,
    /// The longest one command may take, in milliseconds.
    pub timeout_ms: u64,
    /// The isolation.
    pub level: SandboxLevel,
    /// What commands can reach.
    pub network: NetworkMode,
    /// What can be reached where dependencies are installed that the change asks for.
    pub downloads: Downloads,
    /// Who judges, if anybody does.
    pub judge: Option<String>,
    /// What the change is for, for the judge.
    pub intent: Option<String>,
    /// What the commands leave out, as sentences for whoever reads the proof.
    pub not_covered: Vec<String>,
    /// Where checkouts are made: a directory of Kapi's own for this project.
    pub scratch: PathBuf,
    /// The objects that sandboxes share.
    pub stores: PathBuf,
    /// Today, for prices.
    pub today: Day,
}

/// What was found out.
#[derive(Debug, Clone)]
pub struct ChangeProof {
    /// The commit it was compared with.
    pub base: String,
    /// The commit that was looked at.
    pub commit: String,
    /// What the checks showed on the base.
    pub baseline: VerifyReport,
    /// What they showed on the change; nothing where they cannot work.
    pub report: Option<VerifyReport>,
    /// What a judge said, if one was asked.
    pub judged: Option<JudgeRun>,
    /// What it comes to.
    pub conclusion: Conclusion,
    /// What the commands leave out, as sentences.
    pub not_covered: Vec<String>,
}

/// Proves a change; nothing where it was called off.
///
/// # Errors
/// When the change cannot be told, or git, a sandbox or the judge's settings fail.
pub fn prove(
    grants: &HostGrants,
    request: &ProofRequest,
    watch: &EffectWatch<'_>,
) -> Result<Option<ChangeProof>, Failure> {
    let repo = RepositorySession::open(grants, &request.project, watch.cancel)?;
    let range = repo
        .repository
        .range(&request.target, request.base.as_deref())
        .map_err(|error| Failure {
            message: failure::chain(&error),
            hint: error.hint().map(str::to_owned),
        })?;
    with_prover(grants, request, &repo, watch, |prover| {
        proved(prover, request, &range)
    })
}

/// Runs the commands on a commit as it is, each on what those before it left; nothing where it was
/// called off. Nothing is compared and nobody judges.
///
/// # Errors
/// When there is no such commit, or git or a sandbox fail.
pub fn run_on(
    grants: &HostGrants,
    request: &ProofRequest,
    watch: &EffectWatch<'_>,
) -> Result<Option<VerifyReport>, Failure> {
    let repo = RepositorySession::open(grants, &request.project, watch.cancel)?;
    let commit = repo
        .repository
        .resolve_commit(&request.target)
        .map_err(|error| failure::plain(&error))?;
    with_prover(grants, request, &repo, watch, |prover| {
        let at = CommitRange::at(&commit);
        let work = WorkToProve::of(&prover.repo.repository, BRANCH, at, &request.protect)?;
        prover.baseline(&work, &claim(request))
    })
}

/// Does something with the prover of a request, in a directory of its own.
fn with_prover<T>(
    grants: &HostGrants,
    request: &ProofRequest,
    repo: &RepositorySession,
    watch: &EffectWatch<'_>,
    act: impl FnOnce(&Prover<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let scratch = PrivateScratch::open(&request.scratch, &request.project, "kapi prove")?;
    let run_dir = RunDir::open(scratch.path(), "run")?;
    let name = format!("prove-{}", std::process::id());
    let dependencies = Dependencies::find(grants, &repo.repository)?;
    let prover = Prover {
        grants,
        repo,
        site: ProverSite {
            project: &request.project,
            stores: &request.stores,
            scratch: scratch.path(),
            hidden: request.hidden.as_deref().map(UnseenChecks::Directory),
            name: &name,
            dependencies: &dependencies,
            level: request.level,
            network: request.network,
            downloads: &request.downloads,
        },
        listener: Listener {
            watch,
            run_dir: &run_dir,
        },
    };
    act(&prover)
}

/// Proves a range, and asks the judge where that is worth it.
fn proved(
    prover: &Prover<'_>,
    request: &ProofRequest,
    range: &CommitRange,
) -> Result<Option<ChangeProof>, Failure> {
    let Some(mut proof) = checked(prover, request, range)? else {
        return Ok(None);
    };
    let is_worth_asking = proof.report.as_ref().is_some_and(VerifyReport::passed)
        && proof.conclusion.state != ProofStatus::CannotRun;
    if let Some(judge) = request.judge.as_deref().filter(|_| is_worth_asking) {
        let asked = Asking {
            prover,
            request,
            proof: &proof,
            judge,
        };
        let Some(run) = asked.ask()? else {
            return Ok(None);
        };
        proof.judged = Some(run);
        proof.conclusion = proof.findings(&request.policy).conclusion();
    }
    Ok(Some(proof))
}

/// Runs the checks on the base and, where they can work there, on the change.
fn checked(
    prover: &Prover<'_>,
    request: &ProofRequest,
    range: &CommitRange,
) -> Result<Option<ChangeProof>, Failure> {
    let mut claim = claim(request);
    let repository = &prover.repo.repository;
    let at_base = CommitRange::at(&range.base);
    let base = WorkToProve::of(repository, BRANCH, at_base, &request.protect)?;
    let Some(baseline) = prover.baseline(&base, &claim)? else {
        return Ok(None);
    };
    let mut proof = ChangeProof {
        base: range.base.to_string(),
        commit: range.commit.to_string(),
        baseline,
        report: None,
        judged: None,
        conclusion: Conclusion {
            state: ProofStatus::Refused,
            reason: String::new(),
            hint: None,
        },
        not_covered: request.not_covered.clone(),
    };
    if baseline::obstacle(&proof.baseline).is_none() {
        claim.base_is_green = baseline::is_green(&proof.baseline);
        let work = WorkToProve::of(repository, BRANCH, range.clone(), &request.protect)?;
        let Some(report) = prover.prove(&work, &claim)? else {
            return Ok(None);
        };
        proof.report = Some(report);
    }
    proof.conclusion = proof.findings(&request.policy).conclusion();
    Ok(Some(proof))
}

/// Returns what is claimed before anything was run.
fn claim(request: &ProofRequest) -> ProofClaim<'_> {
    ProofClaim {
        commands: &request.verify,
        policy: request.policy,
        base_is_green: false,
        strength_ms: request.policy.strength.then_some(strength::ASKED_MS),
        timeout_ms: request.timeout_ms,
        until_ms: None,
    }
}

impl ChangeProof {
    /// Returns the dependencies for want of which the checks fail, if that is why.
    #[must_use]
    pub fn lacking(&self) -> Option<&Lacking> {
        let report = self.report.as_ref().filter(|report| !report.passed())?;
        report.inspection.lacking.as_ref()
    }

    fn findings<'a>(&'a self, policy: &'a CheckPolicy) -> ProofFindings<'a> {
        ProofFindings {
            policy,
            baseline: &self.baseline,
            report: self.report.as_ref(),
            judged: self.judged.as_ref(),
        }
    }
}

/// A question to a judge about a change.
struct Asking<'a> {
    prover: &'a Prover<'a>,
    request: &'a ProofRequest,
    proof: &'a ChangeProof,
    judge: &'a str,
}

impl Asking<'_> {
    fn ask(&self) -> Result<Option<JudgeRun>, Failure> {
        let (proof, request) = (self.proof, self.request);
        let Prover {
            grants,
            repo,
            site,
            listener,
        } = self.prover;
        let mut reports = vec![NamedReport {
            name: "On the base",
            report: &proof.baseline,
        }];
        reports.extend(proof.report.iter().map(|report| NamedReport {
            name: "With the change",
            report,
        }));
        let goal = match &request.intent {
            Some(intent) => intent.clone(),
            None => self.message()?,
        };
        let material = material(&JudgeSubject {
            original: None,
            goal: &goal,
            criteria: "The change does what it says, in full, and the checks show it honestly.",
            reports: &reports,
            left_out: &[],
            plan: None,
            said: None,
        });
        let change = JudgedChange {
            repo,
            base: Some(repository_session::commit_id(&proof.base)?),
            commit: repository_session::commit_id(&proof.commit)?,
        };
        let question = JudgeQuestion {
            judge: self.judge,
            instructions: &instructions(),
            material: &material,
            change: &change,
            run_id: site.name,
            run_dir: listener.run_dir,
            dir: &site.scratch.join("judge"),
            level: request.level,
            network: request.network,
            rules: GateRules::Fixed(&[]),
            deadline: JUDGE_DEADLINE,
            waiting: JudgeRetry::Here,
            today: request.today,
            host: None,
        };
        Ok(match judge::ask(grants, &question, listener.watch)? {
            Judgement::Given(run) => Some(run),
            Judgement::Cancelled(_) => None,
        })
    }

    /// Returns what the commit says of itself.
    fn message(&self) -> Result<String, Failure> {
        let commit = repository_session::commit_id(&self.proof.commit)?;
        self.prover
            .repo
            .repository
            .message_of(&commit)
            .map_err(|error| failure::plain(&error))
    }
}
