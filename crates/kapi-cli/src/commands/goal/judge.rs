//! `kapi goal judge`: who judges goals of this project where nothing else is said, and who judges
//! one goal from now on.
//!
//! The first is kept in the person's home; the second is an event of the goal and needs the person's
//! approval of it. A name that no judge has is refused.

use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_goal::record::preferences::{PreferenceChange, PreferenceValues};
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::state::Goal;
use kapi_run::asking;
use kapi_run::host_grants::HostGrants;
use serde_json::json;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::contract::agent_name;
use crate::contract::judge::JudgeName;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi goal judge`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Goal whose judge changes, or the judge of new goals here
    ///
    /// A judge is an agent, a provider/model, 'same', 'none', or 'clear' to unset it. With no
    /// argument, print the current judge.
    #[arg(value_name = "GOAL|JUDGE")]
    first: Option<String>,
    /// New judge of the goal
    #[arg(value_name = "JUDGE")]
    second: Option<String>,
}

/// Shows or sets the judge of later goals.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    match (args.first.as_deref(), args.second.as_deref()) {
        (None, _) => show(context),
        (Some("clear" | "off"), None) => set(context, None),
        (Some(judge), None) => set(context, Some(judge)),
        (Some(reference), Some(judge)) => change(context, reference, judge),
    }
}

/// Lets another judge judge one goal. One that only waited for its judge can go on at once.
fn change(context: &Context, reference: &str, judge: &str) -> Result<Exit, Error> {
    context.require_human("change the judge of a goal")?;
    let picked = pick::to_change(context, Some(reference))?;
    let judge = for_goal(context, &picked.goal, judge)?;
    let command = GoalCommand::Person(PersonCommand::ChangeJudge {
        judge: judge.clone(),
    });
    let goal = picked.submit(context, &command)?;
    let mut lines = vec![format!("Judge of goal {}: {judge}.", goal.id)];
    if goal.is_driven() && !picked.goal.is_driven() {
        lines.push(format!(
            "Its verified commit is kept. Resume it with `kapi resume {}`, or let `kapi up` do it.",
            goal.id.reference()
        ));
    }
    Ok(answer::give(context, &goal, &lines))
}

/// Returns the judge of one goal as it is recorded; refuses what could not judge it now.
fn for_goal(context: &Context, goal: &Goal, text: &str) -> Result<String, Error> {
    let root = project_of(context)?;
    let grants = context.grants(&context.config(Some(&root))?);
    let name = JudgeName::parse(text).map_err(|error| with_existing(error, &grants))?;
    let refused = |failure: Failure| with_existing(Error::world(&failure), &grants);
    match name {
        JudgeName::None => Err(Error::new(Exit::Denied, "its contract requires a judge")
            .with_hint(
                "start another goal with `--judge none`, or name another judge for this one.",
            )),
        JudgeName::Same => Ok(goal.contract.agent.clone()),
        JudgeName::Agent(_) => {
            asking::check_agent(&grants, text, goal.contract.sandbox).map_err(refused)?;
            agent_name::absolute(context, text)
        }
        JudgeName::Model { .. } => {
            kapi_check::perform::judge::check(&grants, text).map_err(refused)?;
            Ok(text.to_owned())
        }
    }
}

/// Adds to a refusal who could judge.
fn with_existing(error: Error, grants: &HostGrants) -> Error {
    let agents = asking::able(grants, SandboxLevel::Native);
    let agents = if agents.is_empty() {
        "no agent is installed with credentials".to_owned()
    } else {
        format!("these agents could judge: {}", agents.join(", "))
    };
    let providers = kapi_run::judge_provider::names(grants).join(", ");
    let first = error
        .hint
        .as_ref()
        .map_or_else(String::new, |hint| format!("{hint} "));
    let hint =
        format!("{first}{agents}; write a model as provider/model, with one of {providers}.");
    error.with_hint(hint)
}

/// Shows who judges by default.
pub(super) fn show(context: &Context) -> Result<Exit, Error> {
    let root = project_of(context)?;
    let preferred = context.preferred(&root)?.judge;
    let configured = context.config(Some(&root))?.judge().cloned();
    match (context.ui.format, &preferred, &configured) {
        (Format::Json, ..) => context.ui.json(&json!({
            "type": "preferences",
            "project": root.display().to_string(),
            "judge": preferred,
            "configured_judge": configured,
        })),
        (Format::Human, Some(judge), _) => {
            context
                .ui
                .line(&format!("Judge of new goals here: {judge}."));
        }
        (Format::Human, None, Some(judge)) => context.ui.line(&format!(
            "Judge of new goals here: {judge} (from the configuration or KAPI_JUDGE)."
        )),
        (Format::Human, None, None) => {
            context.ui.line(
                "No judge is set here: another installed agent judges, unless a goal names one.",
            );
            context
                .ui
                .line("Set one with `kapi goal judge provider/model`, or an agent's name.");
        }
    }
    Ok(Exit::Success)
}

/// Sets who judges by default, or nobody in particular.
pub(super) fn set(context: &Context, judge: Option<&str>) -> Result<Exit, Error> {
    let root = project_of(context)?;
    let preferred = choose(context, judge)?;
    match (context.ui.format, &preferred.judge) {
        (Format::Json, judge) => context.ui.json(&json!({
            "type": "preferences",
            "project": root.display().to_string(),
            "judge": judge,
        })),
        (Format::Human, Some(judge)) => context
            .ui
            .line(&format!("Judge of new goals here: {judge}.")),
        (Format::Human, None) => context
            .ui
            .line("No judge is set here any more; name one for each goal."),
    }
    Ok(Exit::Success)
}

/// Records who judges by default, or nobody in particular.
pub(crate) fn choose(context: &Context, judge: Option<&str>) -> Result<PreferenceValues, Error> {
    context.require_human("choose a judge")?;
    let root = project_of(context)?;
    let judge = judge
        .map(|text| checked(context, &root, text))
        .transpose()?;
    prefer(context, &root, judge)
}

/// Records who judges by default, where it is known that they can.
pub(crate) fn prefer(
    context: &Context,
    root: &Path,
    judge: Option<String>,
) -> Result<PreferenceValues, Error> {
    context.require_human("choose a judge")?;
    context
        .preferences(root)?
        .change(&context.actor, &PreferenceChange::JudgeSet { judge })
        .map_err(|error| Error::engine(&error, ""))
}

/// Returns a judge's name as it is kept; says what is weak or missing about it now.
fn checked(context: &Context, root: &Path, text: &str) -> Result<String, Error> {
    match JudgeName::parse(text)? {
        JudgeName::Same => context.ui.say(
            "note: a model that judges its own work is a weaker check; every contract will show this.",
        ),
        JudgeName::None => context
            .ui
            .say("note: no model will review the results of new goals."),
        JudgeName::Agent(_) => {
            let grants = context.grants(&context.config(Some(root))?);
            if let Err(failure) = asking::check_agent(&grants, text, SandboxLevel::Native) {
                context.ui.say(&format!(
                    "note: it is not able to judge at the moment: failed to {}.",
                    failure.message
                ));
            }
            return agent_name::absolute(context, text);
        }
        JudgeName::Model { provider, .. } => {
            let grants = context.grants(&context.config(Some(root))?);
            if !kapi_run::judge_provider::names(&grants).contains(&provider) {
                let error = Error::usage(format!("unknown judge provider {provider:?}"));
                return Err(with_existing(error, &grants));
            }
            if let Err(failure) = kapi_check::perform::judge::check(&grants, text) {
                context.ui.say(&format!(
                    "note: it is not able to judge at the moment: failed to {}.",
                    failure.message
                ));
            }
        }
    }
    Ok(text.to_owned())
}

/// Returns the project that preferences are about: the nearest repository or directory with goals.
pub(crate) fn project_of(context: &Context) -> Result<PathBuf, Error> {
    let has_goals = |dir: &Path| dir.join(".ilchul").join("goals").is_dir();
    let is_project = |dir: &&Path| dir.join(".git").exists() || has_goals(dir);
    let found = context.cwd.ancestors().find(is_project);
    found.map(Path::to_path_buf).ok_or_else(|| {
        Error::new(
            Exit::NotFound,
            format!("{} is not in a project", context.cwd.display()),
        )
        .with_hint("change to a git repository: preferences are kept per project.")
    })
}
