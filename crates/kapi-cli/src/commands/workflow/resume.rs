//! `kapi <mode> resume`: goes on with a workflow, after whatever is asked of it first.
//!
//! One thing is asked at a time: an answer, a change, another try, an end. A person's to do.

use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::limits::LimitRaises;
use kapi_workflow::rules::modes::ModeCommand;

use crate::amount;
use crate::commands::workflow::adopt::{self, AdoptApproval};
use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::driving::{self, Conduct, DriveInputs, Settle};
use crate::workflow::event_words::describe;
use crate::workflow::find::{self, WorkflowVerb};
use crate::workflow::located::{LocatedWorkflow, WorkflowQuery};
use crate::workflow::watching::{self, WorkerWatch};
use crate::workflow::{purpose, report};

/// Options of `kapi <mode> resume` that every mode has.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workflow, or the interview it came from
    #[arg(value_name = "WORKFLOW")]
    reference: String,
    /// More words: a purpose that begins with `resume`
    #[arg(hide = true)]
    more: Vec<String>,
    /// Request a change to the document awaiting approval
    #[arg(long, value_name = "TEXT", group = "asked", allow_hyphen_values = true)]
    revise: Option<String>,
    /// Abandon the workflow for good; branches, worktrees and documents stay
    #[arg(
        long,
        value_name = "REASON",
        group = "asked",
        allow_hyphen_values = true
    )]
    abandon: Option<String>,
    /// Tokens to add to the workflow's limit, such as +500k
    #[arg(long, value_name = "+N", value_parser = amount::parse_count, allow_hyphen_values = true)]
    tokens: Option<u64>,
    /// US dollars to add to the workflow's limit, such as +2.50
    #[arg(long, value_name = "+USD", value_parser = amount::parse_usd_micros, allow_hyphen_values = true)]
    usd: Option<u64>,
    /// Time to add to the workflow's limit, such as +30m
    #[arg(long, value_name = "+TIME", value_parser = amount::parse_duration_ms, allow_hyphen_values = true)]
    wall: Option<u64>,
    /// Adopt a workflow that came from elsewhere, after showing what you would trust
    #[arg(long)]
    adopt: bool,
    /// Adopt without asking; the log records this
    #[arg(short, long, requires = "adopt")]
    yes: bool,
    /// Record the request without continuing the workflow
    #[arg(long)]
    no_drive: bool,
    #[command(flatten)]
    notify: NotifyArgs,
}

/// What a mode lets a person ask besides.
pub(crate) struct ModeOptions<'a> {
    /// What is asked.
    pub(crate) ask: Option<ResumeOptions>,
    /// Makes what settles what it asks its person.
    pub(crate) settle: &'a dyn Fn(&Context) -> Result<Box<Settle>, Error>,
    /// Where its workers are watched.
    pub(crate) watch: Option<WorkerWatch>,
}

/// What is asked of a workflow before it goes on.
pub(crate) enum ResumeOptions {
    /// A request that only its mode knows.
    Command(ModeCommand),
    /// Whatever else.
    Do(Box<Do>),
}

/// Asks something of a workflow.
pub(crate) type Do = dyn FnOnce(&Context, &mut LocatedWorkflow<'_>) -> Result<(), Error>;

/// Goes on with a workflow.
pub(crate) fn run(
    context: &Context,
    conduct: &Conduct,
    args: &Args,
    more: ModeOptions<'_>,
) -> Result<Exit, Error> {
    let mode = conduct.mode;
    if !args.more.is_empty() {
        return Err(purpose::own_word(mode, "resume", &args.more));
    }
    context.require_human("resume a workflow")?;
    let context = &context.with_notify(&args.notify);
    watching::require(context, more.watch)?;
    let settle = (more.settle)(context)?;
    let sought = WorkflowQuery {
        mode,
        reference: &args.reference,
        owner: "kapi resume",
    };
    let mut found = find::find(context, &sought, WorkflowVerb::Resume)?;
    if args.adopt {
        let means = if args.yes {
            AdoptApproval::Given
        } else {
            AdoptApproval::Asked
        };
        adopt::adopt(context, &found, means)?;
    }
    found.attach(context)?;
    raise(context, &mut found, args)?;
    ask(context, &mut found, args, more.ask)?;
    let is_over = found.workflow.status.is_terminal();
    if args.no_drive || is_over {
        let exit = report::outcome(context.ui, &found.dir(), &found.workflow);
        // What was asked for was done; that it does not go on was asked for, too.
        return Ok(if is_over && args.abandon.is_none() {
            exit
        } else {
            Exit::Success
        });
    }
    if found.workflow.pending.is_none() {
        (conduct.check)(context, &found)?;
    }
    if found.workflow.status == WorkflowStatus::Blocked {
        found.submit(context, &WorkflowCommand::Unblock {})?;
    }
    let interrupts = interrupts()?;
    let with = DriveInputs {
        settle: &*settle,
        watch: more.watch,
    };
    driving::go_on(context, &mut found, with, &interrupts)
}

/// Allows more for the whole, where that is asked for.
fn raise(context: &Context, found: &mut LocatedWorkflow<'_>, args: &Args) -> Result<(), Error> {
    let more = LimitRaises {
        tokens: args.tokens.unwrap_or(0),
        usd_micros: args.usd.unwrap_or(0),
        wall_ms: args.wall.unwrap_or(0),
    };
    if [args.tokens, args.usd, args.wall] == [None; 3] {
        return Ok(());
    }
    let submitted = found.submit(context, &WorkflowCommand::RaiseLimits { more })?;
    for line in submitted
        .recorded
        .iter()
        .filter_map(|it| describe(&it.event))
    {
        context.ui.say(&format!("note: {line}."));
    }
    Ok(())
}

/// Asks for a change; what was edited by hand goes along, and where it is kept is said.
fn revise(context: &Context, found: &mut LocatedWorkflow<'_>, text: &str) -> Result<(), Error> {
    let revised = Workflows::of(&found.project)
        .revise_workflow(&found.key, &context.actor, text)
        .map_err(|error| Error::workflow(&error))?;
    found.workflow = revised.submitted.workflow;
    for kept in revised.edited {
        context.ui.say(&format!(
            "note: your manual edits are included, and kept as {}.",
            kept.display()
        ));
    }
    Ok(())
}

fn ask(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    args: &Args,
    ask: Option<ResumeOptions>,
) -> Result<(), Error> {
    let common = match (&args.revise, &args.abandon) {
        (Some(text), _) => return revise(context, found, text),
        (None, Some(reason)) => Some(WorkflowCommand::Abandon {
            reason: reason.clone(),
        }),
        (None, None) => None,
    };
    match (common, ask) {
        (Some(command), _) => found.submit(context, &command).map(drop),
        (None, Some(ResumeOptions::Command(command))) => found
            .submit(context, &WorkflowCommand::Mode(command))
            .map(drop),
        (None, Some(ResumeOptions::Do(ask))) => ask(context, found),
        (None, None) => Ok(()),
    }
}
