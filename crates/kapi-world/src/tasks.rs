//! Performing a task of the kernel: an agent in a sandbox, held to policy and budget, its work on a
//! branch and proved.
//!
//! What a worker calls for each task it claimed. Records nothing itself but by the worker's hands;
//! decides nothing that policy, profile and request have not said. Tour: `setup` resolves,
//! `ruling` asks the policy, `agent` launches, `loop_run` goes through the phases.

mod agent;
mod bench;
mod ending;
mod facts;
mod look;
mod loop_run;
mod meter;
mod prompt;
mod ruling;
mod setup;

pub mod room;

use std::path::PathBuf;

use kapi_core::goal::contract::{NetworkMode, SandboxLevel};
use kapi_core::kernel::id::TaskId;
use kapi_core::kernel::task::{End, Report, Task};
use kapi_engine::kernel::error::KernelError;
use kapi_engine::kernel::log::Store;
use kapi_engine::kernel::queue::Queue;
use kapi_engine::kernel::terms::KernelTerms;
use kapi_engine::kernel::worker::Hands;
use kapi_engine::project::Project;
use kapi_engine::world::Activity;

use crate::book::Book;
use crate::launching::place::{SandboxId, Sandboxes};
use crate::tasks::agent::Ran;
use crate::tasks::prompt::Words;
use crate::tasks::room::Room;

/// What performs tasks of one project.
pub struct Performer<'a> {
    /// What runs may use of the host.
    pub book: Book,
    /// The project.
    pub project: &'a Project<'a>,
    /// What was set for its kernel.
    pub terms: KernelTerms,
    /// How and where agents are run.
    pub setting: Setting,
    /// Where its kernel is kept.
    pub store: Store,
    /// Takes what happens, from any thread.
    pub notice: &'a (dyn Fn(TaskId, Activity) + Sync),
}

/// How and where agents are run.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The key of the project, by which its sandboxes are told from those of others.
    pub project_key: String,
    /// Where sandboxes are.
    pub sandboxes: Sandboxes,
    /// The directory of the person's configuration: their policy and profiles.
    pub person: PathBuf,
    /// The isolation.
    pub level: SandboxLevel,
    /// What can be reached, where the policy says nothing narrower.
    pub network: NetworkMode,
    /// Who judges where an eval names nobody.
    pub judge: Option<String>,
    /// Whether nobody is there to answer.
    pub is_unattended: bool,
}

impl Performer<'_> {
    /// Performs one attempt of a task to its end.
    ///
    /// Whatever happens is in the report; what was used is told by the worker's hands as it
    /// happens. Ends soon after the cancel of the hands is raised.
    #[must_use]
    pub fn perform(&self, task: &Task, hands: &Hands<'_>) -> Report {
        if let Some(run) = task.loop_run() {
            return loop_run::perform(self, (task, run), hands);
        }
        match self.single(task, hands) {
            Ok(report) => report,
            Err(end) => Report::of(end),
        }
    }

    /// Performs one attempt when the machine has a place for it, and gives the task back when it is
    /// called off before.
    #[must_use]
    pub fn perform_in(&self, room: &Room<'_>, task: &Task, hands: &Hands<'_>) -> Report {
        match room.occupy(hands.cancel()) {
            Ok(Some(_place)) => self.perform(task, hands),
            Ok(None) => Report::of(End::Cancelled),
            Err(error) => {
                let message = format!("failed to {}", crate::failure::chain(&error));
                Report::of(ending::not_launched(message))
            }
        }
    }

    fn single(&self, task: &Task, hands: &Hands<'_>) -> Result<Report, End> {
        let setup = setup::resolve(self, task)?;
        let words = Words {
            prompt: &task.request.prompt,
            handoff: "",
            checks: &task.request.verify,
        };
        let ruling = ruling::ask(self, task, &setup, words.prompt)?;
        let mut ran = agent::run(self, (task, hands), (&setup, &ruling), &words)?;
        if ran.end == End::Completed {
            ran.end = match self.verify(task, hands, &ran) {
                Ok(()) => End::Completed,
                Err(end) => end,
            };
        }
        Ok(report(ran))
    }

    /// Runs the verify commands of a request; the first that does not pass is the end.
    fn verify(&self, task: &Task, hands: &Hands<'_>, ran: &Ran) -> Result<(), End> {
        let commands = &task.request.verify;
        if commands.is_empty() {
            return Ok(());
        }
        let bench = bench::Bench::new(self, (task, hands), ran.commit())?;
        for command in commands {
            let proved = bench.prove(command, bench::VERIFY_MS)?;
            if !proved.passed() {
                return Err(ending::eval_failed(proved.sentence(command)));
            }
        }
        Ok(())
    }

    /// Returns the name of the sandbox of an attempt.
    fn sandbox_id(task: &Task, hands: &Hands<'_>) -> Result<SandboxId, End> {
        let id = format!("{}-{}", task.id, hands.hold().fence);
        SandboxId::parse(&id).map_err(|error| ending::not_launched(error.message))
    }

    /// Opens the queue, to see what is known of loops and to set one off.
    fn queue(&self) -> Result<Queue<'_>, KernelError> {
        Queue::open_in(self.project, &self.store)
    }
}

/// Returns the transcript of an attempt, which [`kapi_core::kernel::task::Work::run`] names.
#[must_use]
pub fn transcript(sandboxes: &Sandboxes, project_key: &str, run: &str) -> Option<PathBuf> {
    let id = SandboxId::parse(run).ok()?;
    let place = sandboxes.place(project_key, &id);
    Some(place.runs().join("1").join("transcript.jsonl"))
}

fn report(ran: Ran) -> Report {
    let mut report = Report::of(ran.end);
    report.output = ran.output;
    report.work = ran.work;
    report
}
