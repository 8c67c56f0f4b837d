//! Which step brought a line of what should come of the sources.
//!
//! Pure: walks back through the hunks of each step, renames included.

use std::path::{Path, PathBuf};

use crate::hunks::{Hunk, TracedHunks};

/// A hunk that a step brought: the source by its place in the plan, and the hunk by its place among
/// those of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StepHunk {
    pub(super) source: usize,
    pub(super) hunk: usize,
}

/// Where a file was at some step.
struct PastLine {
    path: PathBuf,
    line: u64,
}

/// Returns the hunk that brought a line of the last step's tree; nothing where it was there before.
pub(super) fn origin(steps: &[TracedHunks], path: &Path, line: u64) -> Option<StepHunk> {
    let mut at = PastLine {
        path: path.to_path_buf(),
        line,
    };
    for (source, step) in steps.iter().enumerate().rev() {
        match before(step, &at) {
            Ok(earlier) => at = earlier,
            Err(hunk) => return Some(StepHunk { source, hunk }),
        }
    }
    None
}

/// Returns where a line was before a step, or the hunk that brought it.
fn before(step: &TracedHunks, at: &PastLine) -> Result<PastLine, usize> {
    let mut line = at.line;
    let hunks = step.hunks.iter().enumerate();
    for (idx, hunk) in hunks.filter(|(_, hunk)| hunk.path == at.path) {
        if at.line == 0 || hunk.is_whole_file() {
            if at.line == 0 && hunk.is_whole_file() {
                return Err(idx);
            }
            continue;
        }
        let (added, removed) = (count(&hunk.added), count(&hunk.removed));
        if (hunk.line..hunk.line + added).contains(&at.line) {
            return Err(idx);
        }
        if at.line > hunk.line {
            line = (line + removed).saturating_sub(added);
        }
    }
    let path = step.renames.get(&at.path).unwrap_or(&at.path).clone();
    Ok(PastLine { path, line })
}

/// Returns the paths that a file had, the last first: at the end, before each step that moved it.
pub(super) fn past_paths(steps: &[TracedHunks], path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![path.to_path_buf()];
    for step in steps.iter().rev() {
        let now = paths.last().map_or(path, PathBuf::as_path);
        if let Some(from) = step.renames.get(now) {
            paths.push(from.clone());
        }
    }
    paths
}

pub(super) fn count(lines: &[Vec<u8>]) -> u64 {
    u64::try_from(lines.len()).unwrap_or(u64::MAX)
}

/// Tells whether lines stand somewhere one after another, byte by byte.
pub(super) fn holds(lines: &[Vec<u8>], part: &[Vec<u8>]) -> bool {
    !part.is_empty() && lines.windows(part.len()).any(|window| window == part)
}

/// Splits a content into lines with their ends.
pub(super) fn lines_of(content: &[u8]) -> Vec<Vec<u8>> {
    let lines = content.split_inclusive(|&b| b == b'\n');
    lines.map(<[u8]>::to_vec).collect()
}

/// Returns a hunk of a step.
pub(super) fn hunk_of(steps: &[TracedHunks], at: StepHunk) -> Option<&Hunk> {
    steps.get(at.source)?.hunks.get(at.hunk)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{StepHunk, origin, past_paths};
    use crate::hunks::{Hunk, TracedHunks};

    fn hunk(path: &str, places: [u64; 2], removed: &str, added: &str) -> Hunk {
        let lines = |text: &str| text.bytes().map(|b| vec![b, b'\n']).collect();
        Hunk {
            path: PathBuf::from(path),
            line_before: places[0],
            line: places[1],
            removed: lines(removed),
            added: lines(added),
        }
    }

    #[test]
    fn lines_are_traced_through_what_moved_them() {
        let first = TracedHunks {
            hunks: vec![hunk("a", [2, 3], "", "xy"), hunk("a", [5, 6], "e", "")],
            ..TracedHunks::default()
        };
        let second = TracedHunks {
            hunks: vec![hunk("b", [1, 1], "a", "A"), hunk("b", [4, 4], "y", "Y")],
            renames: [(PathBuf::from("b"), PathBuf::from("a"))].into(),
        };
        let steps = [first, second];
        let found: Vec<Option<StepHunk>> = (1..=7)
            .map(|line| origin(&steps, Path::new("b"), line))
            .collect();
        let by = |source, hunk| Some(StepHunk { source, hunk });
        // A b x Y c d f
        assert_eq!(
            found,
            [by(1, 0), None, by(0, 0), by(1, 1), None, None, None]
        );
        assert_eq!(
            past_paths(&steps, Path::new("b")),
            ["b", "a"].map(PathBuf::from)
        );
        assert_eq!(origin(&steps, Path::new("a"), 1), None);
    }
}
