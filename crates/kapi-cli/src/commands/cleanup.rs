//! `kapi cleanup`: removes sandboxes that hold nothing any more, and says why others stay.

mod tasks;
mod workflows;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use kapi_core::mode::Mode;
use kapi_core::state_directory::STATE_DIRECTORY;
use kapi_launch::clean;
use kapi_launch::clean::goals::{FileAttribution, GoalFiles};
use kapi_launch::clean::stores::SharedObjects;
use kapi_launch::clean::{
    CleanAction, CleanChoice, CleanPlan, CleanReport, CleanTarget, NAMED, TargetKind, goals,
    hidden_checks, stores,
};
use kapi_launch::paths::SandboxId;
use kapi_store::layout::{HomeLayout, project_key};
use kapi_sys::clock::Clock as _;
use serde::Serialize;

use self::tasks::TaskFiles;
use super::launch::is_json;
use super::sandbox::grants;
use crate::amount;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::launches::{directory, sandboxes};

/// Options of `kapi cleanup`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Remove only these sandboxes, even if they hold unmerged work
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Show what would be removed, without removing it
    #[arg(long)]
    dry_run: bool,
    /// Clean up the sandboxes of all projects
    #[arg(long, conflicts_with = "project")]
    all: bool,
    /// Clean up the sandboxes of this project [default: current directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Keep anything used more recently than this (7d, 12h)
    #[arg(long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    older_than: Option<u64>,
    /// Also remove the build caches of removed sandboxes
    #[arg(long)]
    volumes: bool,
    /// Also remove the transcripts of kept sandboxes and ended tasks
    #[arg(long)]
    logs: bool,
    /// Skip the confirmation for sandboxes that hold work
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Serialize)]
struct CleanupView {
    dry_run: bool,
    removed: Vec<ThingView>,
    kept: Vec<ThingView>,
    failed: Vec<ThingView>,
    restore: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ThingView {
    what: &'static str,
    name: String,
    project: Option<String>,
    path: String,
    bytes: u64,
    why: String,
}

/// Cleans up.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("clean up")?;
    let plan = plan(context, args)?;
    let (grants, sandboxes) = (grants(context)?, sandboxes(context));
    let mut things =
        clean::survey(&grants, &sandboxes, &plan).map_err(|error| Error::launch(&error))?;
    let mut goals = goals(context, args, plan.used_before_ms)?;
    if args.ids.is_empty() {
        let root = root(context, args)?;
        goals.extend(workflows::files(context, &root, plan.used_before_ms)?);
        things.extend(hidden_checks(context, &root)?);
    }
    things.extend(goals::survey(&grants, &goals));
    let shared_in = shared_in(context, args, &plan, &goals)?;
    let objects: Vec<(CleanTarget, &SharedObjects)> = shared_in
        .iter()
        .filter_map(|one| Some((stores::survey(&grants, &sandboxes, &plan, one)?, one)))
        .collect();
    things.extend(objects.iter().map(|(thing, _)| thing.clone()));
    let root = root(context, args)?;
    let tasks = TaskFiles::find(context, args, &root, plan.used_before_ms)?;
    let told = [&things[..], &tasks.targets(&root)].concat();
    if args.dry_run {
        show(context, args, &told, &CleanReport::default());
        return Ok(Exit::Success);
    }
    confirm(context, args, &things)?;
    let mut cleaned = clean::clean(&grants, &sandboxes, &plan, &things);
    tasks.remove(context, &root, &mut cleaned)?;
    for thing in &things {
        let goal = goals.iter().find(|goal| goal.name == thing.name);
        if let (TargetKind::Goal | TargetKind::Workflow, CleanAction::Goes(_), Some(goal)) =
            (thing.what, &thing.disposition, goal)
        {
            match goals::remove(&grants, goal) {
                Ok(()) => cleaned.removed.push(thing.clone()),
                Err(error) => cleaned.failed.push((thing.clone(), error)),
            }
        }
    }
    let going = objects
        .iter()
        .filter(|(thing, _)| matches!(thing.disposition, CleanAction::Goes(_)));
    for (thing, shared_in) in going {
        match stores::remove(&grants, &sandboxes, &plan, shared_in) {
            Ok(()) => cleaned.removed.push(thing.clone()),
            Err(error) => cleaned.failed.push((thing.clone(), error)),
        }
    }
    show(context, args, &told, &cleaned);
    Ok(if cleaned.failed.is_empty() {
        Exit::Success
    } else {
        Exit::Failed
    })
}

