//! `kapi <mode> <purpose>`: starts a workflow, attaches this session to it, and goes on with it.
//!
//! It goes on from an approved workflow that gives context where one fits; several that fit are listed,
//! and the number typed then is a row of that list and nothing else.

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_goal::record::project::Project;
use kapi_workflow::record::start::NewWorkflow;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::mode_spec::{ModeSpec, Opening, WorkflowStage};
use kapi_workflow::rules::modes::{Begin, ModeCommand};
use kapi_workflow::rules::next_command::next_commands;
use kapi_workflow::rules::state::Workflow;
use kapi_workflow::rules::terms::PlanApproval;

use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::candidates::{self, HandoverChoice};
use crate::workflow::driving::{self, DriveInputs, Settle};
use crate::workflow::find::{self, WorkflowVerb};
use crate::workflow::located::{LocatedWorkflow, WorkflowQuery};
use crate::workflow::terms::{self, TermFlags};
use crate::workflow::watching::{self, WorkerWatch};
use crate::workflow::{purpose, report, words};

/// Options that every mode is started with.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// What you want; '-' reads standard input, nothing opens your editor
    #[arg(value_name = "PURPOSE")]
    purpose: Vec<String>,
    #[command(flatten)]
    flags: TermFlags,
    /// Create the workflow without starting it
    #[arg(long)]
    no_drive: bool,
    #[command(flatten)]
    notify: NotifyArgs,
}

/// Options of a mode that may start from what an interview found out.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ContextArgs {
    /// Approved interview to start from
    #[arg(long, value_name = "INTERVIEW", conflicts_with = "unlinked")]
    from: Option<String>,
    /// Start without an interview, even if one fits
    #[arg(long)]
    unlinked: bool,
}

impl ContextArgs {
    /// Returns where the workflow's context comes from.
    pub(crate) fn source(&self) -> ContextSource<'_> {
        match (&self.from, self.unlinked) {
            (Some(reference), _) => ContextSource::Named(reference),
            (None, true) => ContextSource::Unlinked,
            (None, false) => ContextSource::Search,
        }
    }
}

/// What a workflow is started with.
pub(crate) struct StartRequest<'a> {
    /// Its mode.
    pub(crate) mode: Mode,
    /// What it is for, and who works with what.
    pub(crate) args: &'a Args,
    /// Makes what settles what it asks its person.
    pub(crate) settle: &'a dyn Fn(&Context) -> Result<Box<Settle>, Error>,
    /// Where its context comes from.
    pub(crate) source: ContextSource<'a>,
    /// How its plan is approved.
    pub(crate) plan_approval: PlanApprovalName,
    /// Where its workers are watched.
    pub(crate) watch: Option<WorkerWatch>,
    /// Returns what is asked of it before it is driven, for a purpose; refuses what could not be.
    pub(crate) first: &'a dyn Fn(&str) -> Result<Vec<ModeCommand>, Error>,
}

/// Asks nothing of a workflow before it is driven.
pub(crate) fn nothing_first(_: &str) -> Result<Vec<ModeCommand>, Error> {
    Ok(Vec::new())
}

/// Where a workflow's context comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ContextSource<'a> {
    /// Nothing but the purpose.
    Unlinked,
    /// The workflow of this name.
    Named(&'a str),
    /// One that fits, if there is one.
    Search,
}

/// How a plan is approved, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PlanApprovalName {
    /// Ask you
    Ask,
    /// Approve any plan that reaches consensus without open risks
    Auto,
}

/// Starts a workflow.
pub(crate) fn run(context: &Context, wanted: &StartRequest<'_>) -> Result<Exit, Error> {
    context.require_human("start a workflow")?;
    let context = &context.with_notify(&wanted.args.notify);
    watching::require(context, wanted.watch)?;
    let mode = wanted.mode;
    let settle = (wanted.settle)(context)?;
    let named = match wanted.source {
        ContextSource::Named(reference) => Some(giver(context, reference)?),
        ContextSource::Unlinked | ContextSource::Search => None,
    };
    let words = wanted.args.purpose.as_slice();
    let purpose = match (&named, words) {
        (Some(found), []) => goal_of(&found.workflow),
        _ => purpose::purpose(context, mode, words)?,
    };
    let first = (wanted.first)(&purpose)?;
    let plan_approval = match wanted.plan_approval {
        PlanApprovalName::Ask => PlanApproval::Ask,
        PlanApprovalName::Auto => PlanApproval::InAdvance,
    };
    let flags = with_agent(context, &wanted.args.flags, named.as_ref())?;
    let drawn = terms::draw(context, mode, &flags, &purpose, plan_approval)?;
    let project = context.project(&drawn.root, &format!("kapi {mode}"));
    context.require_own_state(project.layout.root())?;
    for note in &drawn.notes {
        context.ui.say(&format!("note: {note}"));
    }
    let linked = linked(context, &project, wanted, named.as_ref(), &purpose)?;
    let begin = begin(mode, drawn.commit, linked)?;
    let new = NewWorkflow {
        purpose,
        terms: drawn.terms,
        begin,
    };
    let run = StartedRun {
        first,
        settle: &*settle,
        watch: wanted.watch,
        no_drive: wanted.args.no_drive,
    };
    begun(context, project, &new, run)
}

