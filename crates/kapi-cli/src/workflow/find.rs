//! Which workflow a person means: by index, slug or both, in a mode or in any.
//!
//! The rules are the core's; here it is said which one was taken where another was named.

use kapi_core::mode::Mode;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::mode_spec::ModeSpec;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::located::{LocatedWorkflow, WorkflowQuery};

/// What is to be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkflowVerb {
    /// Go on with it, or with what its interview was linked to.
    Resume,
    /// Approve exactly it.
    Approve,
}

/// Finds the workflow of a mode that a person means, for a command that writes.
pub(crate) fn find<'a>(
    context: &'a Context,
    sought: &WorkflowQuery<'_>,
    verb: WorkflowVerb,
) -> Result<LocatedWorkflow<'a>, Error> {
    let root = context
        .project_root()
        .map_err(|error| without_any(sought, error))?;
    let project = context.project(&root, sought.owner);
    context.require_own_state(project.layout.root())?;
    let key = match verb {
        WorkflowVerb::Resume => {
            let resumed = Workflows::of(&project)
                .find_to_resume(sought.mode, sought.reference)
                .map_err(|error| Error::workflow(&error))?;
            if let Some(giver) = &resumed.by_way_of {
                context.ui.say(&format!(
                    "note: {} {giver} continues as {}.",
                    ModeSpec::noun_of(Mode::CONTEXT),
                    resumed.key
                ));
            }
            resumed.key
        }
        WorkflowVerb::Approve => Workflows::of(&project)
            .find_to_approve(sought.mode, sought.reference)
            .map_err(|error| Error::workflow(&error))?,
    };
    LocatedWorkflow::load(project, key)
}

/// Says it in a workflow's words that there is nothing here yet.
fn without_any(sought: &WorkflowQuery<'_>, error: Error) -> Error {
    if error.exit != Exit::NotFound {
        return error;
    }
    let text = format!(
        "there is no workflow {:?}; this project has none",
        sought.reference
    );
    let hint = format!("start one with `kapi {} \"<purpose>\"`.", sought.mode);
    Error::new(Exit::NotFound, text).with_hint(hint)
}