fn plan(context: &Context, args: &Args) -> Result<CleanPlan, Error> {
    let now_ms = context.clock.now_ms();
    let project_key = match (&args.project, args.all) {
        (Some(project), _) => Some(project_key(&directory(context, project)?)),
        (None, true) => None,
        (None, false) => Some(project_key(&directory(context, &context.cwd)?)),
    };
    let ids: Result<Vec<SandboxId>, _> = args.ids.iter().map(|id| SandboxId::parse(id)).collect();
    let choice = |is_wanted: bool| {
        if is_wanted {
            CleanChoice::Yes
        } else {
            CleanChoice::No
        }
    };
    let age_ms = args
        .older_than
        .map(|age| i64::try_from(age).unwrap_or(i64::MAX));
    Ok(CleanPlan {
        project_key,
        ids: ids.map_err(|error| Error::launch(&error))?,
        used_before_ms: age_ms.map(|age_ms| now_ms.saturating_sub(age_ms)),
        logs: choice(args.logs),
        volumes: choice(args.volumes),
        now_ms,
    })
}

/// Returns whose lent objects are looked at: none when sandboxes are named.
fn shared_in(
    context: &Context,
    args: &Args,
    plan: &CleanPlan,
    goals: &[GoalFiles],
) -> Result<Vec<SharedObjects>, Error> {
    if !args.ids.is_empty() {
        return Ok(Vec::new());
    }
    let own = SharedObjects {
        project: root(context, args)?,
        bases: goals.iter().map(|goal| goal.base.clone()).collect(),
    };
    stores::shared_in(&sandboxes(context), plan, Some(own)).map_err(|error| Error::launch(&error))
}

/// Returns the project that is meant, or the one of the working directory.
fn root(context: &Context, args: &Args) -> Result<PathBuf, Error> {
    match &args.project {
        Some(project) => directory(context, project),
        None => {
            let root = context.project_root();
            directory(context, &root.unwrap_or_else(|_| context.cwd.clone()))
        }
    }
}

/// Returns the goals of the project, with why those that have not ended stay.
///
/// Goals are known by their own project alone, so `--all` finds those of the working directory.
fn goals(
    context: &Context,
    args: &Args,
    used_before_ms: Option<i64>,
) -> Result<Vec<GoalFiles>, Error> {
    let root = root(context, args)?;
    if !args.ids.is_empty() || !root.join(STATE_DIRECTORY).join("goals").is_dir() {
        return Ok(Vec::new());
    }
    let project = context.project(&root, "kapi cleanup");
    let listed = project.goals().map_err(|error| Error::engine(&error, ""))?;
    let ended = workflows::ended(&project)?;
    let mut found = Vec::new();
    for one in listed {
        let id = one.id;
        // What a damaged goal made nobody can tell; `kapi audit` says what is wrong with it.
        let Ok(goal) = project.load(&id) else {
            continue;
        };
        let used_ms = used_ms(&project.layout.goal(&id).events());
        let candidate = goal
            .candidate
            .as_ref()
            .map(|candidate| candidate.commit.clone());
        let of_workflow = goal.contract.working.workflow.as_ref();
        let stays = if !goal.status.is_terminal() {
            Some("its goal has not ended".to_owned())
        } else if of_workflow.is_some_and(|of| !ended.contains(&of.id)) {
            Some("its workflow has not ended".to_owned())
        } else if used_before_ms.is_some_and(|before| used_ms >= before) {
            Some("it was used recently".to_owned())
        } else {
            None
        };
        found.push(GoalFiles {
            whose: of_workflow.map_or(FileAttribution::Goal, |_| FileAttribution::Task {
                branch: goal.contract.branch.clone(),
            }),
            name: id.to_string(),
            location: context.location(&project, &id)?,
            known: candidate.unwrap_or_else(|| goal.contract.base.commit.clone()),
            base: goal.contract.base.commit.clone(),
            stays,
        });
    }
    Ok(found)
}

