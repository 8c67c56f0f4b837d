//! `kapi task logs`: the transcripts of a task's attempts, all of them or as they are written.
//!
//! For people in the words of the agent's own events, and with `--json` line by line as it wrote
//! them; nothing is decided by what is read.

mod said;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use kapi_core::kernel::goal_drive::GoalDrive;
use kapi_core::kernel::id::TaskId;
use kapi_core::kernel::task::Task;
use kapi_engine::kernel::queue::Queue;
use kapi_store::layout::project_key;
use kapi_sys::alarm::{Alarm, WakeSources};
use kapi_world::launching::place::SandboxId;
use kapi_world::tasks;
use serde_json::{Value, json};

use crate::commands::launch::sandboxes;
use crate::commands::task::Reference;
use crate::context::Context;
use crate::driving::attendance::{alarm, alarm_failed};
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::listening::listen;
use crate::kernel::{self, Kernel, failed, no_task};
use crate::ui::{Fate, Format};

/// The longest until a followed transcript is looked at again.
const LOOK: Duration = Duration::from_millis(1_000);
/// Bytes that are read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// Options of `kapi task logs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    task: Reference,
    /// Wait for more until the task ends or you interrupt
    #[arg(short, long)]
    follow: bool,
}

/// One attempt's transcript, and how much of it was printed.
#[derive(Debug)]
struct Printed {
    offset: u64,
    /// A line whose end has not come yet.
    begun: Vec<u8>,
}

/// Prints transcripts.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    kernel::with(context, "kapi task logs", |kernel| print(kernel, args))
}

fn print(kernel: &Kernel<'_>, args: &Args) -> Result<Exit, Error> {
    let alarm = alarm()?;
    let bell = alarm.bell();
    let mut queue = kernel.queue()?;
    let found = task(&mut queue, args.task.id)?;
    if let Some(drive) = found.goal_drive() {
        point(kernel.context, &found, drive);
        return Ok(Exit::Success);
    }
    thread::scope(|scope| {
        let _listening = listen(scope, &queue, move || bell.ring())?;
        follow(kernel, args, (queue, alarm))
    })
}

/// Says where the log of a task is that drives a goal: the goal has one of its own.
fn point(context: &Context, task: &Task, drive: &GoalDrive) {
    let command = format!("kapi log {:03}", drive.goal.index());
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "goal_log",
            "task": task.id.to_string(),
            "goal": drive.goal.to_string(),
            "workflow": drive.workflow.to_string(),
            "next": [command],
        })),
        Format::Human => context.ui.line(&format!(
            "{} drives goal {}, which has a log of its own: `{command}` shows it.",
            task.id, drive.goal
        )),
    }
}

fn follow(
    kernel: &Kernel<'_>,
    args: &Args,
    (mut queue, mut alarm): (Queue<'_>, Alarm),
) -> Result<Exit, Error> {
    let (context, id) = (kernel.context, args.task.id);
    let interrupts = interrupts()?;
    let mut printed: BTreeMap<u64, Printed> = BTreeMap::new();
    loop {
        // Asked first, so that whatever it wrote last is among what is read next.
        let task = task(&mut queue, id)?;
        let found = transcripts(kernel, id)?;
        let mut watched = WakeSources::default();
        watched
            .directories
            .insert(kernel.project.layout.kernel_dir());
        watched.directories.extend(
            found
                .values()
                .filter_map(|path| Some(path.parent()?.to_path_buf())),
        );
        alarm
            .watch(&watched)
            .map_err(|error| alarm_failed(&error))?;
        for (attempt, path) in &found {
            let so_far = printed.entry(*attempt).or_insert_with(|| Printed {
                offset: 0,
                begun: Vec::new(),
            });
            more(context, (id, *attempt), path, so_far)?;
        }
        let is_enough = !args.follow || task.state.is_ended() || context.ui.fate() == Fate::Closed;
        if is_enough {
            if found.is_empty() {
                let why = match queue.holders() {
                    None => "no agent was launched for it yet",
                    Some(_) => "no agent was launched for it on this machine",
                };
                context.ui.say(&format!("{id} has no transcript: {why}."));
            }
            return Ok(Exit::Success);
        }
        if interrupts.is_raised() {
            return Ok(Exit::Interrupted);
        }
        let slept = alarm.sleep(LOOK, &|| interrupts.is_raised());
        slept.map_err(|error| alarm_failed(&error))?;
    }
}

fn task(queue: &mut Queue<'_>, id: TaskId) -> Result<Task, Error> {
    queue.refresh().map_err(|error| failed(&error))?;
    let found = queue.find(id).map_err(|error| failed(&error))?;
    found.ok_or_else(|| no_task(id))
}

/// Returns the transcripts of a task's attempts, by the numbers of their leases. They outlive the
/// rest of their sandboxes.
fn transcripts(kernel: &Kernel<'_>, id: TaskId) -> Result<BTreeMap<u64, PathBuf>, Error> {
    let sandboxes = sandboxes(kernel.context);
    let root = kernel.project.layout.root();
    let any = SandboxId::parse(&id.to_string()).map_err(|error| Error::launch(&error))?;
    let any = sandboxes.place(&project_key(root), &any).dir();
    let prefix = format!("{id}-");
    let beside = any.parent().unwrap_or(&any);
    let listed = kernel.project.disk.list(beside);
    let mut found = BTreeMap::new();
    for name in listed.map_err(|error| Error::failed(&error))? {
        let fence = name
            .strip_prefix(&prefix)
            .and_then(|fence| fence.parse().ok());
        let path =
            tasks::transcript(&sandboxes, &project_key(root), &name).filter(|path| path.is_file());
        if let (Some(fence), Some(path)) = (fence, path) {
            found.insert(fence, path);
        }
    }
    Ok(found)
}

/// Prints what was added to a transcript, whole lines only.
fn more(
    context: &Context,
    (id, attempt): (TaskId, u64),
    path: &Path,
    so_far: &mut Printed,
) -> Result<(), Error> {
    let unread = |error: std::io::Error| {
        Error::new(
            Exit::Failed,
            format!("failed to read {}: {error}", path.display()),
        )
    };
    let mut file = File::open(path).map_err(unread)?;
    file.seek(SeekFrom::Start(so_far.offset)).map_err(unread)?;
    loop {
        let mut chunk = Vec::new();
        let reader = std::io::Read::by_ref(&mut file);
        let n_bytes = reader
            .take(CHUNK_BYTES)
            .read_to_end(&mut chunk)
            .map_err(unread)?;
        if n_bytes == 0 {
            return Ok(());
        }
        so_far.offset += u64::try_from(n_bytes).unwrap_or(u64::MAX);
        so_far.begun.extend(chunk);
        while let Some(end) = so_far.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = so_far.begun.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            match context.ui.format {
                Format::Human => {
                    let lines = said::lines(text.trim_end());
                    lines.iter().for_each(|line| context.ui.line(line));
                }
                Format::Json => context.ui.json(&json!({
                    "type": "transcript",
                    "task": id.to_string(),
                    "lease": attempt,
                    "line": parsed(text.trim_end()),
                })),
            }
        }
    }
}

/// Returns a line as the JSON it is, or else as text.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
