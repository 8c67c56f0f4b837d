//! A workflow's work as tasks of the kernel: let in by the same door as all others, done here unless
//! another worker has claimed it, and waited for in any case.
//!
//! The effect's id is the task's key, so whoever repeats the effect after a crash finds its task.
//! What doing it means is the performer's affair.

use kapi_agent::agent::AgentKind;
use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::task_id::KernelTaskId;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_task::record::admission::goal::GoalAsk;
use kapi_task::record::error::KernelError;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::goal_drive::GoalDrive;
use kapi_task::rules::task::KernelTask;
use kapi_task::rules::task_state::KernelTaskState;
use kapi_workflow::perform::{GoalTaskOutcome, GoalTaskPlan, NotTasked};
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::effect::next;

use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::foreground::{FinalTaskState, Foreground, TaskSnapshot, attend};
use crate::kernel::{ProjectKernel, failed};
use crate::workflow::world::{WorkflowSetup, failure};

impl WorkflowSetup<'_> {
    /// Has a goal driven as a task of the kernel, until that has ended or is called off.
    pub(crate) fn as_task(
        &self,
        asked: &GoalTaskPlan<'_>,
        watch: &EffectWatch<'_>,
    ) -> Result<GoalTaskOutcome, NotTasked> {
        self.try_as_task(asked, watch).map_err(|error| {
            // What a rule refuses stays refused; a place, a disk or a store comes back.
            let may_pass = !matches!(error.exit, Exit::Denied | Exit::Usage);
            let why = failure(error);
            let task = &asked.work.task;
            NotTasked {
                failure: Failure {
                    message: format!("submit {task} to the queue: {}", why.message),
                    hint: why.hint,
                },
                may_pass,
            }
        })
    }

    fn try_as_task(
        &self,
        asked: &GoalTaskPlan<'_>,
        watch: &EffectWatch<'_>,
    ) -> Result<GoalTaskOutcome, Error> {
        let kernel = ProjectKernel::new(self.context, self.project, self.config)?;
        kernel.prepare()?;
        let id = self.let_in(&kernel, asked)?;
        Workflows::of(self.project)
            .submit_workflow(
                self.key,
                &Actor::Engine,
                &WorkflowCommand::QueueWork {
                    effect: asked.effect.clone(),
                    goal: asked.goal.id.clone(),
                    task: id,
                },
            )
            .map_err(|error| Error::workflow(&error))?;
        let notice = |_: KernelTaskId, activity: Activity| (watch.notice)(activity);
        let performer = kernel.performer(&notice)?;
        let foreground = Foreground {
            kernel: &kernel,
            is_over: &|| watch.cancel.is_raised(),
            perform: &|task, handle| performer.perform(task, handle),
            has_capacity: &|| true,
        };
        let mut reported = String::new();
        let left = attend(&foreground, id, &mut |seen| {
            let text = format!("{}: {}", asked.work.task, state(seen));
            if text != reported && !seen.task.state.is_ended() {
                (watch.notice)(Activity::Note { text: text.clone() });
                reported = text;
            }
        });
        match left? {
            FinalTaskState::Ended(task) => Ok(GoalTaskOutcome::Ended(task)),
            FinalTaskState::Open(task) => {
                self.let_go(&kernel, asked, &task)?;
                Ok(GoalTaskOutcome::LetGo)
            }
        }
    }

    /// Submits the task, or finds it.
    fn let_in(
        &self,
        kernel: &ProjectKernel<'_>,
        asked: &GoalTaskPlan<'_>,
    ) -> Result<KernelTaskId, Error> {
        let contract = &asked.goal.contract;
        let kind = AgentKind::parse(&contract.agent);
        let agent = kind.as_ref().map_or("agent", |kind| kind.name());
        let ask = GoalAsk {
            title: &asked.work.title,
            contract,
            agent,
            drive: GoalDrive {
                mode: self.key.mode,
                workflow: self.key.id.clone(),
                task: asked.work.task.clone(),
                effect: asked.effect.clone(),
                goal: asked.goal.id.clone(),
                location: None,
            },
            user: self.started_by,
            priority: kernel.priority(agent),
        };
        let mut queue = kernel.queue()?;
        let answer = kernel.at_admission(|admission| admission.submit_goal(&mut queue, ask));
        match answer.map_err(|error| failed(&error))? {
            KernelReply::Submitted(id) | KernelReply::Duplicate(id) => Ok(id),
            KernelReply::Skipped(_)
            | KernelReply::Claimed(..)
            | KernelReply::Nothing
            | KernelReply::Done => Err(Error::new(
                Exit::Internal,
                "the submission produced no task",
            )),
        }
    }

    /// Takes a task out of the queue that the workflow does not want any more; one that it still
    /// wants waits for whoever goes on with it.
    fn let_go(
        &self,
        kernel: &ProjectKernel<'_>,
        asked: &GoalTaskPlan<'_>,
        task: &KernelTask,
    ) -> Result<(), Error> {
        let workflow = Workflows::of(self.project).workflow(self.key);
        let workflow = workflow.map_err(|error| Error::workflow(&error))?;
        let mut wanted = next(&workflow).into_iter();
        if wanted.any(|effect| effect.id == *asked.effect) {
            return Ok(());
        }
        let cancel = KernelCommand::Cancel {
            task: task.id,
            why: format!("workflow {} no longer needs it", self.key.id),
        };
        let mut queue: Queue<'_> = kernel.queue()?;
        match queue.submit(&Actor::Engine, &cancel) {
            // It may have ended meanwhile.
            Ok(_) | Err(KernelError::Denied(_)) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// Returns where a task stands that has not ended.
fn state(seen: &TaskSnapshot<'_>) -> String {
    let task = seen.task;
    let id = task.id;
    let holder = task.lease.as_ref().map(|lease| lease.holder.to_string());
    let holder = holder.unwrap_or_default();
    match task.state {
        // How long a pause still is changes all the time.
        KernelTaskState::Pending => {
            match seen.waits.as_ref().filter(|_| task.retry_cause.is_none()) {
                Some(waits) => format!("{id} is waiting: {waits}"),
                None => format!("{id} is waiting for a worker"),
            }
        }
        KernelTaskState::Leased => format!("{id} is about to start on {holder}"),
        KernelTaskState::Running if task.cancelling.is_some() => format!("{id} is stopping"),
        KernelTaskState::Running => format!("{id} is running on {holder}"),
        KernelTaskState::Completed | KernelTaskState::Failed | KernelTaskState::Cancelled => {
            format!("{id} has ended")
        }
    }
}
