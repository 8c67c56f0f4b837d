//! Every file that differs between two commits, with what it was and what it is.
//!
//! Trees and objects alone are looked at. No attribute, driver or setting of the repository decides
//! what is listed, or whether a change is shown as text.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::change::{ChangeKind, RawChange};
use crate::command::GitError;
use crate::diff::{DiffPatch, PLAIN, unexpected};
use crate::id::CommitId;
use crate::repository::{Repository, path_of};

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path, relative to the root of the tree.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What it was; nothing where it is new.
    pub before: Option<FileVersion>,
    /// What it is; nothing where it is gone.
    pub after: Option<FileVersion>,
    /// Lines that are new and lines that are gone; nothing where git takes it for binary, which a
    /// zero byte or an attribute of the repository is enough for.
    pub lines: Option<LineCount>,
}

/// A file at one of the two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// What it is to git.
    pub mode: FileMode,
    /// The object with its content.
    pub object: String,
    /// Its size; nothing where the object is not here, as that of a submodule never is.
    pub bytes: Option<u64>,
}

/// What a path of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileMode {
    /// A file.
    Plain,
    /// A file that may be executed.
    Executable,
    /// A symbolic link.
    Link,
    /// A commit of another repository.
    Submodule,
}

/// How many lines of a file differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCount {
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
}

impl FileMode {
    /// Returns how a tree writes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Submodule => "160000",
        }
    }

    pub(crate) fn of(mode: &str) -> Option<Self> {
        match mode {
            "000000" => None,
            "100755" => Some(Self::Executable),
            "120000" => Some(Self::Link),
            "160000" => Some(Self::Submodule),
            _ => Some(Self::Plain),
        }
    }
}

impl Repository {
    /// Returns every file that differs between two commits, in the order of their paths.
    ///
    /// A file that was moved is one that is gone and one that is new.
    pub fn changed_files(
        &self,
        base: &CommitId,
        commit: &CommitId,
    ) -> Result<Vec<ChangedFile>, GitError> {
        let raw = self.raw_versions(base.as_str(), commit.as_str())?;
        let mut lines = self.line_counts(base, commit)?;
        let sizes = self.sizes(&raw)?;
        let version = |mode: &str, object: &str| {
            Some(FileVersion {
                mode: FileMode::of(mode)?,
                object: object.to_owned(),
                bytes: sizes.get(object).copied(),
            })
        };
        let files = raw.iter().map(|change| ChangedFile {
            kind: change.kind,
            before: version(&change.mode_before, &change.object_before),
            after: version(&change.entry.mode, &change.entry.object),
            lines: lines.remove(&change.entry.path).flatten(),
            path: change.entry.path.clone(),
        });
        Ok(files.collect())
    }

    /// Returns the patch of one file between two commits, at most `bytes_max` of it, as text whatever
    /// the file holds and whatever an attribute says of it.
    pub fn file_patch(
        &self,
        base: &CommitId,
        commit: &CommitId,
        path: &Path,
        bytes_max: usize,
    ) -> Result<DiffPatch, GitError> {
        let mut spec = OsString::from(":(top,literal)");
        spec.push(path);
        let call = self
            .call("diff-tree")
            .args(["-r", "-p", "--no-renames", "--text"])
            .args(PLAIN)
            .args([base.as_str(), commit.as_str(), "--"])
            .arg(spec);
        let (bytes, is_cut) = call.beginning(bytes_max)?;
        Ok(DiffPatch { bytes, is_cut })
    }

    fn line_counts(
        &self,
        base: &CommitId,
        commit: &CommitId,
    ) -> Result<BTreeMap<PathBuf, Option<LineCount>>, GitError> {
        let call = self
            .call("diff-tree")
            .args(["-r", "-z", "--numstat", "--no-renames"])
            .args(PLAIN);
        let listed = call.args([base.as_str(), commit.as_str()]).bytes()?;
        let lines = listed.split(|&b| b == 0).filter(|line| !line.is_empty());
        lines.map(line_count).collect()
    }

    /// Returns the sizes of the objects of files that are here.
    fn sizes(&self, raw: &[RawChange]) -> Result<BTreeMap<String, u64>, GitError> {
        let is_file = |mode: &str| {
            matches!(
                FileMode::of(mode),
                Some(FileMode::Plain | FileMode::Executable | FileMode::Link)
            )
        };
        let before = raw.iter().map(|it| (&it.mode_before, &it.object_before));
        let after = raw.iter().map(|it| (&it.entry.mode, &it.entry.object));
        let files = before.chain(after).filter(|(mode, _)| is_file(mode));
        let objects: BTreeSet<&str> = files.map(|(_, object)| object.as_str()).collect();
        if objects.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut asked: String = objects.into_iter().collect::<Vec<_>>().join("\n");
        asked.push('\n');
        let call = self.call("cat-file");
        let call = call.args(["--batch-check=%(objectname) %(objectsize)"]);
        let reported = call.stdin(asked.into_bytes()).text()?;
        // An object that is not here is told as missing, and has no size.
        let sizes = reported.lines().filter_map(|line| {
            let (object, size) = line.split_once(' ')?;
            Some((object.to_owned(), size.parse().ok()?))
        });
        Ok(sizes.collect())
    }
}

fn line_count(line: &[u8]) -> Result<(PathBuf, Option<LineCount>), GitError> {
    let mut fields = line.splitn(3, |&b| b == b'\t');
    let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next())
    else {
        return Err(unexpected());
    };
    if (added, removed) == (b"-".as_slice(), b"-".as_slice()) {
        return Ok((path_of(path), None));
    }
    let number = |field: &[u8]| -> Option<u64> { str::from_utf8(field).ok()?.parse().ok() };
    let (Some(added), Some(removed)) = (number(added), number(removed)) else {
        return Err(unexpected());
    };
    Ok((path_of(path), Some(LineCount { added, removed })))
}
