//! What one of several processes of a measurement does: this program, started once more.
//!
//! Speaks in words on its output and is told to begin on its input. Judges nothing.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

use anyhow::{Context as _, bail};
use kapi_sys::alarm::{Alarm, WakeSources};
use kapi_sys::clock::monotonic_ms;
use kapi_sys::real_disk::RealDisk;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::LEASE_MS;
use kapi_task::record::worker::{KernelWorker, LeaseHandle, WorkerTerms};
use kapi_task::rules::state::KernelState;
use kapi_task::rules::task::{AttemptReport, End, KernelTask};

use super::errand;
use super::redis::Client;
use crate::output::say;

/// Said when it can begin.
pub(super) const READY: &str = "ready";
/// Said when it has nothing to do and is about to sleep.
pub(super) const IDLE: &str = "idle";
/// Said when the work of a task has begun.
pub(super) const BEGUN: &str = "begun";

/// What a worker is here for.
struct Duty<'a> {
    /// The work of each task.
    job: &'a (dyn Fn() + Sync),
    /// Called once, when it is a worker and before it works.
    begin: &'a dyn Fn() -> anyhow::Result<()>,
    /// Tells after each step whether to go on.
    goes_on: &'a dyn Fn(&KernelState) -> bool,
}

/// Does what the words say.
pub(in crate::bench) fn run(words: &[&str]) -> anyhow::Result<()> {
    match words {
        ["drain", root, n_tasks] => {
            let n_tasks: u64 = n_tasks.parse()?;
            let duty = Duty {
                job: &|| {},
                begin: &be_ready,
                goes_on: &|kernel| kernel.totals.completed < n_tasks,
            };
            work(Path::new(root), &duty)
        }
        ["await", root] => {
            let goes_on = |kernel: &KernelState| {
                if kernel.tasks.is_empty() {
                    say(IDLE);
                }
                true
            };
            let duty = Duty {
                job: &|| say(BEGUN),
                begin: &|| Ok(()),
                goes_on: &goes_on,
            };
            work(Path::new(root), &duty)
        }
        ["bare", file, n_appends, n_bytes] => {
            bare(Path::new(file), n_appends.parse()?, n_bytes.parse()?)
        }
        ["pop", socket] => pop(Path::new(socket)),
        _ => bail!("read what a member of a measurement is to do: {words:?}"),
    }
}

fn be_ready() -> anyhow::Result<()> {
    say(READY);
    let mut line = String::new();
    io::stdin().read_line(&mut line).context("wait to begin")?;
    Ok(())
}

/// Works as a worker of the product does: woken by its own tasks, or by what others record.
fn work(root: &Path, duty: &Duty<'_>) -> anyhow::Result<()> {
    let project = errand::project(&RealDisk, root);
    let mut alarm = Alarm::new().context("make an alarm")?;
    let (waker, has_woken) = (alarm.waker(), AtomicBool::new(false));
    let ring = || {
        has_woken.store(true, Ordering::SeqCst);
        waker.ring();
    };
    let perform = |_: &KernelTask, _: &LeaseHandle<'_>| {
        (duty.job)();
        AttemptReport::of(End::Completed)
    };
    let mut watched = WakeSources::default();
    watched.directories.insert(project.layout.kernel_dir());
    let queue = Queue::open(&project)?;
    thread::scope(|scope| {
        let terms = WorkerTerms {
            slots: 1,
            capacity: errand::capacity(),
            only: None,
            lease_ms: LEASE_MS,
            perform: &perform,
            ring: &ring,
        };
        let mut worker = KernelWorker::new(scope, queue, terms)?;
        (duty.begin)()?;
        loop {
            has_woken.store(false, Ordering::SeqCst);
            let stepped = worker.step(&|| true)?;
            let (queue, _) = worker.queue();
            if !(duty.goes_on)(queue.kernel()) {
                return Ok(());
            }
            alarm.watch(&watched).context("watch the kernel")?;
            rest(&mut alarm, queue, &has_woken, stepped.again_at_ms)?;
        }
    })
}

/// Sleeps until something has been recorded, its own task has something to say, or it is time.
fn rest(
    alarm: &mut Alarm,
    queue: &mut Queue<'_>,
    has_woken: &AtomicBool,
    until_ms: u64,
) -> anyhow::Result<()> {
    while !has_woken.load(Ordering::SeqCst) && queue.refresh()?.is_empty() {
        let pause_ms = until_ms.saturating_sub(monotonic_ms());
        if pause_ms == 0 {
            break;
        }
        let pause = Duration::from_millis(pause_ms);
        alarm.sleep(pause, &|| false).context("sleep")?;
    }
    Ok(())
}

/// Locks a file, appends to it, syncs it and unlocks it, again and again.
fn bare(path: &Path, n_appends: u64, n_bytes: usize) -> anyhow::Result<()> {
    let mut file = open(path)?;
    let bytes = vec![b'x'; n_bytes];
    be_ready()?;
    for _ in 0..n_appends {
        append_locked(&mut file, &bytes)?;
    }
    Ok(())
}

/// Opens a file of bare appends.
pub(super) fn open(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.with_context(|| format!("open {}", path.display()))
}

/// Appends under the file's own lock, durably.
pub(super) fn append_locked(file: &mut File, bytes: &[u8]) -> anyhow::Result<()> {
    file.lock().context("lock")?;
    file.write_all(bytes).context("write")?;
    file.sync_data().context("sync")?;
    file.unlock().context("unlock")
}

/// Takes what is pushed, as it comes.
fn pop(socket: &Path) -> anyhow::Result<()> {
    let mut client = Client::connect(socket)?;
    loop {
        say(IDLE);
        client.ask(&[b"BRPOP", b"bench", b"0"])?;
        say(BEGUN);
    }
}
