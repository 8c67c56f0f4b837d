//! What somebody made of a conflict: the lines between git's markers, and what of either side is lost.
//!
//! Lines of a side count as kept wherever they stand within what replaced the block. Files without lines
//! in conflict are kept whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::blame::{count, lines_of};
use super::{CoverageFinding, FindingKind};
use crate::change::TreeFile;
use crate::changed_file::FileMode;
use crate::command::GitError;
use crate::diff::entries_of;
use crate::hunks::{Hunk, TracedHunks, traced};
use crate::id::{CommitId, TreeId};
use crate::land::merge::{ConflictKind, ConflictPath, ConflictSide, MergeConflict};
use crate::scratch::Scratch;
use crate::tree_edit::TreeEdit;

/// Two commits that are merged, and what somebody made of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meeting<'a> {
    pub(super) ours: &'a CommitId,
    pub(super) theirs: &'a CommitId,
    /// What somebody made of it.
    pub(super) after: &'a CommitId,
    /// The place of the source that comes.
    pub(super) place: usize,
    /// What the steps before brought.
    pub(super) steps: &'a [TracedHunks],
}

/// Lines between markers, by their lines in the marked file, from 1, markers included.
#[derive(Debug, Default, PartialEq, Eq)]
struct ConflictBlock {
    first: u64,
    last: u64,
    ours: Vec<Vec<u8>>,
    base: Vec<Vec<u8>>,
    theirs: Vec<Vec<u8>>,
}

/// A file whose blocks are replaced.
#[derive(Debug, Default)]
struct SettledText {
    lines: Vec<Vec<u8>>,
    /// What replaced each block.
    blocks: Vec<SettledBlock>,
    /// Lines beside a block that went with it.
    beside: Vec<Vec<u8>>,
}

/// What replaced a block.
#[derive(Debug, Clone, Default)]
struct SettledBlock {
    /// Its first line in the file.
    first: u64,
    lines: Vec<Vec<u8>>,
}

/// Returns the tree that a merge should come to, with what somebody made of its conflicts, and what was
/// lost in them.
pub(super) fn settled(
    scratch: &Scratch<'_>,
    meeting: &Meeting<'_>,
    conflict: &MergeConflict,
) -> Result<(TreeId, Vec<CoverageFinding>), GitError> {
    let diff_tree = scratch.call("diff-tree");
    let made = traced(diff_tree, conflict.tree.as_str(), meeting.after.as_str())?;
    let there = files(scratch, meeting.after, &paths_of(conflict))?;
    let ours = ours_by_object(scratch, meeting)?;
    let (mut edits, mut findings) = (Vec::new(), Vec::new());
    for one in &conflict.paths {
        let has_lines = matches!(
            one.kind,
            ConflictKind::Content | ConflictKind::RenameEdit | ConflictKind::AddAdd
        );
        let now = there.get(&one.path);
        let marked = blob(scratch, conflict.tree.as_str(), &one.path)?;
        let blocks = marked.as_deref().map(|text| blocks(text, meeting));
        match (now, marked, blocks) {
            (Some(now), Some(marked), Some(blocks)) if has_lines && !blocks.is_empty() => {
                let hunks: Vec<&Hunk> = made
                    .hunks
                    .iter()
                    .filter(|hunk| hunk.path == one.path && !hunk.is_whole_file())
                    .collect();
                let text = replaced(&lines_of(&marked), &blocks, &hunks);
                let place = one.ours.as_ref().and_then(|side| ours.get(&side.object));
                let place = place.unwrap_or(&one.path);
                findings.extend(lost_lines(one, meeting, place, &blocks, &text));
                let mode = FileMode::of(&now.mode).unwrap_or(FileMode::Plain);
                let file = scratch.stored(&one.path, mode, &text.lines.concat())?;
                edits.push(TreeEdit::File(file));
            }
            (now, _, _) => {
                findings.extend(lost_files(one, meeting, &there));
                edits.push(match now {
                    Some(file) => TreeEdit::File(file.clone()),
                    None => TreeEdit::Gone(one.path.clone()),
                });
            }
        }
    }
    let tree = scratch.edited(conflict.tree.as_str(), &edits)?;
    Ok((tree, findings))
}

