//! A kernel's log in the project's directory: one lock, one file, one fold beside it.

use std::collections::BTreeSet;

use kapi_core::task_id::Holder;
use kapi_goal::record::project::Project;
use kapi_machine::file_log::FileLog;
use kapi_machine::slots::{SlotDirectory, SlotError};
use kapi_store::stream::LogStream;

use crate::record::error::KernelError;
use crate::record::history::KernelHistory;

/// What a worker's holder begins with; its place's number follows.
const HOLDER: &str = "worker ";

/// Returns the stream of a project's kernel.
pub(in crate::record) fn stream<'a>(project: &'a Project<'a>) -> LogStream<'a> {
    LogStream {
        disk: project.disk,
        name: "kernel".to_owned(),
        dir: project.layout.kernel_dir(),
        anchor: project.layout.root().to_path_buf(),
    }
}

pub(super) fn history<'a>(log: &FileLog<'a>) -> KernelHistory<'a> {
    let stream = log.stream();
    KernelHistory::in_files(stream.disk, stream.dir.join("history"))
}

/// Returns how long the fold on disk is.
pub(super) fn fold_bytes(log: &FileLog<'_>) -> Result<u64, KernelError> {
    let stream = log.stream();
    Ok(stream.disk.len(&stream.state())?.unwrap_or(0))
}

pub(super) fn locations<'a>(log: &FileLog<'a>, owner: &str) -> SlotDirectory<'a> {
    let stream = log.stream();
    SlotDirectory {
        disk: stream.disk,
        dir: stream.dir.join("workers"),
        owner: owner.to_owned(),
    }
}

/// Returns those of the holders whose place nobody of these places holds.
pub(super) fn gone<'b>(
    locations: &SlotDirectory<'_>,
    own: u32,
    holders: impl Iterator<Item = &'b Holder>,
) -> Result<BTreeSet<Holder>, KernelError> {
    let numbers: BTreeSet<u32> = holders
        .filter_map(|holder| holder.0.strip_prefix(HOLDER)?.parse().ok())
        .collect();
    let living = locations.living(own, &numbers);
    let living = living.map_err(SlotError::from)?;
    Ok(numbers
        .difference(&living)
        .copied()
        .map(holder_of)
        .collect())
}

/// Returns the name by which the worker of a place holds leases.
pub(super) fn holder_of(number: u32) -> Holder {
    Holder(format!("{HOLDER}{number}"))
}
