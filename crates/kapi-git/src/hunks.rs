//! The hunks between two commits, each with the lines that it takes away and brings.
//!
//! Read from trees without context or drivers. A moved file is one path gone and one new, unless renames
//! are asked for: then its hunks are those against the file that it was. What has no lines (a binary file, a mode, an empty file) is one hunk that names the contents.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::path::PathBuf;

use crate::change::RawChange;
use crate::command::{GitCall, GitError};
use crate::diff::{PLAIN, raw_change, unexpected};
use crate::id::CommitId;
use crate::repository::{Repository, path_of};

/// Lines of one file that changed in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The file.
    pub path: PathBuf,
    /// The first line of the place as it is after the change, from 1; 0 where it is no place in a text.
    pub line: u64,
    /// The same before the change: where lines are gone the first of them, otherwise the line before.
    pub line_before: u64,
    /// The lines that are gone, with their ends.
    pub removed: Vec<Vec<u8>>,
    /// The lines that are new, with their ends.
    pub added: Vec<Vec<u8>>,
}

/// Hunks of which those of a moved file are against the file that it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TracedHunks {
    /// The hunks, by path and line.
    pub(crate) hunks: Vec<Hunk>,
    /// What moved: where a file is, and where it was.
    pub(crate) renames: BTreeMap<PathBuf, PathBuf>,
}

impl Hunk {
    /// Tells whether it names contents and has no lines.
    #[must_use]
    pub const fn is_whole_file(&self) -> bool {
        self.line == 0 && self.line_before == 0
    }
}

impl Repository {
    /// Returns every hunk between two commits.
    ///
    /// # Errors
    /// When git fails, or the whole of the change is more than git's output may be.
    pub fn hunks(&self, base: &CommitId, commit: &CommitId) -> Result<Vec<Hunk>, GitError> {
        let diff_tree = self.call("diff-tree");
        let traced = between(diff_tree, "--no-renames", [base.as_str(), commit.as_str()]);
        traced.map(|traced| traced.hunks)
    }
}

/// Returns every hunk between two trees, with renames as git detects them.
pub(crate) fn traced(
    diff_tree: GitCall<'_>,
    from: &str,
    to: &str,
) -> Result<TracedHunks, GitError> {
    between(diff_tree, "--find-renames", [from, to])
}

fn between(
    diff_tree: GitCall<'_>,
    renames: &str,
    trees: [&str; 2],
) -> Result<TracedHunks, GitError> {
    let text = diff_tree
        .args(["-r", "-p", "--raw", "--no-abbrev", renames, "-l1000"])
        .args(["--unified=0", "--full-index"])
        .args(["--no-color", "--src-prefix=a/", "--dst-prefix=b/"])
        .args(PLAIN)
        .args(trees)
        .bytes()?;
    let (mut traced, versions) = read(&text).ok_or_else(unexpected)?;
    let with_lines: BTreeSet<PathBuf> = traced.hunks.iter().map(|hunk| hunk.path.clone()).collect();
    let moved: BTreeSet<PathBuf> = traced
        .renames
        .iter()
        .flat_map(|(to, from)| [to.clone(), from.clone()])
        .collect();
    for change in versions {
        if !moved.contains(&change.entry.path) {
            let has_lines = with_lines.contains(&change.entry.path);
            traced.hunks.extend(whole_file(change, has_lines));
        }
    }
    traced
        .hunks
        .sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    Ok(traced)
}

/// Returns what a change has that no line of it tells.
fn whole_file(change: RawChange, has_lines: bool) -> Option<Hunk> {
    let is_same_mode = change.mode_before == change.entry.mode;
    let is_new_or_gone = [&change.mode_before, &change.entry.mode]
        .iter()
        .any(|mode| mode.bytes().all(|b| b == b'0'));
    if has_lines && (is_same_mode || is_new_or_gone) {
        return None;
    }
    // The lines of a file whose mode changes too are hunks of their own.
    let (before, after) = if has_lines {
        (change.mode_before, change.entry.mode)
    } else {
        let before = format!("{} {}", change.mode_before, change.object_before);
        (
            before,
            format!("{} {}", change.entry.mode, change.entry.object),
        )
    };
    Some(Hunk {
        path: change.entry.path,
        line: 0,
        line_before: 0,
        removed: vec![before.into_bytes()],
        added: vec![after.into_bytes()],
    })
}

