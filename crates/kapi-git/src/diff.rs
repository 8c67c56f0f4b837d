//! What differs between two commits.
//!
//! Compares trees only: no working tree, no driver, no text conversion, and no renames, so that
//! a moved file is one path gone and one path new.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::change::{ChangeKind, PathChange, RawChange, TreeFile};
use crate::command::{GitCall, GitError};
use crate::id::CommitId;
use crate::repository::comparisons::TreePair;
use crate::repository::{ObjectFormat, Repository, path_of};

/// A patch, perhaps only its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffPatch {
    /// The patch as git writes it; foreign text in any encoding.
    pub bytes: Vec<u8>,
    /// Whether more was left out.
    pub is_cut: bool,
}

/// How much differs between two commits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffCount {
    /// Files that differ.
    pub files: u64,
    /// Lines that are new; a binary file has none.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
}

/// A pattern that is empty or holds a zero byte, or a git that failed.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// Not a pattern.
    #[error("use {glob:?} as a path pattern")]
    Glob {
        /// The pattern.
        glob: String,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The most files that are read from a commit at once.
pub const FILES_READ_MAX: usize = 200;
/// The largest file that is read from a commit.
pub const FILE_READ_BYTES_MAX: usize = 1 << 20;

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedFile {
    /// Where it is, relative to the root of the tree.
    pub path: PathBuf,
    /// Its content as git has it.
    pub bytes: Vec<u8>,
}

impl Repository {
    /// Returns the paths matching any of `globs` that differ between two commits.
    ///
    /// Globs are git's own (`tests/**`, `*.lock` at the top, `**/*.snap` anywhere); a directory
    /// stands for all below it.
    pub fn protected_changes(
        &self,
        base: &CommitId,
        candidate: &CommitId,
        globs: &[String],
    ) -> Result<Vec<PathChange>, DiffError> {
        if globs.is_empty() {
            return Ok(Vec::new());
        }
        let specs = pathspecs(globs)?;
        Ok(self.raw_changes(base.as_str(), candidate.as_str(), &specs)?)
    }

    /// Returns every path that differs between two commits.
    pub fn changes(&self, base: &CommitId, commit: &CommitId) -> Result<Vec<PathChange>, GitError> {
        self.raw_changes(base.as_str(), commit.as_str(), &[])
    }

    /// Returns every file, link and submodule of `commit`.
    pub fn tracked_files(&self, commit: &CommitId) -> Result<Vec<PathBuf>, GitError> {
        let entries = self.entries(commit.as_str(), &[])?;
        Ok(entries.into_iter().map(|entry| entry.path).collect())
    }

    /// Returns the content of a file of `commit`, at most `bytes_max` of it; nothing where there is no
    /// such file.
    pub fn file_at(
        &self,
        commit: &CommitId,
        path: &Path,
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let mut spec = OsString::from(":(top,literal)");
        spec.push(path);
        let entries = self.entries(commit.as_str(), &[spec])?;
        let is_file = |entry: &&TreeFile| entry.path == path && entry.mode.starts_with("100");
        let Some(entry) = entries.iter().find(is_file) else {
            return Ok(None);
        };
        let call = self.call("cat-file").args(["blob", entry.object.as_str()]);
        let (bytes, _) = call.beginning(bytes_max)?;
        Ok(Some(bytes))
    }

    /// Returns the files of `commit` that match any of `globs`.
    pub fn tracked_files_matching(
        &self,
        commit: &CommitId,
        globs: &[String],
    ) -> Result<Vec<PathBuf>, DiffError> {
        Ok(self
            .entries_matching(commit, globs)?
            .into_iter()
            .map(|entry| entry.path)
            .collect())
    }

    /// Returns the plain files of `commit` that match any of `globs`, with their content.
    ///
    /// At most [`FILES_READ_MAX`] of them, none larger than [`FILE_READ_BYTES_MAX`].
    pub fn read_tracked_files(
        &self,
        commit: &CommitId,
        globs: &[String],
    ) -> Result<Vec<TrackedFile>, DiffError> {
        let is_plain = |entry: &TreeFile| matches!(entry.mode.as_str(), "100644" | "100755");
        let entries = self.entries_matching(commit, globs)?.into_iter();
        let mut files = Vec::new();
        for entry in entries.filter(is_plain).take(FILES_READ_MAX) {
            let call = self.call("cat-file").arg("blob").arg(&entry.object);
            let bytes = call.bytes()?;
            if bytes.len() <= FILE_READ_BYTES_MAX {
                let path = entry.path;
                files.push(TrackedFile { path, bytes });
            }
        }
        Ok(files)
    }

    /// Tells whether `commit` holds a file or link at exactly this path.
    pub fn is_tracked_file(&self, commit: &CommitId, path: &Path) -> Result<bool, GitError> {
        let mut spec = OsString::from(":(top,literal)");
        spec.push(path);
        let found = self.entries(commit.as_str(), &[spec])?;
        Ok(found
            .iter()
            .any(|entry| entry.path == path && entry.mode != "160000"))
    }

    /// Returns how many files the first of two commits has that the second has not, and how many the
    /// first has at all.
    pub fn deletions(&self, base: &CommitId, commit: &CommitId) -> Result<(u64, u64), GitError> {
        let changes = self.raw_changes(base.as_str(), commit.as_str(), &[])?;
        let deleted = changes
            .iter()
            .filter(|change| change.kind == ChangeKind::Deleted);
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let of = count(self.entries(base.as_str(), &[])?.len());
        Ok((count(deleted.count()), of))
    }

    /// Returns the patch between two commits, at most `bytes_max` of it.
    pub fn diff(
        &self,
        base: &CommitId,
        commit: &CommitId,
        bytes_max: usize,
    ) -> Result<DiffPatch, GitError> {
        self.patch_with(base, commit, &["-r", "-p", "--no-renames"], bytes_max)
    }

    /// Returns the patch between two commits that `git apply` takes, binary files included, at most
    /// `bytes_max` of it.
    pub fn patch(
        &self,
        base: &CommitId,
        commit: &CommitId,
        bytes_max: usize,
    ) -> Result<DiffPatch, GitError> {
        let options = ["-r", "-p", "--no-renames", "--binary"];
        self.patch_with(base, commit, &options, bytes_max)
    }

    fn patch_with(
        &self,
        base: &CommitId,
        commit: &CommitId,
        options: &[&str],
        bytes_max: usize,
    ) -> Result<DiffPatch, GitError> {
        let call = self.call("diff-tree").args(options).args(PLAIN);
        let (bytes, is_cut) = call
            .args([base.as_str(), commit.as_str()])
            .beginning(bytes_max)?;
        Ok(DiffPatch { bytes, is_cut })
    }

    /// Returns how much differs between two commits.
    pub fn diff_count(&self, base: &CommitId, commit: &CommitId) -> Result<DiffCount, GitError> {
        let call = self
            .call("diff-tree")
            .args(["-r", "-z", "--numstat", "--no-renames"])
            .args(PLAIN);
        let listed = call.args([base.as_str(), commit.as_str()]).bytes()?;
        let mut count = DiffCount::default();
        for line in listed.split(|&b| b == 0).filter(|line| !line.is_empty()) {
            let mut fields = line.splitn(3, |&b| b == b'\t');
            let (Some(added), Some(removed), Some(_)) =
                (fields.next(), fields.next(), fields.next())
            else {
                return Err(unexpected());
            };
            count.files = count.files.saturating_add(1);
            count.added = count.added.saturating_add(lines(added)?);
            count.removed = count.removed.saturating_add(lines(removed)?);
        }
        Ok(count)
    }

    pub(crate) fn tree_changes(
        &self,
        base: &CommitId,
        treeish: &str,
    ) -> Result<Vec<PathChange>, GitError> {
        self.raw_changes(base.as_str(), treeish, &[])
    }

    pub(crate) fn entries_matching(
        &self,
        commit: &CommitId,
        globs: &[String],
    ) -> Result<Vec<TreeFile>, DiffError> {
        if globs.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.entries(commit.as_str(), &pathspecs(globs)?)?)
    }

    pub(crate) fn entries(
        &self,
        treeish: &str,
        specs: &[OsString],
    ) -> Result<Vec<TreeFile>, GitError> {
        let found = self.compare(nothing(self.object_format()), treeish, specs)?;
        Ok(found.iter().map(|change| change.entry.clone()).collect())
    }

    /// Compares two trees, unless that is known.
    fn compare(
        &self,
        from: &str,
        to: &str,
        specs: &[OsString],
    ) -> Result<Arc<[RawChange]>, GitError> {
        let compared = TreePair {
            from: from.to_owned(),
            to: to.to_owned(),
            specs: specs.to_vec(),
        };
        if let Some(known) = self.comparisons().get(&compared) {
            return Ok(known);
        }
        let found: Arc<[RawChange]> = raw(self.call("diff-tree"), from, to, specs)?.into();
        let n_digits = self.object_format().n_digits();
        // A name may mean something else the next time.
        let is_full = |id: &str| id.len() == n_digits && id.bytes().all(|b| b.is_ascii_hexdigit());
        if is_full(from) && is_full(to) {
            self.comparisons().keep(compared, &found);
        }
        Ok(found)
    }

    /// Returns every path that differs between two trees, with what it was and what it is.
    pub(crate) fn raw_versions(&self, from: &str, to: &str) -> Result<Vec<RawChange>, GitError> {
        raw(self.call("diff-tree"), from, to, &[])
    }

    fn raw_changes(
        &self,
        from: &str,
        to: &str,
        specs: &[OsString],
    ) -> Result<Vec<PathChange>, GitError> {
        let found = self.compare(from, to, specs)?;
        let changes: BTreeSet<PathChange> = found
            .iter()
            .map(|change| PathChange {
                path: change.entry.path.clone(),
                kind: change.kind,
            })
            .collect();
        Ok(changes.into_iter().collect())
    }
}

