//! A commit of a few files without a process: what most turns of an agent come to.
//!
//! Only where the bytes of a file are surely what git stores, and under names that git surely
//! takes; everything else is left to git, and gives the same commit.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::import::{self, Edit};
use super::plan::Taken;
use super::store::{self, ObjectKind, ObjectWriter};
use super::survey::{LayerPathKind, LayerSurvey};
use super::trees::{TreeEntry, Trees};
use crate::candidate::CandidatePlan;
use crate::id::{CommitId, TreeId};
use crate::owned_dir::DirError;
use crate::repository::ObjectFormat;

/// The most files that are written here.
const FILES_MAX: usize = 1_000;

/// The most directories that are written here.
const DIRS_MAX: usize = 1_000;

/// The most bytes of all files that are written here.
const BYTES_MAX: u64 = 4 << 20;

/// The modes of what a tree holds beside directories and submodules.
const LINK: &str = "120000";
const PROGRAM: &str = "100755";
const PLAIN: &str = "100644";

/// What git may do to the bytes of a file before it stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Nothing.
    Nothing,
    /// It may drop carriage returns.
    LineEndings,
    /// Anything.
    Anything,
}

impl Conversion {
    /// Tells whether these bytes are stored as they are, whatever rule applies to the file.
    pub(crate) fn keeps(self, bytes: &[u8]) -> bool {
        match self {
            Self::Nothing => true,
            Self::LineEndings => !bytes.contains(&b'\r'),
            Self::Anything => false,
        }
    }

    /// Returns what the rules in the text of a file with attributes may do.
    pub(crate) fn of_attributes(text: &[u8]) -> Self {
        // Also the last part of `working-tree-encoding`; names of attributes cannot be quoted.
        let converts = ["filter", "ident", "encoding"];
        let has = |word: &&str| text.windows(word.len()).any(|at| at == word.as_bytes());
        if converts.iter().any(has) {
            Self::Anything
        } else if text.iter().all(u8::is_ascii_whitespace) {
            Self::Nothing
        } else {
            Self::LineEndings
        }
    }

    /// Returns what both together may do.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, only) | (only, Self::Nothing) => only,
            (Self::LineEndings, Self::LineEndings) => Self::LineEndings,
            (Self::Anything, _) | (_, Self::Anything) => Self::Anything,
        }
    }
}

/// Contents to be stored as they are, with their modes.
#[derive(Debug)]
pub(crate) struct Contents {
    files: Vec<(PathBuf, &'static str, Vec<u8>)>,
}

impl Contents {
    /// Reads what is taken; nothing when git has to see any of it.
    pub(crate) fn read(
        survey: &LayerSurvey,
        taken: &Taken,
        conversion: Conversion,
    ) -> Option<Self> {
        if taken.len() > FILES_MAX || !taken.keys().all(|path| is_plain(path)) {
            return None;
        }
        let mut bytes_left = BYTES_MAX;
        let mut files = Vec::with_capacity(taken.len());
        for path in taken.keys() {
            let (mode, bytes) = content(survey, path, bytes_left)?;
            if mode != LINK && !conversion.keeps(&bytes) {
                return None;
            }
            bytes_left = bytes_left.checked_sub(bytes.len() as u64)?;
            files.push((path.clone(), mode, bytes));
        }
        Some(Self { files })
    }

    /// Returns what a tree says of the contents.
    pub(crate) fn listed(&self, format: ObjectFormat) -> Vec<(PathBuf, TreeEntry)> {
        let entry = |mode: &str, bytes: &[u8]| TreeEntry {
            mode: mode.to_owned(),
            object: store::id(format, ObjectKind::Blob, bytes),
        };
        let files = self.files.iter();
        files
            .map(|(path, mode, bytes)| (path.clone(), entry(mode, bytes)))
            .collect()
    }

