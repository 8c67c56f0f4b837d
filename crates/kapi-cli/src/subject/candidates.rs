//! What could be meant: the things that a reference fits, and those that have not ended.
//!
//! Each is told with its kind, where it stands, what it is for, and the reference that names it alone.

use kapi_core::id::GoalId;
use kapi_core::text::shortened;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::record::project::Project;
use kapi_goal::record::reference::ReferenceTarget;
use kapi_goal::rules::state::Goal;
use kapi_launch::merge::known;
use kapi_task::rules::task::KernelTask;
use kapi_wire::kernel::task::status_word;
use kapi_workflow::record::index::WorkflowSummary;
use kapi_workflow::record::workflows::Workflows;

use crate::context::Context;
use crate::error::{Error, optional};
use crate::exit_code::Exit;
use crate::kernel::{self, failed, no_task};
use crate::subject::launches::standing::LaunchNeed;
use crate::subject::{CANDIDATES_MAX, NumberedSubject, OWNER, Silence, launches};

/// Characters of a purpose in a line.
const PURPOSE_CHARS_MAX: usize = 60;

/// Says which things a reference fits.
pub(super) fn ambiguous(context: &Context, reference: &str, found: &[ReferenceTarget]) -> Error {
    let text = format!(
        "{reference:?} is ambiguous: it matches {} things here",
        found.len()
    );
    Error::usage(text).with_hint(which(context, found, Some(reference)))
}

/// Returns the only thing that has not ended.
pub(super) fn only(context: &Context, silence: Silence) -> Result<ReferenceTarget, Error> {
    let mut found = under_way(context)?;
    match (found.len(), silence) {
        (1, _) => Ok(found.remove(0)),
        (0, Silence::Latest) => latest(context),
        (0, Silence::UnderWay) => Err(Error::new(Exit::NotFound, "nothing here is unfinished")
            .with_hint("run `kapi status --all` and name one.")),
        (n, _) => {
            let text = format!("{n} things are unfinished here");
            Err(Error::usage(text).with_hint(which(context, &found, None)))
        }
    }
}

/// Returns what to type instead, with a line for each thing.
fn which(context: &Context, found: &[ReferenceTarget], typed: Option<&str>) -> String {
    let names: Vec<String> = found
        .iter()
        .take(CANDIDATES_MAX)
        .map(|subject| reference(subject, typed))
        .collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let lines = names.iter().zip(found).map(|(name, subject)| {
        // What cannot be read is a candidate all the same.
        let about = about(context, subject).unwrap_or_else(|_| "cannot be read".to_owned());
        format!("\n  {name:width$}  {}, {about}", subject.kind())
    });
    let more = match found.len().saturating_sub(CANDIDATES_MAX) {
        0 => String::new(),
        n => format!("\n  and {n} more"),
    };
    format!("name one of them:{}{more}", lines.collect::<String>())
}

/// Returns the name that is easiest to keep in mind and still means this alone.
pub(super) fn reference(subject: &ReferenceTarget, typed: Option<&str>) -> String {
    let id = match subject {
        ReferenceTarget::Goal(id) | ReferenceTarget::Workflow(WorkflowKey { id, .. }) => {
            id.to_string()
        }
        ReferenceTarget::Task(_) | ReferenceTarget::Launch(_) => return subject.to_string(),
    };
    if typed == Some(id.as_str()) {
        subject.to_string()
    } else {
        id
    }
}

/// Returns where it stands and what it is for.
pub(super) fn about(context: &Context, subject: &ReferenceTarget) -> Result<String, Error> {
    let (state, purpose) = match subject {
        ReferenceTarget::Goal(id) => {
            let project = context.project(&context.project_root()?, OWNER);
            let goal = load(&project, id)?;
            (goal.status.to_string(), goal.contract.intent)
        }
        ReferenceTarget::Workflow(key) => {
            let project = context.project(&context.project_root()?, OWNER);
            let workflow = Workflows::of(&project)
                .workflow(key)
                .map_err(|error| Error::workflow(&error))?;
            let state = format!("{} of {}", workflow.status.as_str(), key.mode);
            (state, workflow.purpose)
        }
        ReferenceTarget::Task(id) => {
            let task = kernel::with(context, OWNER, |kernel| {
                let found = kernel.queue()?.find(*id).map_err(|error| failed(&error))?;
                found.ok_or_else(|| no_task(*id))
            })?;
            (status_word(task.state).to_owned(), task.request.description)
        }
        ReferenceTarget::Launch(id) => {
            let location = launches::find(context, id, None)?;
            let record = known(&location).map_err(|error| Error::launch(&error))?;
            let holder = location.holder().map_err(|error| Error::launch(&error))?;
            let state = record.state_word(holder.is_some()).to_owned();
            let branch = record
                .branch
                .map(|branch| format!(", branch {}", branch.name));
            (
                state,
                format!("{}{}", record.agent, branch.unwrap_or_default()),
            )
        }
    };
    Ok(format!(
        "{state}: {}",
        shortened(&purpose, PURPOSE_CHARS_MAX)
    ))
}

