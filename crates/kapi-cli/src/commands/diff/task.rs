//! What a task changed: the commit on its branch against what it began at.
//!
//! A task that drives a goal has none of its own: the goal's is shown.

use kapi_core::task_id::KernelTaskId;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_task::rules::task::AttemptChanges;
use serde_json::json;

use crate::commands::diff::commits::CommitPatch;
use crate::commands::diff::{OWNER, goal};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed, no_task};
use crate::ui::Format;

/// Prints the patch.
pub(super) fn diff(context: &Context, id: KernelTaskId, stat: bool) -> Result<Exit, Error> {
    kernel::with(context, OWNER, |kernel| {
        let queue = kernel.queue()?;
        let found = queue.find(id).map_err(|error| failed(&error))?;
        let task = found.ok_or_else(|| no_task(id))?;
        if let Some(drive) = task.goal_drive() {
            return goal::diff(context, &drive.goal, stat);
        }
        kernel.bring_home(&task);
        let work = task.report.as_deref().map(|report| &report.work);
        let commit = work.and_then(|work| work.commit.as_deref());
        let branch = work.and_then(|work| work.branch.as_deref());
        let root = kernel.project.layout.root();
        let (base, patch) = match commit {
            None => (None, CommitPatch::default()),
            Some(commit) => {
                let began_at = work.and_then(AttemptChanges::began_at);
                let began_at = began_at.unwrap_or_else(|| commit.to_owned());
                let grants = context.grants(kernel.config);
                let base = RepositorySurvey::of(&grants, root)
                    .and_then(|survey| survey.base(&began_at))
                    .map_err(|failure| Error::world(&failure))?
                    .commit;
                let patch = CommitPatch::between(context, root, &base, commit)?;
                (Some(base), patch)
            }
        };
        match context.ui.format {
            Format::Json => context.ui.json(&json!({
                "type": "task_diff",
                "id": id.to_string(),
                "base": base,
                "branch": branch,
                "commit": commit,
                "paths": patch.paths(),
                "cut": patch.is_cut,
                "patch": patch.text(stat),
            })),
            Format::Human if commit.is_none() && task.state.is_ended() => {
                context.ui.say(&format!("{id} changed nothing."));
            }
            Format::Human if commit.is_none() => {
                context.ui.say(&format!(
                    "{id} has not ended, so there are no changes to show."
                ));
            }
            Format::Human => patch.print(context, stat),
        }
        Ok(Exit::Success)
    })
}
