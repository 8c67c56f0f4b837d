//! What performs tasks of the project at hand, put together from what the person set, and the room
//! that the machine has for it.

use kapi_core::id::GoalId;
use kapi_core::task_id::KernelTaskId;
use kapi_goal::perform::real::RealWorld;
use kapi_machine::watch::Activity;
use kapi_store::layout::project_key;
use kapi_sys::cancel::Cancel;
use kapi_task::perform::capacity::MachineCapacity;
use kapi_task::perform::leavings::SweepReport;
use kapi_task::perform::{Performer, PerformerSettings};
use kapi_task::record::worker::LeaseHandle;
use kapi_task::rules::condition::ConditionVerdict;
use kapi_task::rules::task::{AttemptReport, KernelTask};

use crate::config::grant::LEVEL_DEFAULT;
use crate::driving;
use crate::error::Error;
use crate::kernel::{ProjectKernel, person_dir};
use crate::subject::launches::sandboxes;
use crate::workflow::world::failure;

/// Tasks of which a worker that starts takes away at most what dead workers left.
const SWEPT_MAX: usize = 256;

/// Performs tasks where the machine has a place for them.
pub(crate) struct Performing<'p> {
    performer: Performer<'p>,
    capacity: MachineCapacity<'p>,
}

impl Performing<'_> {
    /// Looks whether the condition of a loop's run holds now; nothing where it has none.
    pub(crate) fn try_condition(
        &self,
        task: &KernelTask,
    ) -> Result<Option<ConditionVerdict>, String> {
        self.performer.try_condition(task)
    }

    /// Performs one attempt, once the machine has a place for it.
    pub(crate) fn perform(&self, task: &KernelTask, handle: &LeaseHandle<'_>) -> AttemptReport {
        self.performer.perform_in(&self.capacity, task, handle)
    }

    /// Takes away what dead workers left of tasks that have ended; stops when it is called off.
    pub(crate) fn sweep(&self, cancel: &Cancel) -> SweepReport {
        self.performer.sweep(SWEPT_MAX, cancel)
    }
}

impl ProjectKernel<'_> {
    /// Returns what performs tasks; `notice` takes what happens to each, from any thread.
    pub(crate) fn performer<'p>(
        &'p self,
        notice: &'p (dyn Fn(KernelTaskId, Activity) + Sync),
    ) -> Result<Performing<'p>, Error> {
        let level = self.config.level.unwrap_or(LEVEL_DEFAULT);
        let performer = Performer {
            grants: self.context.grants(self.config),
            project: self.project,
            terms: self.terms.clone(),
            setting: PerformerSettings {
                project_key: project_key(self.project.layout.root()),
                sandboxes: sandboxes(self.context),
                person: person_dir(self.context).to_path_buf(),
                level,
                network: self.config.network(None, level)?,
                judge: self.config.judge().cloned(),
                is_unattended: true,
            },
            store: self.store.clone(),
            spending: self
                .context
                .spending(self.project.layout.root(), self.config)?,
            drive_goal: Box::new(|performer, task, wanted, handle| {
                let in_world = |id: &GoalId, then: &mut dyn FnMut(RealWorld<'_>)| {
                    let world = driving::world(self.context, self.project, id, self.config);
                    then(world.map_err(failure)?);
                    Ok(())
                };
                kapi_workflow::perform::task::perform(performer, &in_world, task, wanted, handle)
            }),
            notice,
        };
        Ok(Performing {
            performer,
            capacity: self.capacity(),
        })
    }

    /// Returns the room of the machine, which all projects of the person share.
    pub(crate) fn capacity(&self) -> MachineCapacity<'_> {
        let state_dir = sandboxes(self.context).state_dir;
        let owner = &self.project.owner;
        MachineCapacity::new(self.project.disk, &state_dir, self.terms.machine_max, owner)
    }
}
