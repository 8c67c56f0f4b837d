//! The rules for what an agent asks by its tools (pi-until-done, "Tools").
//!
//! Every refusal has the specification's code, and a refused call changes nothing. What an agent
//! declares ends no turn and proves nothing: it is looked at when its turn is over.

use kapi_core::actor::Actor;

use crate::rules::command::GoalCommand;
use crate::rules::consent::RefusedCommand;
use crate::rules::contract::TEXT_BYTES_MAX;
use crate::rules::denied::GoalDenial;
use crate::rules::event::GoalEvent;
use crate::rules::journey::TurnDeclaration;
use crate::rules::plan::Plan;
use crate::rules::plan::delta::PlanDelta;
use crate::rules::plan::denied::PlanDenied;
use crate::rules::plan::operation::Operation;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId};
use crate::rules::state::{Goal, GoalStage, GoalStatus};
use crate::rules::tool::ToolCall;
use crate::rules::wait::WaitFor;

/// The longest note, question, reason or summary, in bytes.
const LINE_BYTES_MAX: usize = 4 * 1024;

/// Decides a call of the agent whose turn it is.
pub(super) fn decide_tool(
    goal: &Goal,
    actor: &Actor,
    call: &ToolCall,
    now_ms: i64,
) -> Result<Vec<GoalEvent>, GoalDenial> {
    require_turn(goal, actor, call)?;
    let event = match call {
        ToolCall::TaskUpdate { id, patch } => return update(goal, id, patch),
        ToolCall::Plan { tasks } => make_plan(goal, tasks)?,
        ToolCall::Replan { operations, reason } => replan(goal, operations, reason, now_ms)?,
        ToolCall::Progress { note, phase } => GoalEvent::ProgressNoted {
            note: line("note", note)?,
            phase: *phase,
            at_ms: now_ms,
        },
        ToolCall::Complete { evidence, summary } => GoalEvent::TurnDeclared {
            declared: TurnDeclaration::Complete {
                evidence: text("evidence", evidence, TEXT_BYTES_MAX)?,
                summary: summary
                    .as_deref()
                    .map(|it| line("summary", it))
                    .transpose()?,
            },
        },
        ToolCall::Block { question, reason } => GoalEvent::TurnDeclared {
            declared: TurnDeclaration::Blocked {
                question: line("question", question)?,
                reason: line("reason", reason)?,
            },
        },
        ToolCall::Wait {
            until,
            reason,
            timeout_ms,
        } => wait(until, reason, *timeout_ms, now_ms)?,
        ToolCall::Distill { markdown } => GoalEvent::JourneyDistilled {
            markdown: text("prdMarkdown", markdown, TEXT_BYTES_MAX)?,
        },
    };
    Ok(vec![event])
}

/// Only the run under way speaks for the goal, and only in the state its tool is for.
fn require_turn(goal: &Goal, actor: &Actor, call: &ToolCall) -> Result<(), GoalDenial> {
    let is_distill = matches!(call, ToolCall::Distill { .. });
    if is_distill {
        if !matches!(goal.status, GoalStatus::Done | GoalStatus::Unverified) {
            return Err(refused(
                "not_done",
                format!("the goal is {}; summarize it once it is done", goal.status),
            ));
        }
    } else if goal.status != GoalStatus::Active {
        let code = match call {
            ToolCall::Plan { .. } => "wrong_status",
            ToolCall::Replan { .. } => "preflight",
            ToolCall::TaskUpdate { .. }
            | ToolCall::Progress { .. }
            | ToolCall::Complete { .. }
            | ToolCall::Block { .. }
            | ToolCall::Wait { .. }
            | ToolCall::Distill { .. } => "no_active_goal",
        };
        return Err(refused(
            code,
            format!(
                "the goal is {}, so {} does nothing",
                goal.status,
                call.name()
            ),
        ));
    }
    let is_stage = match goal.stage {
        GoalStage::Agent => !is_distill,
        GoalStage::Distill => is_distill,
        GoalStage::Setup
        | GoalStage::Workspace
        | GoalStage::Baseline
        | GoalStage::Commit
        | GoalStage::Verify
        | GoalStage::Judge
        | GoalStage::Publish
        | GoalStage::Ended => false,
    };
    let under_way = goal
        .in_flight
        .as_ref()
        .filter(|in_flight| in_flight.effect == goal.stage_effect())
        .map(|in_flight| goal.run_name(&in_flight.effect));
    match (actor, under_way) {
        (Actor::Agent { run }, Some(name)) if *run == name && is_stage => Ok(()),
        (_, _) => Err(refused(
            "wrong_run",
            format!(
                "{} is only for the current run, and the turn of {actor} is over",
                call.name()
            ),
        )),
    }
}

