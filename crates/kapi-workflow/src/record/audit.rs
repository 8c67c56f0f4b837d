//! A full check of one workflow: its log, and the files that follow from it.
//!
//! Reads everything and changes nothing. What it finds is told in the words of an audit of a goal.

use kapi_core::id::EffectId;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::project::Project;
use kapi_machine::audit::{StreamAudit, StreamFault};
use kapi_machine::evidence::RecordedRuns;
use kapi_store::audit::audit;

use super::machine::{WorkflowMachine, stream};
use crate::record::error::WorkflowError;
use crate::record::run_name::run_name;
use crate::record::snapshot::WorkflowSnapshot;
use crate::rules::documents::documents;
use crate::rules::event::WorkflowEvent;
use crate::rules::state::Workflow;

/// Checks a workflow.
///
/// # Errors
/// When the disk refuses, or there is no such workflow.
pub fn audit_workflow(
    project: &Project<'_>,
    key: &WorkflowKey,
) -> Result<StreamAudit, WorkflowError> {
    let stream = stream(project, key);
    let mut found = audit(&stream)?;
    if found.records.is_empty() && found.faults.is_empty() {
        return Err(WorkflowError::NotFound {
            workflow: key.clone(),
        });
    }
    let mut report = StreamAudit::of(stream.log(), &mut found);
    let run = |effect: &EffectId| project.layout.run(&run_name(&key.id, effect));
    let mut runs = RecordedRuns::default();
    let replayed = report.replay::<WorkflowMachine>(&found, |_, logged| {
        if let WorkflowEvent::RunRecorded { effect, files } = &logged.event {
            runs.record(run(effect), files);
        }
    });
    let workflow = replayed.end.as_ref().filter(|_| report.is_whole());
    let Some(workflow) = workflow else {
        return Ok(report);
    };
    if workflow.id != key.id || workflow.mode() != key.mode {
        report.faults.push(StreamFault::OtherGoal {
            file: stream.log(),
            found: workflow.id.clone(),
        });
        return Ok(report);
    }
    let state = project.layout.workflow(key.mode, &key.id).state();
    report.check_fold(state.clone(), &found, &replayed);
    report.check_saved_to_the_end(state, &found);
    check_files(project, key, workflow, &mut report)?;
    for effect in workflow.in_flight.keys() {
        // Whoever performs it again adds to its files.
        runs.forget(&run(effect));
    }
    report.check_evidence(project.disk, runs)?;
    Ok(report)
}

fn check_files(
    project: &Project<'_>,
    key: &WorkflowKey,
    workflow: &Workflow,
    report: &mut StreamAudit,
) -> Result<(), WorkflowError> {
    let layout = project.layout.workflow(key.mode, &key.id);
    let snapshot = WorkflowSnapshot::of(workflow, report.records);
    let seq_of = |snapshot: &WorkflowSnapshot| snapshot.seq;
    report.check_snapshot(project.disk, layout.snapshot(), &snapshot, seq_of)?;
    let is_behind = !report.stale.is_empty();
    for document in documents(workflow) {
        let file = layout.document(&document.name);
        match project.disk.read(&file, 0)? {
            Some(bytes) if bytes == document.text.as_bytes() => {}
            Some(_) if !is_behind => report.faults.push(StreamFault::NotDerived { file }),
            Some(_) | None => report.stale.push(file),
        }
    }
    Ok(())
}
