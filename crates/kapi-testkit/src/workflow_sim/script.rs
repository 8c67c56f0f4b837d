//! A story: what the person does next in it, as a function of how things stand, so that nothing has to
//! be remembered over a death.
//!
//! Knows nothing of disks and crashes; which stories there are is told by the modes.

use kapi_core::actor::Actor;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::modes::Begin;
use kapi_workflow::rules::state::Workflow;

/// A story.
#[derive(Debug)]
pub(super) struct WorkflowScript {
    /// Its name.
    pub(super) name: &'static str,
    /// Where its last workflow stands when it has ended.
    pub(super) end: WorkflowStatus,
    /// Returns what comes next.
    pub(super) next: for<'known> fn(&'known [Workflow]) -> NextStep<'known>,
    /// Returns what somebody does to a workflow that came to rest; `None` where nothing waits.
    pub(super) deed: fn(&Workflow) -> Option<Deed>,
}

/// What comes next.
pub(super) enum NextStep<'a> {
    /// A workflow begins.
    Start(&'static str, Begin),
    /// A workflow is looked at for a moment and given up.
    GiveUp(&'a Workflow),
    /// A workflow is driven, and then the person looks at it.
    Drive(&'a Workflow),
}

/// What somebody does.
pub(super) enum Deed {
    /// Somebody asks for something.
    Command(Actor, WorkflowCommand),
    /// The person approves the artifact with this hash, and its risks.
    Approve(String),
}

/// Returns the person of every story.
pub(super) fn person() -> Actor {
    let user = "user".to_owned();
    Actor::Human { user }
}

/// Returns what the person asks for.
pub(super) fn by_person(command: WorkflowCommand) -> Option<Deed> {
    Some(Deed::Command(person(), command))
}

/// Returns what a person does to a workflow of any mode: goes on, wants the first draft smaller and
/// approves the second.
pub(super) fn usual(workflow: &Workflow) -> Option<Deed> {
    if workflow.status == WorkflowStatus::Blocked {
        return by_person(WorkflowCommand::Unblock {});
    }
    if workflow.status.is_terminal() {
        return None;
    }
    let pending = workflow.pending.as_ref()?;
    if workflow.revisions.is_empty() {
        let text = "Smaller.".to_owned();
        return by_person(WorkflowCommand::Revise { text });
    }
    Some(Deed::Approve(pending.sha256.clone()))
}
