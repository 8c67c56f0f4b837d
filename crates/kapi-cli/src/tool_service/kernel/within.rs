//! The kernel's tools within a run: in the name of its goal, with what is left of its budget.
//!
//! Only where the person's configuration lets runs submit tasks; without it nothing is offered.

use std::path::PathBuf;
use std::sync::Arc;

use kapi_core::id::GoalId;
use kapi_goal::perform::tools::TaskTools;
use kapi_goal::rules::state::Goal;
use kapi_task::record::queue::Queue;
use kapi_task::rules::task::KernelTask;
use kapi_task::rules::task_terms::TaskBudget;
use kapi_wire::kernel_tools::KernelTool;
use kapi_wire::kernel_tools::answer::ToolAnswer;
use kapi_wire::kernel_tools::input::read;
use serde_json::Value;

use super::{Asker, AskerStatus, perform, refused};
use crate::context::Context;
use crate::error::Error;
use crate::kernel::{ProjectKernel, failed};

/// What an agent is told where runs may not submit tasks.
const NOT_ALLOWED: &str = "runs may not submit tasks here; the user can allow it with \
    `runs_submit_tasks = true` under [kernel] in their own configuration";
/// What the kernel's stream calls the process that asks for a run.
const OWNER: &str = "kapi, for a run";
/// A goal's agent is no task, so what it submits stands one below.
const DEPTH: u32 = 1;
/// Tasks of one goal that have not ended, at most.
const LIVE_MAX: usize = 20;
/// Tasks that have ended and are looked at for what they used, at most.
const ENDED_MAX: usize = 1_000;

/// Returns what performs the kernel's tools for the runs of a project; each call is refused unless the
/// person lets runs submit tasks.
pub(in crate::tool_service) fn tool_service<'a>(
    context: &'a Context,
    root: PathBuf,
) -> Result<TaskTools<'a>, Error> {
    let config = context.config(Some(&root))?;
    let lets = config.kernel.person.runs_submit_tasks.as_ref();
    let are_offered = lets.is_some_and(|lets| lets.value);
    let perform = move |goal: &GoalId, tool, input| {
        if !are_offered {
            return ToolAnswer::not_launched(NOT_ALLOWED);
        }
        let answered = call(context, &root, goal, tool, input);
        answered.unwrap_or_else(|error| refused(&error))
    };
    Ok(TaskTools {
        are_offered,
        call: Arc::new(move |goal: &GoalId, tool: &str, input| {
            let tool = KernelTool::named(tool)?;
            Some(perform(goal, tool, input).to_value())
        }),
    })
}

fn call(
    context: &Context,
    root: &std::path::Path,
    id: &GoalId,
    tool: KernelTool,
    input: Value,
) -> Result<ToolAnswer, Error> {
    let request = match read(tool, input) {
        Ok(request) => request,
        Err(answer) => return Ok(answer),
    };
    let project = context.project(root, OWNER);
    let loaded = project.load(id);
    let goal = loaded.map_err(|error| Error::engine(&error, &id.to_string()))?;
    let config = context.config(Some(root))?;
    let kernel = ProjectKernel::new(context, &project, &config)?;
    let asker = Asker {
        run: id.to_string(),
        depth: DEPTH,
        state: AskerStatus::Within(left(&goal)),
    };
    Ok(perform(&kernel, &asker, &request).answer)
}

/// Returns what is left of a goal's budget.
fn left(goal: &Goal) -> TaskBudget {
    let (budget, spent) = (&goal.budget, &goal.spent);
    let tokens = spent.executor.tokens().saturating_add(spent.judge.tokens());
    let usd = |micros: Option<u64>| micros.unwrap_or(0);
    let usd = usd(spent.executor.usd_micros).saturating_add(usd(spent.judge.usd_micros));
    let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
    TaskBudget {
        tokens: left(budget.tokens, tokens),
        usd_micros: left(budget.usd_micros, usd),
        time_ms: left(budget.wall_ms, spent.wall_ms),
    }
}

/// Returns what a further task of an asker may use, or why there is no room for one: what its other
/// tasks used or may use still is not there twice.
pub(super) fn allowance(
    queue: &Queue<'_>,
    asker: &Asker,
) -> Result<Result<TaskBudget, String>, Error> {
    let mut allowance = match asker.state {
        AskerStatus::Outside => return Ok(Ok(TaskBudget::default())),
        AskerStatus::Within(left) => left,
    };
    let kernel = queue.kernel();
    let live: Vec<&KernelTask> = kernel
        .tasks
        .values()
        .filter(|task| asker.owns(task))
        .collect();
    if live.len() >= LIVE_MAX {
        return Ok(Err(format!("over capacity ({}/{LIVE_MAX})", live.len())));
    }
    for task in live {
        let reserved = task.request.budget;
        take(&mut allowance.tokens, reserved.tokens.unwrap_or(0));
        take(&mut allowance.usd_micros, reserved.usd_micros.unwrap_or(0));
        take(&mut allowance.time_ms, reserved.time_ms.unwrap_or(0));
    }
    let history = queue.history().last(ENDED_MAX, None);
    let history = history.map_err(|error| failed(&error))?;
    let is_new = |task: &&KernelTask| !kernel.ended.contains_key(&task.id);
    let ended = history.iter().filter(is_new).chain(kernel.ended.values());
    for task in ended.filter(|task| asker.owns(task)) {
        take(&mut allowance.tokens, task.usage.tokens());
        take(
            &mut allowance.usd_micros,
            task.usage.usd_micros.unwrap_or(0),
        );
        let times = task.started_at_ms.zip(task.ended_at_ms);
        let took = times.map_or(0, |(from, to)| to.saturating_sub(from));
        take(&mut allowance.time_ms, u64::try_from(took).unwrap_or(0));
    }
    let is_used_up = [allowance.tokens, allowance.usd_micros, allowance.time_ms].contains(&Some(0));
    Ok(if is_used_up {
        Err("the goal's budget is used up".to_owned())
    } else {
        Ok(allowance)
    })
}

fn take(allowance: &mut Option<u64>, used: u64) {
    *allowance = allowance.map(|allowance| allowance.saturating_sub(used));
}
