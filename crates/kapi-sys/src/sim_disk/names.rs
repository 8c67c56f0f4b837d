//! The directory tree of a simulated disk: visible names, durable names, and the changes between.
//!
//! A change of a name becomes durable by a sync of the directory it happened in. Content is not
//! its business: a name leads to a file's number.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::dice::SeededDice;

/// The number of a file, which a rename does not change.
pub(super) type FileId = u64;

/// What a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameNode {
    Directory,
    File(FileId),
}

type Tree = BTreeMap<PathBuf, NameNode>;

/// The names on a disk. The root needs none and is always there.
#[derive(Debug, Default)]
pub(super) struct DiskNames {
    live: Tree,
    durable: Tree,
    /// What leads from `durable` to `live`.
    pending: Vec<NameChange>,
}

/// One change of a directory.
#[derive(Debug)]
enum NameChange {
    Create {
        path: PathBuf,
        node: NameNode,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
        node: NameNode,
    },
}

impl NameChange {
    /// Returns the directory whose sync makes the change durable.
    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Create { path, .. } => path.parent(),
            Self::Rename { to, .. } => to.parent(),
        }
    }

    fn apply(&self, tree: &mut Tree) {
        match self {
            Self::Create { path, node } => {
                tree.insert(path.clone(), *node);
            }
            Self::Rename { from, to, node } => {
                if tree.get(from) == Some(node) {
                    tree.remove(from);
                }
                tree.insert(to.clone(), *node);
            }
        }
    }
}

impl DiskNames {
    /// Returns what is at `path`; an error when a file stands where a directory should.
    pub(super) fn find(&self, path: &Path) -> io::Result<Option<NameNode>> {
        if is_root(path) {
            return Ok(Some(NameNode::Directory));
        }
        let is_file = |above: &Path| matches!(self.live.get(above), Some(NameNode::File(_)));
        if path.ancestors().skip(1).any(is_file) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(self.live.get(path).copied())
    }

    /// Returns the names in a directory, sorted.
    pub(super) fn children(&self, dir: &Path) -> Vec<String> {
        let below = self.live.range(dir.to_path_buf()..).map(|(path, _)| path);
        let below = below.take_while(|path| path.starts_with(dir));
        let names = below.filter(|path| path.parent() == Some(dir));
        let names = names.filter_map(|path| path.file_name());
        let mut names: Vec<_> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Adds a name whose directory must be there.
    pub(super) fn create(&mut self, path: &Path, node: NameNode) -> io::Result<()> {
        self.check_directory_of(path)?;
        self.change(NameChange::Create {
            path: path.to_path_buf(),
            node,
        });
        Ok(())
    }

    /// Moves a file's name. Directories are not moved: nobody needs it, and their content would
    /// have to move too.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = match self.find(from)? {
            Some(node @ NameNode::File(_)) => node,
            Some(NameNode::Directory) => return Err(io::ErrorKind::Unsupported.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        if self.find(to)? == Some(NameNode::Directory) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.check_directory_of(to)?;
        if from != to {
            self.change(NameChange::Rename {
                from: from.to_path_buf(),
                to: to.to_path_buf(),
                node,
            });
        }
        Ok(())
    }

    /// Adds a directory and its parents to both sides.
    pub(super) fn provide_dir(&mut self, dir: &Path) {
        for path in dir.ancestors().filter(|path| !is_root(path)) {
            self.live.insert(path.to_path_buf(), NameNode::Directory);
            self.durable.insert(path.to_path_buf(), NameNode::Directory);
        }
    }

    /// Makes the changes of one directory durable.
    pub(super) fn sync(&mut self, dir: &Path) {
        let is_here = |change: &mut NameChange| change.directory() == Some(dir);
        for change in self.pending.extract_if(.., is_here) {
            change.apply(&mut self.durable);
        }
    }

    pub(super) fn sync_all(&mut self) {
        self.pending.clear();
        self.durable.clone_from(&self.live);
    }

    /// Drops everything that is not durable.
    pub(super) fn lose(&mut self) {
        self.pending.clear();
        self.durable = reachable(&self.durable);
        self.live.clone_from(&self.durable);
    }

    /// Keeps the first few changes of each directory.
    pub(super) fn tear(&mut self, dice: &mut SeededDice) {
        let mut by_directory: BTreeMap<PathBuf, Vec<NameChange>> = BTreeMap::new();
        for change in self.pending.drain(..) {
            let directory = change.directory().unwrap_or(Path::new("/")).to_path_buf();
            by_directory.entry(directory).or_default().push(change);
        }
        for changes in by_directory.into_values() {
            let n_kept = dice.up_to(changes.len());
            for change in changes.iter().take(n_kept) {
                change.apply(&mut self.durable);
            }
        }
        self.lose();
    }

    pub(super) fn live_files(&self) -> BTreeMap<PathBuf, FileId> {
        files(&self.live)
    }

    pub(super) fn durable_files(&self) -> BTreeMap<PathBuf, FileId> {
        files(&reachable(&self.durable))
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    fn check_directory_of(&self, path: &Path) -> io::Result<()> {
        match path
            .parent()
            .map(|parent| self.find(parent))
            .transpose()?
            .flatten()
        {
            Some(NameNode::Directory) => Ok(()),
            Some(NameNode::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn is_root(path: &Path) -> bool {
    path.as_os_str().is_empty() || path == Path::new("/") || path == Path::new(".")
}

/// Returns the names all of whose directories are there: a lost directory takes its content along.
fn reachable(tree: &Tree) -> Tree {
    let is_there = |above: &Path| is_root(above) || tree.get(above) == Some(&NameNode::Directory);
    let kept = tree
        .iter()
        .filter(|(path, _)| path.ancestors().skip(1).all(is_there));
    kept.map(|(path, node)| (path.clone(), *node)).collect()
}

fn files(tree: &Tree) -> BTreeMap<PathBuf, FileId> {
    let file = |(path, node): (&PathBuf, &NameNode)| match node {
        NameNode::File(id) => Some((path.clone(), *id)),
        NameNode::Directory => None,
    };
    tree.iter().filter_map(file).collect()
}
