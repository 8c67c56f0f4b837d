//! One merge of two commits without a working tree, and what keeps them from fitting.
//!
//! The settings are ours, so that every machine comes to the same tree; a conflict is told with the
//! three contents of each path. Moves no ref.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{LandError, MERGE_GIT_VERSION_MIN};
use crate::changed_file::FileMode;
use crate::command::{GitCall, GitError};
use crate::diff::{entries_of, unexpected};
use crate::id::{CommitId, TreeId};
use crate::owned_dir;
use crate::repository::{Repository, path_of};
use crate::scratch::{Objects, Scratch};

/// How git ends a merge that has conflicts.
const CONFLICTED: i32 = 1;

/// Settings of a merge, so that every machine comes to the same tree.
const MERGE_SETTINGS: [(&str, &str); 6] = [
    ("merge.renames", "true"),
    ("merge.directoryRenames", "conflict"),
    ("merge.renormalize", "false"),
    ("merge.conflictStyle", "diff3"),
    ("diff.renameLimit", "1000"),
    ("core.attributesFile", "/dev/null"),
];

/// Why two commits do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    /// What git made of it: conflicting lines stand between markers, and both versions where there are
    /// no lines to mark.
    pub tree: TreeId,
    /// The paths, sorted.
    pub paths: Vec<ConflictPath>,
}

/// A path where two commits do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictPath {
    /// The path in the tree that git made.
    pub path: PathBuf,
    /// What sort of conflict it is.
    pub kind: ConflictKind,
    /// What both began with.
    pub base: Option<ConflictSide>,
    /// What the head has.
    pub ours: Option<ConflictSide>,
    /// What comes.
    pub theirs: Option<ConflictSide>,
}

/// One version of a path that is in conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictSide {
    /// Where it is, which may be elsewhere after a rename.
    pub path: PathBuf,
    /// What it is to git.
    pub mode: FileMode,
    /// The object with its content.
    pub object: String,
}

/// What sort of conflict a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConflictKind {
    /// Both changed the same lines.
    Content,
    /// Both changed the same lines, and one of them renamed the file.
    RenameEdit,
    /// One renamed it, the other deleted it.
    RenameDelete,
    /// Both renamed it, to different names, or two files to one name.
    RenameRename,
    /// One moved its directory, and the other put a file there.
    DirectoryRename,
    /// One deleted what the other changed.
    DeleteEdit,
    /// Both added it, with different contents.
    AddAdd,
    /// They disagree about what it is: a file, a link, executable.
    Mode,
    /// Both changed it, and it is not text.
    Binary,
    /// They disagree about a commit of another repository.
    Submodule,
    /// One has a directory where the other has a file.
    FileDirectory,
}

/// What came of a merge.
pub(crate) enum MergeOutcome {
    Clean(TreeId),
    Conflicts(MergeConflict),
}

impl MergeConflict {
    /// Returns the first of the paths, at most [`super::CONFLICTS_MAX`].
    pub(crate) fn path_list(&self) -> Vec<PathBuf> {
        let paths = self.paths.iter().map(|one| one.path.clone());
        paths.take(super::CONFLICTS_MAX).collect()
    }
}

impl Repository {
    /// Prepares for merges: a configuration of our own names no driver, and an empty directory has no
    /// attributes.
    pub(crate) fn merging(
        &self,
        scratch: &Path,
        objects: Objects,
    ) -> Result<Scratch<'_>, LandError> {
        let found = self.git().version()?;
        if found < MERGE_GIT_VERSION_MIN {
            let needed = MERGE_GIT_VERSION_MIN;
            return Err(LandError::GitTooOld { found, needed });
        }
        let (dir, files) = (scratch.join("git"), scratch.join("files"));
        owned_dir::wipe(&files)?;
        owned_dir::create(&files)?;
        Ok(Scratch::prepare(self, &dir, &files, objects)?)
    }
}

impl Scratch<'_> {
    /// Merges the trees of head and commit. Of one commit the merge base is the plan's: its only
    /// parent, which the head's history holds. Of a range it is that or something later that both hold.
    pub(crate) fn merged(
        &self,
        head: &CommitId,
        commit: &CommitId,
    ) -> Result<MergeOutcome, GitError> {
        self.merge(self.merge_tree(), head, commit)
    }

    /// Does to the head what a commit does to `base`, whatever else the two have in common.
    pub(crate) fn merged_on(
        &self,
        base: &CommitId,
        head: &CommitId,
        commit: &CommitId,
    ) -> Result<MergeOutcome, GitError> {
        let call = self.merge_tree().arg(format!("--merge-base={base}"));
        self.merge(call, head, commit)
    }

    pub(super) fn merge_tree(&self) -> GitCall<'_> {
        let settings = MERGE_SETTINGS.map(|(key, value)| (key.into(), value.into()));
        let call = self.call("merge-tree").settings(&settings);
        call.args(["--write-tree", "-z"])
    }

    fn merge(
        &self,
        merge_tree: GitCall<'_>,
        head: &CommitId,
        commit: &CommitId,
    ) -> Result<MergeOutcome, GitError> {
        let call = merge_tree.args(["--messages", head.as_str(), commit.as_str()]);
        let exit = call.exit()?;
        let (code, stderr) = (exit.code, exit.stderr);
        let text = str::from_utf8(exit.stdout.split(|&b| b == 0).next().unwrap_or_default());
        let tree = text
            .ok()
            .and_then(|tree| TreeId::parse(tree.trim_end()).ok());
        match (code, tree) {
            (0, Some(tree)) => Ok(MergeOutcome::Clean(tree)),
            (CONFLICTED, Some(tree)) => {
                let report = ConflictReport::read(&exit.stdout).ok_or_else(unexpected)?;
                let paths = self.sorted_out(&report, head, commit)?;
                Ok(MergeOutcome::Conflicts(MergeConflict { tree, paths }))
            }
            _ => Err(GitError::Exit {
                subcommand: "merge-tree".to_owned(),
                code,
                stderr,
            }),
        }
    }

    /// Tells whether a commit has a file at this path.
    fn has_path(&self, commit: &CommitId, path: &Path) -> Result<bool, GitError> {
        let mut spec = OsString::from(":(top,literal)");
        spec.push(path);
        let (call, format) = (self.call("diff-tree"), self.repository().object_format());
        let found = entries_of(call, format, commit.as_str(), &[spec])?;
        Ok(found.iter().any(|entry| entry.path == path))
    }

    /// Gives each path its kind and its three versions.
    fn sorted_out(
        &self,
        report: &ConflictReport,
        head: &CommitId,
        commit: &CommitId,
    ) -> Result<Vec<ConflictPath>, GitError> {
        let mut paths = Vec::new();
        for path in report.versions.keys() {
            let mut found = report.conflict(path);
            let is_edit = found.kind == ConflictKind::Content && found.base.is_some();
            if is_edit && (!self.has_path(head, path)? || !self.has_path(commit, path)?) {
                found.kind = ConflictKind::RenameEdit;
            }
            paths.push(found);
        }
        Ok(paths)
    }
}