/// How a workflow goes on that was just started.
pub(crate) struct StartedRun<'a> {
    /// What is asked of it before it is driven.
    pub(crate) first: Vec<ModeCommand>,
    /// Settles what it asks its person.
    pub(crate) settle: &'a Settle,
    /// Where its workers are watched.
    pub(crate) watch: Option<WorkerWatch>,
    /// Whether it is only made.
    pub(crate) no_drive: bool,
}

/// Starts it, attaches this session to it, and goes on with it.
pub(crate) fn begun(
    context: &Context,
    project: Project<'_>,
    new: &NewWorkflow,
    run: StartedRun<'_>,
) -> Result<Exit, Error> {
    let workflow = Workflows::of(&project)
        .start_workflow(&context.actor, new)
        .map_err(|error| Error::workflow(&error))?;
    let key = workflow.key();
    let mut found = LocatedWorkflow {
        project,
        key,
        workflow,
    };
    found.attach(context)?;
    said(context, &found);
    for command in run.first {
        found.submit(context, &WorkflowCommand::Mode(command))?;
    }
    if run.no_drive {
        report::outcome(context.ui, &found.dir(), &found.workflow);
        return Ok(Exit::Success);
    }
    let interrupts = interrupts()?;
    let with = DriveInputs {
        settle: run.settle,
        watch: run.watch,
    };
    driving::go_on(context, &mut found, with, &interrupts)
}

fn said(context: &Context, found: &LocatedWorkflow<'_>) {
    if context.ui.format == Format::Human {
        context.ui.say(&format!(
            "Workflow {} ({}) in {}",
            found.key.id,
            found.key.mode,
            found.dir().display()
        ));
    }
}

/// Returns the workflow of a name that gives its context.
fn giver<'a>(context: &'a Context, reference: &'a str) -> Result<LocatedWorkflow<'a>, Error> {
    let sought = WorkflowQuery {
        mode: Mode::CONTEXT,
        reference,
        owner: "the start of a workflow",
    };
    let found = find::find(context, &sought, WorkflowVerb::Approve)?;
    let (phase, _) = found.workflow.body.rules().phase();
    let is_drafting = phase.stage == WorkflowStage::Drafting;
    if !is_drafting {
        return Ok(found);
    }
    let text = format!(
        "not_approved: failed to start from {} {}: its spec is not approved (in {})",
        ModeSpec::noun_of(Mode::CONTEXT),
        found.key.id,
        words::state(&found.workflow)
    );
    let error = Error::new(Exit::Denied, text);
    Err(match next_commands(&found.workflow).first() {
        Some(next) => error.with_hint(format!("next: `{next}`.")),
        None => error,
    })
}

/// Returns what was said, with the giver's agent where no other was named or configured: what is
/// printed after an approval can be typed as it stands.
fn with_agent(
    context: &Context,
    said: &TermFlags,
    named: Option<&LocatedWorkflow<'_>>,
) -> Result<TermFlags, Error> {
    let mut flags = said.clone();
    if let (None, Some(found)) = (&said.agent, named) {
        let config = context.config(Some(found.project.layout.root()))?;
        if config.goal.agent.is_none() {
            let agent = found.workflow.terms.agent.clone();
            let noun = ModeSpec::noun_of(Mode::CONTEXT);
            context
                .ui
                .say(&format!("note: Using the agent of the {noun}: {agent}."));
            flags.agent = Some(agent);
        }
    }
    Ok(flags)
}

/// Returns the goal that is handed over, which is as good a purpose as any.
fn goal_of(workflow: &Workflow) -> String {
    let handover = workflow.body.rules().handover();
    handover.map_or_else(|| workflow.purpose.clone(), |spec| spec.goal.clone())
}

/// Returns the workflow that gives the context.
fn linked(
    context: &Context,
    project: &Project<'_>,
    wanted: &StartRequest<'_>,
    named: Option<&LocatedWorkflow<'_>>,
    purpose: &str,
) -> Result<Option<GoalId>, Error> {
    match wanted.source {
        ContextSource::Named(_) => Ok(named.map(|found| found.key.id.clone())),
        ContextSource::Unlinked => Ok(None),
        ContextSource::Search => {
            match candidates::choose(context, project, wanted.mode, purpose)? {
                HandoverChoice::Giver(id) => Ok(Some(id)),
                HandoverChoice::Nothing => {
                    context.ui.say(&format!(
                    "note: UNLINKED: it starts without {}; the plan has to contain its own context.",
                    ModeSpec::noun_of(Mode::CONTEXT)
                ));
                    Ok(None)
                }
            }
        }
    }
}

fn begin(mode: Mode, commit: Option<String>, context: Option<GoalId>) -> Result<Begin, Error> {
    let spec = terms::spec_of(mode)?;
    (spec.open)(Opening { commit, context }).map_err(Error::usage)
}
