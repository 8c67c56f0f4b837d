//! What the person is asked over the host, and what their answers lead to.
//!
//! A question is answered once; one that nobody answers changes nothing, but for a contract, which is
//! rejected then.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_wire::rpc::{DialogAnswer, DialogView, PersonReply};
use serde_json::Value;

use crate::commands::goal::detail;
use crate::commands::rpc::gate::{self, ToolConsent};
use crate::commands::rpc::host::Host;
use crate::commands::rpc::{begin, slash, view};
use crate::contract::{self, approval};
use crate::error::Error;
use crate::exit_code::Exit;

/// How long a contract is shown (pi-until-done: 120 s).
const CONTRACT_MS: u64 = 120_000;
/// How long anything else is asked (pi-until-done: 30 s).
const QUESTION_MS: u64 = 30_000;
/// Questions that are open at once; older ones are forgotten.
const PENDING_MAX: usize = 16;

/// Something that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingDialog {
    /// Whether the contract with this hash is approved.
    Contract {
        /// The hash.
        hash: String,
    },
    /// What becomes of the unfinished goal where another one is set up.
    Replace {
        /// What the other one is for.
        intent: String,
    },
    /// Whether the goal is ended.
    Cancel,
    /// Whether it may take so many turns.
    Turns(u32),
    /// Whether a result is not accepted.
    Reopen,
    /// Whether a tool may run.
    Tool(ToolConsent),
}

/// What was asked and is not answered yet.
#[derive(Debug, Default)]
pub(super) struct PendingDialogs {
    last: u32,
    open: BTreeMap<u32, PendingDialog>,
}

/// Asks whether a contract is approved.
pub(super) fn approval(host: &Host<'_>, goal: &Goal) -> DialogView {
    let hash = goal.contract_hash.clone();
    let message = detail::lines(goal).join("\n");
    let mut dialog = confirm(
        host,
        PendingDialog::Contract { hash },
        "Approve this contract and start?".to_owned(),
        message,
    );
    dialog.timeout_ms = Some(CONTRACT_MS);
    dialog
}

/// Asks yes or no.
pub(super) fn confirm(
    host: &Host<'_>,
    pending: PendingDialog,
    title: String,
    message: String,
) -> DialogView {
    let view = DialogView {
        id: 0,
        title,
        message,
        options: vec!["yes".to_owned(), "no".to_owned()],
        timeout_ms: Some(QUESTION_MS),
    };
    open(host, pending, view)
}

/// Asks with options.
pub(super) fn open(host: &Host<'_>, pending: PendingDialog, view: DialogView) -> DialogView {
    let mut dialogs = host.dialogs.lock().unwrap_or_else(PoisonError::into_inner);
    dialogs.last = dialogs.last.wrapping_add(1);
    let id = dialogs.last;
    dialogs.open.insert(id, pending);
    if dialogs.open.len() > PENDING_MAX {
        dialogs.open.pop_first();
    }
    DialogView { id, ..view }
}

/// Carries out what an answer means.
pub(super) fn answer(host: &Host<'_>, given: &DialogAnswer) -> Result<Value, Error> {
    let pending = {
        let mut dialogs = host.dialogs.lock().unwrap_or_else(PoisonError::into_inner);
        dialogs.open.remove(&given.dialog)
    };
    let pending =
        pending.ok_or_else(|| Error::new(Exit::Denied, "the question is no longer open"))?;
    let is_yes = given.choice == Some(0);
    let reply = match pending {
        PendingDialog::Tool(consent) => {
            return super::value(&gate::answered(host, &consent, is_yes)?);
        }
        PendingDialog::Contract { hash } => decided(host, &hash, is_yes)?,
        PendingDialog::Replace { intent } => match given.choice {
            Some(0) => begin::replace(host, &intent)?,
            Some(_) | None => slash::told("Nothing was changed."),
        },
        PendingDialog::Cancel if is_yes => slash::cancel(host)?,
        PendingDialog::Turns(turns) if is_yes => slash::set_turns(host, turns)?,
        PendingDialog::Reopen if is_yes => slash::reopen(host)?,
        PendingDialog::Cancel | PendingDialog::Turns(_) | PendingDialog::Reopen => {
            slash::told("Nothing was changed.")
        }
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
        return approve(host, &goal.contract);
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

/// Records the approval, and lets the goal begin.
pub(super) fn approve(host: &Host<'_>, shown: &Contract) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let context = host.context;
    contract::check(context, &attached.config, shown)?;
    approval::approve(
        context,
        &attached.project,
        &attached.id,
        shown,
        ApprovalMeans::Terminal,
    )?;
    host.seat.release();
    host.drive();
    let goal = attached.goal()?;
    Ok(PersonReply {
        text: Some(format!("The contract of goal {} is approved.", goal.id)),
        goal: Some(view::of(&goal)),
        ..PersonReply::default()
    })
}

/// Returns the request that sets the number of turns.
pub(super) const fn turns(turns: u32) -> GoalCommand {
    GoalCommand::Person(PersonCommand::SetTurns { turns })
}
