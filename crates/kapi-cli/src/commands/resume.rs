//! `kapi resume`: let a goal or a launch go on, after a stop, an interruption or a crash.
//!
//! A goal whose contract was never approved is approved here first, and one that is done is only taken
//! up again by somebody who does not accept the result.

mod launch;

use kapi_core::id::GoalId;
use kapi_core::isolation::NetworkMode;
use kapi_core::text::counted;
use kapi_goal::record::project::Project;
use kapi_goal::rules::budget::BudgetLimit;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::{Goal, GoalStatus};

use crate::amount;
use crate::commands::budget::RaiseArgs;
use crate::commands::goal::pick::GoalChoice;
use crate::commands::goal::resume::refuse_driven;
use crate::commands::goal::{answer, reopen};
use crate::commands::run::race;
use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::contract::{approval, isolation, words};
use crate::driving::{self, WhenParked};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// What other processes are told about who holds a lock.
const OWNER: &str = "kapi resume";

/// Options of `kapi resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Approve the contract without asking, if it is not approved yet
    #[arg(short, long)]
    yes: bool,
    /// Exit when the goal is parked and leave the rest to `kapi up`
    #[arg(long)]
    park: bool,
    /// Mark the goal as resumed without starting it
    #[arg(long, conflicts_with = "park")]
    no_run: bool,
    #[command(flatten)]
    raise: RaiseArgs,
    #[command(flatten)]
    notify: NotifyArgs,
}

/// Lets a goal or a launch go on; of everything else it says what does.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("resume work")?;
    let context = &args.subject.context(context)?.with_notify(&args.notify);
    let refused = |text: String| Error::new(Exit::Denied, text);
    match args.subject.find(context, Silence::UnderWay)? {
        Meaning::Goal(id) => goal(context, &id, args),
        Meaning::Workflow(key) => {
            let (mode, index) = (key.mode, key.id.index());
            let text = format!("workflow {} is resumed through its mode", key.id);
            Err(refused(text).with_hint(format!("resume it with `kapi {mode} resume {index:03}`.")))
        }
        Meaning::Task(id) => Err(refused(format!(
            "a task cannot be resumed: the next worker continues {id}"
        ))
        .with_hint(format!(
            "run `kapi up --once` to work on it, or `kapi task retry {id}` once it has ended."
        ))),
        Meaning::Launch(location) => launch::resume(context, &location, args),
    }
}

fn goal(context: &Context, id: &GoalId, args: &Args) -> Result<Exit, Error> {
    let (project, id) = context.find_sound_goal(&id.to_string(), OWNER)?;
    let failed = |error| Error::engine(&error, &id.to_string());
    let config = context.config(Some(project.layout.root()))?;
    let goal = project.load(&id).map_err(failed)?;
    // The first goal of a race names it; another lane goes on alone.
    if goal
        .contract
        .race
        .as_ref()
        .is_some_and(|race| race.of == id.index())
    {
        let going = race::RaceMode {
            of: id.index(),
            yes: args.yes,
            when_parked: WhenParked::asked(args.park),
        };
        return race::resume(context, &project, &config, going);
    }
    let picked = GoalChoice { project, id, goal };
    refuse_driven(&picked)?;
    if matches!(
        picked.goal.status,
        GoalStatus::Done | GoalStatus::Unverified
    ) && !picked.goal.is_driven()
    {
        return challenge(context, &picked, args.no_run);
    }
    let GoalChoice { project, id, goal } = picked;
    let failed = |error| Error::engine(&error, &id.to_string());
    raise(context, &project, &goal, &args.raise)?;
    let begun = if goal.status == GoalStatus::Proposed {
        let notes = isolation::isolation_note(&goal.contract);
        words::show(context, &goal.contract, &notes);
        words::show_given(context, &goal);
        let means = driving::approval(context, &goal.contract, args.yes)?;
        approval::approve(context, &project, &id, &goal.contract, means)?
    } else {
        project
            .submit(&id, &context.actor, &GoalCommand::Resume)
            .map_err(failed)?
            .recorded
    };
    if args.no_run || goal.contract.is_session() {
        let goal = project.load(&id).map_err(failed)?;
        let mut lines = vec![format!("Goal {} is {}.", goal.id, goal.status)];
        if goal.contract.is_session() {
            lines.push(format!(
                "It continues in its {} session.",
                goal.contract.agent
            ));
        }
        return Ok(answer::give(context, &goal, &lines));
    }
    if goal.contract.network == NetworkMode::Open {
        context.ui.say(
            "note: the network of this goal is `open`: its sandbox can reach everything this \
             machine can. New goals default to `filtered`; start a new goal to use it.",
        );
    }
    let run = driving::GoalRun {
        project: &project,
        id: &id,
        config: &config,
    };
    let when_parked = WhenParked::asked(args.park);
    driving::drive_and(context, &run, begun, &driving::interrupts()?, when_parked)
}

