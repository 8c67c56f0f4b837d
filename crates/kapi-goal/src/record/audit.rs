//! A full check of one goal: its log, and the files that follow from it.
//!
//! Reads everything and changes nothing.

use kapi_core::id::GoalId;
use kapi_machine::audit::{StreamAudit, StreamFault};
use kapi_machine::evidence::RecordedRuns;
use kapi_store::audit::audit;

use crate::record::error::EngineError;
use crate::record::opened::GoalMachine;
use crate::record::project::Project;
use crate::record::snapshot::GoalSnapshot;
use crate::rules::event::GoalEvent;

/// Checks a goal.
///
/// # Errors
/// When the disk refuses, or there is no such goal.
pub fn audit_goal(project: &Project<'_>, id: &GoalId) -> Result<StreamAudit, EngineError> {
    let stream = project.stream(id);
    let layout = project.layout.goal(id);
    let mut found = audit(&stream)?;
    if found.records.is_empty() && found.faults.is_empty() {
        return Err(EngineError::NotFound { goal: id.clone() });
    }
    let mut report = StreamAudit::of(stream.log(), &mut found);
    let mut runs = RecordedRuns::default();
    let replayed = report.replay::<GoalMachine>(&found, |_, logged| {
        if let GoalEvent::RunRecorded { effect, files } = &logged.event {
            runs.record(project.layout.run(&format!("{id}-{effect}")), files);
        }
    });
    let goal = replayed.end.as_ref().filter(|_| report.is_whole());
    let Some(goal) = goal else {
        return Ok(report);
    };
    if goal.id != *id {
        report.faults.push(StreamFault::OtherGoal {
            file: stream.log(),
            found: goal.id.clone(),
        });
        return Ok(report);
    }
    report.check_fold(layout.state(), &found, &replayed);
    report.check_saved_to_the_end(layout.state(), &found);
    let snapshot = GoalSnapshot::of(goal, report.records);
    let seq_of = |snapshot: &GoalSnapshot| snapshot.seq;
    report.check_snapshot(project.disk, layout.snapshot(), &snapshot, seq_of)?;
    if let Some(in_flight) = &goal.in_flight {
        // Whoever performs it again adds to its files.
        runs.forget(&project.layout.run(&goal.run_name(&in_flight.effect)));
    }
    report.check_evidence(project.disk, runs)?;
    Ok(report)
}