/// Returns the files of `treeish` that match any of `specs`, with a call of `diff-tree` that sees it.
pub(crate) fn entries_of(
    diff_tree: GitCall<'_>,
    format: ObjectFormat,
    treeish: &str,
    specs: &[OsString],
) -> Result<Vec<TreeFile>, GitError> {
    let found = raw(diff_tree, nothing(format), treeish, specs)?;
    Ok(found.into_iter().map(|change| change.entry).collect())
}

/// Returns the empty tree: compared with it every file is new, and unlike `ls-tree` a comparison knows
/// patterns.
pub(crate) const fn nothing(format: ObjectFormat) -> &'static str {
    match format {
        ObjectFormat::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        ObjectFormat::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
    }
}

fn raw(
    diff_tree: GitCall<'_>,
    from: &str,
    to: &str,
    specs: &[OsString],
) -> Result<Vec<RawChange>, GitError> {
    let call = diff_tree.args(["-r", "-z", "--raw", "--no-renames"]);
    let call = call.args(["--no-abbrev", "--ignore-submodules=none", from, to, "--"]);
    let listed = call.args(specs).bytes()?;
    let fields: Vec<&[u8]> = listed.split(|&b| b == 0).collect();
    let mut found = Vec::new();
    for [marks, name] in fields.as_chunks().0 {
        let marks = String::from_utf8_lossy(marks);
        let marks: Vec<&str> = marks.trim_start_matches(':').split(' ').collect();
        let [old_mode, mode, old_object, object, letter] = marks[..] else {
            return Err(unexpected());
        };
        found.push(raw_change(
            [old_mode, mode],
            [old_object, object],
            letter,
            path_of(name),
        ));
    }
    Ok(found)
}