fn make_plan(goal: &Goal, tasks: &[GoalPlanTask]) -> Result<GoalEvent, GoalDenial> {
    let before = goal.journey.plan.as_ref();
    let after = Plan::make(before, tasks).map_err(|denied| plan_refused(&denied))?;
    let delta = PlanDelta::between(before, &after);
    Ok(GoalEvent::PlanMade { delta })
}

fn replan(
    goal: &Goal,
    operations: &[Operation],
    reason: &str,
    now_ms: i64,
) -> Result<GoalEvent, GoalDenial> {
    let before = goal.journey.plan.as_ref();
    let after = before
        .ok_or(PlanDenied::NoPlan)
        .and_then(|plan| plan.replan(operations, reason, now_ms))
        .map_err(|denied| plan_refused(&denied))?;
    let delta = PlanDelta::between(before, &after);
    Ok(GoalEvent::Replanned { delta })
}

/// A repeated update changes nothing and is recorded once.
fn update(goal: &Goal, id: &PlanTaskId, patch: &TaskPatch) -> Result<Vec<GoalEvent>, GoalDenial> {
    let before = goal.journey.plan.as_ref();
    let after = before
        .ok_or_else(|| PlanDenied::NotFound { task: id.clone() })
        .and_then(|plan| plan.update(id, patch))
        .map_err(|denied| plan_refused(&denied))?;
    if before == Some(&after) {
        return Ok(Vec::new());
    }
    let (id, delta) = (id.clone(), PlanDelta::between(before, &after));
    Ok(vec![GoalEvent::TaskUpdated { id, delta }])
}

fn wait(
    until: &WaitFor,
    reason: &str,
    timeout_ms: Option<u64>,
    now_ms: i64,
) -> Result<GoalEvent, GoalDenial> {
    if let Some(rule) = until.fault(now_ms, true) {
        return Err(refused("bad_wait", rule.to_owned()));
    }
    Ok(GoalEvent::TurnDeclared {
        declared: TurnDeclaration::Wait {
            until: until.clone(),
            reason: line("reason", reason)?,
            deadline_ms: deadline_ms(timeout_ms, now_ms),
        },
    })
}

/// Returns when a wait that begins now is over all the same.
pub(super) fn deadline_ms(timeout_ms: Option<u64>, now_ms: i64) -> Option<i64> {
    timeout_ms.map(|ms| now_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
}

/// Records that a command was refused, where the contract asks for consent and none was given.
pub(super) fn ask_consent(
    goal: &Goal,
    pattern: &str,
    command: &str,
    now_ms: i64,
) -> Result<Vec<GoalEvent>, GoalDenial> {
    let is_listed = |entry: &String| entry == pattern;
    if !goal.contract.working.ask_before.iter().any(is_listed) {
        return Err(refused(
            "not_found",
            format!("{pattern:?} is not on the contract's ask-before list"),
        ));
    }
    if goal.consent.allowed.contains(pattern) {
        return Ok(Vec::new());
    }
    let asked = RefusedCommand {
        pattern: pattern.to_owned(),
        command: command.chars().take(LINE_BYTES_MAX / 4).collect(),
        at_ms: now_ms,
    };
    Ok(vec![GoalEvent::ConsentAsked { asked }])
}

/// Tells whether a command can be asked by an agent at all.
pub(super) const fn is_agents(command: &GoalCommand) -> bool {
    matches!(
        command,
        GoalCommand::Tool(_) | GoalCommand::AskConsent { .. }
    )
}

fn line(field: &'static str, given: &str) -> Result<String, GoalDenial> {
    text(field, given, LINE_BYTES_MAX)
}

fn text(field: &'static str, given: &str, bytes_max: usize) -> Result<String, GoalDenial> {
    let given = given.trim();
    if given.is_empty() {
        return Err(refused("bad_input", format!("{field} must not be empty")));
    }
    if given.len() > bytes_max {
        return Err(refused(
            "bad_input",
            format!("{field} must be at most {bytes_max} bytes long"),
        ));
    }
    Ok(given.to_owned())
}

fn plan_refused(denied: &PlanDenied) -> GoalDenial {
    refused(denied.code(), format!("{denied}; {}", denied.hint()))
}

const fn refused(code: &'static str, message: String) -> GoalDenial {
    GoalDenial::Refused { code, message }
}
