//! The kernel's tools, performed: whose word it is, and what the kernel, the loops and the lessons
//! of the project at hand answer.
//!
//! Words and data of answers stand in `kapi_wire::kernel_tools`; rules stand in the kernel. Works
//! on no task itself.

pub(super) mod loops;
pub(super) mod within;

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::task_id::TaskId;
use kapi_store::timestamp::format_ms;
use kapi_sys::clock::Clock as _;
use kapi_task::record::door::{KeyAsk, TaskAsk};
use kapi_task::record::error::KernelError;
use kapi_task::record::guardrails::{Added, NewLesson};
use kapi_task::record::profile_file::AgentProfile;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::Command;
use kapi_task::rules::decide;
use kapi_task::rules::guardrail::{Severity, Source};
use kapi_task::rules::request::Origin;
use kapi_task::rules::task::Task;
use kapi_task::rules::task_terms::{Retry, TaskBudget};
use kapi_wire::kernel_tools::answer::Answer;
use kapi_wire::kernel_tools::input::{Request, TaskRequest};
use kapi_wire::kernel_tools::told;

use crate::error::{Error, chain};
use crate::kernel::{Kernel, failed};

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    /// In whose name its tasks stand.
    pub(super) run: String,
    /// How many tasks its own stand below.
    pub(super) depth: u32,
    /// What is known of it.
    pub(super) standing: Standing,
}

/// Where an asker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// At the person's own terminal: it may look at everything there.
    Outside,
    /// In a sandbox: it sees its own tasks, and what they may use together is limited.
    Within(TaskBudget),
}

/// What a call came to.
pub(super) struct Done {
    /// What whoever asked is told.
    pub(super) answer: Answer,
    /// The task that it brought about, or would have.
    pub(super) task: Option<TaskId>,
}

impl Asker {
    fn actor(&self) -> Actor {
        Actor::Agent {
            run: self.run.clone(),
        }
    }

    fn origin(&self) -> Origin {
        Origin::Agent {
            run: self.run.clone(),
            task: None,
        }
    }

    /// Tells whether a task was asked for by it.
    fn owns(&self, task: &Task) -> bool {
        matches!(&task.request.origin, Origin::Agent { run, .. } if *run == self.run)
    }

    fn may_see(&self, task: &Task) -> bool {
        match self.standing {
            Standing::Outside => true,
            Standing::Within(_) => self.owns(task),
        }
    }
}

impl From<Answer> for Done {
    fn from(answer: Answer) -> Self {
        Self { answer, task: None }
    }
}

/// Performs a call.
pub(super) fn perform(kernel: &Kernel<'_>, asker: &Asker, request: &Request) -> Done {
    let done = match request {
        Request::Task(request) => submit(kernel, asker, request),
        Request::Status(id) => status(kernel, asker, id).map(Done::from),
        Request::Cancel(id) => cancel(kernel, asker, id).map(Done::from),
        Request::LoopTrigger { name, source } => {
            loops::trigger(kernel, asker, name, source.as_deref())
        }
        Request::LoopStatus(name) => loops::status(kernel, name.as_deref()).map(Done::from),
        Request::GuardrailAdd {
            domain,
            lesson,
            severity,
        } => Ok(add(kernel, asker, domain, lesson, *severity).into()),
    };
    done.unwrap_or_else(|error| refused(&error).into())
}

/// Returns what an agent is told when the kernel could not be asked at all.
pub(super) fn refused(error: &Error) -> Answer {
    let hint = error.hint.as_deref().unwrap_or_default();
    Answer::not_launched(format!("{error}. {hint}").trim_end())
}

