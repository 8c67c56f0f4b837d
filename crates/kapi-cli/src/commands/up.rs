//! `kapi up`: a supervisor in the foreground. Wakes parked goals, and drives what nobody drives.
//!
//! All it knows can be read again from the logs, so it may be killed at any time and started any
//! number of times. What happens is the engine's business; a goal that needs a person is only shown.

mod board;
mod crew;
mod supervisor;

use std::thread;

use serde_json::json;

use crate::commands::up::supervisor::{Supervisor, Tally};
use crate::context::Context;
use crate::driving::attendance::alarm;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi up`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Goals that are driven at once
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Wake and drive what is due, then end; for cron and CI
    #[arg(long)]
    once: bool,
}

/// How long it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Until a person ends it.
    Interrupted,
    /// Until nothing is due.
    NothingDue,
}

/// Supervises the goals of the project.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("supervise goals")?;
    let root = context.project_root()?;
    context.require_own_state(&root)?;
    let project = context.project(&root, "kapi up");
    let config = context.config(Some(project.layout.root()))?;
    let interrupts = interrupts()?;
    let shop = crew::Shop {
        context,
        project: &project,
        config: &config,
        interrupts: &interrupts,
    };
    let until = if args.once {
        Until::NothingDue
    } else {
        Until::Interrupted
    };
    let alarm = alarm()?;
    let tally = thread::scope(|scope| {
        let crew = crew::Crew::new(scope, &shop, alarm.bell());
        Supervisor::new(&shop, crew, alarm, (until, usize::from(args.jobs))).run()
    })?;
    report(context, &tally, interrupts.is_raised());
    Ok(if interrupts.is_raised() {
        Exit::Interrupted
    } else if tally.failed.is_empty() {
        Exit::Success
    } else {
        Exit::Failed
    })
}

fn report(context: &Context, tally: &Tally, is_interrupted: bool) {
    let names = |ids: &std::collections::BTreeSet<kapi_core::id::GoalId>| -> Vec<String> {
        ids.iter().map(ToString::to_string).collect()
    };
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "result",
            "woken": names(&tally.woken),
            "driven": names(&tally.driven),
            "failed": names(&tally.failed),
            "parked": names(&tally.parked),
            "undriven": names(&tally.undriven),
        })),
        Format::Human => {
            let (parked, undriven) = (tally.parked.len(), tally.undriven.len());
            if is_interrupted {
                context
                    .ui
                    .say("Nobody supervises the goals any more; nothing is lost.");
            }
            if parked + undriven > 0 {
                context.ui.say(&format!(
                    "{parked} parked and {undriven} active; `kapi up` goes on with them."
                ));
            }
        }
    }
}
