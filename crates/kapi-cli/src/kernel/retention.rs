//! How long the runs and branches of tasks that have ended are kept here, as the person set it.
//!
//! What goes, and that nothing goes that is nowhere else, is decided in `kapi_task`.

use kapi_core::text::counted;
use kapi_launch::error::LaunchError;
use kapi_store::layout::project_key;
use kapi_sys::clock::Clock as _;
use kapi_task::perform::retention::{
    LeavingKind, LeavingVerdict, Retention, RetentionLimits, TaskLeaving,
};

use crate::commands::sandbox::list::size;
use crate::kernel::ProjectKernel;
use crate::subject::launches::sandboxes;

/// Days for which runs are kept when nobody says.
const KEEP_DAYS: u32 = 90;
/// Tasks whose runs are kept when nobody says.
const KEEP_TASKS: u32 = 1_000;
/// Mebibytes of runs that are kept when nobody says.
const KEEP_MB: u32 = 2_048;
/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

impl ProjectKernel<'_> {
    /// Returns the limits that hold without a flag.
    pub(crate) fn retention_limits(&self) -> RetentionLimits {
        let said = &self.config.kernel.person.retention;
        let days = said.days.unwrap_or(KEEP_DAYS);
        let age_ms = i64::from(days).saturating_mul(DAY_MS);
        let tasks = usize::try_from(said.tasks.unwrap_or(KEEP_TASKS));
        RetentionLimits {
            ended_before_ms: Some(self.context.clock.now_ms().saturating_sub(age_ms)),
            tasks_max: Some(tasks.unwrap_or(usize::MAX)),
            bytes_max: Some(u64::from(said.megabytes.unwrap_or(KEEP_MB)) << 20),
        }
    }

    /// Looks at everything that tasks left that have ended.
    pub(crate) fn task_leavings(
        &self,
        limits: &RetentionLimits,
    ) -> Result<Vec<TaskLeaving>, LaunchError> {
        self.with_retention(|retention| retention.survey(limits))
    }

    /// Removes what goes of it.
    pub(crate) fn remove_leavings(&self, leavings: &[TaskLeaving]) -> Result<(), LaunchError> {
        self.with_retention(|retention| retention.remove(leavings))
    }

    /// Removes what is beyond the limits, and says what that was; nothing where all is within them.
    pub(crate) fn keep_within_limits(&self) -> Result<Option<String>, LaunchError> {
        let mut leavings = self.task_leavings(&self.retention_limits())?;
        leavings.retain(|one| matches!(one.verdict, LeavingVerdict::Goes(_)));
        self.remove_leavings(&leavings)?;
        Ok(removed_words(&leavings))
    }

    fn with_retention<T>(&self, then: impl FnOnce(&Retention<'_>) -> T) -> T {
        let (grants, sandboxes) = (self.context.grants(self.config), sandboxes(self.context));
        let project_key = project_key(self.project.layout.root());
        then(&Retention {
            grants: &grants,
            project: self.project,
            store: &self.store,
            sandboxes: &sandboxes,
            project_key: &project_key,
        })
    }
}

fn removed_words(gone: &[TaskLeaving]) -> Option<String> {
    let is_run = |one: &&TaskLeaving| matches!(one.what, LeavingKind::Runs(_));
    let bytes = gone.iter().map(|one| one.bytes).sum();
    let n_runs = gone.iter().filter(is_run).count();
    let n_branches = gone.len() - n_runs;
    let mut parts = Vec::new();
    if n_runs > 0 {
        let runs = counted(n_runs as u64, "run");
        parts.push(format!("the transcripts of {runs} ({})", size(bytes)));
    }
    if n_branches > 0 {
        let branches = counted(n_branches, "branch");
        parts.push(format!("{branches} whose work is merged or pushed"));
    }
    let words = parts.join(" and ");
    (!parts.is_empty())
        .then(|| format!("removed {words}; `[kernel] keep_days` and others say how long"))
}
