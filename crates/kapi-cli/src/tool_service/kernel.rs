//! The kernel's tools, performed: whose word it is, and what the kernel, the loops and the lessons
//! of the project at hand answer.
//!
//! Words and data of answers stand in `kapi_wire::kernel_tools`; rules stand in the kernel. Works
//! on no task itself.

pub(super) mod loops;
pub(super) mod within;

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::failure::chain;
use kapi_core::task_id::KernelTaskId;
use kapi_store::timestamp::format_ms;
use kapi_sys::clock::Clock as _;
use kapi_task::record::admission::{KeyAsk, TaskAsk};
use kapi_task::record::error::KernelError;
use kapi_task::record::guardrails::{LessonOutcome, NewLesson};
use kapi_task::record::profile_file::AgentProfile;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::decide;
use kapi_task::rules::guardrail::{LessonSource, Severity};
use kapi_task::rules::request::TaskOrigin;
use kapi_task::rules::task::KernelTask;
use kapi_task::rules::task_terms::{Retry, TaskBudget};
use kapi_wire::kernel_tools::answer::ToolAnswer;
use kapi_wire::kernel_tools::answers;
use kapi_wire::kernel_tools::input::{KernelToolRequest, TaskRequest};

use crate::error::Error;
use crate::kernel::{ProjectKernel, failed};

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    /// In whose name its tasks stand.
    pub(super) run: String,
    /// How many tasks its own stand below.
    pub(super) depth: u32,
    /// What is known of it.
    pub(super) state: AskerStatus,
}

/// Where an asker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskerStatus {
    /// At the person's own terminal: it may look at everything there.
    Outside,
    /// In a sandbox: it sees its own tasks, and what they may use together is limited.
    Within(TaskBudget),
}

/// What a call came to.
pub(super) struct ToolResult {
    /// What whoever asked is told.
    pub(super) answer: ToolAnswer,
    /// The task that it brought about, or would have.
    pub(super) task: Option<KernelTaskId>,
}

impl Asker {
    fn actor(&self) -> Actor {
        Actor::Agent {
            run: self.run.clone(),
        }
    }

    fn origin(&self) -> TaskOrigin {
        TaskOrigin::Agent {
            run: self.run.clone(),
            task: None,
        }
    }

    /// Tells whether a task was asked for by it.
    fn owns(&self, task: &KernelTask) -> bool {
        matches!(&task.request.origin, TaskOrigin::Agent { run, .. } if *run == self.run)
    }

    fn may_see(&self, task: &KernelTask) -> bool {
        match self.state {
            AskerStatus::Outside => true,
            AskerStatus::Within(_) => self.owns(task),
        }
    }
}

impl From<ToolAnswer> for ToolResult {
    fn from(answer: ToolAnswer) -> Self {
        Self { answer, task: None }
    }
}

/// Performs a call.
pub(super) fn perform(
    kernel: &ProjectKernel<'_>,
    asker: &Asker,
    request: &KernelToolRequest,
) -> ToolResult {
    let done = match request {
        KernelToolRequest::Task(request) => submit(kernel, asker, request),
        KernelToolRequest::Status(id) => status(kernel, asker, id).map(ToolResult::from),
        KernelToolRequest::Cancel(id) => cancel(kernel, asker, id).map(ToolResult::from),
        KernelToolRequest::LoopTrigger { name, source } => {
            loops::trigger(kernel, asker, name, source.as_deref())
        }
        KernelToolRequest::LoopStatus(name) => {
            loops::status(kernel, name.as_deref()).map(ToolResult::from)
        }
        KernelToolRequest::GuardrailAdd {
            domain,
            lesson,
            severity,
        } => Ok(add(kernel, asker, domain, lesson, *severity).into()),
    };
    done.unwrap_or_else(|error| refused(&error).into())
}

/// Returns what an agent is told when the kernel could not be asked at all.
pub(super) fn refused(error: &Error) -> ToolAnswer {
    let hint = error.hint.as_deref().unwrap_or_default();
    ToolAnswer::not_launched(format!("{error}. {hint}").trim_end())
}

fn submit(
    kernel: &ProjectKernel<'_>,
    asker: &Asker,
    request: &TaskRequest,
) -> Result<ToolResult, Error> {
    let profile = match kernel.profile(request.agent.as_deref()) {
        Ok(profile) => profile,
        Err(error) => return Ok(refused(&error).into()),
    };
    kernel.prepare()?;
    let mut queue = kernel.queue()?;
    let allowance = match within::allowance(&queue, asker)? {
        Ok(allowance) => allowance,
        Err(reason) => return Ok(ToolAnswer::not_launched(&reason).into()),
    };
    let ask = ask(kernel, asker, request, profile, allowance);
    let answer =
        kernel.at_admission(|admission| admission.submit_task(&mut queue, &asker.actor(), ask));
    match answer {
        Ok(decide::KernelReply::Submitted(id)) => {
            let task = found(&queue, id)?;
            let answer = answers::submitted(&task, &worker(kernel, &queue, asker)?);
            Ok(ToolResult {
                answer,
                task: Some(id),
            })
        }
        // It may be what a server that is gone has left behind: whoever asks again works on it.
        Ok(decide::KernelReply::Duplicate(first)) => Ok(ToolResult {
            answer: answers::duplicate(first),
            task: Some(first),
        }),
        Ok(other) => Ok(ToolAnswer::not_launched(&format!("it ended as {other:?}")).into()),
        Err(error) => Ok(ToolAnswer::not_launched(&words(&error)).into()),
    }
}

