//! `kapi goal detail`: the whole contract, and everything that was recorded beside it.

use kapi_core::goal::consent::Consent;
use kapi_core::goal::contract::Contract;
use kapi_core::goal::event::ApprovalMeans;
use kapi_core::goal::journey::Journey;
use kapi_core::goal::state::Goal;
use kapi_core::goal::wait::Wait;
use serde::Serialize;

use crate::commands::goal::pick::{self, Looked};
use crate::commands::goal::{answer, status};
use crate::context::Context;
use crate::contract::{approval, words};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::{Format, Ui};

#[derive(Debug, Serialize)]
struct View<'a> {
    #[serde(flatten)]
    standing: answer::View<'a>,
    contract: &'a Contract,
    contract_hash: &'a str,
    approval: Option<ApprovalMeans>,
    consent: &'a Consent,
    journey: &'a Journey,
    wait: Option<&'a Wait>,
    said: Option<&'a str>,
}

/// Shows a goal with everything that stands in its contract.
pub(crate) fn run(context: &Context, args: &pick::Args) -> Result<Exit, Error> {
    let picked = match pick::looked_at(context, args.reference.as_deref())? {
        Looked::One(picked) => picked,
        Looked::Several(goals) => return Ok(status::which(context, &goals)),
    };
    let goal = &picked.goal;
    match context.ui.format {
        Format::Json => context.ui.json(&View {
            standing: answer::View::of(goal),
            contract: &goal.contract,
            contract_hash: &goal.contract_hash,
            approval: goal.approval,
            consent: &goal.consent,
            journey: &goal.journey,
            wait: goal.wait.as_ref(),
            said: goal.said.as_deref(),
        }),
        Format::Human => human(context.ui, goal),
    }
    Ok(Exit::Success)
}

fn human(ui: Ui, goal: &Goal) {
    ui.line(&answer::line(goal));
    ui.line(&format!("Contract {}", goal.contract_hash));
    for line in words::lines(&words::whole(&goal.contract)) {
        ui.line(&line);
    }
    match goal.approval {
        Some(means) => ui.line(&format!("  approved  {}", approval::words(means))),
        None => ui.line(&format!(
            "  approved  not yet: {}",
            approval::line(&goal.id, &goal.contract_hash)
        )),
    }
    for allowed in &goal.consent.allowed {
        ui.line(&format!("  allowed   {allowed}"));
    }
    for asked in &goal.consent.asked {
        ui.line(&format!(
            "  refused   {} ({})",
            asked.command, asked.pattern
        ));
    }
    if let Some(said) = &goal.said {
        ui.line(&format!("  said      {said}"));
    }
    for note in &goal.journey.notes {
        ui.line(&format!("  turn {:<4} {}", note.turn, note.text));
    }
}
