//! The tasks that have ended, a thousand to a segment: a file, or a subject of a cluster.
//!
//! Made from the log and made again from it when missing. A task may stand in its file twice,
//! after a crash; the last line is the one that counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_fleet::past::FleetHistory;
use kapi_sys::disk::Disk;
use serde::Deserialize;

use crate::record::error::KernelError;
use crate::rules::task::KernelTask;

/// Tasks whose numbers share a file.
const SEGMENT_TASKS: u64 = 1_000;

/// The history of one project's kernel.
#[derive(Clone)]
pub struct KernelHistory<'a>(Shelf<'a>);

#[derive(Clone)]
enum Shelf<'a> {
    Files(HistoryFiles<'a>),
    Afar(FleetHistory),
}

#[derive(Clone)]
struct HistoryFiles<'a> {
    disk: &'a dyn Disk,
    dir: PathBuf,
}

impl<'a> KernelHistory<'a> {
    pub(super) const fn in_files(disk: &'a dyn Disk, dir: PathBuf) -> Self {
        Self(Shelf::Files(HistoryFiles { disk, dir }))
    }

    pub(super) const fn afar(past: FleetHistory) -> Self {
        Self(Shelf::Afar(past))
    }

    /// Writes tasks that have ended, durably.
    pub(super) fn add(&self, tasks: &[KernelTask]) -> Result<(), KernelError> {
        let mut segments: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
        for task in tasks {
            let mut line = serde_json::to_vec(task).map_err(|source| KernelError::Encode {
                what: "a task",
                source,
            })?;
            line.push(b'\n');
            segments.entry(segment_of(task.id)).or_default().push(line);
        }
        match &self.0 {
            Shelf::Files(files) => files.add(&segments),
            Shelf::Afar(past) => {
                for (&segment, lines) in &segments {
                    past.add(segment, lines)?;
                }
                Ok(())
            }
        }
    }

    /// Returns a task that has ended.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn find(&self, id: KernelTaskId) -> Result<Option<KernelTask>, KernelError> {
        let only = BTreeSet::from([id]);
        Ok(self.read(segment_of(id), Some(&only))?.remove(&id))
    }

    /// Shows each of these tasks that has ended; each file is read once.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn visit(
        &self,
        ids: &BTreeSet<KernelTaskId>,
        take: &mut dyn FnMut(&KernelTask),
    ) -> Result<(), KernelError> {
        let segments: BTreeSet<u64> = ids.iter().map(|id| segment_of(*id)).collect();
        for segment in segments {
            let tasks = self.read(segment, Some(ids))?;
            tasks.values().for_each(&mut *take);
        }
        Ok(())
    }

    /// Returns the last `n_max` tasks that are wanted, the newest first.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn last(
        &self,
        n_max: usize,
        loop_name: Option<&LoopName>,
    ) -> Result<Vec<KernelTask>, KernelError> {
        let mut found = Vec::new();
        for segment in self.segments()?.into_iter().rev() {
            let tasks = self.read(segment, None)?.into_values().rev();
            let wanted = tasks.filter(|task| {
                loop_name.is_none_or(|name| task.loop_run().is_some_and(|run| run.name() == name))
            });
            found.extend(wanted.take(n_max - found.len()));
            if found.len() >= n_max {
                break;
            }
        }
        Ok(found)
    }

    fn segments(&self) -> Result<Vec<u64>, KernelError> {
        match &self.0 {
            Shelf::Files(files) => files.segments(),
            Shelf::Afar(past) => Ok(past.segments()?),
        }
    }

    /// Reads the tasks of a segment, or only some of them: the others are not held in memory, as a
    /// supervisor looks up one task after the other.
    fn read(
        &self,
        segment: u64,
        only: Option<&BTreeSet<KernelTaskId>>,
    ) -> Result<BTreeMap<KernelTaskId, KernelTask>, KernelError> {
        let (file, bytes) = match &self.0 {
            Shelf::Files(files) => files.read(segment)?,
            Shelf::Afar(past) => (past.name(segment).into(), past.read(segment)?),
        };
        let is_whole = bytes.last() == Some(&b'\n');
        let lines: Vec<&[u8]> = bytes
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .collect();
        let mut tasks = BTreeMap::new();
        for (at, line) in lines.iter().enumerate() {
            match parse(line, only) {
                Ok(Some(task)) => drop(tasks.insert(task.id, task)),
                Ok(None) => {}
                // What a power cut left of a line stands again in the fold.
                Err(error) if error.is_eof() => {}
                Err(_) if at + 1 == lines.len() && !is_whole => {}
                Err(source) => {
                    let line = at + 1;
                    return Err(KernelError::BadHistory { file, line, source });
                }
            }
        }
        Ok(tasks)
    }
}

impl HistoryFiles<'_> {
    fn add(&self, segments: &BTreeMap<u64, Vec<Vec<u8>>>) -> Result<(), KernelError> {
        if segments.is_empty() {
            return Ok(());
        }
        let is_new = self.disk.create_dir(&self.dir)?;
        for (segment, lines) in segments {
            let file = self.file(*segment);
            self.append(&file, &lines.concat())?;
            self.disk.sync(&file)?;
        }
        self.disk.sync(&self.dir)?;
        if is_new && let Some(above) = self.dir.parent() {
            self.disk.sync(above)?;
        }
        Ok(())
    }

    /// A power cut may have left half a line: it is ended, so that it spoils no other.
    fn append(&self, file: &Path, bytes: &[u8]) -> Result<(), KernelError> {
        let length = self.disk.len(file)?.unwrap_or(0);
        if length > 0 {
            let last = self.disk.read(file, length - 1)?.unwrap_or_default();
            if last != b"\n" {
                self.disk.append(file, b"\n")?;
            }
        }
        Ok(self.disk.append(file, bytes)?)
    }

    fn segments(&self) -> Result<Vec<u64>, KernelError> {
        let names = self.disk.list(&self.dir)?;
        let numbers = names
            .iter()
            .filter_map(|name| name.strip_suffix(".jsonl")?.parse().ok());
        Ok(numbers.collect())
    }

    fn read(&self, segment: u64) -> Result<(PathBuf, Vec<u8>), KernelError> {
        let file = self.file(segment);
        let bytes = self.disk.read(&file, 0)?.unwrap_or_default();
        Ok((file, bytes))
    }

    fn file(&self, segment: u64) -> PathBuf {
        self.dir.join(format!("{segment:06}.jsonl"))
    }
}

/// Reads a task, unless it is none of those that are wanted.
fn parse(
    line: &[u8],
    only: Option<&BTreeSet<KernelTaskId>>,
) -> Result<Option<KernelTask>, serde_json::Error> {
    /// The one field that tells tasks apart.
    #[derive(Deserialize)]
    struct IdOfTask {
        id: KernelTaskId,
    }
    if let Some(only) = only {
        let IdOfTask { id } = serde_json::from_slice(line)?;
        if !only.contains(&id) {
            return Ok(None);
        }
    }
    serde_json::from_slice(line).map(Some)
}

const fn segment_of(id: KernelTaskId) -> u64 {
    id.number() / SEGMENT_TASKS
}
