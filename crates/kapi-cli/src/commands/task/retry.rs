//! `kapi task retry`: submit a task that has ended once more, as it was asked for.

use kapi_core::task_id::KernelTaskId;
use kapi_task::record::admission::{KeyAsk, LoopAsk, TaskAsk};
use kapi_task::record::error::KernelError;
use kapi_task::record::profile_file::AgentProfile;
use kapi_task::record::queue::Queue;
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::denied::KernelDenial;
use kapi_task::rules::goal_drive::GoalDrive;
use kapi_task::rules::loop_run::RunTrigger;
use kapi_task::rules::task::KernelTask;

use crate::commands::task::TaskArg;
use crate::commands::task::submitted::{TaskExecutor, follow_up};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel, failed, no_task};

/// Options of `kapi task retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArg,
    /// Queue the task for another worker and return at once
    #[arg(short, long)]
    detach: bool,
}

/// Submits a task once more.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    kernel::with(context, "kapi task retry", |kernel| {
        let id = args.task.id;
        let mut queue = kernel.queue()?;
        let found = queue.find(id).map_err(|error| failed(&error))?;
        let task = found.ok_or_else(|| no_task(id))?;
        if !task.state.is_ended() {
            let denied = KernelDenial::WrongState {
                task: id,
                state: task.state,
                action: "tried again",
            };
            return Err(failed(&KernelError::Denied(denied))
                .with_hint(format!("wait for it with `kapi wait {id}`.")));
        }
        if let Some(drive) = task.goal_drive() {
            return Err(of_workflow(id, drive));
        }
        let profile = kernel.profile(Some(&task.request.agent))?;
        kernel.prepare()?;
        let answer = submit(kernel, &mut queue, &task, profile)?;
        let location = if args.detach {
            TaskExecutor::Elsewhere
        } else {
            TaskExecutor::Here
        };
        follow_up(kernel, queue, &answer, location)
    })
}

/// What drives a goal is asked for by its workflow alone.
fn of_workflow(id: KernelTaskId, drive: &GoalDrive) -> Error {
    let GoalDrive { mode, workflow, .. } = drive;
    let text = format!("{id} drives a goal of workflow {workflow}, which retries it itself");
    let index = workflow.index();
    Error::new(Exit::Denied, text).with_hint(format!(
        "resume the workflow with `kapi {mode} resume {index:03}`."
    ))
}

fn submit(
    kernel: &ProjectKernel<'_>,
    queue: &mut Queue<'_>,
    task: &KernelTask,
    profile: &AgentProfile,
) -> Result<KernelReply, Error> {
    let (origin, depth) = kernel.asker(queue);
    let actor = &kernel.context.actor;
    let answer = kernel.at_admission(|admission| match task.loop_run() {
        Some(run) => {
            let ask = LoopAsk {
                definition: &run.definition,
                profile,
                trigger: RunTrigger::Manual {
                    source: Some(format!("retry of {}", task.id)),
                },
                inputs: run.inputs.clone(),
                payload: run.payload.clone(),
                depth: run.depth,
                key: KeyAsk::None,
                origin,
            };
            admission.trigger_loop(queue, actor, ask)
        }
        None => {
            let mut ask = again(task, profile);
            if !kernel.store.is_shared() {
                // Elsewhere each request begins at what is checked out where it is made.
                ask.base.clone_from(&task.request.base);
            }
            admission.submit_task(
                queue,
                actor,
                TaskAsk {
                    origin,
                    depth,
                    ..ask
                },
            )
        }
    });
    answer.map_err(|error| failed(&error))
}

fn again<'p>(task: &KernelTask, profile: &'p AgentProfile) -> TaskAsk<'p> {
    let request = task.request.clone();
    TaskAsk {
        description: request.description,
        prompt: request.prompt,
        profile,
        backend: request.backend,
        model: request.model,
        timeout_ms: Some(request.timeout_ms),
        budget: request.budget,
        domain: request.domain,
        priority: request.priority,
        key: KeyAsk::None,
        retry: request.retry,
        verify: request.verify,
        protect: request.protect,
        checks: request.checks,
        keep_commits: request.keep_commits,
        base: None,
        origin: request.origin,
        depth: request.depth,
        retry_of: Some(task.id),
    }
}
