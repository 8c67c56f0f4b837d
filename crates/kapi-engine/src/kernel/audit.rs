//! A full check of a project's kernel: its log, line by line.
//!
//! Reads everything and changes nothing.

use std::path::PathBuf;

use kapi_core::kernel::event::KernelEvent;
use kapi_store::audit::{AuditFault, audit};

use crate::kernel::error::KernelError;
use crate::kernel::log::files::stream;
use crate::project::Project;
use crate::tagged;

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
    /// The first sound line that this program does not understand, and why.
    pub unknown: Option<KernelError>,
}

/// Checks the kernel of a project; `None` where there is none.
///
/// # Errors
/// When the disk refuses.
pub fn audit_kernel(project: &Project<'_>) -> Result<Option<KernelAudit>, KernelError> {
    let stream = stream(project);
    let file = stream.log();
    if project.disk.len(&file)?.is_none() {
        return Ok(None);
    }
    let found = audit(&stream)?;
    let unknown = found.records.iter().find_map(|record| {
        let read = tagged::from_record::<KernelEvent>(record);
        read.err().map(|source| KernelError::UnknownEvent {
            file: file.clone(),
            line: record.seq,
            source,
        })
    });
    Ok(Some(KernelAudit {
        records: u64::try_from(found.records.len()).unwrap_or(u64::MAX),
        torn_bytes: found.torn_bytes,
        faults: found.faults,
        unknown,
        file,
    }))
}
