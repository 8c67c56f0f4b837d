//! The directories of one commit, read only where they are asked for.
//!
//! One `cat-file` answers many questions, so reading costs what is looked at and not what the
//! repository holds. Knows nothing of layers.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::command::GitError;
use crate::id::CommitId;
use crate::repository::{ObjectFormat, Repository};

/// The most directories asked for at once, so that those inside a missing one are never asked for.
const ROUND_DIRS_MAX: usize = 2_048;

/// The trees of a commit that were read so far.
#[derive(Debug)]
pub(crate) struct Trees<'a> {
    repository: &'a Repository,
    commit: CommitId,
    known: BTreeMap<PathBuf, Option<Tree>>,
    /// Small files that are wanted of every directory that is asked for.
    wanted_files: &'static [&'static str],
    files: BTreeMap<PathBuf, Vec<u8>>,
}

type Tree = BTreeMap<OsString, TreeEntry>;

/// One name in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    /// The mode as in an index: six octal digits.
    pub(crate) mode: String,
    pub(crate) object: String,
}

impl TreeEntry {
    pub(crate) fn is_tree(&self) -> bool {
        self.mode == "040000"
    }

    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == "160000"
    }

    /// Tells whether it is a symbolic link.
    pub(crate) fn is_link(&self) -> bool {
        self.mode == "120000"
    }

    /// Tells whether it is a file and not a link.
    pub(crate) fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }
}

impl<'a> Trees<'a> {
    /// Will read trees of `commit`, and with each the files of these names in it.
    pub(crate) fn new(
        repository: &'a Repository,
        commit: &CommitId,
        wanted_files: &'static [&'static str],
    ) -> Self {
        Self {
            repository,
            commit: commit.clone(),
            known: BTreeMap::new(),
            wanted_files,
            files: BTreeMap::new(),
        }
    }

    /// Returns the content of a wanted file that was read along with its directory.
    pub(crate) fn file(&self, path: &Path) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Reads these directories; with those above them.
    pub(crate) fn load(&mut self, dirs: &BTreeSet<PathBuf>) -> Result<(), GitError> {
        let mut with_parents = BTreeSet::from([Path::new("")]);
        with_parents.extend(dirs.iter().flat_map(|dir| dir.ancestors()));
        let mut wanted: Vec<PathBuf> = with_parents.into_iter().map(Path::to_path_buf).collect();
        // From the top down, so that a missing directory speaks for all that would be in it.
        wanted.sort_by_key(|dir| dir.components().count());
        loop {
            wanted.retain(|dir| !self.known.contains_key(dir) && !self.note_missing(dir));
            let questions = wanted.iter().filter_map(|dir| {
                let question = self.question(dir)?;
                Some((dir.clone(), question))
            });
            let asked: Vec<(PathBuf, Vec<u8>)> = questions.take(ROUND_DIRS_MAX).collect();
            if asked.is_empty() {
                return Ok(());
            }
            self.ask(asked)?;
        }
    }

    /// Reads a directory with all those below it, and returns what is in them but directories.
    pub(crate) fn list_below(&mut self, dir: &Path) -> Result<Vec<(PathBuf, TreeEntry)>, GitError> {
        let mut found = Vec::new();
        let mut level = BTreeSet::from([dir.to_path_buf()]);
        while !level.is_empty() {
            self.load(&level)?;
            let mut next = BTreeSet::new();
            for at in level {
                let tree = self.known.get(&at).and_then(Option::as_ref);
                let entries = tree.into_iter().flatten();
                let (dirs, files): (Vec<_>, Vec<_>) = entries.partition(|(_, e)| e.is_tree());
                next.extend(dirs.into_iter().map(|(name, _)| at.join(name)));
                let files = files.into_iter();
                found.extend(files.map(|(name, entry)| (at.join(name), entry.clone())));
            }
            level = next;
        }
        Ok(found)
    }

    /// Returns what the commit has at a path whose directory was read.
    pub(crate) fn entry(&self, path: &Path) -> Option<&TreeEntry> {
        let dir = path.parent().unwrap_or(Path::new(""));
        let tree = self.known.get(dir)?.as_ref()?;
        tree.get(path.file_name()?)
    }

    /// Tells whether the commit has this directory, which was read.
    pub(crate) fn has_dir(&self, dir: &Path) -> bool {
        self.known.get(dir).is_some_and(Option::is_some)
    }

    /// Tells whether this directory was read, or is known to be missing.
    pub(crate) fn is_known(&self, dir: &Path) -> bool {
        self.known.contains_key(dir)
    }

    /// Returns what is in a directory that was read; nothing for one that is missing.
    pub(crate) fn names(&self, dir: &Path) -> impl Iterator<Item = (&OsStr, &TreeEntry)> {
        let tree = self.known.get(dir).and_then(Option::as_ref);
        let entries = tree.into_iter().flatten();
        entries.map(|(name, entry)| (name.as_os_str(), entry))
    }

    /// Notes that a directory is missing when its parent says so.
    fn note_missing(&mut self, dir: &Path) -> bool {
        let parent = dir.parent().and_then(|parent| self.known.get(parent));
        let is_missing = match parent {
            Some(None) => true,
            Some(Some(_)) => !self.entry(dir).is_some_and(TreeEntry::is_tree),
            None => false,
        };
        if is_missing {
            self.known.insert(dir.to_path_buf(), None);
        }
        is_missing
    }

    /// Returns how to ask for a directory, or nothing while it cannot be named.
    fn question(&self, dir: &Path) -> Option<Vec<u8>> {
        let bytes = dir.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Some(format!("{}^{{tree}}", self.commit).into_bytes());
        }
        if !bytes.contains(&b'\n') {
            // The slash says that only a directory is meant: a file there may be large.
            let commit = self.commit.as_str().as_bytes();
            return Some([commit, b":", bytes, b"/"].concat());
        }
        // A question is one line, so this name is asked for by what its parent says of it.
        let entry = self.entry(dir)?;
        Some(entry.object.clone().into_bytes())
    }

    fn ask(&mut self, asked: Vec<(PathBuf, Vec<u8>)>) -> Result<(), GitError> {
        let mut questions: Vec<Vec<u8>> = asked.iter().map(|(_, text)| text.clone()).collect();
        // A guess is cheaper than to ask again once it is known which of them exist.
        let mut files = Vec::new();
        for (dir, question) in &asked {
            let commit = self.commit.as_str().as_bytes();
            // The root and directories that cannot be named on a line are asked for by themselves.
            let dir_question = match question.last() {
                Some(b'/') => question.clone(),
                _ if dir.as_os_str().is_empty() => [commit, b":"].concat(),
                _ => continue,
            };
            for name in self.wanted_files {
                questions.push([dir_question.as_slice(), name.as_bytes()].concat());
                files.push(dir.join(name));
            }
        }
        let mut answers = objects(self.repository, &questions)?.into_iter();
        for ((dir, _), answer) in asked.into_iter().zip(answers.by_ref()) {
            let tree = answer.map(|bytes| self.parse(&bytes)).transpose()?;
            self.known.insert(dir, tree);
        }
        let found = files.into_iter().zip(answers);
        let found = found.filter_map(|(path, content)| Some((path, content?)));
        self.files.extend(found);
        Ok(())
    }

    fn parse(&self, mut bytes: &[u8]) -> Result<Tree, GitError> {
        let n_hash = match self.repository.object_format() {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        };
        let mut tree = Tree::new();
        while !bytes.is_empty() {
            let space = position(bytes, b' ')?;
            let zero = position(bytes, 0)?;
            let (Some(mode), Some(name), Some(hash)) = (
                bytes.get(..space),
                bytes.get(space + 1..zero),
                bytes.get(zero + 1..zero + 1 + n_hash),
            ) else {
                return Err(unexpected());
            };
            let mode = String::from_utf8_lossy(mode);
            let object: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            let entry = TreeEntry {
                mode: format!("{mode:0>6}"),
                object,
            };
            tree.insert(OsString::from_vec(name.to_vec()), entry);
            bytes = bytes.get(zero + 1 + n_hash..).unwrap_or_default();
        }
        Ok(tree)
    }
}

