//! `kapi show`: one goal in full: contract, evidence, spend, what to do next.

use kapi_core::goal::contract::Contract;
use kapi_core::goal::state::Goal;
use kapi_wire::result::ResultView;
use serde::Serialize;

use crate::commands::budget;
use crate::commands::run::race;
use crate::context::Context;
use crate::contract::words;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::report;
use crate::trust::Trust;
use crate::ui::Format;

/// Options of `kapi show`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal: its index, its slug, or both
    reference: String,
}

impl Args {
    /// Returns the options that show a goal.
    pub(crate) fn of(reference: &str) -> Self {
        Self {
            reference: reference.to_owned(),
        }
    }
}

#[derive(Debug, Serialize)]
struct View<'a> {
    #[serde(flatten)]
    result: ResultView,
    contract: &'a Contract,
    contract_hash: &'a str,
    approval: Option<kapi_core::goal::event::ApprovalMeans>,
    driver: Option<String>,
    #[serde(flatten)]
    trust: Trust,
}

/// Shows a goal.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let (project, id) = context.find_goal(&args.reference, "kapi show")?;
    let failed = |error| Error::engine(&error, &id.to_string());
    let goal = project.load(&id).map_err(failed)?;
    let driver = project.driver(&id).map_err(failed)?;
    let trust = Trust::of(context, &project, &goal);
    match context.ui.format {
        Format::Json => context.ui.json(&View {
            result: ResultView {
                kind: "goal",
                next: trust.next_commands(&goal),
                ..ResultView::from(&goal)
            },
            contract: &goal.contract,
            contract_hash: &goal.contract_hash,
            approval: goal.approval,
            driver,
            trust,
        }),
        Format::Human => {
            let race = race::view::lines(&project, &goal)?;
            human(context, (&goal, &trust), driver.as_deref(), &race);
            report::auto_run(context, project.layout.root(), &goal);
        }
    }
    Ok(Exit::Success)
}

fn human(
    context: &Context,
    goal_and_trust: (&Goal, &Trust),
    driver: Option<&str>,
    race: &[String],
) {
    let ui = context.ui;
    let (goal, trust) = goal_and_trust;
    report::outcome(ui, goal, Some(trust));
    if let Some(driver) = driver {
        ui.line(&format!("  driver   {driver}"));
    }
    if let Some(worktree) = &goal.workspace {
        ui.line(&format!("  worktree {worktree}"));
    }
    for line in race {
        ui.line(&format!("  race     {line}"));
    }
    for line in budget::lines(goal) {
        ui.line(&format!("  budget   {line}"));
    }
    ui.line(&format!("Contract {}", goal.contract_hash));
    for line in words::lines(&words::rows(&goal.contract)) {
        ui.line(&line);
    }
}
