//! A full check of a project's kernel: its log, line by line, wherever it is kept.
//!
//! Reads everything and records nothing.

use std::path::PathBuf;

use kapi_fleet::error::FleetError;
use kapi_fleet::log::NetLog;
use kapi_goal::record::project::Project;
use kapi_machine::audit::{StreamAudit, StreamFault};
use kapi_machine::evidence::RecordedRuns;
use kapi_machine::logged::{EventRecord, to_logged};
use kapi_machine::machine::Machine;
use kapi_store::audit::audit;
use kapi_store::record::LogRecord;

use super::store::{KernelStore, STREAM};
use crate::record::error::KernelError;
use crate::record::log::files::stream;
use crate::record::queue::TaskMachine;
use crate::rules::event::KernelEvent;
use crate::rules::state::KernelState;

/// Returns the directory of an attempt's runs by the name of its sandbox; `None` where nobody
/// expects them: a person had them removed, or another machine has them.
pub type RunsOf<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

/// Checks the kernel of a project; `None` where there is none.
///
/// # Errors
/// When the disk refuses, or the cluster does not answer.
pub fn audit_kernel(
    project: &Project<'_>,
    store: &KernelStore,
    runs_of: &RunsOf<'_>,
) -> Result<Option<StreamAudit>, KernelError> {
    match store {
        KernelStore::Files => audit_files(project, runs_of),
        KernelStore::Fleet {
            settings,
            project: shared,
        } => {
            let log = NetLog::open(settings.clone(), shared, STREAM)?;
            audit_fleet(project, &log, runs_of).map(Some)
        }
    }
}

fn audit_files(
    project: &Project<'_>,
    runs_of: &RunsOf<'_>,
) -> Result<Option<StreamAudit>, KernelError> {
    let stream = stream(project);
    let file = stream.log();
    if project.disk.len(&file)?.is_none() {
        return Ok(None);
    }
    let mut found = audit(&stream)?;
    let mut report = StreamAudit::of(file, &mut found);
    let runs = read_records(&found.records, runs_of, &mut report);
    if report.is_whole() {
        let replayed = report.replay::<UnendedTasks>(&found, |_, _| {});
        report.check_fold(stream.state(), &found, &replayed);
    }
    report.check_evidence(project.disk, runs)?;
    Ok(Some(report))
}

/// Reads every batch anew: each must chain to the one before, and nothing that the fold knows may
/// be missing.
fn audit_fleet(
    project: &Project<'_>,
    log: &NetLog,
    runs_of: &RunsOf<'_>,
) -> Result<StreamAudit, KernelError> {
    let file = PathBuf::from(log.name());
    let (records, mut broken) = match log.load_all() {
        Ok(loaded) => (loaded.records, None),
        Err(error @ (FleetError::Corrupt { .. } | FleetError::Missing { .. })) => {
            (Vec::new(), Some(error))
        }
        Err(error) => return Err(error.into()),
    };
    let n_records = u64::try_from(records.len()).unwrap_or(u64::MAX);
    // What somebody records meanwhile only adds to both.
    if broken.is_none()
        && log.saved_seq()? > n_records
        && log.load_all()?.records.len() == records.len()
    {
        broken = Some(FleetError::Missing {
            stream: log.name(),
            message: n_records.saturating_add(1),
        });
    }
    let mut report = StreamAudit {
        file,
        records: n_records,
        torn_bytes: 0,
        faults: broken.into_iter().map(StreamFault::Fleet).collect(),
        stale: Vec::new(),
    };
    let runs = read_records(&records, runs_of, &mut report);
    report.check_evidence(project.disk, runs)?;
    Ok(report)
}

/// Looks whether every record is understood, and returns the runs of attempts that they name.
fn read_records(
    records: &[LogRecord],
    runs_of: &RunsOf<'_>,
    report: &mut StreamAudit,
) -> RecordedRuns {
    let mut runs = RecordedRuns::default();
    let mut is_understood = true;
    for record in records {
        match to_logged(record).map(|logged| logged.event) {
            Ok(KernelEvent::RunRecorded { run, files, .. }) => {
                if let Some(dir) = runs_of(&run) {
                    runs.record(dir, &files);
                }
            }
            Ok(_) => {}
            Err(source) if is_understood => {
                is_understood = false;
                report.add_unknown(record.seq, source);
            }
            Err(_) => {}
        }
    }
    runs
}

/// The fold as it is saved: tasks that have ended are in the history by then. Kept until the end of
/// a long log they would fill the memory.
struct UnendedTasks;

impl Machine for UnendedTasks {
    type State = KernelState;
    type Event = KernelEvent;
    const EVENT: &'static str = TaskMachine::EVENT;
    const STATE: &'static str = TaskMachine::STATE;

    fn evolve(kernel: &mut KernelState, logged: &EventRecord<KernelEvent>) {
        TaskMachine::evolve(kernel, logged);
        kernel.take_ended();
    }
}
