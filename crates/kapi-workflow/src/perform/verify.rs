//! Verifying a commit of the workflow's branch as a whole: the machinery of a goal's verification,
//! on a clean checkout of its own.
//!
//! Which commands, and what comes of them, is not known here.

use kapi_check::perform::prover::ProofSubject;
use kapi_check::rules::proof::downloads::Downloads;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::isolation::NetworkMode;
use kapi_core::usage::Usage;
use kapi_goal::rules::effect::{StrengthWanted, VerifyTask};
use kapi_machine::watch::Watch;
use kapi_run::workshop::Workshop;
use kapi_run::{failure, workshop};

use crate::perform::{Refused, WorkflowPlace, cancelled, clear, scratch};
use crate::record::run_name::run_name;
use crate::rules::effect::{Effect, Verification};
use crate::rules::outcome::Outcome;

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
    place: &WorkflowPlace<'_>,
    effect: &Effect,
    task: &Verification,
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let branch = branch(place, &effect.workflow)?;
    let subject = BranchProof {
        subject: ProofSubject::Candidate,
        branch: &branch,
    };
    let report = report(place, effect, task, subject, watch)?;
    Ok(report.map_or_else(|| cancelled(Usage::default()), Outcome::Verified))
}

/// Runs the commands on a commit and returns what they show; nothing where it was called off.
pub(super) fn report(
    place: &WorkflowPlace<'_>,
    effect: &Effect,
    task: &Verification,
    proof: BranchProof<'_>,
    watch: &Watch<'_>,
) -> Result<Option<VerifyReport>, Refused> {
    let mut world = (place.world)(&effect.workflow)?;
    let workshop = Workshop::open(&world.book, &world.place.project, watch.cancel)?;
    let tree = workshop
        .repository
        .tree_of(&workshop::commit_id(&task.commit)?)
        .map_err(|error| failure::plain(&error))?;
    let scratch = scratch(&world, effect)?;
    world.place.scratch.clone_from(&scratch);
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
pub(super) fn branch(place: &WorkflowPlace<'_>, workflow: &GoalId) -> Result<String, Refused> {
    let found = (place.workflow)()?;
    let branch = found.body.rules().branch();
    let name = branch.map(|branch| branch.name.clone());
    name.ok_or_else(|| {
        Refused::lasting(Failure {
            message: format!("find the branch of workflow {workflow}: it has none yet"),
            hint: None,
        })
    })
}
