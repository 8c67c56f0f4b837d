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
pub mod ending;
mod facts;
mod held;
mod look;
mod loop_run;
mod prompt;
mod proof;
mod resume;
pub mod ruling;
mod settle;
mod setup;

pub mod capacity;
pub mod events;
pub mod leavings;
pub mod retention;
pub mod travel;

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::task_id::KernelTaskId;
use kapi_core::text::counted;
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
use crate::perform::proof::{AttemptWork, TaskProver};
use crate::record::error::KernelError;
use crate::record::queue::Queue;
use crate::record::store::KernelStore;
use crate::record::terms::KernelTerms;
use crate::record::worker::LeaseHandle;
use crate::rules::condition::ConditionVerdict;
use crate::rules::goal_drive::GoalDrive;
use crate::rules::task::{
    AttemptChanges, AttemptReport, End, FailureKind, KernelTask, LoopPhase, PhaseStatus,
};

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

/// A task whose agent has ended.
struct ExecutedTask<'a> {
    report: AttemptReport,
    /// Proves its work, where it has checks.
    prover: Option<TaskProver<'a>>,
    /// What its checks show where its work began.
    baseline: Option<VerifyReport>,
}

impl Performer<'_> {
    /// Performs one attempt of a task to its end, then takes away what killed ones before it left.
    ///
    /// Whatever happens is in the report; what was used is told by the worker's hands as it
    /// happens. Ends soon after the cancel of the hands is raised.
    #[must_use]
    pub fn perform(&self, task: &KernelTask, handle: &LeaseHandle<'_>) -> AttemptReport {
        if task.is_only_settled() {
            return self.settle(task, handle);
        }
        if let Some(wanted) = task.goal_drive() {
            return (self.drive_goal)(self, task, wanted, handle);
        }
        if let Err(lack) = travel::arrive(self, task) {
            return put_back(handle, lack);
        }
        let runs_agent =
            resume::executed(task).is_none() && !resume::is_unrecorded(self, task, handle);
        let before = if runs_agent {
            leavings::before(self, task, handle)
        } else {
            None
        };
        let mut report = allowance::within(task, handle, |allowance| {
            let attempt = TaskAttempt {
                task,
                handle,
                allowance,
            };
            let report = match task.loop_run() {
                Some(run) => loop_run::perform(self, attempt, run),
                None => self.single(attempt).unwrap_or_else(AttemptReport::of),
            };
            settle::settle(self, attempt);
            report
        });
        let after = leavings::after(self, task, handle);
        for text in before.into_iter().chain(after) {
            leavings::tell(&mut report, &text);
        }
        if let Err(lack) = self.record_runs(task, handle, &report.work) {
            return put_back(handle, lack);
        }
        if report.end == End::Cancelled {
            return report;
        }
        let given = self.give_branch(task, &report.end, &mut report.work);
        let commit = report.work.commit.as_deref();
        match given.and_then(|()| travel::depart(self, task, commit)) {
            Ok(()) => report,
            // Its work stays on its branch here.
            Err(lack) => put_back(handle, lack),
        }
    }

    /// Ends a task of which nothing runs again: what the workers used and left that were lost is settled.
    fn settle(&self, task: &KernelTask, handle: &LeaseHandle<'_>) -> AttemptReport {
        let end = if task.cancelling.is_some() {
            End::Cancelled
        } else {
            let message = format!("its worker died {} times", task.losses);
            ending::failed(FailureKind::Lost, message)
        };
        let mut report = allowance::within(task, handle, |allowance| {
            let attempt = TaskAttempt {
                task,
                handle,
                allowance,
            };
            settle::settle(self, attempt);
            AttemptReport::of(end)
        });
        if let Some(text) = leavings::before(self, task, handle) {
            leavings::tell(&mut report, &text);
        }
        report
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
        // What runs nothing takes no place, and is not called off.
        if task.is_only_settled() {
            return self.perform(task, handle);
        }
        match capacity.occupy(handle.cancel()) {
            Ok(Some(_location)) => self.perform(task, handle),
            Ok(None) => AttemptReport::of(End::Cancelled),
            Err(error) => {
                let message = format!("failed to {}", kapi_run::failure::chain(&error));
                AttemptReport::of(ending::not_launched(message))
            }
        }
    }

    /// Goes through the phases that are left of a task that is no loop's.
    fn single(&self, attempt: TaskAttempt<'_>) -> Result<AttemptReport, End> {
        let task = attempt.task;
        let executed = match resume::executed(task) {
            Some(report) if task.phase().is_none() => return Ok(report.clone()),
            Some(report) => self.to_verify(attempt, report.clone())?,
            None => self.execute(attempt)?,
        };
        let mut report = executed.report;
        if let (End::Completed, Some(prover)) = (&report.end, &executed.prover) {
            let proved = prover.prove(&AttemptWork::of(&report.work), executed.baseline.as_ref());
            let (status, detail) = match &proved {
                Ok(_) => (PhaseStatus::Ok, None),
                Err(end) => (PhaseStatus::Error, Some(loop_run::end_words(end))),
            };
            match proved {
                Ok(proof) => proof.record(&mut report.work),
                Err(End::Cancelled) => return Err(End::Cancelled),
                Err(end) => report.end = with_left(end, &report.work),
            }
            self.note(attempt, LoopPhase::Evaluate, (status, detail), &report)?;
        }
        if report.work.branch.is_none() {
            report.work.commit = None;
        }
        Ok(report)
    }

    /// Runs the agent, unless an earlier attempt's has ended, and records what came of it.
    fn execute<'a>(&'a self, attempt: TaskAttempt<'a>) -> Result<ExecutedTask<'a>, End> {
        let task = attempt.task;
        let setup = setup::resolve(self, task)?;
        let words = PromptParts {
            prompt: &task.request.prompt,
            handoff: "",
            checks: &task.request.verify,
        };
        let ruling = ruling::ask(self, task, &setup, words.prompt)?;
        if let Some(ran) = resume::adopted(self, attempt, &setup, &ruling) {
            let report = self.executed(attempt, ran)?;
            return self.to_verify(attempt, report);
        }
        let prover = self.prover(attempt)?;
        let baseline = prover.as_ref().map(TaskProver::baseline).transpose()?;
        let ran = agent::run(self, attempt, &setup, &ruling, &words)?;
        Ok(ExecutedTask {
            report: self.executed(attempt, ran)?,
            prover,
            baseline: baseline.flatten(),
        })
    }

    /// Returns what an earlier attempt's agent did, ready to be verified.
    fn to_verify<'a>(
        &'a self,
        attempt: TaskAttempt<'a>,
        report: AttemptReport,
    ) -> Result<ExecutedTask<'a>, End> {
        let prover = self.prover(attempt)?;
        let baseline = prover
            .as_ref()
            .map(|prover| prover.baseline_of(&AttemptWork::of(&report.work)));
        let baseline = baseline.transpose()?.flatten();
        Ok(ExecutedTask {
            report,
            prover,
            baseline,
        })
    }

    fn prover<'a>(&'a self, attempt: TaskAttempt<'a>) -> Result<Option<TaskProver<'a>>, End> {
        match attempt.task.request.verify.as_slice() {
            [] => Ok(None),
            _ => TaskProver::open(self, attempt).map(Some),
        }
    }

    /// Records that an agent has ended, so that nobody runs it again.
    fn executed(&self, attempt: TaskAttempt<'_>, ran: AttemptRun) -> Result<AttemptReport, End> {
        let TaskAttempt { task, handle, .. } = attempt;
        let sandbox = ran.sandbox;
        let mut report = AttemptReport::of(ran.end);
        report.output = ran.output;
        report.work = ran.work;
        // Where nothing was changed, what it looked at is what the checks look at.
        report.work.commit = report.work.commit.or(ran.start);
        if report.end != End::Completed {
            return Ok(report);
        }
        // The phase after this one may be another machine's.
        if let Err(lack) = travel::depart(self, task, report.work.commit.as_deref()) {
            handle.put_back(lack);
            return Err(End::Cancelled);
        }
        let n_files = counted(report.work.n_files, "file");
        self.note(
            attempt,
            LoopPhase::Execute,
            (PhaseStatus::Ok, Some(n_files)),
            &report,
        )?;
        if let Some(sandbox) = sandbox {
            sandbox.tidy(self, task.id);
        }
        Ok(report)
    }

    fn note(
        &self,
        attempt: TaskAttempt<'_>,
        phase: LoopPhase,
        ended: loop_run::Ended,
        report: &AttemptReport,
    ) -> Result<(), End> {
        let (status, detail) = ended;
        let detail = detail.map(|text| loop_run::detail_line(&text));
        let recorded = attempt
            .handle
            .end_phase(phase, status, detail, Some(report));
        // Somebody else has the task: nothing that is said here counts.
        recorded.map_err(|_| End::Cancelled)
    }

    /// Records what the attempt's runs wrote, and those of the attempt whose work it took over, now
    /// that nobody writes to them any more.
    fn record_runs(
        &self,
        task: &KernelTask,
        handle: &LeaseHandle<'_>,
        work: &AttemptChanges,
    ) -> Result<(), String> {
        // An attempt without a sandbox has no files either.
        let own = Self::sandbox_id(task, handle).ok();
        let taken = work
            .run
            .as_deref()
            .and_then(|run| SandboxId::parse(run).ok());
        let ids: BTreeSet<SandboxId> = own.into_iter().chain(taken).collect();
        for id in ids {
            let location = self
                .setting
                .sandboxes
                .location(&self.setting.project_key, &id);
            let files = hash_run(self.project.disk, &location.runs());
            let files =
                files.map_err(|error| format!("failed to {}", kapi_run::failure::chain(&error)))?;
            if files.is_empty() {
                continue;
            }
            let recorded = handle.record_run(id.as_str(), files);
            recorded.map_err(|_| "the output of its run could not be recorded".to_owned())?;
        }
        Ok(())
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

/// Returns the transcript of an attempt, which [`crate::rules::task::AttemptChanges::run`] names.
#[must_use]
pub fn transcript(sandboxes: &Sandboxes, project_key: &str, run: &str) -> Option<PathBuf> {
    let id = SandboxId::parse(run).ok()?;
    let location = sandboxes.location(project_key, &id);
    Some(location.runs().join("1").join("transcript.jsonl"))
}

/// Leaves a task to whoever can work on it, or to later.
fn put_back(handle: &LeaseHandle<'_>, lack: String) -> AttemptReport {
    handle.put_back(lack);
    AttemptReport::of(End::Cancelled)
}

/// Says where the work is that there is all the same, of an attempt that used up its budget.
fn with_left(mut end: End, work: &AttemptChanges) -> End {
    if let End::Failed(failure) = &mut end
        && failure.kind == FailureKind::BudgetSpent
    {
        failure.message.push_str(&work.left());
    }
    end
}
