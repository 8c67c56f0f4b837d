//! Verifying a commit of the workflow's branch as a whole: the machinery of a goal's verification,
//! on a clean checkout of its own.
//!
//! Which commands, and what comes of them, is not known here.

use kapi_core::goal::contract::NetworkMode;
use kapi_core::goal::effect::{self, VerifyTask};
use kapi_core::goal::outcome;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;
use kapi_core::workflow::effect::{Effect, Verification};
use kapi_core::workflow::outcome::Outcome;
use kapi_core::workflow::state::Body;
use kapi_engine::workflow::run_name::effect_name;
use kapi_engine::world::Watch;

use crate::failure;
use crate::workflows::{Refused, WorkflowPlace, cancelled, clear, scratch};
use crate::workshop::{self, Workshop};

/// Runs the commands.
pub(super) fn verify(
    place: &WorkflowPlace<'_>,
    (effect, task): (&Effect, &Verification),
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let mut world = (place.world)(&effect.workflow)?;
    let workshop = Workshop::open(&world.book, &world.place.project, watch.cancel)?;
    let tree = workshop
        .repository
        .tree_of(&workshop::commit_id(&task.commit)?)
        .map_err(|error| failure::plain(&error))?;
    let scratch = scratch(&world, effect)?;
    world.place.scratch.clone_from(&scratch);
    let task = VerifyTask {
        branch: branch(place, &effect.workflow)?,
        base: task.base.clone(),
        commit: task.commit.clone(),
        tree: tree.to_string(),
        commands: task.commands.clone(),
        protect: task.protect.clone(),
        hidden: false,
        timeout_ms: task.timeout_ms,
        network: NetworkMode::None,
        sandbox: task.sandbox,
    };
    let as_goals = effect::Effect {
        id: plain_id(&effect.id),
        goal: effect.workflow.clone(),
        action: effect::Action::Verify(task.clone()),
    };
    let verified = world.verify(&as_goals, &task, watch);
    clear(&scratch);
    Ok(match verified? {
        outcome::Outcome::Verified(report) => Outcome::Verified(report),
        outcome::Outcome::Cancelled { usage, .. } => cancelled(usage),
        outcome::Outcome::Workspace { .. }
        | outcome::Outcome::Agent(_)
        | outcome::Outcome::Committed(_)
        | outcome::Outcome::Judged(_)
        | outcome::Outcome::Published { .. }
        | outcome::Outcome::Waited
        | outcome::Outcome::CapReached { .. }
        | outcome::Outcome::Failed(_) => Outcome::Failed {
            failure: outcome::Failure {
                message: format!("verify {}: it ended in something else", task.commit),
                hint: Some("this is a defect of Kapi; please report it.".to_owned()),
            },
            may_pass: false,
            usage: Usage::default(),
        },
    })
}

/// Returns the effect's id where it is safe as a file name, and one made from it otherwise.
fn plain_id(id: &EffectId) -> EffectId {
    let name = effect_name(id);
    if name == id.as_str() {
        id.clone()
    } else {
        EffectId::new(0, &name, 1)
    }
}

/// Returns the workflow's branch, whose worktree lends the checkout its view of git.
fn branch(place: &WorkflowPlace<'_>, workflow: &GoalId) -> Result<String, Refused> {
    let found = match (place.workflow)()?.body {
        Body::Ralph(ralph) => ralph.branch.map(|branch| branch.name),
        Body::Interview(_) => None,
    };
    found.ok_or_else(|| {
        Refused::lasting(outcome::Failure {
            message: format!("find the branch of workflow {workflow}: it has none yet"),
            hint: None,
        })
    })
}