    /// Stores the contents that an edit sets.
    pub(crate) fn put(&self, store: &mut ObjectWriter, edit: &Edit) -> Result<(), DirError> {
        let set: BTreeSet<&PathBuf> = edit.set.iter().map(|(path, _)| path).collect();
        for (_, _, bytes) in self.files.iter().filter(|(path, ..)| set.contains(path)) {
            store.put(ObjectKind::Blob, bytes)?;
        }
        Ok(())
    }
}

/// Reads one file or link, of which at most `bytes_max` may be there.
fn content(survey: &LayerSurvey, path: &Path, bytes_max: u64) -> Option<(&'static str, Vec<u8>)> {
    match survey.what(path)? {
        LayerPathKind::Link { target } => Some((LINK, target.as_bytes().to_vec())),
        LayerPathKind::File { mode, bytes } if *bytes <= bytes_max => {
            let mut content = Vec::new();
            let file = survey.upper.file(path).ok()?;
            file.take(bytes_max + 1).read_to_end(&mut content).ok()?;
            let is_program = mode & 0o100 != 0;
            Some((if is_program { PROGRAM } else { PLAIN }, content))
        }
        _ => None,
    }
}

/// What becomes of the names in one directory: another entry, or none.
type Names = BTreeMap<OsString, Option<TreeEntry>>;

/// The directories that an edit changes, with what becomes of the names in them.
#[derive(Debug)]
pub(crate) struct Dirs(BTreeMap<PathBuf, Names>);

impl Dirs {
    /// Sorts an edit by directory; nothing when a directory is not known or there are too many.
    pub(crate) fn of(edit: &Edit, trees: &Trees<'_>) -> Option<Self> {
        let mut dirs: BTreeMap<PathBuf, Names> = BTreeMap::new();
        let removed = edit.removed.iter().map(|path| (path, None));
        let set = edit.set.iter();
        let set = set.map(|(path, entry)| (path, Some(entry.clone())));
        for (path, entry) in removed.chain(set) {
            for dir in path.ancestors().skip(1) {
                dirs.entry(dir.to_path_buf()).or_default();
            }
            let names = dirs.get_mut(path.parent()?)?;
            names.insert(path.file_name()?.to_owned(), entry);
        }
        dirs.entry(PathBuf::new()).or_default();
        let are_known = dirs.keys().all(|dir| trees.is_known(dir));
        (are_known && dirs.len() <= DIRS_MAX).then_some(Self(dirs))
    }

    /// Stores the changed directories and the commit, all of which then wait to be settled.
    pub(crate) fn write_commit(
        mut self,
        store: &mut ObjectWriter,
        trees: &Trees<'_>,
        base: &CommitId,
        plan: &CandidatePlan,
    ) -> Result<Option<(CommitId, TreeId)>, DirError> {
        let mut root = String::new();
        // A directory comes after the one it is in, so from the end.
        while let Some((dir, names)) = self.0.pop_last() {
            let mut tree: BTreeMap<&OsStr, &TreeEntry> = trees.names(&dir).collect();
            for (name, entry) in &names {
                match entry {
                    Some(entry) => drop(tree.insert(name, entry)),
                    None => drop(tree.remove(name.as_os_str())),
                }
            }
            let is_empty = tree.is_empty();
            let bytes = store::tree(tree.into_iter());
            let Some((parent, name)) = dir.parent().zip(dir.file_name()) else {
                root = store.put(ObjectKind::Tree, &bytes)?;
                break;
            };
            let above = self.0.entry(parent.to_path_buf()).or_default();
            let is_replaced = above
                .get(name)
                .is_some_and(|entry| entry.as_ref().is_some_and(|entry| !entry.is_tree()));
            if is_replaced {
                continue;
            }
            let entry = if is_empty {
                None
            } else {
                let object = store.put(ObjectKind::Tree, &bytes)?;
                let mode = "040000".to_owned();
                Some(TreeEntry { mode, object })
            };
            above.insert(name.to_owned(), entry);
        }
        let who = import::identity(plan);
        let message = &plan.message;
        let text =
            format!("tree {root}\nparent {base}\nauthor {who}\ncommitter {who}\n\n{message}");
        let commit = store.put(ObjectKind::Commit, text.as_bytes())?;
        Ok(CommitId::parse(&commit).ok().zip(TreeId::parse(&root).ok()))
    }
}

/// Tells whether git takes a path without a second look.
fn is_plain(path: &Path) -> bool {
    path.iter().all(|name| {
        let bytes = name.as_bytes();
        let is_odd = |b: &u8| !b.is_ascii() || matches!(b, b'~' | b'\\' | b':');
        let start = bytes.get(..4).unwrap_or_default();
        !bytes.iter().any(is_odd)
            && (!start.eq_ignore_ascii_case(b".git") || bytes == b".gitignore")
    })
}
