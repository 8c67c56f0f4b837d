//! `kapi goal tasks`, `plan`, `northstar` and `replan-log`: what a goal's plan and contract hold.
//!
//! Where there is nothing to show, that is said, and it is no error.

use std::path::Path;

use kapi_core::judge::Judge;
use kapi_core::text::{counted, time_words};
use kapi_goal::record::contract_yaml::yaml_under;
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::plan::task_list::task_list;
use kapi_goal::rules::plan::{Plan, Replan};
use serde_json::{Value, json};

use crate::commands::goal::pick::{self, GoalCandidates, GoalChoice};
use crate::commands::goal::status;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Shows the task list.
pub(crate) fn tasks(context: &Context, args: &pick::Args) -> Result<Exit, Error> {
    let GoalChoice { id, goal, .. } = match pick::looked_at(context, args.reference.as_deref())? {
        GoalCandidates::One(picked) => *picked,
        GoalCandidates::Several(goals) => return Ok(status::which(context, &goals)),
    };
    let plan = goal.journey.plan.as_ref();
    match (context.ui.format, plan) {
        (Format::Json, plan) => context.ui.json(&json!({
            "id": id.to_string(),
            "currentTaskId": plan.and_then(Plan::current).map(|task| &task.id),
            "counts": plan.map(Plan::counts),
            "tasks": plan.map_or(&[][..], Plan::tasks),
        })),
        (Format::Human, Some(plan)) => context.ui.raw(task_list(plan).as_bytes()),
        (Format::Human, None) => context.ui.say(&format!("Goal {id} has no tasks yet.")),
    }
    Ok(Exit::Success)
}

/// Shows where the task list is kept for people.
pub(crate) fn plan(context: &Context, args: &pick::Args) -> Result<Exit, Error> {
    let GoalChoice { project, id, .. } = match pick::looked_at(context, args.reference.as_deref())?
    {
        GoalCandidates::One(picked) => *picked,
        GoalCandidates::Several(goals) => return Ok(status::which(context, &goals)),
    };
    let path = project.layout.goal(&id).tasks();
    let path = Some(path).filter(|path| path.is_file());
    match (context.ui.format, &path) {
        (Format::Json, path) => context.ui.json(&json!({
            "id": id.to_string(),
            "path": path.as_deref().map(Path::display).map(|path| path.to_string()),
        })),
        (Format::Human, Some(path)) => context.ui.line(&path.display().to_string()),
        (Format::Human, None) => context.ui.say(&format!("Goal {id} has no plan yet.")),
    }
    Ok(Exit::Success)
}

/// Shows the contract that is locked.
pub(crate) fn northstar(context: &Context, args: &pick::Args) -> Result<Exit, Error> {
    let GoalChoice { id, goal, .. } = match pick::looked_at(context, args.reference.as_deref())? {
        GoalCandidates::One(picked) => *picked,
        GoalCandidates::Several(goals) => return Ok(status::which(context, &goals)),
    };
    let is_locked = goal.approval.is_some();
    let fields = north_star(&goal.contract);
    match context.ui.format {
        Format::Json => {
            let fields: serde_json::Map<String, Value> = fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect();
            let star = is_locked.then_some(fields);
            context
                .ui
                .json(&json!({"id": id.to_string(), "northStar": star}));
        }
        Format::Human if is_locked => context.ui.raw(northstar_text(&goal.contract).as_bytes()),
        Format::Human => context.ui.say(&format!(
            "Goal {id} has no approved contract yet: it is {}.",
            goal.status
        )),
    }
    Ok(Exit::Success)
}

/// Returns the contract that is locked, as YAML.
pub(crate) fn northstar_text(contract: &Contract) -> String {
    yaml_under("northStar", &north_star(contract))
}

/// The fields of the specification's North Star, in its order, and only what was said.
fn north_star(contract: &Contract) -> Vec<(&'static str, Value)> {
    let working = &contract.working;
    let mut fields = vec![
        ("goal", json!(contract.intent)),
        ("doneCriteria", json!(contract.done_criteria)),
    ];
    if contract.is_verified() {
        fields.push(("verifyCommand", json!(contract.verify.join(" && "))));
    }
    fields.push(("askBefore", json!(working.ask_before)));
    fields.push(("decisionStyle", json!(working.decision_style)));
    fields.push(("goalType", json!(working.goal_type.as_str())));
    fields.push(("surfaces", json!(working.surfaces)));
    match &contract.judge {
        Judge::None => {}
        Judge::Same => fields.push(("sameModelJudge", json!(true))),
        Judge::Agent(name) => fields.push((
            "judgeModel",
            match name.split_once('/') {
                Some((provider, model)) if !name.contains(':') => {
                    json!({"provider": provider, "modelId": model})
                }
                Some(_) | None => json!(name),
            },
        )),
    }
    fields
}

/// Shows every change of the plan, a line each.
pub(crate) fn replan_log(context: &Context, args: &pick::Args) -> Result<Exit, Error> {
    let GoalChoice { id, goal, .. } = match pick::looked_at(context, args.reference.as_deref())? {
        GoalCandidates::One(picked) => *picked,
        GoalCandidates::Several(goals) => return Ok(status::which(context, &goals)),
    };
    let plan = goal.journey.plan.as_ref();
    let replans = plan.map_or(&[][..], Plan::replan_log);
    match context.ui.format {
        Format::Json => context
            .ui
            .json(&json!({"id": id.to_string(), "replans": replans})),
        Format::Human if replans.is_empty() => context
            .ui
            .say(&format!("The plan of goal {id} has not changed.")),
        Format::Human => {
            for replan in replans {
                context.ui.line(&replan_line(replan));
            }
        }
    }
    Ok(Exit::Success)
}

/// Returns one change of the plan in a line.
pub(crate) fn replan_line(replan: &Replan) -> String {
    format!(
        "{}  {}  {}",
        time_words(replan.at_ms),
        counted(replan.operations, "operation"),
        replan.reason
    )
}