fn submit(kernel: &Kernel<'_>, asker: &Asker, request: &TaskRequest) -> Result<Done, Error> {
    let profile = match kernel.profile(request.agent.as_deref()) {
        Ok(profile) => profile,
        Err(error) => return Ok(refused(&error).into()),
    };
    kernel.prepare()?;
    let mut queue = kernel.queue()?;
    let room = match within::room(&queue, asker)? {
        Ok(room) => room,
        Err(reason) => return Ok(Answer::not_launched(&reason).into()),
    };
    let ask = ask(kernel, asker, request, profile, room);
    let answer = kernel.at_door(|door| door.submit_task(&mut queue, &asker.actor(), ask));
    match answer {
        Ok(decide::Answer::Submitted(id)) => {
            let task = found(&queue, id)?;
            let answer = told::submitted(&task, &worker(kernel, &queue, asker)?);
            Ok(Done {
                answer,
                task: Some(id),
            })
        }
        // It may be what a server that is gone has left behind: whoever asks again works on it.
        Ok(decide::Answer::Duplicate(first)) => Ok(Done {
            answer: told::duplicate(first),
            task: Some(first),
        }),
        Ok(other) => Ok(Answer::not_launched(&format!("it ended as {other:?}")).into()),
        Err(error) => Ok(Answer::not_launched(&words(&error)).into()),
    }
}

fn ask<'p>(
    kernel: &Kernel<'_>,
    asker: &Asker,
    request: &TaskRequest,
    profile: &'p AgentProfile,
    room: TaskBudget,
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
        budget: room,
        domain: None,
        priority: kernel.priority(&profile.name),
        key: KeyAsk::Derived,
        retry: Retry::default(),
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        origin: asker.origin(),
        depth: asker.depth,
        retry_of: None,
    }
}

fn status(kernel: &Kernel<'_>, asker: &Asker, id: &str) -> Result<Answer, Error> {
    let queue = kernel.queue()?;
    let task = match TaskId::parse(id) {
        Ok(id) => queue.find(id).map_err(|error| failed(&error))?,
        Err(_) => None,
    };
    let Some(task) = task.filter(|task| asker.may_see(task)) else {
        return Ok(told::not_found(id));
    };
    let waits = kernel.waits_of(&queue, &task);
    let now_ms = kernel.context.clock.now_ms();
    Ok(told::status(&task, waits.as_deref(), now_ms))
}

fn cancel(kernel: &Kernel<'_>, asker: &Asker, text: &str) -> Result<Answer, Error> {
    let Ok(id) = TaskId::parse(text) else {
        return Ok(told::not_cancelled(text));
    };
    let mut queue = kernel.queue()?;
    let command = Command::Cancel {
        task: id,
        why: format!("requested by {}", asker.actor()),
    };
    match queue.submit(&asker.actor(), &command) {
        Ok(_) => Ok(told::cancelled(&found(&queue, id)?)),
        Err(KernelError::Denied(_)) => Ok(told::not_cancelled(text)),
        Err(error) => Err(failed(&error)),
    }
}

fn add(
    kernel: &Kernel<'_>,
    asker: &Asker,
    domain: &str,
    lesson: &str,
    severity: Severity,
) -> Answer {
    if let Err(error) = kernel.prepare() {
        return refused(&error);
    }
    let new = NewLesson {
        domain,
        lesson,
        severity,
        source: Source::agent(&asker.run),
        expires_at_ms: None,
    };
    match kernel.memory().add(&new) {
        Ok(Added::New(entry) | Added::Repeated(entry)) => {
            told::added(&entry, &format_ms(entry.at_ms))
        }
        Err(error) => Answer::error(&chain(&error)),
    }
}

/// Says who will work on a task.
fn worker(kernel: &Kernel<'_>, queue: &Queue<'_>, asker: &Asker) -> Result<String, Error> {
    let living = kernel.living(queue)?;
    if let Some(up) = living.iter().find(|worker| worker.takes_all()) {
        return Ok(up.owner.clone());
    }
    Ok(match asker.standing {
        Standing::Outside if kernel.project.owner == super::MCP => {
            "this server while it runs, then `kapi up`"
        }
        Standing::Outside | Standing::Within(_) => "none yet; waiting for `kapi up`",
    }
    .to_owned())
}

fn found(queue: &Queue<'_>, id: TaskId) -> Result<Task, Error> {
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