/// Returns the content of each object that is named, or nothing where there is none.
pub(crate) fn objects(
    repository: &Repository,
    names: &[Vec<u8>],
) -> Result<Vec<Option<Vec<u8>>>, GitError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut script = names.join(&b'\n');
    script.push(b'\n');
    let call = repository.call("cat-file").args(["--batch", "--buffer"]);
    let output = call.stdin(script).bytes()?;
    let mut rest = output.as_slice();
    let mut answers = Vec::new();
    for name in names {
        let missing = [name.as_slice(), b" missing\n"].concat();
        if let Some(after) = rest.strip_prefix(missing.as_slice()) {
            rest = after;
            answers.push(None);
            continue;
        }
        let end = position(rest, b'\n')?;
        let header = rest.get(..end).unwrap_or_default();
        let bytes = header.split(|&b| b == b' ').nth(2).unwrap_or_default();
        let bytes: usize = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(unexpected)?;
        let content = rest.get(end + 1..end + 1 + bytes).ok_or_else(unexpected)?;
        answers.push(Some(content.to_vec()));
        rest = rest.get(end + 2 + bytes..).ok_or_else(unexpected)?;
    }
    Ok(answers)
}

fn position(bytes: &[u8], wanted: u8) -> Result<usize, GitError> {
    bytes
        .iter()
        .position(|&byte| byte == wanted)
        .ok_or_else(unexpected)
}

fn unexpected() -> GitError {
    GitError::Unexpected {
        subcommand: "cat-file".to_owned(),
    }
}
