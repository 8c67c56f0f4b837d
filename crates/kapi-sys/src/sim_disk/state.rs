//! The content of a simulated disk: what is visible, what is durable, what lies between.
//!
//! Each change is done to the visible side at once and queued for the durable side, in order.
//! Knows nothing of handles, locks or what a caller is told.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::dice::SeededDice;
use super::names::{DiskNames, FileId, NameNode};
use super::{Mutation, PowerFailure, Survival};
use crate::real_disk::{not_a_file, too_short_to_cut};

/// Everything a simulated disk is.
#[derive(Debug, Default)]
pub(super) struct SimDiskState {
    names: DiskNames,
    files: BTreeMap<FileId, FileContent>,
    n_files: FileId,
    /// An append held back by a mutation.
    delayed: Option<(PathBuf, Vec<u8>)>,
    pub(super) mutation: Option<Mutation>,
    /// Mutating operations begun so far.
    pub(super) ops: u64,
    pub(super) crash_at: Option<(u64, Survival)>,
    pub(super) crashed: Option<Survival>,
}

/// The bytes of one file.
#[derive(Debug, Default)]
struct FileContent {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// What leads from `durable` to `live`.
    pending: Vec<Write>,
}

/// One change of a file's bytes.
#[derive(Debug)]
enum Write {
    Append(Vec<u8>),
    Replace(Vec<u8>),
    Cut(usize),
}

impl Write {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Append(more) => bytes.extend_from_slice(more),
            Self::Replace(new) => bytes.clone_from(new),
            Self::Cut(len) => bytes.truncate(*len),
        }
    }

    /// Does the part of the change that reached the disk: its first bytes.
    fn apply_torn(&self, bytes: &mut Vec<u8>, dice: &mut SeededDice) {
        match self {
            Self::Append(more) => bytes.extend_from_slice(dice.prefix(more)),
            Self::Replace(new) => *bytes = dice.prefix(new).to_vec(),
            // A length changes or does not.
            Self::Cut(_) => {}
        }
    }
}

impl FileContent {
    fn change(&mut self, write: Write) {
        write.apply(&mut self.live);
        self.pending.push(write);
    }

    fn sync(&mut self) {
        for write in self.pending.drain(..) {
            write.apply(&mut self.durable);
        }
        assert!(
            self.durable == self.live,
            "the queue leads from the durable to the live bytes"
        );
    }

    fn lose(&mut self) {
        self.pending.clear();
        self.live.clone_from(&self.durable);
    }

    fn tear(&mut self, dice: &mut SeededDice) {
        let n_kept = dice.up_to(self.pending.len());
        for (n, write) in self.pending.drain(..).enumerate() {
            if n < n_kept {
                write.apply(&mut self.durable);
            } else if n == n_kept {
                write.apply_torn(&mut self.durable, dice);
            }
        }
        self.lose();
    }
}

impl SimDiskState {
    pub(super) fn check_power(&self) -> io::Result<()> {
        if self.crashed.is_some() {
            Err(io::Error::other(PowerFailure))
        } else {
            Ok(())
        }
    }

    /// Counts a mutating operation, or lets the power fail in its place.
    pub(super) fn begin_op(&mut self) -> io::Result<()> {
        self.check_power()?;
        if let Some((op, survival)) = self.crash_at
            && self.ops >= op
        {
            self.fail_power(survival);
            return self.check_power();
        }
        self.ops += 1;
        Ok(())
    }

    pub(super) fn fail_power(&mut self, survival: Survival) {
        self.crash_at = None;
        self.crashed = Some(survival);
    }

    pub(super) fn reboot(&mut self) {
        // What a mutation held back was never written.
        self.delayed = None;
        match self.crashed.take() {
            Some(Survival::Nothing) => {
                self.names.lose();
                self.files.values_mut().for_each(FileContent::lose);
            }
            Some(Survival::TornPrefix(seed)) => {
                let mut dice = SeededDice::new(seed);
                self.names.tear(&mut dice);
                for content in self.files.values_mut() {
                    content.tear(&mut dice);
                }
            }
            Some(Survival::Everything) => {
                self.names.sync_all();
                self.files.values_mut().for_each(FileContent::sync);
            }
            Some(Survival::PageCache) | None => {}
        }
    }

