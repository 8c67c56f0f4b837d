//! The whole contract of a goal, and everything that was recorded beside it: `kapi show --all`, and
//! `/until-done detail`.

use kapi_goal::rules::consent::Consent;
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::journey::Journey;
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::wait::GoalWait;
use serde::Serialize;

use crate::commands::goal::pick::{self, GoalCandidates};
use crate::commands::goal::{answer, status};
use crate::context::Context;
use crate::contract::{approval, words};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::{Format, Ui};

#[derive(Debug, Serialize)]
struct GoalDetailView<'a> {
    #[serde(flatten)]
    state: answer::GoalAnswerView<'a>,
    contract: &'a Contract,
    contract_hash: &'a str,
    approval: Option<ApprovalMeans>,
    #[serde(flatten)]
    beside: ContractContext<'a>,
}

/// What was recorded beside the contract.
#[derive(Debug, Serialize)]
pub(crate) struct ContractContext<'a> {
    consent: &'a Consent,
    journey: &'a Journey,
    wait: Option<&'a GoalWait>,
    said: Option<&'a str>,
}

impl<'a> ContractContext<'a> {
    /// Returns what was recorded of a goal.
    pub(crate) fn of(goal: &'a Goal) -> Self {
        Self {
            consent: &goal.consent,
            journey: &goal.journey,
            wait: goal.wait.as_ref(),
            said: goal.said.as_deref(),
        }
    }
}

/// Shows a goal with everything that stands in its contract.
pub(super) fn run(context: &Context, args: &pick::Args) -> Result<Exit, Error> {
    let picked = match pick::looked_at(context, args.reference.as_deref())? {
        GoalCandidates::One(picked) => picked,
        GoalCandidates::Several(goals) => return Ok(status::which(context, &goals)),
    };
    let goal = &picked.goal;
    match context.ui.format {
        Format::Json => context.ui.json(&GoalDetailView {
            state: answer::GoalAnswerView::of(goal),
            contract: &goal.contract,
            contract_hash: &goal.contract_hash,
            approval: goal.approval,
            beside: ContractContext::of(goal),
        }),
        Format::Human => {
            context.ui.line(&answer::line(goal));
            contract(context.ui, goal);
        }
    }
    Ok(Exit::Success)
}

/// Prints the whole contract and what was recorded beside it.
pub(crate) fn contract(ui: Ui, goal: &Goal) {
    for line in lines(goal) {
        ui.line(&line);
    }
}

/// Returns the whole contract and what was recorded beside it, as lines.
pub(crate) fn lines(goal: &Goal) -> Vec<String> {
    let mut lines = vec![format!("Contract {}", goal.contract_hash)];
    lines.extend(words::lines(&words::whole(&goal.contract)));
    lines.push(match goal.approval {
        Some(means) => format!("  approved  {}", approval::words(means)),
        None => format!(
            "  approved  not yet: {}",
            approval::line(&goal.id, &goal.contract_hash)
        ),
    });
    let allowed = goal.consent.allowed.iter();
    lines.extend(allowed.map(|allowed| format!("  allowed   {allowed}")));
    let asked = goal.consent.asked.iter();
    lines.extend(asked.map(|asked| format!("  refused   {} ({})", asked.command, asked.pattern)));
    lines.extend(goal.said.iter().map(|said| format!("  message   {said}")));
    let notes = goal.journey.notes.iter();
    lines.extend(notes.map(|note| format!("  turn {:<4} {}", note.turn, note.text)));
    lines
}
