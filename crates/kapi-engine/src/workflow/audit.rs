//! A full check of one workflow: its log, and the files that follow from it.
//!
//! Reads everything and changes nothing. What it finds is told in the words of an audit of a goal.

use kapi_core::workflow::documents::documents;
use kapi_core::workflow::event::Event;
use kapi_core::workflow::evolve::evolve;
use kapi_core::workflow::state::Workflow;
use kapi_store::audit::{Audit, audit};

use crate::audit::{GoalAudit, GoalFault};
use crate::evidence::RecordedRuns;
use crate::machine::logged::to_logged;
use crate::project::Project;
use crate::workflow::error::WorkflowError;
use crate::workflow::key::WorkflowKey;
use crate::workflow::opened::stream;
use crate::workflow::run_name::run_name;
use crate::workflow::snapshot::Snapshot;

/// Checks a workflow.
///
/// # Errors
/// When the disk refuses, or there is no such workflow.
pub fn audit_workflow(
    project: &Project<'_>,
    key: &WorkflowKey,
) -> Result<GoalAudit, WorkflowError> {
    let stream = stream(project, key);
    let mut found = audit(&stream)?;
    if found.records.is_empty() && found.faults.is_empty() {
        return Err(WorkflowError::NotFound {
            workflow: key.clone(),
        });
    }
    let faults = std::mem::take(&mut found.faults);
    let mut report = GoalAudit {
        file: stream.log(),
        records: u64::try_from(found.records.len()).unwrap_or(u64::MAX),
        torn_bytes: found.torn_bytes,
        faults: faults.into_iter().map(GoalFault::Log).collect(),
        stale: Vec::new(),
    };
    let Some((workflow, at_saved)) = replayed(&found, &mut report) else {
        return Ok(report);
    };
    if workflow.id != key.id || workflow.mode() != key.mode {
        report.faults.push(GoalFault::OtherGoal {
            file: stream.log(),
            found: workflow.id,
        });
        return Ok(report);
    }
    let state = project.layout.workflow(key.mode, &key.id).state();
    match &found.saved {
        Some(saved) => {
            let folded: Option<Workflow> = serde_json::from_str(saved.state.get()).ok();
            if folded.is_some() && folded != at_saved {
                report.faults.push(GoalFault::NotDerived {
                    file: state.clone(),
                });
            }
            if saved.position.seq != report.records {
                report.stale.push(state);
            }
        }
        None => report.stale.push(state),
    }
    check_files(project, (key, &workflow), &mut report)?;
    report.check_evidence(project, recorded_runs(project, &found, &workflow))?;
    Ok(report)
}

/// Returns the workflow at the end of its log, and at the place of the fold.
fn replayed(found: &Audit, report: &mut GoalAudit) -> Option<(Workflow, Option<Workflow>)> {
    let saved_seq = found.saved.as_ref().map(|saved| saved.position.seq);
    let (mut state, mut at_saved) = (None, None);
    for record in &found.records {
        match to_logged(record) {
            Ok(logged) => evolve(&mut state, &logged.event),
            Err(source) => {
                let (file, line) = (report.file.clone(), record.seq);
                let fault = GoalFault::UnknownEvent { file, line, source };
                report.faults.push(fault);
                return None;
            }
        }
        if saved_seq == Some(record.seq) {
            at_saved.clone_from(&state);
        }
    }
    let workflow = state.filter(|_| report.faults.is_empty())?;
    Some((workflow, at_saved))
}

/// Returns the runs that the log remembers, but for those that are being performed.
fn recorded_runs(project: &Project<'_>, found: &Audit, workflow: &Workflow) -> RecordedRuns {
    let mut runs = RecordedRuns::default();
    for record in &found.records {
        let Ok(logged) = to_logged(record) else {
            continue;
        };
        if let Event::RunRecorded { effect, files } = &logged.event {
            let run = run_name(&workflow.id, effect);
            runs.record(project.layout.run(&run), files);
        }
    }
    for effect in workflow.in_flight.keys() {
        runs.forget(&project.layout.run(&run_name(&workflow.id, effect)));
    }
    runs
}

fn check_files(
    project: &Project<'_>,
    (key, workflow): (&WorkflowKey, &Workflow),
    report: &mut GoalAudit,
) -> Result<(), WorkflowError> {
    let layout = project.layout.workflow(key.mode, &key.id);
    let file = layout.snapshot();
    let bytes = project.disk.read(&file, 0)?.unwrap_or_default();
    let snapshot: Option<Snapshot> = serde_json::from_slice(&bytes).ok();
    match snapshot {
        Some(snapshot) if snapshot.seq == report.records => {
            if snapshot != Snapshot::of(workflow, report.records) {
                report.faults.push(GoalFault::NotDerived { file });
            }
        }
        Some(_) | None => report.stale.push(file),
    }
    let is_behind = !report.stale.is_empty();
    for document in documents(workflow) {
        let file = layout.document(&document.name);
        match project.disk.read(&file, 0)? {
            Some(bytes) if bytes == document.text.as_bytes() => {}
            Some(_) if !is_behind => report.faults.push(GoalFault::NotDerived { file }),
            Some(_) | None => report.stale.push(file),
        }
    }
    Ok(())
}
