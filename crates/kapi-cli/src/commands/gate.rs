//! `kapi gate`: a goal that holds in the person's own sessions of an agent in this checkout: a turn does not
//! end while its checks fail.
//!
//! The same orders are typed in a session, as `/kapi:goal` and so on.

use kapi_goal::rules::state::{Goal, GoalStatus};
use serde::Serialize;

use crate::commands::goal::answer::{self, GoalAnswerView};
use crate::context::Context;
use crate::contract::flags::shell_command;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::gate::goal::{AGENT_DEFAULT, GateTerms, HOLDS_DEFAULT, JUDGE_DEFAULT};
use crate::gate::order::{GateOrder, carry_out};
use crate::gate::record::GatedCheckout;
use crate::help;
use crate::ui::Format;

/// Options of `kapi gate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do [default: status]
    #[command(subcommand)]
    verb: Option<GateVerb>,
}

/// The orders as words.
#[derive(Debug, clap::Subcommand)]
enum GateVerb {
    /// Hold sessions in this checkout until the task is proved
    Set(SetArgs),
    /// Show the gate's status
    Status(StatusArgs),
    /// Run the checks now
    Check,
    /// Release sessions until you resume
    Pause,
    /// Hold sessions again
    Resume,
    /// Remove the gate
    Off,
}

/// Options of `kapi gate set`.
#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: String,
    /// Command that must pass (repeatable) [default: the project's own tests]
    #[arg(long, value_name = "COMMAND", value_parser = shell_command)]
    verify: Vec<String>,
    /// Files that must not change (repeatable)
    #[arg(long, value_name = "GLOB")]
    protect: Vec<String>,
    /// Command prefix that needs your approval first (repeatable)
    #[arg(long, value_name = "COMMAND")]
    ask_before: Vec<String>,
    #[arg(help = help::with_default("Model or agent that judges what passes", JUDGE_DEFAULT), long, value_name = "JUDGE")]
    judge: Option<String>,
    #[arg(help = help::with_default("Client whose sessions are held", AGENT_DEFAULT), long, value_name = "AGENT")]
    agent: Option<String>,
    #[arg(help = help::with_default("Times in a row to hold before letting go", HOLDS_DEFAULT), long, value_name = "N")]
    holds: Option<u32>,
}

/// Options of `kapi gate status`.
#[derive(Debug, clap::Args)]
struct StatusArgs {
    /// Print one line, or nothing if there is no gate
    #[arg(long)]
    line: bool,
}

#[derive(Debug, Serialize)]
struct GateView<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    gate: Option<GoalAnswerView<'a>>,
}

/// Carries an order out.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let order = match &args.verb {
        Some(GateVerb::Status(status)) if status.line => return Ok(line(context)),
        Some(GateVerb::Status(_)) | None => GateOrder::Status,
        Some(GateVerb::Set(set)) => GateOrder::Set(GateTerms {
            task: set.task.trim().to_owned(),
            verify: set.verify.clone(),
            protect: set.protect.clone(),
            ask_before: set.ask_before.clone(),
            judge: set.judge.clone(),
            holds: set.holds,
            agent: set.agent.clone(),
        }),
        Some(GateVerb::Check) => GateOrder::Check,
        Some(GateVerb::Pause) => GateOrder::Pause,
        Some(GateVerb::Resume) => GateOrder::Resume,
        Some(GateVerb::Off) => GateOrder::Off,
    };
    let text = carry_out(context, &order)?;
    let goal = match GatedCheckout::find(context)?.goal()? {
        Some(gated) => Some(gated.goal()?),
        None => None,
    };
    match context.ui.format {
        Format::Json => context.ui.json(&GateView {
            kind: "gate",
            gate: goal.as_ref().map(GoalAnswerView::of),
        }),
        Format::Human => context.ui.page(&text),
    }
    let has_passed = |goal: &Goal| matches!(goal.status, GoalStatus::Done | GoalStatus::Unverified);
    let is_refuted = order == GateOrder::Check && !goal.as_ref().is_some_and(has_passed);
    Ok(if is_refuted {
        Exit::NotDone
    } else {
        Exit::Success
    })
}

/// A status line says nothing of what it cannot read.
fn line(context: &Context) -> Exit {
    let checkout = GatedCheckout::with_gate(context, &context.cwd);
    let gated = checkout.and_then(|checkout| checkout.goal().ok().flatten());
    if let Some(goal) = gated.and_then(|gated| gated.goal().ok()) {
        context.ui.line(&format!("kapi {}", answer::line(&goal)));
    }
    Exit::Success
}