/// Returns where on our side the files are that the steps changed, by their contents: what comes may have
/// moved them, and git then tells the new place for all sides.
fn ours_by_object(
    scratch: &Scratch<'_>,
    meeting: &Meeting<'_>,
) -> Result<BTreeMap<String, PathBuf>, GitError> {
    let hunks = meeting.steps.iter().flat_map(|step| &step.hunks);
    let changed: BTreeSet<PathBuf> = hunks.map(|hunk| hunk.path.clone()).collect();
    let files = files(scratch, meeting.ours, &changed)?.into_iter();
    Ok(files.map(|(path, file)| (file.object, path)).collect())
}

fn paths_of(conflict: &MergeConflict) -> BTreeSet<PathBuf> {
    let sides = |one: &ConflictPath| {
        let sides = [&one.base, &one.ours, &one.theirs].into_iter().flatten();
        let paths: Vec<PathBuf> = sides.map(|side| side.path.clone()).collect();
        paths
    };
    let paths = conflict.paths.iter();
    paths
        .flat_map(|one| [vec![one.path.clone()], sides(one)].concat())
        .collect()
}

/// Returns those of the paths that a commit has.
fn files(
    scratch: &Scratch<'_>,
    commit: &CommitId,
    paths: &BTreeSet<PathBuf>,
) -> Result<BTreeMap<PathBuf, TreeFile>, GitError> {
    if paths.is_empty() {
        return Ok(BTreeMap::new());
    }
    let spec = |path: &PathBuf| {
        let mut spec = OsString::from(":(top,literal)");
        spec.push(path);
        spec
    };
    let specs: Vec<OsString> = paths.iter().map(spec).collect();
    let (call, format) = (
        scratch.call("diff-tree"),
        scratch.repository().object_format(),
    );
    let found = entries_of(call, format, commit.as_str(), &specs)?;
    let pairs = found.into_iter().map(|file| (file.path.clone(), file));
    Ok(pairs.filter(|(path, _)| paths.contains(path)).collect())
}

/// Returns the content of a file of a tree; nothing where there is none.
pub(super) fn blob(
    scratch: &Scratch<'_>,
    treeish: &str,
    path: &Path,
) -> Result<Option<Vec<u8>>, GitError> {
    let mut spec = OsString::from(treeish);
    spec.push(":");
    spec.push(path);
    let exit = scratch
        .call("cat-file")
        .args(["blob".into(), spec])
        .exit()?;
    Ok((exit.code == 0).then_some(exit.stdout))
}

/// Finds the blocks of a file that git marked; the ends of the markers name the commits.
fn blocks(text: &[u8], meeting: &Meeting<'_>) -> Vec<ConflictBlock> {
    let begins = format!("<<<<<<< {}", meeting.ours);
    let ends = format!(">>>>>>> {}", meeting.theirs);
    let mut found = Vec::new();
    let mut open: Option<(ConflictBlock, u8)> = None;
    for (number, line) in (1_u64..).zip(text.split_inclusive(|&b| b == b'\n')) {
        match &mut open {
            None if line.starts_with(begins.as_bytes()) => {
                let first = number;
                let block = ConflictBlock {
                    first,
                    ..ConflictBlock::default()
                };
                open = Some((block, 0));
            }
            None => {}
            Some((block, _)) if line.starts_with(ends.as_bytes()) => {
                block.last = number;
                found.extend(open.take().map(|(block, _)| block));
            }
            Some((_, part @ 0)) if line.starts_with(b"||||||| ") => *part = 1,
            Some((_, part @ 1)) if line.trim_ascii_end() == b"=======" => *part = 2,
            Some((block, part)) => {
                let side = match part {
                    0 => &mut block.ours,
                    1 => &mut block.base,
                    _ => &mut block.theirs,
                };
                side.push(line.to_vec());
            }
        }
    }
    found
}

