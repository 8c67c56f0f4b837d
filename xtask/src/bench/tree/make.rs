//! Making a repository with many files: one stream into git, then one checkout.
//!
//! The files are as large as source files often are, and no two are the same. The repository is
//! packed, as one is that was cloned.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;

use super::{BenchRepository, Changes};
use crate::bench::invocation::Invocation;
use crate::tool::ToolCommand;

/// Files in one directory, and directories in one above it.
const FILES: usize = 100;
const DIRECTORIES: usize = 50;
/// What no repository of a person's says.
pub(super) const IDENTITY: [&str; 4] = [
    "-c",
    "user.name=bench",
    "-c",
    "user.email=bench@example.invalid",
];
/// Distances between the files that are changed, so that they lie far apart.
const STRIDE: usize = 97;

/// Fills a tree that is only a directory yet.
pub(super) fn make(tree: &BenchRepository) -> anyhow::Result<()> {
    git(tree, &["init", "--quiet", "--initial-branch=main"])?;
    // A repack in the background would be measured with what happens to run beside it.
    git(tree, &["config", "gc.auto", "0"])?;
    let import = Invocation::new(
        "`git fast-import`",
        &tree.root,
        "git",
        &["fast-import", "--quiet"],
    );
    let (started, input, output) = import.start_piped()?;
    let mut input = BufWriter::new(input);
    writeln!(
        input,
        "commit refs/heads/main\ncommitter bench <bench@example.invalid> 1700000000 +0000\ndata 5\nstart"
    )
    .context("write a commit")?;
    for number in 0..usize::try_from(tree.n_files)? {
        let (path, content) = (path(number), content(number));
        let length = content.len();
        let mode = "100644 inline";
        write!(
            input,
            "M {mode} {}\ndata {length}\n{content}\n",
            path.display()
        )
        .context("write a file")?;
    }
    let mut input = input.into_inner().context("write the last file")?;
    writeln!(input, "done").context("end the commit")?;
    drop(input);
    started.finish()?;
    drop(output);
    git(tree, &["reset", "--quiet", "--hard"])?;
    Ok(())
}

/// Runs git in a tree, without the person's configuration.
pub(super) fn git(tree: &BenchRepository, args: &[&str]) -> anyhow::Result<String> {
    bare_git(&tree.root, args)
}

/// Runs git anywhere, without the person's configuration.
pub(super) fn bare_git(directory: &std::path::Path, args: &[&str]) -> anyhow::Result<String> {
    ToolCommand::new(directory, "git", args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .read()
}

/// Returns the paths that changes are made to: changed, new and deleted ones.
pub(super) fn paths(changes: &Changes) -> [Vec<PathBuf>; 3] {
    let Changes {
        n_changed,
        n_new,
        n_deleted,
    } = *changes;
    // Every hundredth file is the first of its directory; these numbers never meet.
    let apart = |from: usize, n: usize| (from..from + n).map(|at| path(at * 7 % 1000)).collect();
    let new = (0..n_new).map(|at| path(at * STRIDE % 1000).with_extension("new"));
    [
        apart(0, n_changed),
        new.collect(),
        apart(n_changed, n_deleted),
    ]
}

pub(super) fn path(number: usize) -> PathBuf {
    let directory = number / FILES;
    let above = directory / DIRECTORIES;
    PathBuf::from(format!("part{above}/dir{directory}/file{number}.txt"))
}

pub(super) fn content(number: usize) -> String {
    let n_lines = 8 + number % 32;
    (0..n_lines)
        .map(|line| format!("line {line} of file {number}: {}\n", number * 31 + line))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Changes, paths};

    #[test]
    fn no_two_changes_meet() {
        let changes = Changes {
            n_changed: 60,
            n_new: 20,
            n_deleted: 20,
        };
        let all: BTreeSet<_> = paths(&changes).into_iter().flatten().collect();
        assert_eq!(all.len(), 100);
    }
}
