//! Verifying a commit of the workflow's branch as a whole: the machinery of a goal's verification,
//! on a clean checkout of its own.
//!
//! Which commands, and what comes of them, is not known here.

use kapi_check::perform::prover::ProofSubject;
use kapi_check::rules::proof::baseline;
use kapi_check::rules::proof::downloads::Downloads;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::isolation::NetworkMode;
use kapi_core::usage::Usage;
use kapi_goal::rules::effect::{StrengthWanted, VerifyTask};
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};

use crate::perform::{EffectRefusal, WorkflowEnvironment, cancelled, clear, scratch};
use crate::record::run_name::run_name;
use crate::rules::effect::{Verification, WorkflowEffect};
use crate::rules::outcome::WorkflowOutcome;

/// The branch that git inside seems to be on where there is none yet.
const NO_BRANCH: &str = "base";

/// Which of a branch's commits is proved.
#[derive(Clone, Copy)]
pub(super) struct BranchProof<'a> {
    /// What the commit is: the base, or the work.
    pub(super) subject: ProofSubject,
    /// The branch, whose worktree lends the checkout its view of git.
    pub(super) branch: &'a str,
}

/// Runs the commands on the branch.
pub(super) fn verify(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    task: &Verification,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let branch = branch(location, &effect.workflow);
    let report = if task.base == task.commit {
        // What a branch would begin with is looked at before there is one.
        let branch = branch.unwrap_or_else(|_| NO_BRANCH.to_owned());
        of_base(location, effect, task, &branch, watch)?
    } else {
        let subject = BranchProof {
            subject: ProofSubject::Candidate,
            branch: &branch?,
        };
        report(location, effect, task, subject, watch)?
    };
    Ok(report.map_or_else(|| cancelled(Usage::default()), WorkflowOutcome::Verified))
}

/// Runs the commands on what the work begins with; nothing where it was called off. One that cannot work is
/// told before anything is begun.
pub(super) fn of_base(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    task: &Verification,
    branch: &str,
    watch: &EffectWatch<'_>,
) -> Result<Option<VerifyReport>, EffectRefusal> {
    let subject = BranchProof {
        subject: ProofSubject::Base,
        branch,
    };
    let report = report(location, effect, task, subject, watch)?;
    match report.as_ref().and_then(baseline::obstacle) {
        Some(obstacle) => Err(EffectRefusal::lasting(obstacle.failure("the base"))),
        None => Ok(report),
    }
}

/// Runs the commands on a commit and returns what they show; nothing where it was called off.
pub(super) fn report(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    task: &Verification,
    proof: BranchProof<'_>,
    watch: &EffectWatch<'_>,
) -> Result<Option<VerifyReport>, EffectRefusal> {
    let mut world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let tree = repo
        .repository
        .tree_of(&repository_session::commit_id(&task.commit)?)
        .map_err(|error| failure::plain(&error))?;
    let scratch = scratch(&world, effect)?;
    world.location.scratch.clone_from(&scratch);
    let task = VerifyTask {
        branch: proof.branch.to_owned(),
        base: task.base.clone(),
        commit: task.commit.clone(),
        tree: tree.to_string(),
        commands: task.commands.clone(),
        protect: task.protect.clone(),
        hidden: None,
        policy: CheckPolicy::default(),
        base_is_green: false,
        strength: StrengthWanted::Briefly,
        timeout_ms: task.timeout_ms,
        network: NetworkMode::None,
        // What a task's proof installed is kept.
        downloads: Downloads::within(NetworkMode::None),
        sandbox: task.sandbox,
    };
    let name = run_name(&effect.workflow, &effect.id);
    let proved = world.prove(&name, proof.subject, &task, watch);
    clear(&scratch);
    Ok(proved?)
}

/// Returns the workflow's branch, whose worktree lends the checkout its view of git.
pub(super) fn branch(
    location: &WorkflowEnvironment<'_>,
    workflow: &GoalId,
) -> Result<String, EffectRefusal> {
    let found = (location.workflow)()?;
    let branch = found.body.rules().branch();
    let name = branch.map(|branch| branch.name.clone());
    name.ok_or_else(|| {
        EffectRefusal::lasting(Failure {
            message: format!("find the branch of workflow {workflow}: it has none yet"),
            hint: None,
        })
    })
}
