//! What becomes of a task that was just submitted: it is worked on here, or left to others.

use std::sync::{Mutex, PoisonError};

use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;
use kapi_machine::watch::Activity;
use kapi_sys::clock::Clock as _;
use kapi_sys::signal::Interrupts;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::task::KernelTask;
use kapi_wire::kernel::task::next;
use serde_json::json;

use crate::commands::task::answer;
use crate::commands::task::follow::Follower;
use crate::delivering::others::{self, DeliverySite};
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::foreground::{self, FinalTaskState, Foreground, TaskSnapshot, attend};
use crate::kernel::{ProjectKernel, failed, no_task};
use crate::live_view::facts::{Mood, task};
use crate::live_view::open_view::ViewSource;
use crate::live_view::state::News;
use crate::progress::news;
use crate::ui::{Format, Ui, harmless};
use crate::{live_view, notification};

/// Who works on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskExecutor {
    /// This process.
    Here,
    /// Whoever takes it.
    Elsewhere,
}

/// Tells what came of a request, and has the task worked on.
pub(crate) fn follow_up(
    kernel: &ProjectKernel<'_>,
    mut queue: Queue<'_>,
    answer: &KernelReply,
    location: TaskExecutor,
) -> Result<Exit, Error> {
    let context = kernel.context;
    let (id, is_duplicate) = match answer {
        KernelReply::Submitted(id) => (*id, false),
        KernelReply::Duplicate(id) => (*id, true),
        KernelReply::Skipped(reason) => {
            match context.ui.format {
                Format::Json => context
                    .ui
                    .json(&json!({"type": "skipped", "reason": reason})),
                Format::Human => {
                    context
                        .ui
                        .line(&format!("It is not running now: {reason}."));
                    context
                        .ui
                        .line("  next     the same command with `--again` runs it anyway");
                }
            }
            return Ok(Exit::Success);
        }
        KernelReply::Claimed(..) | KernelReply::Nothing | KernelReply::Done => {
            return Err(Error::new(
                Exit::Internal,
                "the submission produced no task",
            ));
        }
    };
    queue.refresh().map_err(|error| failed(&error))?;
    let found = queue.find(id).map_err(|error| failed(&error))?;
    let task = found.ok_or_else(|| no_task(id))?;
    submitted(kernel, &queue, &task, is_duplicate, location)?;
    drop(queue);
    if task.state.is_ended() {
        kernel.bring_home(&task);
        return Ok(answer::give_result(context, &task));
    }
    match location {
        TaskExecutor::Elsewhere => Ok(Exit::Success),
        TaskExecutor::Here => work(kernel, id),
    }
}

/// Says which task it is, and who works on it.
fn submitted(
    kernel: &ProjectKernel<'_>,
    queue: &Queue<'_>,
    task: &KernelTask,
    is_duplicate: bool,
    location: TaskExecutor,
) -> Result<(), Error> {
    let (ui, id) = (kernel.context.ui, task.id);
    let living = kernel.living(queue)?;
    let up = living.iter().find(|worker| worker.takes_all());
    if ui.format == Format::Json {
        ui.json(&json!({
            "type": "task_submitted",
            "id": id.to_string(),
            "duplicate": is_duplicate,
            "worker": up.map(|worker| &worker.owner),
            "next": next(task),
        }));
        return Ok(());
    }
    if is_duplicate {
        ui.say(&format!(
            "An identical request exists: {id}, {}; use `--again` to run it anyway.",
            task.state
        ));
    }
    if location == TaskExecutor::Elsewhere && !task.state.is_ended() {
        ui.line(&format!("{id} is queued."));
        match up {
            Some(worker) => ui.line(&format!("  worker   {}", worker.owner)),
            None => ui.line("  next     kapi up --once (no worker is running at the moment)"),
        }
        for command in next(task) {
            ui.line(&format!("  next     {command}"));
        }
    }
    Ok(())
}

