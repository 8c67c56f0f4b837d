//! Turns a base and a list of changed entries into a commit.
//!
//! `fast-import` reads only the directories that change, so this costs what changed. It works in
//! a git directory of Kapi's own and moves no ref of the repository.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::plan::{BaseChanges, Taken};
use super::trees::TreeEntry;
use crate::candidate::CandidatePlan;
use crate::change::{ChangeKind, PathChange};
use crate::command::GitError;
use crate::id::{CommitId, TreeId};
use crate::scratch::Scratch;

/// The changes to a tree; removals are done first.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    /// Files, links and whole directories that go.
    pub(crate) removed: Vec<PathBuf>,
    /// Files and links as they are to be.
    pub(crate) set: Vec<(PathBuf, TreeEntry)>,
}

/// Writes the candidate that `base` becomes by an edit: the commit and its tree.
///
/// The commit is the one that `commit-tree` makes of the same plan and tree.
pub(crate) fn write_commit(
    scratch: &Scratch<'_>,
    base: &CommitId,
    plan: &CandidatePlan,
    edit: &Edit,
) -> Result<(CommitId, TreeId), GitError> {
    let who = identity(plan);
    let message = &plan.message;
    let mut script = format!(
        "commit refs/heads/layer\nmark :1\nauthor {who}\ncommitter {who}\ndata {}\n{message}\n\
         from {base}\n",
        message.len()
    )
    .into_bytes();
    for path in &edit.removed {
        script.extend_from_slice(b"D ");
        quote(&mut script, path);
    }
    for (path, entry) in &edit.set {
        script.extend_from_slice(format!("M {} {} ", entry.mode, entry.object).as_bytes());
        quote(&mut script, path);
    }
    script.extend_from_slice(b"\nget-mark :1\nls :1 \"\"\ndone\n");
    let call = scratch.call("fast-import");
    let call = call.args(["--quiet", "--done", "--force", "--date-format=raw"]);
    let answer = call.stdin(script).text()?;
    let unexpected = || GitError::Unexpected {
        subcommand: "fast-import".to_owned(),
    };
    let (commit, tree) = answer.split_once('\n').ok_or_else(unexpected)?;
    let tree = tree.strip_prefix("040000 tree ").ok_or_else(unexpected)?;
    let tree = tree.split('\t').next().unwrap_or_default();
    let commit = CommitId::parse(commit).map_err(|_malformed| unexpected())?;
    let tree = TreeId::parse(tree.trim()).map_err(|_malformed| unexpected())?;
    Ok((commit, tree))
}

/// Returns what an edit changes, where no directory gave way to a file.
pub(crate) fn changes(edit: &Edit, taken: &Taken) -> Vec<PathChange> {
    let removed = edit.removed.iter().map(|path| PathChange {
        path: path.clone(),
        kind: ChangeKind::Deleted,
    });
    let set = edit.set.iter().map(|(path, entry)| {
        let kind = match taken.get(path).and_then(Option::as_ref) {
            None => ChangeKind::Added,
            Some(base) if base.is_file() != entry.is_file() => ChangeKind::Type,
            Some(base) if base.object == entry.object => ChangeKind::Mode,
            Some(_) => ChangeKind::Modified,
        };
        let path = path.clone();
        PathChange { path, kind }
    });
    let mut changes: Vec<PathChange> = removed.chain(set).collect();
    changes.sort();
    changes
}

/// Returns the line that says who a commit is by, and when it is from.
pub(crate) fn identity(plan: &CandidatePlan) -> String {
    let (name, email) = (plain(&plan.author.name), plain(&plan.author.email));
    format!("{name} <{email}> {} +0000", plan.at_unix_seconds)
}

/// Returns a name or address without what git drops from its ends.
fn plain(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || ".,:;<>\"\\'".contains(c))
}

/// Adds a path in quotes, where any byte may stand, and ends the line.
fn quote(script: &mut Vec<u8>, path: &Path) {
    script.push(b'"');
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            script.push(byte);
        } else {
            script.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
    }
    script.extend_from_slice(b"\"\n");
}

/// Returns what has to be done to the base's tree.
pub(crate) fn edit(
    touched: &BaseChanges,
    taken: &Taken,
    listed: Vec<(PathBuf, TreeEntry)>,
) -> Edit {
    let set: Vec<(PathBuf, TreeEntry)> = listed
        .into_iter()
        .filter(|(path, entry)| {
            taken
                .get(path)
                .is_some_and(|base| base.as_ref() != Some(entry))
        })
        .collect();
    // A submodule below goes only with the directory that a file took the place of.
    let replaced = set.iter().map(|(path, _)| path);
    let replaced = replaced.filter(|path| touched.cleared.contains(*path));
    let removed = replaced.chain(&touched.gone).cloned().collect();
    Edit { removed, set }
}