/// Reads the list of changed paths and the patch without context; `None` where they are none.
fn read(text: &[u8]) -> Option<(TracedHunks, Vec<RawChange>)> {
    let mut lines = text.split_inclusive(|&b| b == b'\n').peekable();
    let mut versions = Vec::new();
    while let Some(line) = lines.next_if(|line| line.starts_with(b":")) {
        let line = ChangeLine::read(line)?;
        // Of what moved, the patch tells.
        if !line.letter.starts_with('R') {
            versions.push(line.change()?);
        }
    }
    let (mut traced, mut path, mut moved) = (TracedHunks::default(), None, None);
    while let Some(line) = lines.next() {
        if line.starts_with(b"diff --git ") {
            path = None;
        } else if let Some(from) = line.strip_prefix(b"rename from ") {
            moved = Some(path_of(&unquoted(from.strip_suffix(b"\n")?)?));
        } else if let Some(to) = line.strip_prefix(b"rename to ") {
            let to = path_of(&unquoted(to.strip_suffix(b"\n")?)?);
            traced.renames.insert(to, moved.take()?);
        } else if let Some(name) = named(line, b"--- ").or_else(|| named(line, b"+++ ")) {
            path = Some(path_of(&name));
        } else if line.starts_with(b"@@ ") {
            let location = HunkRange::read(line)?;
            traced.hunks.push(Hunk {
                path: path.clone()?,
                line: location.line,
                line_before: location.line_before,
                removed: take(&mut lines, location.removed, b'-')?,
                added: take(&mut lines, location.added, b'+')?,
            });
        }
    }
    Some((traced, versions))
}

/// A line of the list of changed paths.
struct ChangeLine<'a> {
    modes: [&'a str; 2],
    objects: [&'a str; 2],
    letter: &'a str,
    name: &'a [u8],
}

impl<'a> ChangeLine<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_prefix(b":")?.strip_suffix(b"\n")?;
        let at = line.iter().position(|&b| b == b'\t')?;
        let (marks, name) = line.split_at(at);
        let marks: Vec<&str> = str::from_utf8(marks).ok()?.split(' ').collect();
        let [mode_before, mode, object_before, object, letter] = marks[..] else {
            return None;
        };
        Some(Self {
            modes: [mode_before, mode],
            objects: [object_before, object],
            letter,
            name: name.get(1..)?,
        })
    }

    fn change(&self) -> Option<RawChange> {
        let path = path_of(&unquoted(self.name)?);
        Some(raw_change(self.modes, self.objects, self.letter, path))
    }
}

/// Takes the next `n` lines, which begin with `sign`, without it. A last line without an end is
/// followed by a note of git's.
fn take<'a>(
    lines: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
    n: u64,
    sign: u8,
) -> Option<Vec<Vec<u8>>> {
    let mut taken = Vec::new();
    for _ in 0..n {
        let mut own = lines.next()?.strip_prefix(&[sign])?.to_vec();
        if lines.next_if(|next| next.starts_with(b"\\ ")).is_some() {
            own.pop();
        }
        taken.push(own);
    }
    Some(taken)
}

/// What the head of a hunk says.
struct HunkRange {
    line_before: u64,
    removed: u64,
    line: u64,
    added: u64,
}

impl HunkRange {
    /// Reads `@@ -1,2 +3,4 @@ …`, where a count of one is left out.
    fn read(line: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(line);
        let mut words = text.split(' ').skip(1);
        let mut next = |sign| {
            let location = words.next()?.strip_prefix(sign)?;
            let (line, n) = location.split_once(',').unwrap_or((location, "1"));
            Some((line.parse::<u64>().ok()?, n.parse::<u64>().ok()?))
        };
        let (line_before, removed) = next('-')?;
        let (line, added) = next('+')?;
        Some(Self {
            line_before,
            removed,
            line,
            added,
        })
    }
}

/// Returns the path that a line names, without git's `a/` or `b/`; none for `/dev/null`.
fn named(line: &[u8], sign: &[u8]) -> Option<Vec<u8>> {
    let name = line.strip_prefix(sign)?.strip_suffix(b"\n")?;
    // Git ends a name that has a space with a tab.
    let name = name.strip_suffix(b"\t").unwrap_or(name);
    let name = unquoted(name)?;
    let is_side = name.starts_with(b"a/") || name.starts_with(b"b/");
    is_side.then(|| name.get(2..).map(<[u8]>::to_vec))?
}

/// Returns a name that git may have quoted.
fn unquoted(name: &[u8]) -> Option<Vec<u8>> {
    match name.strip_prefix(b"\"") {
        Some(quoted) => plain(quoted.strip_suffix(b"\"")?),
        None => Some(name.to_vec()),
    }
}

/// Undoes git's quoting of a name.
fn plain(quoted: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut plain) = (quoted.iter().copied(), Vec::new());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        plain.push(match bytes.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            first @ b'0'..=b'3' => {
                let digits = [first, bytes.next()?, bytes.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 8).ok()?
            }
            other => other,
        });
    }
    Some(plain)
}