fn ask<'p>(
    kernel: &ProjectKernel<'_>,
    asker: &Asker,
    request: &TaskRequest,
    profile: &'p AgentProfile,
    allowance: TaskBudget,
) -> TaskAsk<'p> {
    TaskAsk {
        description: request.description.clone(),
        prompt: request.prompt.clone(),
        profile,
        backend: None,
        model: None,
        timeout_ms: request
            .timeout_s
            .map(|seconds| seconds.saturating_mul(1_000)),
        budget: allowance,
        domain: None,
        priority: kernel.priority(&profile.name),
        key: KeyAsk::Derived,
        retry: Retry::default(),
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        base: None,
        origin: asker.origin(),
        depth: asker.depth,
        retry_of: None,
    }
}

fn status(kernel: &ProjectKernel<'_>, asker: &Asker, id: &str) -> Result<ToolAnswer, Error> {
    let queue = kernel.queue()?;
    let task = match KernelTaskId::parse(id) {
        Ok(id) => queue.find(id).map_err(|error| failed(&error))?,
        Err(_) => None,
    };
    let Some(task) = task.filter(|task| asker.may_see(task)) else {
        return Ok(answers::not_found(id));
    };
    let waits = kernel.waits_of(&queue, &task);
    let now_ms = kernel.context.clock.now_ms();
    let turns = kernel.turns(task.id);
    Ok(answers::status(&task, waits.as_deref(), turns, now_ms))
}

fn cancel(kernel: &ProjectKernel<'_>, asker: &Asker, text: &str) -> Result<ToolAnswer, Error> {
    let Ok(id) = KernelTaskId::parse(text) else {
        return Ok(answers::not_cancelled(text));
    };
    let mut queue = kernel.queue()?;
    let command = KernelCommand::Cancel {
        task: id,
        why: format!("requested by {}", asker.actor()),
    };
    match queue.submit(&asker.actor(), &command) {
        Ok(_) => Ok(answers::cancelled(&found(&queue, id)?)),
        Err(KernelError::Denied(_)) => Ok(answers::not_cancelled(text)),
        Err(error) => Err(failed(&error)),
    }
}

fn add(
    kernel: &ProjectKernel<'_>,
    asker: &Asker,
    domain: &str,
    lesson: &str,
    severity: Severity,
) -> ToolAnswer {
    if let Err(error) = kernel.prepare() {
        return refused(&error);
    }
    let new = NewLesson {
        domain,
        lesson,
        severity,
        source: LessonSource::agent(&asker.run),
        expires_at_ms: None,
    };
    match kernel.memory().add(&new) {
        Ok(LessonOutcome::New(entry) | LessonOutcome::Repeated(entry)) => {
            answers::added(&entry, &format_ms(entry.at_ms))
        }
        Err(error) => ToolAnswer::error(&chain(&error)),
    }
}

/// Says who will work on a task.
fn worker(kernel: &ProjectKernel<'_>, queue: &Queue<'_>, asker: &Asker) -> Result<String, Error> {
    let living = kernel.living(queue)?;
    if let Some(up) = living.iter().find(|worker| worker.takes_all()) {
        return Ok(up.owner.clone());
    }
    Ok(match asker.state {
        AskerStatus::Outside if kernel.project.owner == super::MCP => {
            "this server while it runs, then `kapi up`"
        }
        AskerStatus::Outside | AskerStatus::Within(_) => "none yet; waiting for `kapi up`",
    }
    .to_owned())
}

fn found(queue: &Queue<'_>, id: KernelTaskId) -> Result<KernelTask, Error> {
    let found = queue.find(id).map_err(|error| failed(&error))?;
    found.ok_or_else(|| crate::kernel::no_task(id))
}

/// Says why a request was not let in; the words of the specification stand first.
fn words(error: &KernelError) -> String {
    match error {
        KernelError::Denied(denied) => denied.to_string(),
        KernelError::Policy(_) => error.to_string(),
        KernelError::Inputs(_)
        | KernelError::Store(_)
        | KernelError::UnknownEvent { .. }
        | KernelError::BadHistory { .. }
        | KernelError::Encode { .. }
        | KernelError::NotDerived(_)
        | KernelError::Place(_)
        | KernelError::Base { .. }
        | KernelError::Fleet(_) => format!("failed to {}", chain(error)),
    }
}
