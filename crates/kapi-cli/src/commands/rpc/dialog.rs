//! What the person is asked over the host: the questions, and which of them are open.
//!
//! What an answer leads to is not known here.

use std::collections::BTreeMap;

use kapi_goal::rules::state::Goal;
use kapi_wire::rpc::DialogView;

use crate::commands::goal::detail;

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

/// What is asked before a tool runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolConsent {
    /// The entry of the contract's list.
    pub(super) entry: String,
    /// The command, in one line.
    pub(super) shown: String,
    /// The tool.
    pub(super) tool: String,
}

/// What was asked and is not answered yet.
#[derive(Debug, Default)]
pub(super) struct PendingDialogs {
    last: u32,
    open: BTreeMap<u32, PendingDialog>,
}

impl PendingDialogs {
    /// Opens a question, and returns it with its number.
    pub(super) fn open(&mut self, pending: PendingDialog, view: DialogView) -> DialogView {
        self.last = self.last.wrapping_add(1);
        self.open.insert(self.last, pending);
        if self.open.len() > PENDING_MAX {
            self.open.pop_first();
        }
        DialogView {
            id: self.last,
            ..view
        }
    }

    /// Closes a question, and returns what was asked.
    pub(super) fn close(&mut self, id: u32) -> Option<PendingDialog> {
        self.open.remove(&id)
    }
}

/// Returns the question whether a contract is approved.
pub(super) fn approval(goal: &Goal) -> DialogView {
    DialogView {
        timeout_ms: Some(CONTRACT_MS),
        ..confirm(
            "Approve this contract and start?".to_owned(),
            detail::lines(goal).join("\n"),
        )
    }
}

/// Returns a question with yes and no.
pub(super) fn confirm(title: String, message: String) -> DialogView {
    DialogView {
        id: 0,
        title,
        message,
        options: vec!["yes".to_owned(), "no".to_owned()],
        timeout_ms: Some(QUESTION_MS),
    }
}