fn load(project: &Project<'_>, id: &GoalId) -> Result<Goal, Error> {
    project
        .load(id)
        .map_err(|error| Error::engine(&error, &id.to_string()))
}

/// Returns everything that has not ended and is a person's own: what a workflow or a race works on is
/// named by these.
pub(super) fn under_way(context: &Context) -> Result<Vec<ReferenceTarget>, Error> {
    let mut found = Vec::new();
    if let Some(root) = optional(context.project_root())? {
        let project = context.project(&root, OWNER);
        let standings = Workflows::of(&project)
            .standings()
            .map_err(|error| Error::engine(&error, ""))?;
        let mut races = Vec::new();
        for listed in &standings.goals {
            // What is damaged is never meant by silence.
            let ListingStatus::Known(entry) = &listed.state else {
                continue;
            };
            if entry.status.is_terminal() {
                continue;
            }
            let race = entry.race.as_ref().map(|race| race.of);
            if race.is_some_and(|race| races.contains(&race)) {
                continue;
            }
            races.extend(race);
            if load(&project, &listed.id)?
                .contract
                .working
                .workflow
                .is_none()
            {
                found.push(ReferenceTarget::Goal(listed.id.clone()));
            }
        }
        found.extend(standings.workflows.into_iter().filter_map(|listed| {
            let WorkflowSummary::Known(entry) = &listed.state else {
                return None;
            };
            let is_over = entry.status.is_terminal() || entry.about.is_some();
            (!is_over).then_some(ReferenceTarget::Workflow(listed.key))
        }));
    }
    found.extend(
        tasks(context)?
            .into_iter()
            .map(|task| ReferenceTarget::Task(task.id)),
    );
    for standing in launches::standing::standings(context)? {
        if matches!(standing.need, LaunchNeed::Running | LaunchNeed::Stopped) {
            found.push(ReferenceTarget::Launch(standing.record.id));
        }
    }
    Ok(found)
}

/// Returns the tasks that have not ended and drive no goal of a workflow.
fn tasks(context: &Context) -> Result<Vec<KernelTask>, Error> {
    let found = kernel::with(context, OWNER, |kernel| {
        let queue = kernel.queue()?;
        let tasks = queue.kernel().tasks.values();
        let own = tasks.filter(|task| !task.state.is_ended() && task.goal_drive().is_none());
        Ok(own.cloned().collect())
    });
    Ok(optional(found)?.unwrap_or_default())
}

/// Returns the goal or workflow that was begun last.
fn latest(context: &Context) -> Result<ReferenceTarget, Error> {
    let NumberedSubject { goals, workflows } =
        NumberedSubject::load(context, &context.project_root()?)?;
    // The goal of a task was begun by its workflow, and by nobody else.
    let goal = goals.into_iter().filter(|id| !id.is_part()).max();
    let workflow = workflows.into_iter().max_by_key(|key| key.id.index());
    match (goal, workflow) {
        (Some(goal), Some(workflow)) if goal.index() < workflow.id.index() => {
            Ok(ReferenceTarget::Workflow(workflow))
        }
        (Some(goal), _) => Ok(ReferenceTarget::Goal(goal)),
        (None, Some(workflow)) => Ok(ReferenceTarget::Workflow(workflow)),
        (None, None) => Err(Error::new(Exit::NotFound, "there is no work here yet")
            .with_hint("start a goal with `kapi run \"<task>\" --verify \"<command>\"`.")),
    }
}
