//! What an answer of the person to a dialog leads to.
//!
//! A question is answered once; one that nobody answers changes nothing, but for a contract, which is
//! rejected then.

use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::GoalStatus;
use kapi_wire::rpc::{DialogAnswer, PersonReply};
use serde_json::Value;

use crate::commands::rpc::dialog::PendingDialog;
use crate::commands::rpc::host::Host;
use crate::commands::rpc::{begin, gate, slash, view};
use crate::error::Error;
use crate::exit_code::Exit;

/// Carries out what an answer means.
pub(super) fn answer(host: &Host<'_>, given: &DialogAnswer) -> Result<Value, Error> {
    let pending = host
        .asked(given.dialog)
        .ok_or_else(|| Error::new(Exit::Denied, "the question is no longer open"))?;
    let is_yes = given.choice == Some(0);
    let reply = match pending {
        PendingDialog::Tool(consent) => {
            return super::value(&gate::answered(host, &consent, is_yes)?);
        }
        PendingDialog::Contract { hash } => decided(host, &hash, is_yes)?,
        PendingDialog::Replace { intent } if is_yes => begin::replace(host, &intent)?,
        PendingDialog::Cancel if is_yes => slash::cancel(host)?,
        PendingDialog::Turns(turns) if is_yes => slash::set_turns(host, turns)?,
        PendingDialog::Reopen if is_yes => slash::reopen(host)?,
        PendingDialog::Replace { .. }
        | PendingDialog::Cancel
        | PendingDialog::Turns(_)
        | PendingDialog::Reopen => view::told("Nothing was changed."),
    };
    super::value(&reply)
}

/// Approves or rejects the contract that was shown.
fn decided(host: &Host<'_>, hash: &str, is_yes: bool) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let goal = attached.goal()?;
    if goal.status != GoalStatus::Proposed || goal.contract_hash != hash {
        return Err(Error::new(
            Exit::Denied,
            "the contract that was shown is no longer the one that waits",
        ));
    }
    if is_yes {
        return begin::approve(host, &goal.contract);
    }
    let reason = Some("the contract was rejected".to_owned());
    let goal = attached.submit(host.context, &GoalCommand::Cancel { reason })?;
    Ok(PersonReply {
        text: Some(format!(
            "The contract was rejected; goal {} is cancelled.",
            goal.id
        )),
        goal: Some(view::of(&goal)),
        ..PersonReply::default()
    })
}