/// What `merge-tree` reported of a merge with conflicts.
struct ConflictReport {
    /// The versions of each path by their stage: 1 of the base, 2 ours, 3 theirs.
    versions: BTreeMap<PathBuf, BTreeMap<u8, ConflictSide>>,
    /// What is said of which paths.
    notes: Vec<ConflictNote>,
}

struct ConflictNote {
    paths: Vec<PathBuf>,
    kind: String,
}

impl ConflictReport {
    /// Reads everything after the tree; `None` where it is not as git's manual says.
    fn read(output: &[u8]) -> Option<Self> {
        let mut fields = output.split(|&b| b == 0).skip(1);
        let mut versions: BTreeMap<PathBuf, BTreeMap<u8, ConflictSide>> = BTreeMap::new();
        for field in fields.by_ref().take_while(|field| !field.is_empty()) {
            let at = field.iter().position(|&b| b == b'\t')?;
            let (marks, path) = field.split_at(at);
            let marks = str::from_utf8(marks).ok()?;
            let [mode, object, stage] = marks.split(' ').collect::<Vec<_>>()[..] else {
                return None;
            };
            let path = path_of(path.get(1..)?);
            let side = ConflictSide {
                path: path.clone(),
                mode: FileMode::of(mode)?,
                object: object.to_owned(),
            };
            let stages = versions.entry(path).or_default();
            stages.insert(stage.parse().ok()?, side);
        }
        let mut notes = Vec::new();
        while let Some(count) = fields.next().filter(|field| !field.is_empty()) {
            let count: usize = str::from_utf8(count).ok()?.parse().ok()?;
            let paths: Vec<PathBuf> = fields.by_ref().take(count).map(path_of).collect();
            let kind = String::from_utf8_lossy(fields.next()?).into_owned();
            fields.next()?;
            notes.push(ConflictNote { paths, kind });
        }
        Some(Self { versions, notes })
    }

    /// Returns what is known of one path. A version that is missing there is looked for where the note
    /// says that the path came from or went.
    fn conflict(&self, path: &Path) -> ConflictPath {
        let own = self.notes.iter().filter(|note| {
            note.kind.starts_with("CONFLICT") && note.paths.iter().any(|other| other == path)
        });
        let own: Vec<&ConflictNote> = own.collect();
        let mut stages = self.versions.get(path).cloned().unwrap_or_default();
        let is_moved = |note: &&&ConflictNote| note.kind.contains("rename/");
        let elsewhere: BTreeSet<&PathBuf> = own
            .iter()
            .filter(is_moved)
            .flat_map(|note| &note.paths)
            .collect();
        for (stage, side) in elsewhere
            .iter()
            .filter_map(|other| self.versions.get(*other))
            .flatten()
        {
            stages.entry(*stage).or_insert_with(|| side.clone());
        }
        let kind = kind_of(&own, &stages);
        ConflictPath {
            path: path.to_path_buf(),
            kind,
            base: stages.remove(&1),
            ours: stages.remove(&2),
            theirs: stages.remove(&3),
        }
    }
}

/// Tells the kind by what git says, and by which versions there are where it says nothing special.
fn kind_of(notes: &[&ConflictNote], stages: &BTreeMap<u8, ConflictSide>) -> ConflictKind {
    const BY_NOTE: [(&str, ConflictKind); 9] = [
        ("submodule", ConflictKind::Submodule),
        ("rename/rename", ConflictKind::RenameRename),
        ("rename involved in collision", ConflictKind::RenameRename),
        ("rename/delete", ConflictKind::RenameDelete),
        ("directory rename", ConflictKind::DirectoryRename),
        ("modify/delete", ConflictKind::DeleteEdit),
        ("file/directory", ConflictKind::FileDirectory),
        ("distinct modes", ConflictKind::Mode),
        ("binary", ConflictKind::Binary),
    ];
    let by_note = BY_NOTE
        .iter()
        .find(|(words, _)| notes.iter().any(|note| note.kind.contains(words)));
    if let Some((_, kind)) = by_note {
        return *kind;
    }
    let has = |stage| stages.contains_key(&stage);
    let object = |stage| stages.get(&stage).map(|side| &side.object);
    match (has(1), has(2), has(3)) {
        (true, true, true) if object(2) == object(3) => ConflictKind::Mode,
        (true, true, true) => ConflictKind::Content,
        (false, true, true) => ConflictKind::AddAdd,
        _ => ConflictKind::DeleteEdit,
    }
}
