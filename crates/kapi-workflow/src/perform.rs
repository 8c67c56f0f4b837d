//! Performing a workflow's effects: questions to agents, its branch, the goals of its tasks,
//! landings and verifications.
//!
//! The same machine as for goals, with a sandbox or a checkout for each effect, so that several may
//! be performed at once. Knows no rule of a workflow, and keeps nothing but what an effect has to
//! find again after a crash.

pub mod combine;
mod conversation;
pub mod drive;
pub mod task;
pub mod terminal;

mod advance;
mod answer;
mod ask;

mod land;
mod measure;
mod outline;
mod prepare;
mod propose;
mod reapply;
mod restore;
mod split;
mod verify;
mod work;

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;
use kapi_git::owned_dir;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::record::project::Project;
use kapi_goal::rules::state::Goal;
use kapi_machine::watch::EffectWatch;
use kapi_run::failure;
use kapi_task::rules::task::KernelTask;

use crate::perform::prepare::NewBranch;
use crate::record::run_name::{effect_name, run_name};
use crate::rules::effect::{GoalWork, WorkflowAction, WorkflowEffect};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

/// Where a workflow's effects are performed, and what they need of whoever composes it.
pub struct WorkflowEnvironment<'a> {
    /// The project.
    pub project: &'a Project<'a>,
    /// The person who started the workflow: what its plan's approval gives leave for is recorded in
    /// their name.
    pub person: Actor,
    /// Returns the workflow as it stands.
    pub workflow: &'a (dyn Fn() -> Result<Workflow, Failure> + Sync),
    /// Returns the world of a goal, or of the workflow itself, by its id. That a person approved a
    /// goal is looked after here.
    pub world: &'a (dyn Fn(&GoalId) -> Result<RealWorld<'a>, Failure> + Sync),
    /// Returns the text of a guidance document.
    pub guidance: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// Has a goal driven as a task of the kernel, here or by whoever has claimed it, and stays with
    /// it until the task has ended or the watch calls it off. Asked again for the same effect it
    /// goes on with the same task.
    pub as_task: &'a (
            dyn Fn(&GoalTaskPlan<'_>, &EffectWatch<'_>) -> Result<GoalTaskOutcome, NotTasked> + Sync
        ),
}

/// A goal that is to be driven as a task of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct GoalTaskPlan<'a> {
    /// The effect that asks for it.
    pub effect: &'a EffectId,
    /// What is done.
    pub work: &'a GoalWork,
    /// The goal, which is approved.
    pub goal: &'a Goal,
}

/// What became of the task of a goal.
#[derive(Debug)]
pub enum GoalTaskOutcome {
    /// It has ended.
    Ended(Box<KernelTask>),
    /// It was called off: nobody works on it for us, and it may still be in the queue.
    LetGo,
}

/// Why a goal became no task, or nobody can tell how it ended.
#[derive(Debug)]
pub struct NotTasked {
    /// What failed.
    pub failure: Failure,
    /// Whether trying again may help: a rule stays, room and stores come back.
    pub may_pass: bool,
}

/// Why an effect came to nothing.
#[derive(Debug)]
struct EffectRefusal {
    failure: Failure,
    may_pass: bool,
    usage: Usage,
}

impl EffectRefusal {
    /// Returns a refusal that stays until somebody does something about it.
    fn lasting(failure: Failure) -> Self {
        Self {
            failure,
            may_pass: false,
            usage: Usage::default(),
        }
    }

    fn lasting_error(error: &dyn std::error::Error) -> Self {
        Self::lasting(failure::plain(error))
    }
}

impl From<NotTasked> for EffectRefusal {
    fn from(why: NotTasked) -> Self {
        Self {
            may_pass: why.may_pass,
            ..Self::lasting(why.failure)
        }
    }
}

impl From<Failure> for EffectRefusal {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            may_pass: true,
            usage: Usage::default(),
        }
    }
}

/// Performs an effect. Performing it twice under its id is safe.
///
/// [`WorkflowOutcome::Cancelled`] comes soon after the flag of the watch is raised. What agents use is told
/// as it happens, and only the rest stands in the outcome; goals keep their own account.
#[must_use]
pub fn perform(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    watch: &EffectWatch<'_>,
) -> WorkflowOutcome {
    let result = match &effect.action {
        WorkflowAction::Ask(question) => ask::ask(location, effect, question, watch),
        WorkflowAction::Prepare {
            branch,
            base,
            checks,
        } => {
            let branch = NewBranch { name: branch, base };
            prepare::prepare(location, effect, &branch, checks, watch)
        }
        WorkflowAction::Work(work) => work::work(location, effect, work, watch),
        WorkflowAction::Land(landing) => land::land(location, effect, landing, watch),
        WorkflowAction::Verify(task) => verify::verify(location, effect, task, watch),
        WorkflowAction::Advance(step) => advance::advance(location, effect, step, watch),
        WorkflowAction::Propose(proposal) => propose::propose(location, effect, proposal, watch),
        WorkflowAction::Reapply(wanted) => reapply::reapply(location, effect, wanted, watch),
        WorkflowAction::Measure(wanted) => measure::measure(location, effect, wanted, watch),
        WorkflowAction::Restore(wanted) => restore::restore(location, effect, wanted, watch),
        WorkflowAction::Combine(step) => combine::combine(location, effect, step, watch),
        WorkflowAction::Split(wanted) => split::split(location, effect, wanted, watch),
    };
    match result {
        Ok(outcome) => outcome,
        Err(refused) if watch.cancel.is_raised() => cancelled(refused.usage),
        Err(refused) => WorkflowOutcome::Failed {
            failure: refused.failure,
            may_pass: refused.may_pass,
            usage: refused.usage,
        },
    }
}

const fn cancelled(usage: Usage) -> WorkflowOutcome {
    WorkflowOutcome::Cancelled { usage }
}

/// Returns the name of the run that performs an effect, safe as a file name.
fn run_id(effect: &WorkflowEffect) -> String {
    run_name(&effect.workflow, &effect.id)
}

/// Makes the directory of one effect, where nobody else may look, and returns it.
fn scratch(world: &RealWorld<'_>, effect: &WorkflowEffect) -> Result<PathBuf, Failure> {
    let dir = world.location.scratch.join(effect_name(&effect.id));
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(&dir);
    made.map_err(|error| failure::file("create", &dir, &error))?;
    Ok(dir)
}

/// Removes the directory of one effect. What cannot be removed is only space.
fn clear(scratch: &std::path::Path) {
    drop(owned_dir::wipe(scratch));
}
