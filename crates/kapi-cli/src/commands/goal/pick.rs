//! Which goal is meant: the one that is named, or the only one there is.
//!
//! Looking takes the latest goal where none is unfinished, and lists them where several could be
//! meant; changing never guesses.

use kapi_core::id::GoalId;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::{Goal, GoalStatus};

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// What other processes are told about who holds a lock.
pub(crate) const OWNER: &str = "kapi goal";

/// The goal, for verbs that need no more.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Goal [default: the only unfinished one]
    #[arg(value_name = "GOAL")]
    pub(crate) reference: Option<String>,
}

/// A goal that was picked.
pub(crate) struct GoalChoice<'a> {
    /// Its project.
    pub(crate) project: Project<'a>,
    /// Its id.
    pub(crate) id: GoalId,
    /// The goal.
    pub(crate) goal: Goal,
}

/// What there is to look at.
pub(crate) enum GoalCandidates<'a> {
    /// The goal that is meant.
    One(Box<GoalChoice<'a>>),
    /// Every goal that could be meant.
    Several(Vec<Goal>),
}

/// Returns the goal to look at, or all that could be meant: looking is never refused for that.
pub(crate) fn looked_at<'a>(
    context: &'a Context,
    reference: Option<&str>,
) -> Result<GoalCandidates<'a>, Error> {
    if reference.is_none() {
        let project = context.project(&context.project_root()?, OWNER);
        let unfinished = state_so(&project, &|status| !status.is_terminal())?;
        if unfinished.len() > 1 {
            return load_all(&project, &unfinished).map(GoalCandidates::Several);
        }
    }
    to_look_at(context, reference).map(|picked| GoalCandidates::One(Box::new(picked)))
}

/// Loads goals, in their order.
pub(crate) fn load_all(project: &Project<'_>, ids: &[GoalId]) -> Result<Vec<Goal>, Error> {
    ids.iter()
        .map(|id| project.load(id))
        .collect::<Result<_, _>>()
        .map_err(|error| Error::engine(&error, ""))
}

/// Returns the goal to look at.
pub(crate) fn to_look_at<'a>(
    context: &'a Context,
    reference: Option<&str>,
) -> Result<GoalChoice<'a>, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let id = match reference {
        Some(reference) => project
            .resolve(reference)
            .map_err(|error| Error::resolve(&error))?,
        None => match only(&project, &|status| !status.is_terminal())? {
            Some(id) => id,
            None => latest(&project)?,
        },
    };
    load(project, id)
}

/// Returns the unfinished goal to change; its whole log is sound.
pub(crate) fn to_change<'a>(
    context: &'a Context,
    reference: Option<&str>,
) -> Result<GoalChoice<'a>, Error> {
    one_of(context, reference, "unfinished", &|status| {
        !status.is_terminal()
    })
}

/// Returns the goal of a kind to change; its whole log is sound.
pub(crate) fn one_of<'a>(
    context: &'a Context,
    reference: Option<&str>,
    kind: &str,
    is_meant: &dyn Fn(GoalStatus) -> bool,
) -> Result<GoalChoice<'a>, Error> {
    let reference = match reference {
        Some(reference) => reference.to_owned(),
        None => {
            let project = context.project(&context.project_root()?, OWNER);
            let id = only(&project, is_meant)?.ok_or_else(|| {
                Error::new(Exit::NotFound, format!("no goal here is {kind}"))
                    .with_hint("run `kapi status --all` and name one.")
            })?;
            id.to_string()
        }
    };
    let (project, id) = context.find_sound_goal(&reference, OWNER)?;
    load(project, id)
}

fn load(project: Project<'_>, id: GoalId) -> Result<GoalChoice<'_>, Error> {
    let goal = project
        .load(&id)
        .map_err(|error| Error::engine(&error, &id.to_string()))?;
    Ok(GoalChoice { project, id, goal })
}

/// Returns the one goal that is meant, if there is any.
fn only(
    project: &Project<'_>,
    is_meant: &dyn Fn(GoalStatus) -> bool,
) -> Result<Option<GoalId>, Error> {
    let ids = state_so(project, is_meant)?;
    match ids.as_slice() {
        [] => Ok(None),
        [id] => Ok(Some(id.clone())),
        _ => {
            let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
            Err(Error::usage(format!("{} goals match", names.len()))
                .with_hint(format!("name one of them: {}.", names.join(", "))))
        }
    }
}

/// Returns the goals that stand in a certain way.
pub(crate) fn state_so(
    project: &Project<'_>,
    is_meant: &dyn Fn(GoalStatus) -> bool,
) -> Result<Vec<GoalId>, Error> {
    let goals = project.goals().map_err(|error| Error::engine(&error, ""))?;
    let meant = goals.into_iter().filter(|listed| match &listed.state {
        ListingStatus::Known(entry) => is_meant(entry.status),
        // What is damaged is never meant by silence.
        ListingStatus::Damaged(_) => false,
    });
    Ok(meant.map(|listed| listed.id).collect())
}

fn latest(project: &Project<'_>) -> Result<GoalId, Error> {
    let ids = project
        .goal_ids()
        .map_err(|error| Error::engine(&error, ""))?;
    ids.into_iter().next_back().ok_or_else(|| {
        Error::new(Exit::NotFound, "there is no goal here")
            .with_hint("start one with `kapi goal new \"<intent>\"`.")
    })
}

impl GoalChoice<'_> {
    /// Makes a request of it, and returns it as it is afterwards.
    pub(crate) fn submit(&self, context: &Context, command: &GoalCommand) -> Result<Goal, Error> {
        let submitted = self
            .project
            .submit(&self.id, &context.actor, command)
            .map_err(|error| Error::engine(&error, &self.id.reference()))?;
        Ok(submitted.goal)
    }
}
