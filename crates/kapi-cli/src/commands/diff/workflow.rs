//! What a workflow changed: its branch against the commit it began at.

use kapi_core::workflow_key::WorkflowKey;
use serde_json::json;

use crate::commands::diff::OWNER;
use crate::commands::diff::commits::CommitPatch;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::located::LocatedWorkflow;

/// Prints the patch.
pub(super) fn diff(context: &Context, key: WorkflowKey, stat: bool) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let found = LocatedWorkflow::load(project, key)?;
    let rules = found.workflow.body.rules();
    let (base, branch) = (rules.base(), rules.branch());
    let root = found.project.layout.root();
    let patch = match (base, branch) {
        (Some(base), Some(branch)) => {
            CommitPatch::between(context, root, base, branch.head.as_str())?
        }
        (_, None) | (None, _) => CommitPatch::default(),
    };
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "workflow_diff",
            "id": found.key.id.to_string(),
            "base": base,
            "branch": branch.map(|branch| &branch.name),
            "commit": branch.map(|branch| &branch.head),
            "paths": patch.paths(),
            "cut": patch.is_cut,
            "patch": patch.text(stat),
        })),
        Format::Human if branch.is_none() => {
            context
                .ui
                .say("It has no branch yet, so there are no changes to show.");
        }
        Format::Human => patch.print(context, stat),
    }
    Ok(Exit::Success)
}
