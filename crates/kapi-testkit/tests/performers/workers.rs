//! Workers of a test: what they have said, and how they are waited for.

use std::sync::atomic::{AtomicBool, Ordering};

use kapi_core::task_id::KernelTaskId;
use kapi_task::record::worker::KernelWorker;
use kapi_task::rules::task::KernelTask;

/// A worker, and the one that takes over when it leaves.
pub(crate) struct Workers<'w, 'scope, 'env> {
    pub(crate) worker: KernelWorker<'scope, 'env>,
    pub(crate) second: Option<&'w dyn Fn() -> KernelWorker<'scope, 'env>>,
}

impl Workers<'_, '_, '_> {
    /// Works until a task has ended.
    pub(crate) fn finish(
        &mut self,
        id: KernelTaskId,
        is_leaving: &AtomicBool,
        wait: &mut dyn FnMut(),
    ) -> KernelTask {
        loop {
            self.step(is_leaving.load(Ordering::SeqCst));
            let found = self.worker.queue().0.find(id).unwrap();
            if let Some(task) = found.filter(|task| task.state.is_ended()) {
                return task;
            }
            wait();
        }
    }

    fn step(&mut self, is_leaving: bool) {
        if let (true, Some(second)) = (is_leaving, self.second) {
            self.worker.leave();
            if self.worker.n_jobs() == 0 {
                self.worker = second();
                self.second = None;
            }
        }
        self.worker.step(&|| true).unwrap();
    }
}