/// Works on a task in the foreground until it has ended or the person leaves.
pub(crate) fn work(kernel: &ProjectKernel<'_>, id: KernelTaskId) -> Result<Exit, Error> {
    let context = kernel.context;
    let interrupts = interrupts()?;
    let notice = |_: KernelTaskId, activity: Activity| show_activity(context.ui, id, &activity);
    let performer = kernel.performer(&notice)?;
    let foreground = Foreground {
        kernel,
        is_over: &|| interrupts.is_raised(),
        perform: &|task, handle| performer.perform(task, handle),
        has_capacity: &|| true,
    };
    let mut follower = Follower::new(context.ui);
    let seen = Mutex::new(None);
    let source = ViewSource {
        subjects: &|| {
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.clone().into_iter().collect()
        },
        overview: None,
    };
    let mut show = |snapshot: &TaskSnapshot<'_>| {
        follower.show(snapshot);
        let now_ms = context.clock.now_ms();
        let facts = task::facts(snapshot.task, snapshot.waits.clone(), now_ms);
        let phase = facts.phase.clone();
        let news = match facts.mood {
            Mood::Working => News::Began { phase },
            Mood::Person | Mood::Waiting | Mood::Good | Mood::Bad => News::Waits { phase },
        };
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts);
        live_view::tell(&id.to_string(), news);
        live_view::changed();
    };
    let left = live_view::during(context, source, &interrupts, || {
        attend(&foreground, id, &mut show)
    });
    match left? {
        FinalTaskState::Ended(task) => {
            kernel.bring_home(&task);
            let exit = answer::give_result(context, &task);
            let root = kernel.project.layout.root();
            let site = DeliverySite {
                context,
                config: kernel.config,
                root,
            };
            let delivered = others::of_task(site, &task);
            notification::of_task(context, kernel.config, &task, root.to_path_buf());
            delivered.map(|()| exit)
        }
        FinalTaskState::Open(task) => leave(kernel, &task, &interrupts),
    }
}

/// The person has left: asks whether the task shall wait for another worker, where they can answer.
fn leave(
    kernel: &ProjectKernel<'_>,
    task: &KernelTask,
    interrupts: &Interrupts,
) -> Result<Exit, Error> {
    let (context, id) = (kernel.context, task.id);
    let question = format!("{id} has not ended. Cancel it, or leave it in the queue?");
    // A signal that ends processes is no moment for a question.
    let is_typed = interrupts.signal() == Some(SIGINT);
    let choice = if is_typed {
        context.ui.choose(&question, &["cancel", "leave"])
    } else {
        None
    };
    if choice == Some(0) {
        let cancel = KernelCommand::Cancel {
            task: id,
            why: "interrupted at the terminal".to_owned(),
        };
        let mut queue = kernel.queue()?;
        let cancelled = queue.submit(&context.actor, &cancel);
        cancelled.map_err(|error| failed(&error))?;
        let now = queue.find(id).map_err(|error| failed(&error))?;
        drop(queue);
        foreground::settle(kernel, now.ok_or_else(|| no_task(id))?, &|| false)?;
        context.ui.say(&format!("{id} is cancelled."));
    } else {
        context.ui.say(&format!(
            "{id} is {} and nothing is lost; continue it with `kapi up --once` or by repeating \
             the command.",
            task.state
        ));
    }
    if context.ui.format == Format::Json {
        answer::give_result(context, task);
    }
    Ok(Exit::Interrupted)
}

/// The number of the signal that a person's Ctrl-C sends.
const SIGINT: i32 = 2;

/// Shows what an agent does: on the live view for people, a line each in a stream.
fn show_activity(ui: Ui, id: KernelTaskId, activity: &Activity) {
    let (kind, text) = match activity {
        Activity::Tool { name, detail } => ("tool", format!("{name} {detail}")),
        Activity::Text { text } => ("text", text.clone()),
        Activity::Verifying { command } => ("verifying", command.clone()),
        Activity::Note { text } => ("note", text.clone()),
        Activity::Used(usage) => return show_usage(ui, id, usage),
    };
    match ui.format {
        Format::Json => ui.json(&json!({
            "type": "activity", "task": id.to_string(), "kind": kind, "text": harmless(&text),
        })),
        Format::Human => match news(activity) {
            Some(news) => live_view::tell(&id.to_string(), news),
            None => ui.say(&format!("{id}  note: {text}")),
        },
    }
}

fn show_usage(ui: Ui, id: KernelTaskId, usage: &Usage) {
    match ui.format {
        Format::Json => ui.json(&json!({
            "type": "activity",
            "task": id.to_string(),
            "kind": "used",
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        })),
        Format::Human => live_view::tell(&id.to_string(), News::Used(*usage)),
    }
}
