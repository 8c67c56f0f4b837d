//! The limits of a workflow as a whole, questions and goals together, and what was used of them.

use kapi_core::workflow_key::WorkflowKey;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::limits::LimitRaises;
use kapi_workflow::rules::spent::{limit, time_limit_ms, used};
use serde_json::json;

use crate::amount;
use crate::commands::budget::{OWNER, RaiseArgs};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::located::LocatedWorkflow;

/// Raises the limits, or shows them when nothing is raised.
pub(super) fn budget(
    context: &Context,
    key: WorkflowKey,
    raise: &RaiseArgs,
) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let mut found = LocatedWorkflow::load(project, key)?;
    if raise.is_raise() {
        context.require_human("raise a workflow's limits")?;
        context.require_own_state(found.project.layout.root())?;
        let more = LimitRaises {
            tokens: raise.tokens.unwrap_or(0),
            usd_micros: raise.usd.unwrap_or(0),
            wall_ms: raise.wall.unwrap_or(0),
        };
        found.submit(context, &WorkflowCommand::RaiseLimits { more })?;
    }
    let (limit, used) = (limit(&found.workflow), used(&found.workflow));
    let (wall_limit_ms, wall_used_ms) =
        (time_limit_ms(&found.workflow), found.workflow.wall_used_ms);
    let ui = context.ui;
    match ui.format {
        Format::Json => ui.json(&json!({
            "id": found.key.id.to_string(),
            "budget": {
                "tokens": limit.tokens,
                "usd_micros": limit.usd_micros,
                "wall_ms": wall_limit_ms,
            },
            "spent": {
                "tokens": used.tokens(),
                "usd_micros": used.usd_micros,
                // Time is counted only where it is limited.
                "wall_ms": wall_limit_ms.map(|_| wall_used_ms),
            },
        })),
        Format::Human => {
            let spent = amount::tokens(used.tokens());
            ui.line(&super::row(
                "tokens",
                &spent,
                limit.tokens.map(amount::tokens),
            ));
            let spent = amount::spent(&used);
            ui.line(&super::row(
                "money",
                &spent,
                limit.usd_micros.map(amount::usd),
            ));
            if let Some(limit_ms) = wall_limit_ms {
                let spent = amount::duration(wall_used_ms);
                ui.line(&super::row(
                    "time",
                    &spent,
                    Some(amount::duration(limit_ms)),
                ));
            }
            if raise.is_raise() && !found.workflow.status.is_terminal() {
                let (mode, index) = (found.key.mode, found.key.id.index());
                ui.line(&format!("Resume it with `kapi {mode} resume {index:03}`."));
            }
        }
    }
    Ok(Exit::Success)
}
