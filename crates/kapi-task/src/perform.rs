//! Performing a task of the kernel: an agent in a sandbox, held to policy and budget, its work on a
//! branch and proved.
//!
//! What a worker calls for each task it claimed. Records nothing itself but by the worker's hands;
//! decides nothing that policy, profile and request have not said. Tour: `setup` resolves,
//! `ruling` asks the policy, `agent` launches within its `allowance`, `loop_run` goes through the
//! phases, `goal` drives a workflow's goal, `leavings` takes away what attempts left.

mod agent;
mod allowance;
mod attempt;
mod cancel_link;
pub mod ending;
mod facts;
mod look;
mod loop_run;
mod prompt;
mod proof;
pub mod ruling;
mod setup;

pub mod capacity;
pub mod events;
pub mod leavings;
pub mod travel;

use std::path::PathBuf;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::task_id::KernelTaskId;
use kapi_goal::record::project::Project;
use kapi_launch::paths::{SandboxId, Sandboxes};
use kapi_machine::evidence::hash_run;
use kapi_machine::watch::Activity;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::Spending;

use crate::perform::agent::AttemptRun;
use crate::perform::attempt::TaskAttempt;
use crate::perform::capacity::MachineCapacity;
use crate::perform::prompt::PromptParts;
use crate::perform::proof::{AttemptWork, ProvedWork, TaskProver};
use crate::record::error::KernelError;
use crate::record::queue::Queue;
use crate::record::store::KernelStore;
use crate::record::terms::KernelTerms;
use crate::record::worker::LeaseHandle;
use crate::rules::condition::ConditionVerdict;
use crate::rules::goal_drive::GoalDrive;
use crate::rules::task::{AttemptReport, End, FailureKind, KernelTask};

/// Drives the goal of a task to its rest.
pub type DriveGoal<'a> =
    dyn Fn(&Performer<'_>, &KernelTask, &GoalDrive, &LeaseHandle<'_>) -> AttemptReport + Sync + 'a;

/// What performs tasks of one project.
pub struct Performer<'a> {
    /// What runs may use of the host.
    pub grants: HostGrants,
    /// The project.
    pub project: &'a Project<'a>,
    /// What was set for its kernel.
    pub terms: KernelTerms,
    /// How and where agents are run.
    pub setting: PerformerSettings,
    /// Where its kernel is kept.
    pub store: KernelStore,
    /// Where what its tasks use is booked, and what a day may cost.
    pub spending: Spending<'a>,
    /// Drives the goal of a workflow, whose drive is a task too.
    pub drive_goal: Box<DriveGoal<'a>>,
    /// Takes what happens, from any thread.
    pub notice: &'a (dyn Fn(KernelTaskId, Activity) + Sync),
}

/// How and where agents are run.
#[derive(Debug, Clone)]
pub struct PerformerSettings {
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
    /// Performs one attempt of a task to its end, then takes away what killed ones before it left.
    ///
    /// Whatever happens is in the report; what was used is told by the worker's hands as it
    /// happens. Ends soon after the cancel of the hands is raised.
    #[must_use]
    pub fn perform(&self, task: &KernelTask, handle: &LeaseHandle<'_>) -> AttemptReport {
        if let Some(wanted) = task.goal_drive() {
            return (self.drive_goal)(self, task, wanted, handle);
        }
        if let Err(lack) = travel::arrive(self, task) {
            return set_back(handle, lack);
        }
        let mut report = allowance::within(task, handle, |allowance| {
            let attempt = TaskAttempt {
                task,
                handle,
                allowance,
            };
            match task.loop_run() {
                Some(run) => loop_run::perform(self, attempt, run),
                None => self.single(attempt).unwrap_or_else(AttemptReport::of),
            }
        });
        leavings::after(self, task, handle, &mut report);
        if let Err(lack) = self.record_run(task, handle) {
            return set_back(handle, lack);
        }
        if report.end == End::Cancelled {
            return report;
        }
        let commit = report.work.commit.as_deref();
        match travel::depart(self, task, commit) {
            Ok(()) => report,
            // Its work stays on its branch here.
            Err(lack) => set_back(handle, lack),
        }
    }

    /// Performs one attempt when the machine has a place for it, and gives the task back when it is
    /// called off before.
    #[must_use]
    pub fn perform_in(
        &self,
        capacity: &MachineCapacity<'_>,
        task: &KernelTask,
        handle: &LeaseHandle<'_>,
    ) -> AttemptReport {
        match capacity.occupy(handle.cancel()) {
            Ok(Some(_location)) => self.perform(task, handle),
            Ok(None) => AttemptReport::of(End::Cancelled),
            Err(error) => {
                let message = format!("failed to {}", kapi_run::failure::chain(&error));
                AttemptReport::of(ending::not_launched(message))
            }
        }
    }

