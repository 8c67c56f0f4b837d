//! The answer to a call: what was recorded, or the refusal and its code.
//!
//! One JSON object whatever carries it: `ok`, then either the state or `reason` and `message`.

use serde_json::{Value, json};

use crate::rules::contract::Contract;
use crate::rules::denied::GoalDenial;
use crate::rules::state::Goal;
use crate::rules::tool::ToolCall;
use crate::tools::ToolRefusal;
use crate::tools::state::{StateView, StatusView};

/// Returns the answer to a call that was recorded, with the goal as it is now.
#[must_use]
pub fn recorded(call: &ToolCall, goal: &Goal) -> Value {
    let mut answer = accepted(&StateView::from(goal));
    if let Some(next) = next_step(call) {
        answer["next"] = json!(next);
    }
    answer
}

/// Returns the answer to a look.
#[must_use]
pub fn looked(goal: &Goal) -> Value {
    accepted(&StatusView::from(goal))
}

/// Returns the answer to a draft that was approved by the person's own preference.
#[must_use]
pub fn approved(goal: &Goal, contract_hash: &str) -> Value {
    let mut answer = accepted(&StateView::from(goal));
    answer["contractHash"] = json!(contract_hash);
    answer["next"] =
        json!("The contract is approved. End your turn; the work starts in the next one.");
    answer
}

/// Returns the answer to a draft that waits for its person, with what of it does not hold.
#[must_use]
pub fn not_confirmed(goal: &str, contract_hash: &str, contract: &Contract) -> Value {
    let refused = ToolRefusal::new(
        "not_confirmed",
        format!(
            "the draft is recorded; the user can approve it with `kapi goal approve {goal} \
             --hash {contract_hash}`; end your turn"
        ),
    );
    let mut answer = self::refused(&refused);
    answer["goal"] = json!(goal);
    answer["contractHash"] = json!(contract_hash);
    let refusals = &contract.attribution.refusals;
    if !refusals.is_empty() {
        answer["notTaken"] = json!(refusals);
    }
    answer
}

/// Returns the answer to a call that was refused.
#[must_use]
pub fn refused(refused: &ToolRefusal) -> Value {
    json!({"ok": false, "reason": refused.code, "message": refused.message})
}

/// Returns the refusal for a rule of the core.
#[must_use]
pub fn denied(denied: &GoalDenial) -> ToolRefusal {
    let code = match denied {
        GoalDenial::Refused { code, message } => return ToolRefusal::new(code, message.clone()),
        GoalDenial::NoGoal => "no_active_goal",
        GoalDenial::GoalExists => "goal_exists",
        GoalDenial::BadContract { .. } => "bad_input",
        GoalDenial::OnlyHuman { .. }
        | GoalDenial::OnlyEngine { .. }
        | GoalDenial::OnlyAgent { .. } => "wrong_run",
        GoalDenial::WrongStatus { .. } => "wrong_status",
        GoalDenial::WrongHash { .. }
        | GoalDenial::BudgetUsedUp { .. }
        | GoalDenial::BadRaise { .. }
        | GoalDenial::NoLimit { .. }
        | GoalDenial::NotUnderWay { .. }
        | GoalDenial::WrongOutcome { .. } => "denied",
    };
    ToolRefusal::new(code, denied.to_string())
}

/// Tells whether an answer is a refusal.
#[must_use]
pub fn is_refusal(answer: &Value) -> bool {
    answer["ok"] != json!(true)
}

fn accepted<View: serde::Serialize>(view: &View) -> Value {
    // Plain structs of texts and numbers always have a JSON form.
    let mut answer = serde_json::to_value(view).unwrap_or_else(|_| json!({}));
    answer["ok"] = json!(true);
    answer
}

const fn next_step(call: &ToolCall) -> Option<&'static str> {
    match call {
        ToolCall::Complete { .. } => Some(
            "Your claim is recorded. End your turn: Kapi runs the checks in a clean checkout, \
             and a judge reviews the result.",
        ),
        ToolCall::Block { .. } => Some("Your question is recorded. End your turn."),
        ToolCall::Wait { .. } => Some("The goal will be parked when your turn ends. End it now."),
        ToolCall::Distill { .. } => Some("The summary is recorded. End your turn."),
        ToolCall::Plan { .. }
        | ToolCall::Replan { .. }
        | ToolCall::TaskUpdate { .. }
        | ToolCall::Progress { .. } => None,
    }
}
