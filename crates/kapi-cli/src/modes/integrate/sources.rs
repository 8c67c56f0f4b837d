//! The work that a person means, or all that is ready: read from its own records, and refused as a whole
//! where any of it is not fit.
//!
//! Every reason is told at once, each with the command that helps.

use kapi_core::failure::chain;
use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::text::counted;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::record::project::Project;
use kapi_goal::rules::state::GoalStatus;
use kapi_workflow::perform::combine::fit::{OwnedSource, unfit};
use kapi_workflow::record::index::WorkflowSummary;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::effect::combine::CombinedSource;
use kapi_workflow::rules::mode_spec::{Integration, ModeSpec};
use kapi_workflow::rules::modes::integrate::offer::{unfinished, unproved};
use kapi_workflow::rules::modes::integrate::source::Source;

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// The word that takes every source that is ready.
const ALL: &str = "all";

/// A source that was read, or why it cannot be one.
enum Reading {
    Fit(Box<Source>),
    Unfit(String),
}

/// Returns the sources that are meant.
pub(super) fn sources(
    context: &Context,
    project: &Project<'_>,
    named: &[String],
    target: &str,
) -> Result<Vec<Source>, Error> {
    // What is said as one word, as Pi does, is several all the same.
    let tokens: Vec<&str> = named.iter().flat_map(|it| it.split_whitespace()).collect();
    let is_all = tokens.is_empty() || tokens == [ALL];
    let found = if is_all {
        ready(project)?
    } else {
        tokens
            .iter()
            .map(|token| meant(context, project, token))
            .collect::<Result<Vec<Reading>, Error>>()?
    };
    let (mut sources, mut reasons) = (Vec::new(), Vec::new());
    for reading in found {
        match reading {
            Reading::Fit(source) if sources.iter().any(|known: &Source| known.id == source.id) => {}
            Reading::Fit(source) => sources.push(*source),
            Reading::Unfit(why) => reasons.push(why),
        }
    }
    let wrong = wrong_in_git(context, project, target, &sources)?;
    if is_all {
        // What is there already needs no word; the rest is not ready, and that is said.
        let is_wrong = |source: &Source| {
            let name = format!("{} ", source.id);
            wrong.iter().find(|why| why.starts_with(&name))
        };
        for why in sources.iter().filter_map(is_wrong) {
            if !why.contains("integrated already") {
                context.ui.say(&format!("note: not ready: {why}."));
            }
        }
        sources.retain(|source| is_wrong(source).is_none());
    } else {
        reasons.extend(wrong);
    }
    if !reasons.is_empty() {
        return Err(refused(&reasons));
    }
    if sources.is_empty() {
        return Err(Error::new(
            Exit::Denied,
            "nothing is ready to be integrated: there is no completed workflow or proved goal whose \
             work dev does not have",
        )
        .with_hint("see `kapi status` for what is under way."));
    }
    Ok(sources)
}

fn refused(reasons: &[String]) -> Error {
    let list: Vec<String> = reasons.iter().map(|why| format!("  {why}")).collect();
    let sources = counted(reasons.len(), "source");
    Error::new(
        Exit::Denied,
        format!("{sources} cannot be integrated:\n{}", list.join("\n")),
    )
    .with_hint("nothing was started; name the sources that should come without it.")
}

/// Returns every workflow and goal whose work is finished.
fn ready(project: &Project<'_>) -> Result<Vec<Reading>, Error> {
    let records = Workflows::of(project);
    let standings = records.standings();
    let standings = standings.map_err(|error| Error::engine(&error, ""))?;
    let mut readings = Vec::new();
    for listed in &standings.workflows {
        let WorkflowSummary::Known(_) = &listed.state else {
            continue;
        };
        if is_integrable(listed.key.mode)
            && let Reading::Fit(source) = of_workflow(project, &listed.key)
        {
            readings.push(Reading::Fit(source));
        }
    }
    for listed in &standings.goals {
        let ListingStatus::Known(entry) = &listed.state else {
            continue;
        };
        if entry.status == GoalStatus::Done
            && let Reading::Fit(source) = of_goal(project, &listed.id)
        {
            readings.push(Reading::Fit(source));
        }
    }
    Ok(readings)
}