/// Returns the hidden checks of goals that the project does not have any more.
fn hidden_checks(context: &Context, root: &Path) -> Result<Vec<CleanTarget>, Error> {
    let project = context.project(root, "kapi cleanup");
    let hidden_dir = HomeLayout::new(&context.home).hidden_dir(&project_key(root));
    let goals = project.layout.goals_dir();
    let workflows = Mode::ALL.map(|mode| project.layout.mode_dir(mode));
    let is_there = |name: &str| {
        let mut dirs = std::iter::once(&goals).chain(&workflows);
        dirs.any(|dir| dir.join(name).exists())
    };
    // A project that cannot be looked at says nothing of its goals.
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    hidden_checks::survey(&hidden_dir, root, &is_there).map_err(|error| Error::launch(&error))
}

/// Returns when a log was last written to; the end of time where nobody knows.
fn used_ms(log: &Path) -> i64 {
    let used = fs::metadata(log).and_then(|found| found.modified()).ok();
    let used = used.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    used.map_or(i64::MAX, |at| {
        i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Asks before anything that holds work goes.
fn confirm(context: &Context, args: &Args, things: &[CleanTarget]) -> Result<(), Error> {
    let named: Vec<&CleanTarget> = things
        .iter()
        .filter(
            |thing| matches!(&thing.disposition, CleanAction::Goes(why) if why.starts_with(NAMED)),
        )
        .collect();
    if named.is_empty() || args.yes {
        return Ok(());
    }
    for thing in &named {
        if let CleanAction::Goes(why) = &thing.disposition {
            context.ui.say(&format!("{}: {why}.", thing.name));
        }
    }
    match context.ui.confirm("Remove them anyway?") {
        Some(true) => Ok(()),
        Some(false) => Err(Error::new(Exit::Denied, "nothing was removed")),
        None => Err(Error::usage(
            "removing sandboxes that hold work needs confirmation, and there is no terminal to ask on",
        )
        .with_hint("review it with `kapi diff launch/<id>`, then add `--yes`.")),
    }
}

fn show(context: &Context, args: &Args, things: &[CleanTarget], cleaned: &CleanReport) {
    let going = things
        .iter()
        .filter(|thing| matches!(thing.disposition, CleanAction::Goes(_)));
    let removed: Vec<ThingView> = if args.dry_run {
        going.map(|thing| view(thing, None)).collect()
    } else {
        cleaned
            .removed
            .iter()
            .map(|thing| view(thing, None))
            .collect()
    };
    let staying = things
        .iter()
        .filter(|thing| matches!(thing.disposition, CleanAction::Stays(_)));
    let kept: Vec<ThingView> = staying.map(|thing| view(thing, None)).collect();
    let failed = cleaned.failed.iter();
    let failed: Vec<ThingView> = failed
        .map(|(thing, error)| view(thing, Some(error.message.clone())))
        .collect();
    if is_json(context) {
        context.ui.json(&CleanupView {
            dry_run: args.dry_run,
            removed,
            kept,
            failed,
            restore: cleaned.kept.clone(),
        });
        return;
    }
    let verb = if args.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let ui = context.ui;
    for (word, list) in [(verb, &removed), ("kept", &kept), ("failed", &failed)] {
        for thing in list {
            let size = super::sandbox::list::size(thing.bytes);
            ui.line(&format!(
                "{word:<13} {} {} ({size}): {}",
                thing.what, thing.name, thing.why
            ));
        }
    }
    for line in &cleaned.kept {
        ui.line(&format!("The commits are kept; restore them with: {line}"));
    }
    if removed.is_empty() && kept.is_empty() && failed.is_empty() {
        ui.line("There is nothing to clean up.");
    } else if args.dry_run {
        ui.line("Nothing was removed. Run it again without `--dry-run`.");
    }
}

fn view(thing: &CleanTarget, error: Option<String>) -> ThingView {
    let (CleanAction::Goes(why) | CleanAction::Stays(why)) = &thing.disposition;
    ThingView {
        what: match thing.what {
            TargetKind::Sandbox => "sandbox",
            TargetKind::Logs => "logs",
            TargetKind::Remains => "remains",
            TargetKind::Goal => "goal",
            TargetKind::Workflow => "workflow",
            TargetKind::Container => "container",
            TargetKind::HiddenChecks => "hidden checks",
            TargetKind::Objects => "objects",
            TargetKind::Branch => "branch",
        },
        name: thing.name.clone(),
        project: thing
            .project
            .as_ref()
            .map(|path| path.display().to_string()),
        path: thing.path.display().to_string(),
        bytes: thing.bytes,
        why: error.unwrap_or_else(|| why.clone()),
    }
}
