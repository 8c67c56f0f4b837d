//! A full check of a project's kernel: its log, line by line, wherever it is kept.
//!
//! Reads everything and records nothing.

use std::path::{Path, PathBuf};

use kapi_core::kernel::event::KernelEvent;
use kapi_fleet::error::FleetError;
use kapi_fleet::log::NetLog;
use kapi_store::audit::{AuditFault, audit};
use kapi_store::record::Record;

use crate::evidence::{EvidenceFault, RecordedRuns, check_runs};
use crate::kernel::error::KernelError;
use crate::kernel::log::files::stream;
use crate::kernel::log::{STREAM, Store};
use crate::machine::logged::{Logged, to_logged};
use crate::project::Project;

/// What an audit of a kernel found.
#[derive(Debug)]
pub struct KernelAudit {
    /// The log.
    pub file: PathBuf,
    /// How many of its records are sound, counted up to the first fault.
    pub records: u64,
    /// Bytes at its end that somebody did not finish writing; the next append cuts them off.
    pub torn_bytes: u64,
    /// Everything that is wrong with its lines.
    pub faults: Vec<AuditFault>,
    /// Why the log on a cluster is not the one that was accepted.
    pub broken: Option<FleetError>,
    /// Files of attempts that are not what the log remembers.
    pub evidence: Vec<(PathBuf, EvidenceFault)>,
    /// The first sound line that this program does not understand, and why.
    pub unknown: Option<KernelError>,
}

/// Returns the directory of an attempt's runs by the name of its sandbox; `None` where nobody
/// expects them: a person had them removed, or another machine has them.
pub type RunsOf<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

/// Checks the kernel of a project; `None` where there is none.
///
/// # Errors
/// When the disk refuses, or the cluster does not answer.
pub fn audit_kernel(
    project: &Project<'_>,
    store: &Store,
    runs_of: &RunsOf<'_>,
) -> Result<Option<KernelAudit>, KernelError> {
    match store {
        Store::Files => audit_files(project, runs_of),
        Store::Fleet {
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
) -> Result<Option<KernelAudit>, KernelError> {
    let stream = stream(project);
    let file = stream.log();
    if project.disk.len(&file)?.is_none() {
        return Ok(None);
    }
    let found = audit(&stream)?;
    Ok(Some(KernelAudit {
        records: u64::try_from(found.records.len()).unwrap_or(u64::MAX),
        torn_bytes: found.torn_bytes,
        faults: found.faults,
        broken: None,
        evidence: evidence(project, &found.records, runs_of)?,
        unknown: unknown(&file, &found.records),
        file,
    }))
}

/// Reads every batch anew: each must chain to the one before, and nothing that the fold knows may
/// be missing.
fn audit_fleet(
    project: &Project<'_>,
    log: &NetLog,
    runs_of: &RunsOf<'_>,
) -> Result<KernelAudit, KernelError> {
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
    Ok(KernelAudit {
        records: n_records,
        torn_bytes: 0,
        faults: Vec::new(),
        broken,
        evidence: evidence(project, &records, runs_of)?,
        unknown: unknown(&file, &records),
        file,
    })
}

fn evidence(
    project: &Project<'_>,
    records: &[Record],
    runs_of: &RunsOf<'_>,
) -> Result<Vec<(PathBuf, EvidenceFault)>, KernelError> {
    let mut runs = RecordedRuns::default();
    for record in records {
        let Ok(Logged {
            event: KernelEvent::RunRecorded { run, files, .. },
            ..
        }) = to_logged(record)
        else {
            continue;
        };
        if let Some(dir) = runs_of(&run) {
            runs.record(dir, &files);
        }
    }
    Ok(check_runs(project.disk, &runs.into_runs())?)
}

fn unknown(file: &Path, records: &[Record]) -> Option<KernelError> {
    records.iter().find_map(|record| {
        let read = to_logged::<KernelEvent>(record);
        read.err().map(|source| KernelError::UnknownEvent {
            file: file.to_path_buf(),
            line: record.seq,
            source,
        })
    })
}