fn is_integrable(mode: Mode) -> bool {
    ModeSpec::of(mode).is_some_and(|spec| match spec.integration {
        Integration::AfterCompletion => true,
        Integration::Never => false,
    })
}

fn meant(context: &Context, project: &Project<'_>, token: &str) -> Result<Reading, Error> {
    match SubjectArgs::of(token).find(context, Silence::UnderWay)? {
        Meaning::Goal(id) => Ok(of_goal(project, &id)),
        Meaning::Workflow(key) if is_integrable(key.mode) => Ok(of_workflow(project, &key)),
        Meaning::Workflow(key) => Ok(Reading::Unfit(format!(
            "{} is of mode {}, which makes nothing to integrate",
            key.id, key.mode
        ))),
        Meaning::Task(_) | Meaning::Launch(_) => Ok(Reading::Unfit(format!(
            "{token} is neither a workflow nor a goal, and nothing proved it"
        ))),
    }
}

/// Reads a workflow whole: what was altered or comes from elsewhere is no source.
fn of_workflow(project: &Project<'_>, key: &WorkflowKey) -> Reading {
    let (records, id, mode) = (Workflows::of(project), &key.id, key.mode);
    let read = records
        .workflow_log(key)
        .and_then(|_| records.workflow(key));
    let workflow = match read {
        Ok(workflow) => workflow,
        Err(error) => return Reading::Unfit(format!("{id} is stale: failed to {}", chain(&error))),
    };
    if let Some(why) = unfinished(&workflow) {
        let next = if workflow.status.is_terminal() {
            format!("`kapi show {id}` says more")
        } else {
            format!("`kapi {mode} resume {:03}` continues", id.index())
        };
        return Reading::Unfit(format!("{id} {why}; {next}"));
    }
    match records.unapproved_workflow(&workflow) {
        Ok(None) => {}
        Ok(Some(lack)) => {
            let resume = format!("`kapi {mode} resume {:03} --adopt` shows it", id.index());
            return Reading::Unfit(format!("{id} is foreign: {lack}; {resume}"));
        }
        Err(error) => return Reading::Unfit(format!("{id} is stale: failed to {}", chain(&error))),
    }
    Source::of_workflow(&workflow).map_or_else(
        || Reading::Unfit(format!("{id} has no commit of its own: it kept nothing")),
        |source| Reading::Fit(Box::new(source)),
    )
}

fn of_goal(project: &Project<'_>, id: &GoalId) -> Reading {
    let goal = match project.log(id).and_then(|_| project.load(id)) {
        Ok(goal) => goal,
        Err(error) => return Reading::Unfit(format!("{id} is stale: failed to {}", chain(&error))),
    };
    if let Some(why) = unproved(&goal) {
        return Reading::Unfit(format!("{id} {why}; `kapi show {id}` says more"));
    }
    match project.unapproved(&goal) {
        Ok(None) => {}
        Ok(Some(lack)) => return Reading::Unfit(format!("{id} is foreign: {lack}")),
        Err(error) => return Reading::Unfit(format!("{id} is stale: failed to {}", chain(&error))),
    }
    Source::of_goal(&goal).map_or_else(
        || Reading::Unfit(format!("{id} has no commit of its own")),
        |source| Reading::Fit(Box::new(source)),
    )
}

/// Returns what git says against these sources.
fn wrong_in_git(
    context: &Context,
    project: &Project<'_>,
    target: &str,
    sources: &[Source],
) -> Result<Vec<String>, Error> {
    let combined: Vec<CombinedSource> = sources
        .iter()
        .map(|source| CombinedSource {
            id: source.id.clone(),
            branch: source.branch.clone(),
            base: source.base.clone(),
            commit: source.commit.clone(),
        })
        .collect();
    let owners: Vec<String> = sources
        .iter()
        .map(|source| Ok(context.location(project, &source.id)?.ref_name))
        .collect::<Result<_, Error>>()?;
    let owned: Vec<OwnedSource<'_>> = combined
        .iter()
        .zip(&owners)
        .map(|(source, owner)| OwnedSource { source, owner })
        .collect();
    let grants = context.grants(&Config::unconfigured());
    let wrong = unfit(&grants, project.layout.root(), target, &owned);
    wrong.map_err(|failure| Error::world(&failure))
}
