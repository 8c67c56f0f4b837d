//! One goal in full: contract, evidence, spend, what to do next.
//!
//! Nothing here changes it.

use kapi_core::id::GoalId;
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::state::Goal;
use kapi_wire::result::ResultView;
use serde::Serialize;

use crate::commands::budget;
use crate::commands::goal::answer;
use crate::commands::goal::detail::{self, ContractContext};
use crate::commands::run::race;
use crate::commands::show::OWNER;
use crate::context::Context;
use crate::contract::words;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::trust::Trust;
use crate::ui::Format;
use crate::{delivering, report};

#[derive(Debug, Serialize)]
struct GoalShowView<'a> {
    #[serde(flatten)]
    result: ResultView,
    contract: &'a Contract,
    contract_hash: &'a str,
    approval: Option<kapi_goal::rules::event::ApprovalMeans>,
    driver: Option<String>,
    /// How far it has come.
    #[serde(rename = "standing")]
    state: answer::GoalAnswerView<'a>,
    #[serde(flatten)]
    trust: Trust,
    /// What was recorded beside the contract, where that is asked for.
    #[serde(flatten)]
    beside: Option<ContractContext<'a>>,
}

/// Shows a goal; all of it where that is asked for.
pub(super) fn show(context: &Context, id: &GoalId, all: bool) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let failed = |error| Error::engine(&error, &id.to_string());
    let goal = project.load(id).map_err(failed)?;
    let driver = project.driver(id).map_err(failed)?;
    let trust = Trust::of(context, &project, &goal);
    match context.ui.format {
        Format::Json => context.ui.json(&GoalShowView {
            result: ResultView {
                kind: "goal",
                next: trust.next_commands(&goal),
                ..ResultView::from(&goal)
            },
            contract: &goal.contract,
            contract_hash: &goal.contract_hash,
            approval: goal.approval,
            driver,
            state: answer::GoalAnswerView::of(&goal),
            trust,
            beside: all.then(|| ContractContext::of(&goal)),
        }),
        Format::Human => {
            let race = race::view::lines(&project, &goal)?;
            human(context, &goal, &trust, driver.as_deref(), &race);
            delivering::show(context, &project, &goal);
            if all {
                detail::contract(context.ui, &goal);
            } else {
                context.ui.line(&format!("Contract {}", goal.contract_hash));
                for line in words::lines(&words::rows(&goal.contract)) {
                    context.ui.line(&line);
                }
            }
            report::auto_run(context, project.layout.root(), &goal);
        }
    }
    Ok(Exit::Success)
}

fn human(context: &Context, goal: &Goal, trust: &Trust, driver: Option<&str>, race: &[String]) {
    let ui = context.ui;
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
    for line in budget::goal::lines(goal) {
        ui.line(&format!("  budget   {line}"));
    }
}
