//! A report in words: a line for each check, what failed once more in full, and a total.
//!
//! The same text for a person at a terminal and for an agent that is to repair what failed. What a
//! check printed is foreign: it is fenced, and made harmless by whoever shows it.

use kapi_core::quote::fenced;

use super::Check;
use super::report::{Checked, Outcome, Report};

/// How the top of the project is named.
pub const TOP: &str = ".";

/// Returns the whole report.
#[must_use]
pub fn story(report: &Report) -> String {
    let lines: Vec<String> = report.checks.iter().map(checked_line).collect();
    let failures: String = report.failures().map(failure).collect();
    format!("{}\n{failures}\n{}", lines.join("\n"), total(report))
}

/// Returns the line of a check after a word for how it stands.
#[must_use]
pub fn line(word: &str, check: &Check, text: &str) -> String {
    let Check {
        verb,
        root,
        provider,
        ..
    } = check;
    let (verb, root) = (verb.name(), named(root));
    format!("{word:<8} {verb:<10} {root:<20} {provider:<15} {text}")
}

/// Returns how a root is named.
#[must_use]
pub const fn named(root: &str) -> &str {
    if root.is_empty() { TOP } else { root }
}

/// Returns why a check did not simply pass.
#[must_use]
pub fn why(checked: &Checked) -> Option<String> {
    match &checked.outcome {
        Outcome::Passed => None,
        Outcome::Failed { code } => Some(format!("exit code {code}")),
        Outcome::TimedOut => Some(format!(
            "killed at its time limit after {}",
            seconds(checked.duration_ms)
        )),
        Outcome::OutOfResources { limit } => Some(format!("killed at its limit of {limit}")),
        Outcome::Skipped { reason } => Some(reason.clone()),
        Outcome::Cancelled => Some("ended without a result".to_owned()),
    }
}

fn checked_line(checked: &Checked) -> String {
    let word = match &checked.outcome {
        Outcome::Passed => "passed",
        Outcome::Failed { .. } | Outcome::TimedOut | Outcome::OutOfResources { .. } => "FAILED",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Cancelled => "ended",
    };
    let text = why(checked).unwrap_or_else(|| seconds(checked.duration_ms));
    line(word, &checked.check, &text)
}

fn failure(checked: &Checked) -> String {
    let check = &checked.check;
    let (verb, root) = (check.verb, named(&check.root));
    let why = why(checked).unwrap_or_default();
    let command = fenced(&check.command, "sh");
    let output = if checked.output.trim().is_empty() {
        "It printed nothing.".to_owned()
    } else {
        fenced(&checked.output, "")
    };
    format!("\n{verb} of {root}: {why}\n{command}\n{output}\n")
}

fn total(report: &Report) -> String {
    let counts = report.counts();
    let mut text = format!(
        "{} passed, {} failed, {} skipped",
        counts.passed, counts.failed, counts.skipped
    );
    if counts.cancelled > 0 {
        text = format!("{text}, {} stopped", counts.cancelled);
    }
    if counts.passed + counts.failed + counts.cancelled == 0 {
        return format!("Nothing was checked: {text}.");
    }
    format!("{text} in {}.", seconds(report.duration_ms))
}

fn seconds(ms: u64) -> String {
    format!("{}.{}s", ms / 1_000, ms % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::story;
    use crate::rules::checks::report::{Checked, Outcome, Report};
    use crate::rules::checks::{Check, Verb};

    fn checked(root: &str, verb: Verb, outcome: Outcome, output: &str) -> Checked {
        let check = Check {
            root: root.to_owned(),
            verb,
            provider: "go".to_owned(),
            command: format!("go {verb} ./..."),
            timeout_ms: verb.timeout_ms(),
            needs: Vec::new(),
            nothing: None,
        };
        Checked {
            check,
            outcome,
            duration_ms: 1_290,
            output: output.to_owned(),
        }
    }

    #[test]
    fn a_story_has_a_line_for_each_and_failures_in_full() {
        let reason = "golangci-lint is not on PATH".to_owned();
        let report = Report {
            checks: vec![
                checked("", Verb::Typecheck, Outcome::Passed, "noise"),
                checked("", Verb::Lint, Outcome::Skipped { reason }, ""),
                checked("api", Verb::Test, Outcome::Failed { code: 1 }, "a ``` b\n"),
                checked("api", Verb::Build, Outcome::TimedOut, " \n"),
                checked("api", Verb::Format, Outcome::Cancelled, ""),
            ],
            duration_ms: 61_049,
        };
        let expected = "\
passed   typecheck  .                    go              1.2s
skipped  lint       .                    go              golangci-lint is not on PATH
FAILED   test       api                  go              exit code 1
FAILED   build      api                  go              killed at its time limit after 1.2s
ended    format     api                  go              ended without a result

test of api: exit code 1
```sh
go test ./...
```
````
a ``` b
````

build of api: killed at its time limit after 1.2s
```sh
go build ./...
```
It printed nothing.

1 passed, 2 failed, 1 skipped, 1 stopped in 61.0s.";
        assert_eq!(story(&report), expected);
    }

    #[test]
    fn a_report_of_skips_says_that_nothing_was_checked() {
        let reason = "go is not on PATH".to_owned();
        let report = Report {
            checks: vec![checked("", Verb::Lint, Outcome::Skipped { reason }, "")],
            duration_ms: 9,
        };
        let story = story(&report);
        assert!(
            story.ends_with("\n\nNothing was checked: 0 passed, 0 failed, 1 skipped."),
            "{story}"
        );
    }
}
