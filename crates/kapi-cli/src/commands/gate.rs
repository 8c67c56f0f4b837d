//! `kapi gate`: a contract that holds in the person's own sessions of an agent in this checkout: a turn
//! does not end while its checks fail.
//!
//! The same orders are typed in a session, as `/kapi:goal` and so on.

use kapi_check::rules::stop_gate::{GateFinding, HOLDS_DEFAULT, StopGate};
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::gate::order::{GateOrder, GateTerms, carry_out};
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
    /// Show where the gate stands
    Status(StatusArgs),
    /// Run the checks now
    Check,
    /// Let go until you resume
    Pause,
    /// Hold again
    Resume,
    /// Remove the gate
    Off,
}

/// Options of `kapi gate set`.
#[derive(Debug, clap::Args)]
struct SetArgs {
    /// What is to be done
    #[arg(value_name = "TASK")]
    task: String,
    /// Command that must pass (repeatable) [default: the project's own tests]
    #[arg(long, value_name = "CMD")]
    verify: Vec<String>,
    /// Files that must not change (repeatable)
    #[arg(long, value_name = "GLOB")]
    protect: Vec<String>,
    /// Command that you are asked about first (repeatable)
    #[arg(long, value_name = "CMD")]
    ask_before: Vec<String>,
    #[arg(help = help::with_default("Times in a row to hold before letting go", HOLDS_DEFAULT), long, value_name = "N")]
    holds: Option<u32>,
}

/// Options of `kapi gate status`.
#[derive(Debug, clap::Args)]
struct StatusArgs {
    /// Print one line, or nothing where there is no gate
    #[arg(long)]
    line: bool,
}

#[derive(Debug, Serialize)]
struct GateView<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    gate: Option<&'a StopGate>,
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
            holds: set.holds,
        }),
        Some(GateVerb::Check) => GateOrder::Check,
        Some(GateVerb::Pause) => GateOrder::Pause,
        Some(GateVerb::Resume) => GateOrder::Resume,
        Some(GateVerb::Off) => GateOrder::Off,
    };
    let text = carry_out(context, &order)?;
    let gate = GatedCheckout::find(context)?.load()?;
    match context.ui.format {
        Format::Json => context.ui.json(&GateView {
            kind: "gate",
            gate: gate.as_ref(),
        }),
        Format::Human => context.ui.page(&text),
    }
    let last = gate.as_ref().and_then(|gate| gate.last.as_ref());
    let is_refuted =
        order == GateOrder::Check && last.is_none_or(|last| last.finding == GateFinding::Failed);
    Ok(if is_refuted {
        Exit::NotDone
    } else {
        Exit::Success
    })
}

/// A status line says nothing of what it cannot read.
fn line(context: &Context) -> Exit {
    let checkout = GatedCheckout::with_gate(context, &context.cwd);
    let gate = checkout.and_then(|checkout| checkout.load().ok().flatten());
    if let Some(gate) = gate {
        context.ui.line(&gate.line());
    }
    Exit::Success
}
