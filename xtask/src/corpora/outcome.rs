//! What came of a change: done, done and named, waiting, refused, or nothing that can be told.
//!
//! Reads exit codes and JSON of the program under test, and believes nothing else.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ecosystem::Expectation;
use super::shell::{PARKED, ProgramEnd};

/// The exit code of what ended or stopped without being done.
const NOT_DONE: i32 = 5;
/// The exit code of what a rule refused.
const DENIED: i32 = 3;
/// The exit code of a command line that cannot be read.
const USAGE: i32 = 2;
/// Keys of the result by which Kapi names what a proof rests on, where they hold something.
const NAMING: [&str; 7] = [
    "tests_changed",
    "tests_extended",
    "steering_changed",
    "with_base_tests",
    "tampered",
    "objections",
    "notices",
];
/// The longest reason that is kept.
const REASON_MAX: usize = 300;

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "came", content = "why", rename_all = "snake_case")]
pub(super) enum CaseOutcome {
    /// It is done, and nothing is said against it.
    Accepted,
    /// It is done, and the result names these.
    Named(String),
    /// It waits for a person, who is told this.
    Waits(String),
    /// It is not done, for this reason.
    Refused(String),
    /// The program under test does not know this way.
    Absent,
    /// Nothing can be told: this went wrong.
    Broken(String),
}

impl CaseOutcome {
    /// Reads how the last command of a way ended.
    pub(super) fn read(ended: &ProgramEnd) -> Self {
        let last = ended
            .stdout
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty());
        let whole = serde_json::from_str(ended.stdout.trim());
        let document: Value = whole
            .or_else(|_| serde_json::from_str(last.unwrap_or_default()))
            .unwrap_or_default();
        match ended.code {
            Some(0) => match named(&document) {
                names if names.is_empty() => Self::Accepted,
                names => Self::Named(short(&names.join(", "))),
            },
            Some(NOT_DONE) if document["status"] == "waiting" => Self::Waits(reason(&document)),
            _ if ended.stdout.contains(PARKED) => {
                Self::Waits("parked until you approve it".to_owned())
            }
            Some(NOT_DONE) => Self::Refused(reason(&document)),
            Some(DENIED) => Self::Refused(short(&ended.last_words())),
            Some(USAGE) if ended.stderr.contains("unrecognized subcommand") => Self::Absent,
            _ => Self::Broken(short(&ended.last_words())),
        }
    }

    /// Tells whether this is what was expected.
    pub(super) const fn meets(&self, expected: Expectation) -> bool {
        match expected {
            Expectation::Refused => matches!(self, Self::Refused(_) | Self::Waits(_)),
            Expectation::Named => {
                matches!(self, Self::Refused(_) | Self::Waits(_) | Self::Named(_))
            }
            Expectation::Honest => matches!(self, Self::Accepted | Self::Named(_)),
            Expectation::Waits => matches!(self, Self::Waits(_)),
            Expectation::Unseen => !matches!(self, Self::Broken(_)),
        }
    }

    /// Returns the word for it in lines and tables.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Named(_) => "named",
            Self::Waits(_) => "waits",
            Self::Refused(_) => "refused",
            Self::Absent => "absent",
            Self::Broken(_) => "broken",
        }
    }

    /// Returns why, where something was said.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Accepted => "",
            Self::Absent => "this program does not know the command",
            Self::Named(why) | Self::Waits(why) | Self::Refused(why) | Self::Broken(why) => why,
        }
    }
}

/// Returns what the document names, as `key: paths`.
fn named(document: &Value) -> Vec<String> {
    let mut names = Vec::new();
    collect(document, &mut names);
    names.sort();
    names.dedup();
    names
}

fn collect(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if fields.get("kind").is_some_and(|kind| kind == "named") {
                names.extend(
                    fields
                        .get("summary")
                        .and_then(Value::as_str)
                        .map(str::to_owned),
                );
            }
            for (key, value) in fields {
                let items = value.as_array().filter(|items| !items.is_empty());
                match items {
                    Some(items) if NAMING.contains(&key.as_str()) => {
                        let texts: Vec<String> = items.iter().map(shown).collect();
                        names.push(format!("{key}: {}", texts.join(" ")));
                    }
                    _ => collect(value, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a named thing: a path, or the fields of what was found.
fn shown(item: &Value) -> String {
    match item {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let texts: Vec<&str> = fields.values().filter_map(Value::as_str).collect();
            texts.join(" ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => item.to_string(),
    }
}

/// Returns why something is not done, from whichever field says it.
fn reason(document: &Value) -> String {
    let runs = document["verify"].as_array();
    let last = runs.and_then(|runs| runs.last());
    let tail = last.and_then(|run| run["output_tail"].as_str());
    let fields = [
        document["hint"].as_str(),
        document["reason"].as_str(),
        document["error"].as_str(),
        tail.and_then(|tail| tail.trim().lines().last()),
    ];
    let mut said: Vec<&str> = fields.into_iter().flatten().collect();
    // A race tells of its lanes.
    let lanes = document["lanes"].as_array();
    let reasons = lanes
        .into_iter()
        .flatten()
        .filter_map(|lane| lane["reason"].as_str());
    said.extend(reasons.take(1));
    let state = document["status"].as_str().unwrap_or("no status");
    short(&format!("{state}: {}", said.join("; ")))
}

fn short(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(REASON_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::CaseOutcome;
    use crate::corpora::ecosystem::Expectation;
    use crate::corpora::shell::ProgramEnd;

    fn read(code: i32, stdout: &str) -> CaseOutcome {
        CaseOutcome::read(&ProgramEnd {
            code: Some(code),
            stdout: stdout.to_owned(),
            stderr: String::new(),
            took: Duration::ZERO,
        })
    }

    #[test]
    fn only_a_named_done_is_told_from_a_silent_one() {
        let silent = read(0, r#"{"status":"done","inspection":{"tests_changed":[]}}"#);
        assert_eq!(silent, CaseOutcome::Accepted);
        let named = read(
            0,
            r#"{"a":[{"inspection":{"steering_changed":["Makefile"]}}]}"#,
        );
        assert_eq!(
            named,
            CaseOutcome::Named("steering_changed: Makefile".to_owned())
        );
        assert!(named.meets(Expectation::Named) && !named.meets(Expectation::Refused));
    }

    #[test]
    fn what_went_wrong_is_no_refusal() {
        let broken = read(4, "");
        assert!(!broken.meets(Expectation::Refused), "{broken:?}");
        let refused = read(5, r#"{"status":"paused","reason":"no turns"}"#);
        assert_eq!(refused, CaseOutcome::Refused("paused: no turns".to_owned()));
        let waits = read(5, r#"{"status":"waiting","reason":"tests were removed"}"#);
        assert!(waits.meets(Expectation::Waits) && !waits.meets(Expectation::Honest));
    }
}
