//! `kapi <mode> approve`: a person approves what waits, by the hash of what they were shown.
//!
//! At a terminal after it was shown whole, with `--yes`, or by naming its hash. It does not go on by
//! itself: that is said, with the command, unless `--go` asks for it.

use kapi_wire::workflow::{Viewer, WorkflowView};
use kapi_workflow::record::requests::Approving;
use kapi_workflow::rules::next_command::next_commands;
use kapi_workflow::rules::pending::{Means, WaitingDecision};

use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::driving::{self, Conduct, DriveInputs};
use crate::workflow::find::{self, WorkflowVerb};
use crate::workflow::located::{LocatedWorkflow, WorkflowQuery};
use crate::workflow::{approving, purpose, words};

/// Options of `kapi <mode> approve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workflow
    #[arg(value_name = "WORKFLOW")]
    reference: String,
    /// More words: a purpose that begins with `approve`
    #[arg(hide = true)]
    more: Vec<String>,
    /// Approve whatever is shown; the log records this
    #[arg(short, long, conflicts_with = "hash")]
    yes: bool,
    /// Approve only the document with this hash (at least 12 digits)
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
    /// Accept the listed risks
    #[arg(long)]
    accept_risks: bool,
    /// Continue the workflow right away
    #[arg(long)]
    go: bool,
    #[command(flatten)]
    notify: NotifyArgs,
}

/// Approves what waits.
pub(crate) fn run(context: &Context, conduct: &Conduct, args: &Args) -> Result<Exit, Error> {
    let mode = conduct.mode;
    if !args.more.is_empty() {
        return Err(purpose::own_word(mode, "approve", &args.more));
    }
    context.require_human("approve a workflow's document")?;
    let context = &context.with_notify(&args.notify);
    let sought = WorkflowQuery {
        mode,
        reference: &args.reference,
        owner: "an approval",
    };
    let mut found = find::find(context, &sought, WorkflowVerb::Approve)?;
    let Some(pending) = found.workflow.pending.clone() else {
        return Err(nothing_pending(&found));
    };
    approving::check_unedited(&found, &pending)?;
    (conduct.check)(context, &found)?;
    approving::show(context, &found, &pending)?;
    let means = means(context, args, &found, &pending)?;
    let approving = Approving {
        shown: pending.sha256.clone(),
        means: means.0,
        accepts_risks: means.1,
    };
    approving::approve(context, &mut found, &approving)?;
    if args.go {
        let interrupts = interrupts()?;
        let with = DriveInputs {
            settle: conduct.settle,
            watch: None,
        };
        return driving::go_on(context, &mut found, with, &interrupts);
    }
    said(context, &found, &pending);
    Ok(Exit::Success)
}

/// Returns how it is approved, and whether its risks are accepted with it.
fn means(
    context: &Context,
    args: &Args,
    found: &LocatedWorkflow<'_>,
    pending: &WaitingDecision,
) -> Result<(Means, bool), Error> {
    let accepts = args.accept_risks;
    if let Some(hash) = &args.hash {
        approving::check_hash(hash, pending)?;
        return Ok((Means::NamedHash, accepts));
    }
    if args.yes {
        return Ok((Means::YesFlag, accepts));
    }
    let artifact = pending.decision.words();
    let question = match (pending.risks.len(), accepts) {
        (0, _) | (_, true) => format!("Approve {artifact}?"),
        (1, false) => format!("Approve {artifact}, and accept the risk above?"),
        (n_risks, false) => {
            format!("Approve {artifact}, and accept the {n_risks} risks above?")
        }
    };
    match context.ui.confirm(&question) {
        Some(true) => Ok((Means::Terminal, true)),
        Some(false) => Err(
            Error::new(Exit::Denied, format!("you did not approve {artifact}")).with_hint(format!(
                "nothing has changed. Request changes with `kapi {} resume {:03} --revise \"<text>\"`.",
                found.key.mode,
                found.key.id.index()
            )),
        ),
        None => Err(Error::usage(format!(
            "you have to approve {artifact}, and there is no terminal to ask you on"
        ))
        .with_hint(format!(
            "read it, then run `{}`.",
            approving::approve_line(found, pending)
        ))),
    }
}

fn nothing_pending(found: &LocatedWorkflow<'_>) -> Error {
    let text = format!(
        "workflow {} has nothing to approve: it is in phase {}",
        found.key.id,
        words::state(&found.workflow)
    );
    let next = next_commands(&found.workflow);
    match next.first() {
        Some(next) => Error::new(Exit::Denied, text).with_hint(format!("run `{next}`.")),
        None => Error::new(Exit::Denied, text),
    }
}

fn said(context: &Context, found: &LocatedWorkflow<'_>, pending: &WaitingDecision) {
    let workflow = &found.workflow;
    let next = next_commands(workflow);
    match context.ui.format {
        Format::Json => context
            .ui
            .json(&WorkflowView::of(workflow, Viewer::Last, next)),
        Format::Human => {
            let ui = context.ui;
            ui.line(&format!(
                "Approved: {} of workflow {}. Nothing is running yet.",
                pending.decision.words(),
                found.key.id
            ));
            for command in next {
                ui.line(&format!("  next     {command}"));
            }
        }
    }
}