/// Puts into a marked file what somebody made of its blocks, and nothing else of what they did.
fn replaced(marked: &[Vec<u8>], blocks: &[ConflictBlock], hunks: &[&Hunk]) -> SettledText {
    let block_of = |hunk: &Hunk| blocks.iter().position(|block| block.touches(hunk));
    let mut text = SettledText {
        blocks: vec![SettledBlock::default(); blocks.len()],
        ..SettledText::default()
    };
    let meant: Vec<&Hunk> = hunks
        .iter()
        .filter(|hunk| block_of(hunk).is_some())
        .copied()
        .collect();
    for number in 0..=count(marked) {
        let line = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        if let Some(line) = line.and_then(|line| marked.get(line)) {
            let within = |block: &ConflictBlock| (block.first..=block.last).contains(&number);
            let at = blocks.iter().position(within);
            let is_gone = meant.iter().any(|hunk| removes(hunk, number));
            text.take(line, at, is_gone);
        }
        // What a hunk adds stands behind the line before it.
        for hunk in meant.iter().filter(|hunk| begins_behind(hunk, number)) {
            let at = block_of(hunk);
            for line in &hunk.added {
                text.take(line, at, false);
            }
        }
    }
    // What went beside a block and came back within it is not lost.
    let came: Vec<Vec<u8>> = text.blocks.iter().flat_map(|it| it.lines.clone()).collect();
    text.beside = without(&text.beside, &came);
    text
}

fn removes(hunk: &Hunk, number: u64) -> bool {
    (hunk.line_before..hunk.line_before + count(&hunk.removed)).contains(&number)
}

fn begins_behind(hunk: &Hunk, number: u64) -> bool {
    match hunk.removed.len() {
        0 => hunk.line_before == number,
        _ => hunk.line_before == number + 1,
    }
}

impl ConflictBlock {
    /// Tells whether a hunk changes something in it, or at its edge.
    fn touches(&self, hunk: &Hunk) -> bool {
        let (first, n) = (hunk.line_before, count(&hunk.removed));
        if n == 0 {
            (self.first.saturating_sub(1)..=self.last).contains(&first)
        } else {
            first <= self.last && first + n > self.first
        }
    }
}

impl SettledText {
    /// Takes in a line of the file, or of what replaced a block.
    fn take(&mut self, line: &[u8], block: Option<usize>, is_gone: bool) {
        if is_gone {
            if block.is_none() {
                self.beside.push(line.to_vec());
            }
            return;
        }
        self.lines.push(line.to_vec());
        let number = count(&self.lines);
        if let Some(block) = block.and_then(|at| self.blocks.get_mut(at)) {
            if block.lines.is_empty() {
                block.first = number;
            }
            block.lines.push(line.to_vec());
        }
    }
}

/// Returns the lines that are left once others are taken away, each as often as it is there.
fn without(lines: &[Vec<u8>], others: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut there: BTreeMap<&[u8], u64> = BTreeMap::new();
    for line in others {
        *there.entry(line).or_default() += 1;
    }
    let mut left = Vec::new();
    for line in lines {
        match there.get_mut(line.as_slice()) {
            Some(n) if *n > 0 => *n -= 1,
            _ => left.push(line.clone()),
        }
    }
    left
}

/// Tells what is lost of the lines in the blocks of a file.
fn lost_lines(
    one: &ConflictPath,
    meeting: &Meeting<'_>,
    ours: &Path,
    blocks: &[ConflictBlock],
    text: &SettledText,
) -> Vec<CoverageFinding> {
    let mut findings = Vec::new();
    for (block, made) in blocks.iter().zip(&text.blocks) {
        let lost = block.lost(&block.ours, made);
        findings.extend(lost.map(|(is_missed, finding)| {
            let kind = if is_missed {
                FindingKind::Reverted
            } else {
                FindingKind::Altered
            };
            CoverageFinding {
                kind,
                path: one.path.clone(),
                source: ours_from(meeting, ours, block),
                ..finding
            }
        }));
        let theirs = block.lost(&block.theirs, made);
        findings.extend(theirs.map(|(_, finding)| CoverageFinding {
            path: one.path.clone(),
            source: Some(meeting.place),
            ..finding
        }));
    }
    if !text.beside.is_empty() {
        findings.push(CoverageFinding {
            lost: text.beside.clone(),
            is_settled: true,
            ..CoverageFinding::at(FindingKind::Reverted, &one.path, 0)
        });
    }
    findings
}

