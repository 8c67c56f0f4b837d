//! What the person says of a proposal in a dialog of their agent's client.
//!
//! The client shows the contract whole and passes on what they said; this process proposed it, so it is
//! this very contract and no other that is approved or rejected.

use std::sync::{Arc, Mutex, PoisonError};

use kapi_core::id::GoalId;
use kapi_goal::perform::tools::refusal;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::tools::{ToolRefusal, answer};
use kapi_mcp::call::{Question, QuestionReply};
use serde_json::{Value, json};

use crate::context::Context;
use crate::contract::{self, approval, words};
use crate::error::Error;
use crate::tool_service::MCP;
use crate::ui::harmless;

/// The one field of the dialog.
const APPROVE: &str = "approve";

/// The proposal of one process: it has one at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Proposal(Arc<Mutex<Option<ProposedContract>>>);

/// A contract that was proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProposedContract {
    goal: GoalId,
    hash: String,
}

impl Proposal {
    /// Notes what was proposed.
    pub(super) fn note(&self, goal: &GoalId, hash: &str) {
        let proposed = ProposedContract {
            goal: goal.clone(),
            hash: hash.to_owned(),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(proposed);
    }

    /// Returns the goal that was proposed.
    pub(super) fn goal(&self) -> Option<GoalId> {
        let proposed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        proposed.as_ref().map(|proposed| proposed.goal.clone())
    }

    /// Returns the question about a contract.
    pub(super) fn question(goal: &GoalId, hash: &str, contract: &Contract) -> Question {
        let rows = words::lines(&words::whole(contract));
        let rows: Vec<String> = rows.iter().map(|row| harmless(row)).collect();
        let text = format!(
            "Kapi: approve the contract of goal {goal}?\n{}\n  hash      {hash}",
            rows.join("\n")
        );
        let schema = json!({
            "type": "object",
            "properties": { APPROVE: {
                "type": "boolean",
                "title": "Approve this contract",
                "description": "No rejects it: the goal ends.",
            }},
            "required": [APPROVE],
        });
        Question {
            text,
            schema,
            about: format!("{goal} {hash}"),
            unanswered: answer::not_confirmed(&goal.to_string(), hash, contract),
        }
    }

    /// Does what the person said, and returns the answer to the call that proposed.
    pub(crate) fn settle(&self, context: &Context, about: &str, reply: &QuestionReply) -> Value {
        let proposed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let proposed = proposed.clone();
        let ours = proposed.filter(|ours| about == format!("{} {}", ours.goal, ours.hash));
        let settled = match ours {
            Some(ours) => settle(context, &ours, reply),
            None => Err(ToolRefusal::input(
                "requestState does not name what this server proposed".to_owned(),
            )),
        };
        settled.unwrap_or_else(|refused| answer::refused(&refused))
    }
}

/// Returns a refusal in the words of an error.
pub(super) fn refused(code: &'static str, error: &Error) -> ToolRefusal {
    let hint = error.hint.as_deref().unwrap_or_default();
    ToolRefusal::new(code, format!("{error}. {hint}").trim_end().to_owned())
}

fn settle(
    context: &Context,
    proposed: &ProposedContract,
    reply: &QuestionReply,
) -> Result<Value, ToolRefusal> {
    let setup = |error: Error| refused("setup_failed", &error);
    let root = context.project_root().map_err(setup)?;
    let project = context.project(&root, MCP);
    let goal = project
        .load(&proposed.goal)
        .map_err(|error| refusal(&error))?;
    // Some clients accept or decline by themselves where nobody is there: only the answer itself counts.
    let said = match reply {
        QuestionReply::Accepted(content) => content.get(APPROVE).and_then(Value::as_bool),
        QuestionReply::Declined | QuestionReply::Cancelled => None,
    };
    let Some(is_approved) = said else {
        let id = goal.id.to_string();
        return Ok(answer::not_confirmed(&id, &proposed.hash, &goal.contract));
    };
    if goal.status != GoalStatus::Proposed || goal.contract_hash != proposed.hash {
        let text = format!("goal {} is {} by now", goal.id, goal.status);
        return Err(ToolRefusal::new("wrong_status", text));
    }
    if is_approved {
        approve(context, &project, &goal, &proposed.hash)
    } else {
        reject(context, &project, &goal)
    }
}

fn approve(
    context: &Context,
    project: &Project<'_>,
    goal: &Goal,
    hash: &str,
) -> Result<Value, ToolRefusal> {
    let setup = |error: Error| refused("setup_failed", &error);
    context.require_human("approve a contract").map_err(setup)?;
    let config = context.config(Some(project.layout.root())).map_err(setup)?;
    contract::check(context, &config, &goal.contract).map_err(setup)?;
    let means = ApprovalMeans::Client;
    approval::approve(context, project, &goal.id, &goal.contract, means).map_err(setup)?;
    let goal = project.load(&goal.id).map_err(|error| refusal(&error))?;
    Ok(answer::approved(&goal, hash))
}

fn reject(context: &Context, project: &Project<'_>, goal: &Goal) -> Result<Value, ToolRefusal> {
    let command = GoalCommand::Cancel {
        reason: Some("the contract was rejected in an agent client's dialog".to_owned()),
    };
    project
        .submit(&goal.id, &context.actor, &command)
        .map_err(|error| refusal(&error))?;
    Err(ToolRefusal::new(
        "rejected",
        format!(
            "the user rejected the contract, and goal {} has ended; ask them what to change \
             before you propose another",
            goal.id
        ),
    ))
}
