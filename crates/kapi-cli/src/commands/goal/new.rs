//! `kapi goal new`: from an intent to a contract that a person approves, and to the goal.
//!
//! The contract comes from flags, from a file, or from the agent itself, which drafts it first.
//! Without a person at a terminal it waits, proposed, with the line that approves it.

mod setup;

use kapi_goal::record::project::Project;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::state::Goal;
use kapi_wire::result::{ApprovalNeededView, ResultView};

use crate::commands::goal::judge;
use crate::commands::goal::unfinished::{self, ApprovalChoice, ApprovalFlag};
use crate::commands::{explain, run};
use crate::context::Context;
use crate::contract::judge::is_model;
use crate::contract::{self, agent_name, approval, file, flags, words};
use crate::driving::{self, WhenParked, exit_of};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::report;
use crate::ui::Format;

/// Options of `kapi goal new`.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) run: flags::Args,
    /// Let the agent draft the contract [default when there is no verify command]
    #[arg(help_heading = None::<&str>, long, conflicts_with = "unverified")]
    pub(super) draft: bool,
    /// Cancel the unfinished goal once the new contract is approved
    #[arg(help_heading = None::<&str>, long, conflicts_with = "keep")]
    replace: bool,
    /// Keep the unfinished goal alongside the new one
    #[arg(help_heading = None::<&str>, long)]
    keep: bool,
    /// Create the goal without starting it
    #[arg(help_heading = None::<&str>, long)]
    pub(super) no_run: bool,
}

impl Args {
    /// Returns what becomes of a goal that is unfinished.
    pub(super) const fn wish(&self) -> ApprovalFlag {
        match (self.replace, self.keep) {
            (true, _) => ApprovalFlag::Replace,
            (false, true) => ApprovalFlag::Keep,
            (false, false) => ApprovalFlag::Ask,
        }
    }
}

/// Sets a goal up.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    if args.run.explain {
        return explain::run::explain(context, &args.run);
    }
    context.require_human("start a goal")?;
    let context = &context.with_notify(&args.run.notify);
    if args.run.race.is_race() {
        return Err(
            Error::usage("`kapi goal new` creates one goal, and this is a race")
                .with_hint("start it with `kapi run`, which takes the same options."),
        );
    }
    has_intent(args)?;
    if wants_draft(context, args)? {
        return setup::run(context, args);
    }
    for _ in 0..run::DRAFTS_MAX {
        let draft = contract::draft(context, &args.run)?;
        let project = context.project(&draft.root, "kapi goal new");
        let choice = unfinished::choose(context, &project, args.wish())?;
        words::show_whole(context, &draft.contract, &draft.notes);
        let means = means(context, &project, args.run.yes)?;
        let interrupts = driving::interrupts()?;
        let Some(id) = run::create(context, &project, &draft)? else {
            let branch = &draft.contract.branch;
            context.ui.say(&format!(
                "note: another run has just taken {branch}; trying again."
            ));
            continue;
        };
        let Some(means) = means else {
            let goal = load(&project, &id)?;
            return Ok(waits(context, &goal, &choice));
        };
        approval::approve(context, &project, &id, &draft.contract, means)?;
        unfinished::carry_out(context, &project, &choice, &id)?;
        if args.no_run {
            let goal = load(&project, &id)?;
            return Ok(rests(context, &goal));
        }
        let begun = project
            .log(&id)
            .map_err(|error| Error::engine(&error, &id.to_string()))?;
        let run = driving::GoalRun {
            project: &project,
            id: &id,
            config: &draft.config,
        };
        let when_parked = WhenParked::asked(args.run.park);
        return driving::drive_and(context, &run, begun, &interrupts, when_parked);
    }
    Err(Error::new(Exit::Busy, "other runs keep taking this branch").with_hint("reword the task."))
}

/// Refuses a goal that nobody said anything of.
fn has_intent(args: &Args) -> Result<(), Error> {
    if args.run.contract.is_some() || !args.run.intent.trim().is_empty() {
        return Ok(());
    }
    Err(Error::usage("no goal was given")
        .with_hint("give one: `kapi goal new \"<intent>\"`, or name a file with `--contract`."))
}

/// Tells whether the agent drafts the contract: where that was asked for, or where nothing says
/// what proves the goal and the agent is one that can.
fn wants_draft(context: &Context, args: &Args) -> Result<bool, Error> {
    if args.draft {
        return Ok(true);
    }
    let Ok(root) = judge::project_of(context) else {
        return Ok(false);
    };
    let said = file::filled(context, &args.run)?.args;
    let table = context.config(Some(&root))?.goal;
    let is_proved = !said.verify.is_empty() || table.verify.is_some_and(|all| !all.is_empty());
    if is_proved || said.unverified || args.run.contract.is_some() {
        return Ok(false);
    }
    match said.agent.or(table.agent) {
        Some(agent) => Ok(is_model(&agent_name::kind(&agent)?)),
        None => Ok(false),
    }
}

/// Returns how the person approves the contract they see; `None` when nobody is there to ask.
pub(super) fn means(
    context: &Context,
    project: &Project<'_>,
    yes: bool,
) -> Result<Option<ApprovalMeans>, Error> {
    if let Some(means) = approval::in_advance(context, project, yes)? {
        return Ok(Some(means));
    }
    match context.ui.confirm("Approve this contract and start?") {
        Some(true) => Ok(Some(ApprovalMeans::Terminal)),
        Some(false) => Err(Error::new(Exit::Denied, "the contract was not approved")),
        None => Ok(None),
    }
}

/// Says how a contract is approved that nobody was there to approve. What it is to replace goes on
/// until then.
pub(super) fn waits(context: &Context, goal: &Goal, choice: &ApprovalChoice) -> Exit {
    let mut line = approval::line(&goal.id, &goal.contract_hash);
    if let ApprovalChoice::Replace(replaced) = choice {
        line = format!("{line} --replace {:03}", replaced.reference());
        context.ui.say(&format!(
            "note: goal {replaced} stays unchanged until this contract is approved."
        ));
    }
    match context.ui.format {
        Format::Json => {
            context.ui.json(&ApprovalNeededView {
                kind: "approval_needed",
                goal: goal.id.to_string(),
                contract: &goal.contract,
                contract_hash: &goal.contract_hash,
                approve: line,
            });
            context.ui.json(&ResultView::from(goal));
        }
        Format::Human => {
            let ui = context.ui;
            ui.line(&format!(
                "Goal {} is proposed; its contract needs your approval.",
                goal.id
            ));
            ui.line(&format!("  hash     {}", goal.contract_hash));
            ui.line(&format!("  next     {line}"));
            ui.line(&format!(
                "  next     kapi goal reject {}",
                goal.id.reference()
            ));
        }
    }
    exit_of(goal)
}

/// Reports a goal that was approved and is left to begin later.
pub(super) fn rests(context: &Context, goal: &Goal) -> Exit {
    match context.ui.format {
        Format::Json => context.ui.json(&ResultView::from(goal)),
        Format::Human => report::outcome(context.ui, goal, None),
    }
    Exit::Success
}

pub(super) fn load(project: &Project<'_>, id: &kapi_core::id::GoalId) -> Result<Goal, Error> {
    project
        .load(id)
        .map_err(|error| Error::engine(&error, &id.to_string()))
}