impl ConflictBlock {
    /// Tells what of a side is not in what replaced the block, and whether nothing of it is.
    fn lost(&self, side: &[Vec<u8>], made: &SettledBlock) -> Option<(bool, CoverageFinding)> {
        let brought = without(side, &self.base);
        let taken = without(&self.base, side);
        let lost = without(&brought, &made.lines);
        let beyond = without(&made.lines, side);
        let restored = without(&taken, &without(&taken, &beyond));
        if lost.is_empty() && restored.is_empty() {
            return None;
        }
        let known = [&self.ours, &self.base, &self.theirs].map(Vec::as_slice);
        let own_words = without(&made.lines, &known.concat());
        let is_whole =
            lost.len() == brought.len() && (!brought.is_empty() || restored.len() == taken.len());
        let is_missed = is_whole && own_words.is_empty();
        let (kind, found) = if is_missed {
            (FindingKind::Missed, restored)
        } else {
            (FindingKind::Altered, own_words)
        };
        let finding = CoverageFinding {
            lost,
            found,
            is_settled: true,
            ..CoverageFinding::at(kind, Path::new(""), made.first)
        };
        Some((is_missed, finding))
    }
}

/// Returns the source that brought most of what is in conflict on our side, the last of several; nothing
/// where it was there before.
fn ours_from(meeting: &Meeting<'_>, path: &Path, block: &ConflictBlock) -> Option<usize> {
    let brought = without(&block.ours, &block.base);
    let taken = without(&block.base, &block.ours);
    let (mut most, mut from, mut now) = (0, None, path);
    for (source, step) in meeting.steps.iter().enumerate().rev() {
        let hunks = step.hunks.iter().filter(|hunk| hunk.path == now);
        let n = hunks
            .map(|hunk| {
                let others = without(&brought, &hunk.added).len();
                let kept = without(&taken, &hunk.removed).len();
                brought.len() + taken.len() - others - kept
            })
            .max()
            .unwrap_or(0);
        if n > most {
            (most, from) = (n, Some(source));
        }
        // Before this step the file may have had another name.
        now = step.renames.get(now).map_or(now, PathBuf::as_path);
    }
    from
}

/// Tells which versions of a path are lost that has no lines in conflict.
fn lost_files(
    one: &ConflictPath,
    meeting: &Meeting<'_>,
    there: &BTreeMap<PathBuf, TreeFile>,
) -> Vec<CoverageFinding> {
    let is_at = |side: &ConflictSide| {
        let now = there.get(&side.path);
        now.is_some_and(|file| file.object == side.object)
    };
    let is_kept = |side: &Option<ConflictSide>, other: &Option<ConflictSide>| match side {
        Some(side) => is_at(side),
        None => other
            .as_ref()
            .is_none_or(|other| !there.contains_key(&other.path)),
    };
    let same = |side: &Option<ConflictSide>| match (side, &one.base) {
        (Some(side), Some(base)) => side.object == base.object && side.path == base.path,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    let mut findings = Vec::new();
    let sides = [
        (&one.ours, &one.theirs, true),
        (&one.theirs, &one.ours, false),
    ];
    for (side, other, is_ours) in sides {
        if same(side) || is_kept(side, other) {
            continue;
        }
        let is_other = is_kept(other, side) || !there.contains_key(&one.path);
        let kind = match (is_other, is_ours) {
            (true, true) => FindingKind::Reverted,
            (true, false) => FindingKind::Missed,
            (false, _) => FindingKind::Altered,
        };
        let source = if is_ours {
            let path = side.as_ref().or(one.base.as_ref()).map(|side| &side.path);
            last_to_change(meeting, path.unwrap_or(&one.path))
        } else {
            Some(meeting.place)
        };
        findings.push(CoverageFinding {
            source,
            is_settled: true,
            ..CoverageFinding::at(kind, &one.path, 0)
        });
    }
    findings
}

/// Returns the source that changed a file last; nothing where none did.
fn last_to_change(meeting: &Meeting<'_>, path: &Path) -> Option<usize> {
    let changes = |step: &TracedHunks| {
        let mut hunks = step.hunks.iter();
        hunks.any(|hunk| hunk.path == path) || step.renames.contains_key(path)
    };
    meeting.steps.iter().rposition(changes)
}