    pub(super) fn provide_dir(&mut self, dir: &Path) {
        self.names.provide_dir(dir);
    }

    pub(super) fn content(&self, path: &Path) -> io::Result<Option<&[u8]>> {
        match self.names.find(path)? {
            None => Ok(None),
            Some(NameNode::Directory) => Err(not_a_file()),
            Some(NameNode::File(id)) => {
                Ok(self.files.get(&id).map(|content| content.live.as_slice()))
            }
        }
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        match self.names.find(dir)? {
            None => Ok(Vec::new()),
            Some(NameNode::Directory) => Ok(self.names.children(dir)),
            Some(NameNode::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn create_dir(&mut self, dir: &Path) -> io::Result<bool> {
        match self.names.find(dir)? {
            Some(NameNode::Directory) => Ok(false),
            Some(NameNode::File(_)) => Err(io::ErrorKind::AlreadyExists.into()),
            None => {
                if let Some(parent) = dir.parent() {
                    self.create_dir(parent)?;
                }
                self.names.create(dir, NameNode::Directory)?;
                Ok(true)
            }
        }
    }

    pub(super) fn write(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.file_or_new(path)?
            .change(Write::Replace(bytes.to_vec()));
        Ok(())
    }

    pub(super) fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Some((earlier_path, earlier)) = self.delayed.take() {
            self.file_or_new(&earlier_path)?
                .change(Write::Append(earlier));
        }
        if let Some(Mutation::DelayAppendMatching(text)) = &self.mutation
            && contains(bytes, text.as_bytes())
        {
            self.delayed = Some((path.to_path_buf(), bytes.to_vec()));
            return Ok(());
        }
        self.file_or_new(path)?
            .change(Write::Append(bytes.to_vec()));
        Ok(())
    }

    pub(super) fn truncate(&mut self, path: &Path, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let is_skipped = self.mutation == Some(Mutation::SkipTruncate);
        let content = self.file(path)?;
        if len > content.live.len() {
            return Err(too_short_to_cut());
        }
        if !is_skipped {
            content.change(Write::Cut(len));
        }
        Ok(())
    }

    pub(super) fn sync(&mut self, path: &Path) -> io::Result<()> {
        match self.names.find(path)? {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(NameNode::Directory) => {
                if self.mutation != Some(Mutation::SkipDirSync) {
                    self.names.sync(path);
                }
                Ok(())
            }
            Some(NameNode::File(_)) => {
                let is_skipped = self.mutation == Some(Mutation::SkipFileSync);
                let content = self.file(path)?;
                if !is_skipped {
                    content.sync();
                }
                Ok(())
            }
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.names.rename(from, to)
    }

    pub(super) fn provide_lock_file(&mut self, path: &Path) -> io::Result<()> {
        self.check_power()?;
        if self.content(path)?.is_some() {
            return Ok(());
        }
        self.begin_op()?;
        if let Some(parent) = path.parent() {
            self.create_dir(parent)?;
        }
        self.file_or_new(path).map(|_| ())
    }

    pub(super) fn live_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.collect(self.names.live_files(), |content| &content.live)
    }

    pub(super) fn durable_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.collect(self.names.durable_files(), |content| &content.durable)
    }

    fn collect(
        &self,
        names: BTreeMap<PathBuf, FileId>,
        side: impl Fn(&FileContent) -> &Vec<u8>,
    ) -> BTreeMap<PathBuf, Vec<u8>> {
        let bytes_of = |id| self.files.get(&id).map(|content| side(content).clone());
        names
            .into_iter()
            .map(|(path, id)| (path, bytes_of(id).unwrap_or_default()))
            .collect()
    }

    fn file(&mut self, path: &Path) -> io::Result<&mut FileContent> {
        match self.names.find(path)? {
            Some(NameNode::File(id)) => Ok(self.files.entry(id).or_default()),
            Some(NameNode::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn file_or_new(&mut self, path: &Path) -> io::Result<&mut FileContent> {
        if self.names.find(path)?.is_none() {
            self.names.create(path, NameNode::File(self.n_files))?;
            self.n_files += 1;
        }
        self.file(path)
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}
