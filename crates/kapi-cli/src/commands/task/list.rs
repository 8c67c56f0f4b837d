//! `kapi task list`: tasks a line each, those that have not ended first.

use kapi_core::task_id::LoopName;
use kapi_sys::clock::Clock as _;
use kapi_task::rules::task::KernelTask;
use kapi_wire::kernel::task::{KernelTaskView, status_word};
use serde::Serialize;

use crate::commands::task::answer::{glyph, head};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed};
use crate::ui::Format;

/// Words by which `--state` chooses: those of the specification and the exact ones.
const STATES: [&str; 9] = [
    "queued",
    "running",
    "completed",
    "error",
    "cancelled",
    "pending",
    "leased",
    "failed",
    "ended",
];

/// Options of `kapi task list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Include finished tasks
    #[arg(short, long)]
    all: bool,
    /// List only tasks in this state (repeatable)
    #[arg(long, value_name = "STATE", value_parser = STATES)]
    state: Vec<String>,
    /// List only runs of this loop
    #[arg(long = "loop", value_name = "NAME", value_parser = loop_name)]
    loop_name: Option<LoopName>,
    /// Maximum number of tasks to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

fn loop_name(text: &str) -> Result<LoopName, String> {
    LoopName::parse(text).map_err(|error| error.rule.to_owned())
}

#[derive(Debug, Serialize)]
struct TaskListView {
    tasks: Vec<KernelTaskView>,
    /// Whether there are more than were listed.
    more: bool,
}

/// Lists tasks.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    kernel::with(context, "kapi task list", |kernel| {
        let queue = kernel.queue()?;
        let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
        let live = queue.kernel().tasks.values();
        let mut tasks: Vec<KernelTask> =
            live.filter(|task| is_wanted(args, task)).cloned().collect();
        if wants_ended(args) && tasks.len() <= limit {
            let just_ended = queue.kernel().ended.values().rev();
            let mut ended: Vec<KernelTask> = just_ended.cloned().collect();
            // As many as could be wanted at all: what is listed is chosen among them.
            let history = queue.history();
            let name = args.loop_name.as_ref();
            let n_max = if args.state.is_empty() {
                limit + 1
            } else {
                usize::MAX
            };
            let archived = history.last(n_max, name).map_err(|error| failed(&error))?;
            let is_new = |task: &KernelTask| !queue.kernel().ended.contains_key(&task.id);
            ended.extend(archived.into_iter().filter(is_new));
            ended.sort_by_key(|task| std::cmp::Reverse(task.id));
            tasks.extend(ended.into_iter().filter(|task| is_wanted(args, task)));
        }
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        let waits = kernel.waits(&queue);
        let now_ms = context.clock.now_ms();
        match context.ui.format {
            Format::Json => context.ui.json(&TaskListView {
                tasks: tasks
                    .iter()
                    .map(|task| KernelTaskView::of(task, waits.get(&task.id).cloned(), now_ms))
                    .collect(),
                more,
            }),
            Format::Human => {
                for task in &tasks {
                    let waits = waits.get(&task.id).map(|why| format!("  ({why})"));
                    let line = format!("{} {}", glyph(task.state), head(task, now_ms));
                    context
                        .ui
                        .line(&format!("{line}{}", waits.unwrap_or_default()));
                }
                talk(context, args, tasks.len(), more);
            }
        }
        Ok(Exit::Success)
    })
}

fn talk(context: &Context, args: &Args, n_listed: usize, more: bool) {
    if n_listed == 0 {
        let nothing = if args.all || !args.state.is_empty() {
            "No task matches."
        } else {
            "No task is pending or running; list finished ones with `kapi task list --all`."
        };
        context.ui.say(nothing);
    }
    if more {
        context
            .ui
            .say("There are more; raise `--limit` to see them.");
    }
}

/// Tells whether tasks that have ended are asked for.
fn wants_ended(args: &Args) -> bool {
    let is_ended =
        |state: &String| !["queued", "pending", "running", "leased"].contains(&state.as_str());
    args.all || args.state.iter().any(is_ended)
}

fn is_wanted(args: &Args, task: &KernelTask) -> bool {
    let of_loop = args
        .loop_name
        .as_ref()
        .is_none_or(|name| task.loop_run().is_some_and(|run| run.name() == name));
    let exact = task.state.to_string();
    let stands_so = |state: &String| {
        *state == exact
            || state == status_word(task.state)
            || (state == "ended" && task.state.is_ended())
    };
    of_loop && (args.state.is_empty() || args.state.iter().any(stands_so))
}
