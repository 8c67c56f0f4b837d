//! A kernel's log in the project's directory: one lock, one file, one fold beside it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_core::kernel::id::Holder;
use kapi_store::codec::Position;
use kapi_store::record::Batch;
use kapi_store::stream::{Cursor, Stream};
use kapi_sys::lock::Lock;
use serde_json::value::RawValue;

use crate::kernel::error::KernelError;
use crate::kernel::history::History;
use crate::kernel::log::{Appended, Loaded, Understand};
use crate::machine::file_log::LOCK_WAIT_MS;
use crate::places::{PlaceError, Places};
use crate::project::Project;

/// What a worker's holder begins with; its place's number follows.
const HOLDER: &str = "worker ";

/// The log, and how far it was read; `None` before it is loaded.
pub(in crate::kernel) struct Files<'a> {
    stream: Stream<'a>,
    cursor: Option<Cursor>,
}

/// Returns the stream of a project's kernel.
pub(in crate::kernel) fn stream<'a>(project: &'a Project<'a>) -> Stream<'a> {
    Stream {
        disk: project.disk,
        name: "kernel".to_owned(),
        dir: project.layout.kernel_dir(),
        anchor: project.layout.root().to_path_buf(),
    }
}

impl<'a> Files<'a> {
    pub(super) fn of(project: &'a Project<'a>) -> Self {
        Self {
            stream: stream(project),
            cursor: None,
        }
    }

    pub(super) fn load(&mut self) -> Result<Loaded, KernelError> {
        let loaded = self.stream.load()?;
        self.cursor = Some(loaded.cursor);
        Ok(Loaded {
            state: loaded.state,
            records: loaded.records,
        })
    }

    pub(super) fn load_all(&mut self) -> Result<Loaded, KernelError> {
        let loaded = self.stream.load_all()?;
        self.cursor = Some(loaded.cursor);
        Ok(Loaded {
            state: None,
            records: loaded.records,
        })
    }

    pub(super) fn refresh<T>(&mut self, understand: Understand<'_, T>) -> Result<T, KernelError> {
        let Some(cursor) = &self.cursor else {
            let loaded = self.stream.load_all()?;
            let understood = understand(&loaded.records)?;
            self.cursor = Some(loaded.cursor);
            return Ok(understood);
        };
        if !self.stream.has_changed(cursor)? {
            return understand(&[]);
        }
        let mut cursor = cursor.clone();
        let records = self.stream.read_more(&mut cursor)?;
        let understood = understand(&records)?;
        self.cursor = Some(cursor);
        Ok(understood)
    }

    pub(super) fn lock(&self, owner: &str) -> Result<Lock, KernelError> {
        Ok(self.stream.lock(owner, LOCK_WAIT_MS)?)
    }

    pub(super) fn settle(&mut self, lock: &Lock) -> Result<(), KernelError> {
        if let Some(cursor) = &mut self.cursor {
            self.stream.settle(lock, cursor)?;
        }
        Ok(())
    }

    pub(super) fn append(
        &mut self,
        lock: &Lock,
        batch: &Batch<'_>,
    ) -> Result<Appended, KernelError> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(Appended::Conflict);
        };
        let records = self.stream.append(lock, cursor, batch)?;
        Ok(Appended::Accepted(records))
    }

    pub(super) fn save(&self, lock: &Lock, state: Box<RawValue>) -> Result<(), KernelError> {
        if let Some(cursor) = &self.cursor {
            self.stream.save(lock, cursor, state)?;
        }
        Ok(())
    }

    pub(super) fn saved_seq(&self) -> Result<u64, KernelError> {
        Ok(self.stream.saved_seq()?)
    }

    pub(super) fn fold_bytes(&self) -> Result<u64, KernelError> {
        let length = self.stream.disk.len(&self.stream.state())?;
        Ok(length.unwrap_or(0))
    }

    pub(super) const fn length(&self) -> u64 {
        match &self.cursor {
            Some(Cursor {
                position: Position { offset, .. },
                ..
            }) => *offset,
            None => 0,
        }
    }

    pub(super) fn history(&self) -> History<'a> {
        History::in_files(self.stream.disk, self.stream.dir.join("history"))
    }

    pub(super) fn places(&self, owner: &str) -> Places<'a> {
        Places {
            disk: self.stream.disk,
            dir: self.stream.dir.join("workers"),
            owner: owner.to_owned(),
        }
    }

    /// Returns those of the holders whose place nobody holds.
    pub(super) fn gone<'b>(
        &self,
        own: u32,
        owner: &str,
        holders: impl Iterator<Item = &'b Holder>,
    ) -> Result<BTreeSet<Holder>, KernelError> {
        let numbers: BTreeSet<u32> = holders
            .filter_map(|holder| holder.0.strip_prefix(HOLDER)?.parse().ok())
            .collect();
        let living = self.places(owner).living(own, &numbers);
        let living = living.map_err(PlaceError::from)?;
        Ok(numbers
            .difference(&living)
            .copied()
            .map(holder_of)
            .collect())
    }

    pub(super) fn name(&self) -> PathBuf {
        self.stream.log()
    }
}

/// Returns the name by which the worker of a place holds leases.
pub(super) fn holder_of(number: u32) -> Holder {
    Holder(format!("{HOLDER}{number}"))
}