    fn single(&self, attempt: TaskAttempt<'_>) -> Result<AttemptReport, End> {
        let task = attempt.task;
        let setup = setup::resolve(self, task)?;
        let words = PromptParts {
            prompt: &task.request.prompt,
            handoff: "",
            checks: &task.request.verify,
        };
        let ruling = ruling::ask(self, task, &setup, words.prompt)?;
        let prover = match task.request.verify.as_slice() {
            [] => None,
            _ => Some(TaskProver::open(self, attempt)?),
        };
        let baseline = prover.as_ref().map(TaskProver::baseline).transpose()?;
        let mut ran = agent::run(self, attempt, &setup, &ruling, &words)?;
        if let (End::Completed, Some(prover)) = (&ran.end, &prover) {
            let baseline = baseline.as_ref().and_then(Option::as_ref);
            match verify(&ran, prover, baseline) {
                Ok(proof) => proof.record(&mut ran.work),
                Err(end) => ran.end = end,
            }
        }
        Ok(report(ran))
    }

    /// Records what the attempt's runs wrote, now that nobody writes to them any more.
    fn record_run(&self, task: &KernelTask, handle: &LeaseHandle<'_>) -> Result<(), String> {
        // An attempt without a sandbox has no files either.
        let Ok(id) = Self::sandbox_id(task, handle) else {
            return Ok(());
        };
        let location = self
            .setting
            .sandboxes
            .location(&self.setting.project_key, &id);
        let files = hash_run(self.project.disk, &location.runs());
        let files =
            files.map_err(|error| format!("failed to {}", kapi_run::failure::chain(&error)))?;
        if files.is_empty() {
            return Ok(());
        }
        let recorded = handle.record_run(id.as_str(), files);
        recorded.map_err(|_| "the output of its run could not be recorded".to_owned())
    }

    /// Returns the name of the sandbox of an attempt.
    fn sandbox_id(task: &KernelTask, handle: &LeaseHandle<'_>) -> Result<SandboxId, End> {
        let id = format!("{}-{}", task.id, handle.hold().fence);
        SandboxId::parse(&id).map_err(|error| ending::not_launched(error.message))
    }

    /// Looks whether the condition of a loop's run holds now, without a run: nothing where it has none.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub fn try_condition(&self, task: &KernelTask) -> Result<Option<ConditionVerdict>, String> {
        loop_run::try_condition(self, task)
    }

    /// Opens the queue, to see what is known of loops and to trigger one.
    fn queue(&self) -> Result<Queue<'_>, KernelError> {
        Queue::open_in(self.project, &self.store)
    }
}

/// Proves the verify commands of a request on what its agent left.
fn verify(
    ran: &AttemptRun,
    prover: &TaskProver<'_>,
    baseline: Option<&VerifyReport>,
) -> Result<ProvedWork, End> {
    let left = AttemptWork {
        branch: ran.work.branch.as_deref(),
        commit: ran.commit(),
    };
    prover.prove(left, baseline).map_err(|end| match end {
        End::Failed(failure) if failure.kind == FailureKind::BudgetSpent => {
            with_left(End::Failed(failure), ran)
        }
        end => end,
    })
}

/// Returns the transcript of an attempt, which [`crate::rules::task::AttemptChanges::run`] names.
#[must_use]
pub fn transcript(sandboxes: &Sandboxes, project_key: &str, run: &str) -> Option<PathBuf> {
    let id = SandboxId::parse(run).ok()?;
    let location = sandboxes.location(project_key, &id);
    Some(location.runs().join("1").join("transcript.jsonl"))
}

/// Leaves a task to whoever can work on it, or to later.
fn set_back(handle: &LeaseHandle<'_>, lack: String) -> AttemptReport {
    handle.set_back(lack);
    AttemptReport::of(End::Cancelled)
}

/// Says with a bad end where the work is that there is all the same.
fn with_left(mut end: End, ran: &AttemptRun) -> End {
    if let End::Failed(failure) = &mut end {
        failure.message.push_str(&ran.left);
    }
    end
}

fn report(ran: AttemptRun) -> AttemptReport {
    let mut report = AttemptReport::of(ran.end);
    report.output = ran.output;
    report.work = ran.work;
    report
}
