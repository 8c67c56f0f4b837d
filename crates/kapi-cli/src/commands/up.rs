//! `kapi up`: a supervisor in the foreground. Wakes parked goals, drives what nobody drives, works
//! on tasks and triggers loops.
//!
//! All it knows can be read again from the logs, so it may be killed at any time and started any
//! number of times. What happens is the engine's business; a goal that needs a person is only shown.

mod board;
mod calls;
mod missed_times;
mod service;
mod supervisor;
mod tally;
mod tasks;
mod threads;
mod watched_files;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kapi_core::state_directory::STATE_DIRECTORY;
use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::text::counted;
use kapi_machine::watch::Activity;
use kapi_sys::cancel::Cancel;
use kapi_sys::signal::Interrupts;
use kapi_task::rules::task_state::KernelTaskState;
use serde_json::json;

use crate::commands::dashboard::alive::AliveSource;
use crate::commands::loops;
use crate::commands::up::missed_times::MissedTimes;
use crate::commands::up::supervisor::{Supervisor, SupervisorLimits};
use crate::commands::up::tally::SupervisorTally;
use crate::commands::up::tasks::{Floor, Tasks};
use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::driving::attendance::alarm;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::performing::Performing;
use crate::kernel::{self, ProjectKernel};
use crate::live_view;
use crate::ui::Format;

/// How long it is waited before what the machine was short of is tried again, and how often it is
/// looked meanwhile whether a person wants to end.
const SHORTAGE_PAUSE: Duration = Duration::from_secs(5);
const SHORTAGE_LOOK: Duration = Duration::from_millis(200);
/// How long a supervisor works before the shortage of before counts as over.
const SHORTAGE_OVER: Duration = Duration::from_secs(60);

/// Options of `kapi up`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of goals to run in parallel
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Number of tasks to run in parallel [default: the project's limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    tasks: Option<u8>,
    /// Do everything that is due, then exit; for cron and CI
    #[arg(long)]
    once: bool,
    /// Adopt a restored queue and make up for missed schedules
    ///
    /// For runners that keep nothing between two runs but a restored .ilchul directory. A loop that
    /// would skip what it missed runs once for it.
    #[arg(long, requires = "once")]
    restored: bool,
    /// Enable a loop's triggers first (repeatable)
    #[arg(long, value_name = "LOOP", value_parser = loops::parse)]
    enable_loop: Vec<LoopName>,
    /// Task store: 'files', or NATS servers as 'nats://host:port,…'
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    #[command(flatten)]
    notify: NotifyArgs,
    #[command(flatten)]
    service: service::Args,
}

/// How long it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopCondition {
    /// Until a person ends it.
    Interrupted,
    /// Until nothing is due.
    NothingDue,
}

/// Supervises the goals, tasks and loops of the project.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    if args.service.is_asked() {
        return service::run(context, &args.service);
    }
    let context = &context
        .with_store(args.store.as_deref())
        .with_notify(&args.notify);
    context.require_human("supervise goals")?;
    let root = kernel::root(context)?;
    context.require_own_state(&root)?;
    let project = context.project(&root, "kapi up");
    let config = context.config(Some(project.layout.root()))?;
    let kernel = ProjectKernel::new(context, &project, &config)?;
    begin(context, args, &kernel)?;
    let interrupts = interrupts()?;
    let mut tally = SupervisorTally::default();
    let alive = AliveSource::new(&kernel);
    let mut shortage = Shortage::default();
    let supervise = || loop {
        let began = Instant::now();
        let ended = supervise(context, args, &kernel, &interrupts, &mut tally);
        match ended {
            Err(error) if error.is_shortage && !args.once && !interrupts.is_raised() => {
                shortage.say(context, &error, began.elapsed());
                pause(&interrupts);
            }
            ended => return ended,
        }
    };
    alive.with(|source| live_view::during(context, source, &interrupts, supervise))?;
    report(context, &tally, interrupts.is_raised());
    Ok(exit_of(&tally, interrupts.is_raised()))
}

/// Supervises until it is time to end, or something fails.
fn supervise(
    context: &Context,
    args: &Args,
    kernel: &ProjectKernel<'_>,
    interrupts: &Interrupts,
    tally: &mut SupervisorTally,
) -> Result<(), Error> {
    let (project, config) = (kernel.project, kernel.config);
    let shop = threads::Shop {
        context,
        project,
        config,
        interrupts,
        failed: &Cancel::new(),
    };
    let until = if args.once {
        StopCondition::NothingDue
    } else {
        StopCondition::Interrupted
    };
    let alarm = alarm()?;
    let (waker, has_woken) = (alarm.waker(), AtomicBool::new(false));
    let ring = || {
        has_woken.store(true, Ordering::SeqCst);
        waker.ring();
    };
    let notice = |_: KernelTaskId, _: Activity| {};
    let performer = kernel.performer(&notice)?;
    let capacity = kernel.capacity();
    let floor = Floor {
        shop: &shop,
        kernel: ProjectKernel::new(context, project, config)?,
        perform: &|task, handle| performer.perform(task, handle),
        has_capacity: &|n_jobs| capacity.has_capacity(n_jobs),
        has_woken: &has_woken,
        ring: &ring,
        missed: if args.restored {
            MissedTimes::MadeUp
        } else {
            MissedTimes::AsDefined
        },
        slots: args.tasks.map_or(
            usize::try_from(kernel.terms.project_max).unwrap_or(usize::MAX),
            usize::from,
        ),
    };
    thread::scope(|scope| {
        scope.spawn(|| sweep(context, &performer, interrupts));
        let threads = threads::ThreadGroup::new(scope, &shop, alarm.waker());
        let tasks = Tasks::new(scope, floor)?;
        let jobs_max = usize::from(args.jobs);
        let limits = SupervisorLimits { until, jobs_max };
        Supervisor::new(&shop, threads, tasks, alarm, limits).run(tally)
    })
}

