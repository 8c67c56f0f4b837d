//! The question of an editor's person whether a contract is approved, with all of it to read.

use serde_json::{Value, json};

use crate::commands::acp::editor::Editor;
use crate::commands::acp::session::EditorSession;
use crate::contract::{ContractDraft, words};

/// The options of the question.
const APPROVE: &str = "approve";
const REJECT: &str = "reject";
/// The name of the call that the question is about.
const CALL: &str = "contract";

/// What the person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContractAnswer {
    /// The contract holds.
    Approved,
    /// It does not.
    Rejected,
    /// They said nothing.
    None,
}

/// Asks the person whether a contract is approved.
pub(super) fn ask(
    editor: &Editor,
    session: &EditorSession,
    draft: &ContractDraft,
    is_wanted: &dyn Fn() -> bool,
) -> ContractAnswer {
    let ContractDraft {
        contract, notes, ..
    } = draft;
    let mut lines = words::lines(&words::whole(contract));
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    let title = if contract.is_verified() {
        "Approve this contract and start?"
    } else {
        "Nothing will prove the result. Approve this contract and start anyway?"
    };
    let text = format!("```\n{}\n```", lines.join("\n"));
    let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let call = json!({"toolCallId": CALL, "title": title, "kind": "other", "status": "pending",
        "content": content});
    let mut told = call.clone();
    told["sessionUpdate"] = json!("tool_call");
    editor.update(session.id(), &told);
    let params = json!({
        "sessionId": session.id(),
        "toolCall": call,
        "options": [
            {"optionId": APPROVE, "name": "Approve and start", "kind": "allow_once"},
            {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
        ],
    });
    let answer = editor.ask("session/request_permission", &params, is_wanted);
    let chosen = answer.as_ref().and_then(|answer| {
        let is_chosen = answer.pointer("/outcome/outcome") == Some(&json!("selected"));
        let option = answer.pointer("/outcome/optionId").and_then(Value::as_str);
        option.filter(|_| is_chosen)
    });
    let answer = match chosen {
        Some(APPROVE) => ContractAnswer::Approved,
        Some(_) => ContractAnswer::Rejected,
        None => ContractAnswer::None,
    };
    let status = if answer == ContractAnswer::Approved {
        "completed"
    } else {
        "failed"
    };
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": CALL,
        "status": status});
    editor.update(session.id(), &update);
    answer
}
