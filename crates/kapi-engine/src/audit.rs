//! A full check of one goal: its log, and the files that follow from it.
//!
//! Reads everything and changes nothing.

use std::path::PathBuf;

use kapi_core::goal::event::Event;
use kapi_core::goal::evolve::evolve;
use kapi_core::goal::state::Goal;
use kapi_core::id::GoalId;
use kapi_store::audit::{AuditFault, audit};

use crate::error::EngineError;
use crate::evidence::{EvidenceFault, RecordedRuns, check_runs};
use crate::machine::logged::to_logged;
use crate::project::Project;
use crate::snapshot::Snapshot;

/// What an audit of a goal found.
#[derive(Debug)]
pub struct GoalAudit {
    /// The log.
    pub file: PathBuf,
    /// How many of its records are sound, counted up to the first fault.
    pub records: u64,
    /// Bytes at its end that somebody did not finish writing. No fault: the next append cuts
    /// them off.
    pub torn_bytes: u64,
    /// Everything that is wrong.
    pub faults: Vec<GoalFault>,
    /// Derived files that are behind the log or missing. No fault: the next drive writes them.
    pub stale: Vec<PathBuf>,
}

/// One thing that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum GoalFault {
    /// A line of the log.
    #[error(transparent)]
    Log(#[from] AuditFault),
    /// A sound line that this program does not understand.
    #[error("understand {} at line {line}", file.display())]
    UnknownEvent {
        /// The log.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The log names another goal.
    #[error("trust {}: it is the log of goal {found}", file.display())]
    OtherGoal {
        /// The log.
        file: PathBuf,
        /// The goal it names.
        found: GoalId,
    },
    /// A file of a run is not what the log remembers.
    #[error("trust {}", file.display())]
    Evidence {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        fault: EvidenceFault,
    },
    /// A derived file says something else than the log does at the same place.
    #[error("trust {}: it does not follow from the log", file.display())]
    NotDerived {
        /// The derived file.
        file: PathBuf,
    },
}

impl GoalAudit {
    /// Compares the files of runs with what the log remembers of them.
    pub(crate) fn check_evidence(
        &mut self,
        project: &Project<'_>,
        runs: RecordedRuns,
    ) -> Result<(), EngineError> {
        let found = check_runs(project.disk, &runs.into_runs())?.into_iter();
        let faults = found.map(|(file, fault)| GoalFault::Evidence { file, fault });
        self.faults.extend(faults);
        Ok(())
    }
}

/// Checks a goal.
///
/// # Errors
/// When the disk refuses, or there is no such goal.
pub fn audit_goal(project: &Project<'_>, id: &GoalId) -> Result<GoalAudit, EngineError> {
    let stream = project.stream(id);
    let layout = project.layout.goal(id);
    let found = audit(&stream)?;
    if found.records.is_empty() && found.faults.is_empty() {
        return Err(EngineError::NotFound { goal: id.clone() });
    }
    let mut report = GoalAudit {
        file: stream.log(),
        records: u64::try_from(found.records.len()).unwrap_or(u64::MAX),
        torn_bytes: found.torn_bytes,
        faults: found.faults.into_iter().map(GoalFault::Log).collect(),
        stale: Vec::new(),
    };
    let saved_seq = found.saved.as_ref().map(|saved| saved.position.seq);
    let mut state = None;
    let mut state_at_saved = None;
    let mut runs = RecordedRuns::default();
    for record in &found.records {
        match to_logged(record) {
            Ok(logged) => {
                if let Event::RunRecorded { effect, files } = &logged.event {
                    runs.record(project.layout.run(&format!("{id}-{effect}")), files);
                }
                evolve(&mut state, &logged.event);
            }
            Err(source) => {
                let (file, line) = (stream.log(), record.seq);
                report
                    .faults
                    .push(GoalFault::UnknownEvent { file, line, source });
                return Ok(report);
            }
        }
        if saved_seq == Some(record.seq) {
            state_at_saved.clone_from(&state);
        }
    }
    let Some(goal) = state.filter(|_| report.faults.is_empty()) else {
        return Ok(report);
    };
    if goal.id != *id {
        report.faults.push(GoalFault::OtherGoal {
            file: stream.log(),
            found: goal.id,
        });
        return Ok(report);
    }
    match found.saved {
        Some(saved) => {
            let saved_state: Option<Goal> = serde_json::from_str(saved.state.get()).ok();
            if saved_state.is_some() && saved_state != state_at_saved {
                report.faults.push(GoalFault::NotDerived {
                    file: layout.state(),
                });
            }
            if saved.position.seq != report.records {
                report.stale.push(layout.state());
            }
        }
        None => report.stale.push(layout.state()),
    }
    check_snapshot(project, &goal, &mut report)?;
    if let Some(in_flight) = &goal.in_flight {
        // Whoever performs it again adds to its files.
        runs.forget(&project.layout.run(&goal.run_name(&in_flight.effect)));
    }
    report.check_evidence(project, runs)?;
    Ok(report)
}

fn check_snapshot(
    project: &Project<'_>,
    goal: &Goal,
    report: &mut GoalAudit,
) -> Result<(), EngineError> {
    let file = project.layout.goal(&goal.id).snapshot();
    let bytes = project.disk.read(&file, 0)?.unwrap_or_default();
    let snapshot: Option<Snapshot> = serde_json::from_slice(&bytes).ok();
    match snapshot {
        Some(snapshot) if snapshot.seq == report.records => {
            if snapshot != Snapshot::of(goal, report.records) {
                report.faults.push(GoalFault::NotDerived { file });
            }
        }
        Some(_) | None => report.stale.push(file),
    }
    Ok(())
}