/// Returns a changed path of what git says of it: its modes and objects before and after, and a letter.
pub(crate) fn raw_change(
    modes: [&str; 2],
    objects: [&str; 2],
    letter: &str,
    path: PathBuf,
) -> RawChange {
    let ([mode_before, mode], [object_before, object]) = (modes, objects);
    let kind = match letter {
        "A" => ChangeKind::Added,
        "D" => ChangeKind::Deleted,
        "T" => ChangeKind::Type,
        _ if object_before == object && mode_before != mode => ChangeKind::Mode,
        _ => ChangeKind::Modified,
    };
    RawChange {
        entry: TreeFile {
            mode: mode.to_owned(),
            object: object.to_owned(),
            path,
        },
        kind,
        mode_before: mode_before.to_owned(),
        object_before: object_before.to_owned(),
    }
}

/// Reads a number of lines; a binary file has a dash in its place.
fn lines(field: &[u8]) -> Result<u64, GitError> {
    if field == b"-" {
        return Ok(0);
    }
    let text = str::from_utf8(field).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(unexpected)
}

pub(crate) fn unexpected() -> GitError {
    GitError::Unexpected {
        subcommand: "diff-tree".to_owned(),
    }
}

/// What keeps a patch free of the configuration's programs.
pub(crate) const PLAIN: [&str; 3] = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=none"];

/// Returns the patterns as git takes them.
pub(crate) fn pathspecs(globs: &[String]) -> Result<Vec<OsString>, DiffError> {
    let spec = |glob: &String| {
        if glob.is_empty() || glob.contains('\0') {
            return Err(DiffError::Glob { glob: glob.clone() });
        }
        // All magic is in the prefix, so that none in the pattern is obeyed.
        Ok(OsString::from(format!(":(top,glob){glob}")))
    };
    globs.iter().map(spec).collect()
}
