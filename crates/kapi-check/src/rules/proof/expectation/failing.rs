//! Which lines of tests a run names where it fails.
//!
//! Runners and tracebacks name a file and a line in a handful of forms; what a program prints itself
//! looks the same, so such a line is only ever where to look first.

use super::TestLine;

/// The most lines that are returned.
const LINES_MAX: usize = 40;
/// Bytes of the longest line of output that is looked at.
const OUTPUT_LINE_BYTES_MAX: usize = 4_000;

/// Returns the lines of tests that an output names, in its order, each once.
#[must_use]
pub(super) fn failing(output: &str, tests: &[&str]) -> Vec<TestLine> {
    let is_short = |line: &&str| line.len() <= OUTPUT_LINE_BYTES_MAX;
    let lines = output.lines().filter(is_short).flat_map(|line| {
        let of_path = move |path: &&str| {
            let path = (*path).to_owned();
            let numbers = named(line, &path).into_iter();
            numbers.map(move |line| TestLine {
                path: path.clone(),
                line,
            })
        };
        tests.iter().flat_map(of_path)
    });
    let mut found: Vec<TestLine> = Vec::new();
    for line in lines {
        if found.len() == LINES_MAX {
            break;
        }
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// Returns the numbers of lines of a file that a line of output names.
fn named(line: &str, path: &str) -> Vec<usize> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let places = line.match_indices(name).filter_map(|(at, _)| {
        let before = line.get(..at)?;
        let shown = before
            .rsplit([' ', '\t', '"', '\'', '(', '[', '<', '=', ','])
            .next()
            .unwrap_or_default();
        let shown = format!("{shown}{name}");
        let is_meant = ends_with_path(&shown, path) || ends_with_path(path, &shown);
        let after = line.get(at + name.len()..)?;
        is_meant.then(|| number_after(after)).flatten()
    });
    places.collect()
}

/// Tells whether one path ends with another, at a slash.
fn ends_with_path(whole: &str, end: &str) -> bool {
    let end = end.trim_start_matches("./");
    whole
        .strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with(['/', ':']))
}

/// Returns the number of a line as it stands behind a file's name.
fn number_after(after: &str) -> Option<usize> {
    let starts = [":", "\", line ", "', line ", ", line ", "(", " line ", "#L"];
    let rest = starts.iter().find_map(|start| after.strip_prefix(start))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|number| *number > 0)
}
