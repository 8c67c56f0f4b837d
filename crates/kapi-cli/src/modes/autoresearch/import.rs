//! What pi-autoresearch left in a directory: its ledger, scripts, contract and backlog.
//!
//! Its current layout where any file of it is there, else the one before. A torn last line is the only
//! damage that is let pass; everything else is refused with its line.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use kapi_core::value::KernelValue;
use kapi_workflow::rules::modes::autoresearch::history::History;

use crate::error::Error;

/// The files of a layout: ledger, benchmark, checks, ideas, contract.
type Layout = [&'static str; 5];

const CURRENT: Layout = [
    ".auto/log.jsonl",
    ".auto/measure.sh",
    ".auto/checks.sh",
    ".auto/ideas.md",
    ".auto/prompt.md",
];
const LEGACY: Layout = [
    "autoresearch.jsonl",
    "autoresearch.sh",
    "autoresearch.checks.sh",
    "autoresearch.ideas.md",
    "autoresearch.md",
];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct ImportedSearch {
    /// Its runs and ideas.
    pub(super) history: History,
    /// What measured.
    pub(super) benchmark: Option<String>,
    /// What checked.
    pub(super) checks: Option<String>,
    /// Files in scope.
    pub(super) scope: Vec<String>,
    /// Files off limits.
    pub(super) off_limits: Vec<String>,
    /// Constraints.
    pub(super) constraints: Vec<String>,
}

/// Reads what was left in a directory.
pub(super) fn read(dir: &Path) -> Result<ImportedSearch, Error> {
    let is_there = |layout: &Layout| layout.iter().any(|name| dir.join(name).is_file());
    let [ledger, benchmark, checks, ideas, contract] = if is_there(&CURRENT) {
        CURRENT
    } else if is_there(&LEGACY) {
        LEGACY
    } else {
        return Err(Error::usage(format!(
            "there is nothing of pi-autoresearch in {}",
            dir.display()
        ))
        .with_hint(format!("it would be {} or {}.", CURRENT[0], LEGACY[0])));
    };
    let text = |name: &str| text(&dir.join(name));
    let mut imported = ImportedSearch {
        benchmark: text(benchmark)?,
        checks: text(checks)?,
        ..ImportedSearch::default()
    };
    if let Some(lines) = text(ledger)? {
        imported.history = history(&lines).map_err(|why| {
            Error::usage(format!("cannot read {}: {why}", dir.join(ledger).display()))
        })?;
    }
    if let Some(ideas) = text(ideas)? {
        imported.history.ideas = bullets(ideas.lines());
    }
    if let Some(contract) = text(contract)? {
        imported.scope = paths(&section(&contract, "files in scope"));
        imported.off_limits = paths(&section(&contract, "off limits"));
        imported.constraints = section(&contract, "constraints");
    }
    Ok(imported)
}

fn text(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::usage(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

fn history(text: &str) -> Result<History, String> {
    let mut history = History::default();
    let mut lines = (1..).zip(text.split_inclusive('\n')).peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        let is_torn = lines.peek().is_none() && !line.ends_with('\n');
        let value: KernelValue = match serde_json::from_str(line) {
            Ok(value) => value,
            // A kill while it was written.
            Err(_) if is_torn => break,
            Err(error) => return Err(format!("line {number}: {error}")),
        };
        history
            .add(number, &value)
            .map_err(|error| error.to_string())?;
    }
    Ok(history)
}

/// Returns the entries of a list under a heading.
fn section(text: &str, title: &str) -> Vec<String> {
    let heading = |line: &str| {
        let name = line.trim_start_matches('#');
        (name.len() < line.len()).then(|| name.trim().to_lowercase())
    };
    let after = text
        .lines()
        .skip_while(|line| heading(line).as_deref() != Some(title));
    bullets(after.skip(1).take_while(|line| heading(line).is_none()))
}

fn bullets<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let items = lines.filter_map(|line| {
        let item = line.trim_start().strip_prefix(['-', '*'])?.trim();
        let item = item.trim_start_matches("[ ]").trim();
        (!item.is_empty() && !item.starts_with("[x]")).then(|| item.to_owned())
    });
    items.collect()
}

/// Returns the path that each entry names: in backticks, or its first word.
fn paths(items: &[String]) -> Vec<String> {
    let path = |item: &String| {
        let quoted = item.split('`').nth(1);
        let first = item.split_whitespace().next();
        quoted.or(first).map(str::to_owned)
    };
    items.iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::{history, paths, section};

    #[test]
    fn only_a_torn_last_line_is_let_pass() {
        let config = "{\"type\":\"config\",\"metricName\":\"ms\"}\n";
        let run = "{\"run\":1,\"status\":\"keep\",\"metric\":4.5}\n";
        let torn = format!("{config}{run}{{\"run\":2,\"sta");
        assert_eq!(history(&torn).unwrap().runs.len(), 1);
        let broken = format!("{config}{{\"run\":2,\"sta\n{run}");
        assert!(history(&broken).unwrap_err().starts_with("line 2: "));
        let last = format!("{config}{{\"run\":2,\"sta\n");
        assert!(history(&last).is_err(), "it has an end, so it is not torn");
    }

    #[test]
    fn sections_of_a_contract_are_lists_of_paths() {
        let text = "# T\n\n## Files in Scope\n\n- `src/a.rs`: the parser\n* src/b.rs too\n\n## Off Limits\n- tests\n";
        assert_eq!(
            paths(&section(text, "files in scope")),
            ["src/a.rs", "src/b.rs"]
        );
        assert_eq!(paths(&section(text, "off limits")), ["tests"]);
        assert!(section(text, "constraints").is_empty());
    }
}
