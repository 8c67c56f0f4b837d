//! Reading both sides, and merging texts with git.
//!
//! What an agent may have written is opened below its directory and as a plain file only; texts
//! are merged by `git merge-file`, which sees three files of ours. Decides nothing about paths.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;

use super::beneath::OpenTree;
use super::{ApplyError, ApplyRefusal, ByteSource, FILE_BYTES_MAX};
use crate::command::{Git, GitError};
use crate::owned_dir::{self, failed};
use crate::repository::Repository;

/// The longest text that is merged.
const TEXT_BYTES_MAX: u64 = 8 << 20;

/// How much is compared at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The exit code from which on `git merge-file` failed; below, it is the number of conflicts.
const MERGE_FAILED: i32 = 128;

/// Reads sources.
#[derive(Debug)]
pub(super) struct ContentReader<'a> {
    pub(super) git: &'a Git,
    pub(super) repository: Option<&'a Repository>,
    pub(super) work: PathBuf,
}

/// Bytes that can be read once.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) len: u64,
    bytes: ContentBytes,
}

#[derive(Debug)]
enum ContentBytes {
    File(File),
    Memory(io::Cursor<Vec<u8>>),
}

/// Two texts brought together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergedText {
    pub(super) text: Vec<u8>,
    /// In how many places both changed; these are marked.
    pub(super) n_locations: u32,
}

impl Read for Content {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.bytes {
            ContentBytes::File(file) => file.read(buf),
            ContentBytes::Memory(bytes) => bytes.read(buf),
        }
    }
}

impl Content {
    pub(super) fn of_file(file: File, len: u64) -> Self {
        Self {
            len,
            bytes: ContentBytes::File(file),
        }
    }

    /// Returns the whole as a text; `None` when it is too long or none.
    fn text(self) -> io::Result<Option<Vec<u8>>> {
        if self.len > TEXT_BYTES_MAX {
            return Ok(None);
        }
        let mut text = Vec::new();
        self.take(TEXT_BYTES_MAX + 1).read_to_end(&mut text)?;
        let is_text = !text.contains(&0) && text.len() as u64 <= TEXT_BYTES_MAX;
        Ok(is_text.then_some(text))
    }
}

impl ContentReader<'_> {
    /// Opens a source, or tells why it is not taken.
    pub(super) fn open(
        &self,
        source: &ByteSource,
    ) -> Result<Result<Content, ApplyRefusal>, ApplyError> {
        let content = match source {
            ByteSource::File { root, path } => match OpenTree::open(root)?.file(path)? {
                Some((file, stat)) => {
                    Content::of_file(file, u64::try_from(stat.st_size).unwrap_or_default())
                }
                None => return Ok(Err(ApplyRefusal::NoFile)),
            },
            ByteSource::Blob { id } => match self.blob(id.as_ref())? {
                Some(content) => content,
                None => return Ok(Err(ApplyRefusal::NoFile)),
            },
            ByteSource::InCommit { commit, path } => {
                let mut name = OsString::from(format!("{commit}:"));
                name.push(path);
                match self.blob(&name)? {
                    Some(content) => content,
                    None => return Ok(Err(ApplyRefusal::NoFile)),
                }
            }
        };
        if content.len > FILE_BYTES_MAX {
            return Ok(Err(ApplyRefusal::TooLarge));
        }
        Ok(Ok(content))
    }

    /// Reads what git knows by this name; `None` when it is no blob.
    fn blob(&self, name: &OsStr) -> Result<Option<Content>, ApplyError> {
        let no_repository = || ApplyError::NoRepository {
            source_name: name.to_string_lossy().into_owned(),
        };
        let repository = self.repository.ok_or_else(no_repository)?;
        let exit = repository.call("cat-file").arg("blob").arg(name).exit()?;
        Ok((exit.code == 0).then(|| Content {
            len: exit.stdout.len() as u64,
            bytes: ContentBytes::Memory(io::Cursor::new(exit.stdout)),
        }))
    }

    /// Tells whether a source has exactly these bytes.
    pub(super) fn is_same(&self, source: &ByteSource, here: Content) -> Result<bool, ApplyError> {
        let Ok(there) = self.open(source)? else {
            return Ok(false);
        };
        if there.len != here.len {
            return Ok(false);
        }
        Ok(are_equal(here, there).map_err(failed("compare", &self.work))?)
    }

    /// Merges what changed since `ancestor`; `None` when one of the three is no text.
    pub(super) fn merge(
        &self,
        here: Content,
        ancestor: &ByteSource,
        there: &ByteSource,
    ) -> Result<Option<MergedText>, ApplyError> {
        let (Ok(ancestor), Ok(there)) = (self.open(ancestor)?, self.open(there)?) else {
            return Ok(None);
        };
        let names = ["merge-host", "merge-before", "merge-sandbox"];
        for (name, content) in names.iter().zip([here, ancestor, there]) {
            let path = self.work.join(name);
            let Some(text) = content.text().map_err(failed("read", &path))? else {
                return Ok(None);
            };
            owned_dir::write(&path, &text)?;
        }
        let call = self
            .git
            .call(&self.work, "merge-file")
            // Three files are all it is to see, whatever repository the directory may be in.
            .env("GIT_CEILING_DIRECTORIES", &self.work)
            .env("GIT_DIR", self.work.join("none"))
            .args(["-p", "-q", "-L", "host", "-L", "before", "-L", "sandbox"])
            .args(names);
        let exit = call.exit()?;
        for name in names {
            owned_dir::wipe(&self.work.join(name))?;
        }
        if !(0..MERGE_FAILED).contains(&exit.code) {
            return Err(ApplyError::Git(GitError::Exit {
                subcommand: "merge-file".to_owned(),
                code: exit.code,
                stderr: exit.stderr,
            }));
        }
        Ok(Some(MergedText {
            text: exit.stdout,
            n_locations: u32::try_from(exit.code).unwrap_or_default(),
        }))
    }
}

/// Copies a source to its end, but never more than is taken.
pub(super) fn copy(from: Content, to: &mut File) -> io::Result<()> {
    let n_bytes = io::copy(&mut from.take(FILE_BYTES_MAX + 1), to)?;
    if n_bytes > FILE_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    to.flush()
}

fn are_equal(mut one: Content, mut other: Content) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    loop {
        let n_left = fill(&mut one, &mut left)?;
        let n_right = fill(&mut other, &mut right)?;
        if left.get(..n_left) != right.get(..n_right) {
            return Ok(false);
        }
        if n_left == 0 {
            return Ok(true);
        }
    }
}

fn fill(from: &mut Content, chunk: &mut [u8]) -> io::Result<usize> {
    let mut n_filled = 0;
    while let Some(rest) = chunk.get_mut(n_filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(n) => n_filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n_filled)
}