/// What the machine was short of when that was last said.
#[derive(Default)]
struct Shortage {
    said: Option<String>,
}

impl Shortage {
    /// Says what the machine is short of, after the supervisor went on for so long: once for as long
    /// as it lasts.
    fn say(&mut self, context: &Context, error: &Error, worked: Duration) {
        let text = error.to_string();
        if self.said.as_ref() == Some(&text) && worked < SHORTAGE_OVER {
            return;
        }
        let pause = SHORTAGE_PAUSE.as_secs();
        context.ui.say(&format!(
            "warning: {text}. Nothing is lost; trying again every {pause} seconds."
        ));
        self.said = Some(text);
    }
}

/// Lets the time pass until what failed is tried again.
fn pause(interrupts: &Interrupts) {
    let began = Instant::now();
    while began.elapsed() < SHORTAGE_PAUSE && !interrupts.is_raised() {
        thread::sleep(SHORTAGE_LOOK);
    }
}

/// Looks whether there is anything to do, and takes the queue.
fn begin(context: &Context, args: &Args, kernel: &ProjectKernel<'_>) -> Result<(), Error> {
    let root = kernel.project.layout.root();
    if !kernel.store.is_shared() && !has_something(context, root) {
        let text = format!("there are no goals, tasks or loops in {}", root.display());
        if args.once {
            return Err(Error::new(Exit::NotFound, text).with_hint(
                "start with `kapi run \"<task>\" --verify \"<command>\"` or `kapi loop init`.",
            ));
        }
        context.ui.say(&format!("Waiting: {text} yet."));
    }
    if args.restored {
        kernel.adopt()?;
    }
    kernel.prepare()?;
    loops::switch::enable(kernel, &args.enable_loop)
}

/// Removes what tasks of before left, and says what could not be removed.
fn sweep(context: &Context, performer: &Performing<'_>, interrupts: &Interrupts) {
    let swept = performer.sweep(&interrupts.cancel());
    for text in swept.kept.iter().chain(&swept.failed) {
        context.ui.say(&format!("note: {text}"));
    }
}

/// Tells whether there is anything to supervise in a project yet.
fn has_something(context: &Context, root: &Path) -> bool {
    let state = root.join(STATE_DIRECTORY);
    let is_there = [
        state.join("goals"),
        state.join("kernel"),
        state.join("loops"),
    ]
    .iter()
    .any(|dir| dir.is_dir());
    let has_loops = context
        .cwd
        .ancestors()
        .take_while(|dir| dir.starts_with(root))
        .any(|dir| dir.join(".pi/loops").is_dir());
    is_there || has_loops
}

fn exit_of(tally: &SupervisorTally, is_interrupted: bool) -> Exit {
    let mut worked = tally.tasks.worked.values();
    if is_interrupted {
        Exit::Interrupted
    } else if !tally.failed.is_empty() {
        Exit::Failed
    } else if worked.any(|state| *state == KernelTaskState::Failed) {
        Exit::NotDone
    } else {
        Exit::Success
    }
}

fn report(context: &Context, tally: &SupervisorTally, is_interrupted: bool) {
    let names = |ids: &std::collections::BTreeSet<kapi_core::id::GoalId>| -> Vec<String> {
        ids.iter().map(ToString::to_string).collect()
    };
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "result",
            "woken": names(&tally.woken),
            "driven": names(&tally.driven),
            "failed": names(&tally.failed),
            "parked": names(&tally.parked),
            "undriven": names(&tally.undriven),
            "tasks": tally.tasks.worked.iter().map(|(id, state)| json!({
                "id": id.to_string(),
                "state": state.to_string(),
            })).collect::<Vec<_>>(),
            "waiting": tally.tasks.waiting,
        })),
        Format::Human => {
            let (parked, undriven) = (tally.parked.len(), tally.undriven.len());
            if is_interrupted {
                context.ui.say("Stopped supervising; nothing is lost.");
            }
            if tally.tasks.waiting > 0 {
                let tasks = counted(tally.tasks.waiting, "task");
                context
                    .ui
                    .say(&format!("{tasks} still pending; see `kapi task list`."));
            }
            if parked + undriven > 0 {
                context.ui.say(&format!(
                    "{parked} parked and {undriven} active; `kapi up` continues them."
                ));
            }
        }
    }
}
