//! What a project's CI runs to check it, as far as it is one plain line.
//!
//! Files of a repository, so nothing of them is trusted: a line is a proposal that a person reads,
//! and it is tried in a sandbox.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Bytes of one file that are read.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Files of one directory that are read.
const FILES_MAX: usize = 20;
/// Lines that are returned.
const LINES_MAX: usize = 8;
/// Keys whose lines a CI runs.
const KEYS: &[&str] = &["run", "script"];
/// Words that show that a line checks something.
const CHECKS: &[&str] = &[
    "test",
    "tests",
    "lint",
    "check",
    "clippy",
    "typecheck",
    "type-check",
    "pytest",
    "ruff",
    "mypy",
    "vet",
    "eslint",
    "tsc",
    "rspec",
    "rubocop",
    "phpunit",
    "tox",
    "nox",
];
/// Words that show that a line prepares, or that it speaks to somebody.
const OTHERS: &[&str] = &[
    "install", "add", "apt-get", "apt", "curl", "wget", "docker", "publish", "deploy", "push",
    "upload", "login", "git", "gh", "sudo", "rustup", "brew", "pip", "checkout",
];

/// Returns the lines of a project's CI that check it, each once.
pub(super) fn commands(root: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for path in files(root) {
        let is_small = fs::metadata(&path).is_ok_and(|file| file.len() <= FILE_BYTES_MAX);
        let Some(text) = is_small.then(|| fs::read_to_string(&path).ok()).flatten() else {
            continue;
        };
        for line in lines(&text) {
            if !found.contains(&line) && found.len() < LINES_MAX {
                found.push(line);
            }
        }
    }
    found
}

fn files(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join(".github/workflows"))
        .into_iter()
        .flatten();
    let is_yaml = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("yml" | "yaml"))
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_yaml)
        .collect();
    files.sort();
    files.truncate(FILES_MAX);
    files.push(root.join(".gitlab-ci.yml"));
    files
}

/// Returns the lines of one file that check something; none of a file that cannot be read.
fn lines(text: &str) -> Vec<String> {
    let document: Value = serde_saphyr::from_str(text).unwrap_or(Value::Null);
    let mut found = Vec::new();
    collect(&document, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        // A step that runs elsewhere is not one of the top.
        Value::Object(entries) if entries.contains_key("working-directory") => {}
        Value::Object(entries) => {
            for (key, below) in entries {
                match below {
                    Value::String(text) if KEYS.contains(&key.as_str()) => add(text, found),
                    Value::Array(all) if KEYS.contains(&key.as_str()) => {
                        let texts = all.iter().filter_map(Value::as_str);
                        texts.for_each(|text| add(text, found));
                    }
                    below => collect(below, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|below| collect(below, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds the lines of a script that check something, up to where it goes elsewhere.
fn add(text: &str, found: &mut Vec<String>) {
    let lines = text.lines().map(str::trim);
    let here = lines.take_while(|line| !matches!(first_word(line), "cd" | "pushd"));
    let checks = here.filter(|line| is_check(line));
    found.extend(checks.map(str::to_owned));
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

/// Tells whether a line is one plain command that checks something.
fn is_check(line: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./:=@%+,".contains(c);
    let words: Vec<&str> = line.split_whitespace().collect();
    let has = |all: &[&str]| {
        let mut parts = words.iter().flat_map(|word| word.split([':', '/']));
        parts.any(|part| all.contains(&part))
    };
    line.chars().all(is_plain) && has(CHECKS) && !words.iter().any(|word| OTHERS.contains(word))
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn plain_lines_that_check_are_found() {
        let text = "
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: npm ci
      - name: all
        run: |
          npm run lint:check
          npm test
          npm test -- \"$FLAGS\"
          cargo install cargo-nextest
          cargo clippy --all-targets -- -D warnings
      - run: git push --tags
      - run: |
          ruff check
          cd tests
          pytest -q
      - run: yarn test
        working-directory: web
      - run: ctest --output-on-failure
";
        assert_eq!(
            lines(text),
            [
                "npm run lint:check",
                "npm test",
                "cargo clippy --all-targets -- -D warnings",
                "ruff check"
            ]
        );
        assert_eq!(
            lines("unit:\n  script:\n    - pip install -r r.txt\n    - pytest -q\n"),
            ["pytest -q"]
        );
        assert_eq!(lines("[: not yaml"), [""; 0]);
    }
}
