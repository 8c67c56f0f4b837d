//! What tasks that have ended left for people: the runs of their attempts, which go with `--logs`, and
//! their branches, which go once their work is pushed or merged.

use std::path::Path;

use kapi_core::text::counted;
use kapi_launch::clean::{CleanAction, CleanReport, CleanTarget, TargetKind};
use kapi_task::perform::retention::{LeavingKind, LeavingVerdict, RetentionLimits, TaskLeaving};

use super::Args;
use crate::context::Context;
use crate::error::Error;
use crate::kernel::ProjectKernel;

/// What tasks of the project left.
#[derive(Debug, Default)]
pub(super) struct TaskFiles(Vec<TaskLeaving>);

impl TaskFiles {
    /// Looks at them; nothing is looked at where sandboxes are named.
    pub(super) fn find(
        context: &Context,
        args: &Args,
        root: &Path,
        used_before_ms: Option<i64>,
    ) -> Result<Self, Error> {
        if !args.ids.is_empty() || !root.join(".ilchul").join("kernel").is_dir() {
            return Ok(Self::default());
        }
        let project = context.project(root, "kapi cleanup");
        let config = context.config(Some(root))?;
        let kernel = ProjectKernel::new(context, &project, &config)?;
        let limits = RetentionLimits {
            ended_before_ms: Some(used_before_ms.unwrap_or(i64::MAX)),
            ..RetentionLimits::default()
        };
        let leavings = kernel.task_leavings(&limits);
        let mut leavings = leavings.map_err(|error| Error::launch(&error))?;
        if !args.logs {
            let stays = LeavingVerdict::Stays("`--logs` removes them".to_owned());
            let runs = leavings.iter_mut();
            for one in runs.filter(|one| matches!(one.what, LeavingKind::Runs(_))) {
                one.verdict = stays.clone();
            }
        }
        Ok(Self(leavings))
    }

    /// Returns what is told of them: each that goes, each branch that stays, and the runs that stay
    /// as one.
    pub(super) fn targets(&self, root: &Path) -> Vec<CleanTarget> {
        let is_run = |one: &TaskLeaving| matches!(one.what, LeavingKind::Runs(_));
        let stays = |one: &TaskLeaving| matches!(one.verdict, LeavingVerdict::Stays(_));
        let mut targets: Vec<CleanTarget> = self
            .0
            .iter()
            .filter(|one| !(is_run(one) && stays(one)))
            .map(|one| target(one, root))
            .collect();
        let kept: Vec<&TaskLeaving> = self
            .0
            .iter()
            .filter(|one| is_run(one) && stays(one))
            .collect();
        if let Some(first) = kept.first() {
            let mut all = target(first, root);
            all.name = counted(kept.len() as u64, "run");
            all.bytes = kept.iter().map(|one| one.bytes).sum();
            all.path = first
                .path
                .ancestors()
                .nth(2)
                .unwrap_or(&first.path)
                .to_path_buf();
            targets.push(all);
        }
        targets
    }

    /// Removes those that go.
    pub(super) fn remove(
        &self,
        context: &Context,
        root: &Path,
        cleaned: &mut CleanReport,
    ) -> Result<(), Error> {
        let goes = |one: &&TaskLeaving| matches!(one.verdict, LeavingVerdict::Goes(_));
        let going: Vec<CleanTarget> = self
            .0
            .iter()
            .filter(goes)
            .map(|one| target(one, root))
            .collect();
        if going.is_empty() {
            return Ok(());
        }
        let project = context.project(root, "kapi cleanup");
        let config = context.config(Some(root))?;
        let kernel = ProjectKernel::new(context, &project, &config)?;
        match kernel.remove_leavings(&self.0) {
            Ok(()) => cleaned.removed.extend(going),
            Err(error) => {
                let failed = going.into_iter().map(|one| (one, error.clone()));
                cleaned.failed.extend(failed);
            }
        }
        Ok(())
    }
}

fn target(one: &TaskLeaving, root: &Path) -> CleanTarget {
    CleanTarget {
        what: match one.what {
            LeavingKind::Runs(_) => TargetKind::Logs,
            LeavingKind::Branch(_) => TargetKind::Branch,
        },
        name: one.name.clone(),
        project: Some(root.to_path_buf()),
        path: one.path.clone(),
        bytes: one.bytes,
        disposition: match &one.verdict {
            LeavingVerdict::Goes(why) => CleanAction::Goes(why.clone()),
            LeavingVerdict::Stays(why) => CleanAction::Stays(why.clone()),
        },
    }
}