/// Raises what a person says, or what is used up where they consent to it.
fn raise(
    context: &Context,
    project: &Project<'_>,
    goal: &Goal,
    said: &RaiseArgs,
) -> Result<(), Error> {
    let submit = |more| {
        let command = GoalCommand::RaiseBudget(more);
        let submitted = project.submit(&goal.id, &context.actor, &command);
        submitted.map_err(|error| Error::engine(&error, &goal.id.to_string()))
    };
    let goal = if said.is_raise() {
        submit(said.of_goal()?)?.goal
    } else {
        goal.clone()
    };
    let rests = matches!(
        goal.status,
        GoalStatus::Paused | GoalStatus::Blocked | GoalStatus::Stalled | GoalStatus::Waiting
    );
    let used_up = goal.budget.used_up(&goal.spent).filter(|_| rests);
    let Some(limit) = used_up else { return Ok(()) };
    let more = goal.budget.raise_beyond(&goal.spent, limit);
    let (option, amount) = match limit {
        BudgetLimit::Turns => ("--turns", counted(more.turns, "turn")),
        BudgetLimit::Tokens => (
            "--tokens",
            format!("{} tokens", amount::tokens(more.tokens)),
        ),
        BudgetLimit::Usd => ("--usd", amount::usd(more.usd_micros)),
        BudgetLimit::Wall => ("--wall", amount::duration(more.wall_ms)),
    };
    let question = format!(
        "The {limit} budget of goal {} is used up. Add {amount} and continue?",
        goal.id
    );
    if context.ui.confirm(&question) == Some(true) {
        return submit(more).map(drop);
    }
    let value = match limit {
        BudgetLimit::Turns => more.turns.to_string(),
        BudgetLimit::Tokens => more.tokens.to_string(),
        BudgetLimit::Usd => {
            let cents = more.usd_micros.div_ceil(10_000);
            format!("{}.{:02}", cents / 100, cents % 100)
        }
        BudgetLimit::Wall => format!("{}m", more.wall_ms.div_ceil(60_000)),
    };
    Err(
        Error::new(Exit::Denied, format!("the {limit} budget is used up")).with_hint(format!(
            "raise it and continue with `kapi resume {} {option} +{value}`.",
            goal.id.reference()
        )),
    )
}

/// A result that is done is only taken up again by somebody who does not accept it.
fn challenge(context: &Context, picked: &GoalChoice<'_>, no_run: bool) -> Result<Exit, Error> {
    let id = &picked.id;
    let question = format!("Goal {id} is done. Reject the result and continue the goal?");
    match context.ui.confirm(&question) {
        Some(true) => reopen::take_up(
            context,
            picked,
            "resumed by the user, who does not accept the result",
            no_run,
        ),
        Some(false) => Err(Error::new(Exit::Denied, "the result was not reopened")),
        None => Err(Error::new(
            Exit::Denied,
            format!("goal {id} is {} and cannot be resumed", picked.goal.status),
        )
        .with_hint(format!(
            "state what is wrong with it: `kapi goal reopen {} \"<reason>\"`.",
            id.reference()
        ))),
    }
}
