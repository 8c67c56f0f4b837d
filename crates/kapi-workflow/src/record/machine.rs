//! What a workflow is folded of, and where its stream is.
//!
//! For whoever only reads one; `opened.rs` records in it.

use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::project::Project;
use kapi_machine::logged::EventRecord;
use kapi_machine::machine::Machine;
use kapi_store::stream::LogStream;

use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::state::Workflow;

/// What a workflow is folded of; nothing is no workflow.
#[derive(Debug)]
pub struct WorkflowMachine;

impl Machine for WorkflowMachine {
    type State = Option<Workflow>;
    type Event = WorkflowEvent;
    const EVENT: &'static str = "an event";
    const STATE: &'static str = "the state";

    fn evolve(state: &mut Option<Workflow>, logged: &EventRecord<WorkflowEvent>) {
        evolve(state, &logged.event);
    }
}

/// Returns a workflow's stream.
#[must_use]
pub fn stream<'a>(project: &Project<'a>, key: &WorkflowKey) -> LogStream<'a> {
    let layout = project.layout.workflow(key.mode, &key.id);
    LogStream {
        disk: project.disk,
        name: key.id.to_string(),
        dir: layout.dir().to_path_buf(),
        anchor: project.layout.root().to_path_buf(),
    }
}
