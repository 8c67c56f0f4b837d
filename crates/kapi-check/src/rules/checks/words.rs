//! A report in words: a line for each check, what failed once more in full, and a total.
//!
//! The same text for a person at a terminal and for an agent that is to repair what failed. What a
//! check printed is foreign: it is fenced, and made harmless by whoever shows it.

use kapi_core::quote::fenced;

use super::Check;
use super::report::{CheckOutcome, CheckResult, ChecksReport};
use crate::rules::proof::missing::{Certainty, missing};

/// How the top of the project is named.
pub const TOP: &str = ".";

/// Returns the whole report.
#[must_use]
pub fn scenario(report: &ChecksReport) -> String {
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
pub fn why(checked: &CheckResult) -> Option<String> {
    match &checked.outcome {
        CheckOutcome::Passed => None,
        CheckOutcome::Failed { code } => Some(format!("exit code {code}")),
        CheckOutcome::TimedOut => Some(format!(
            "killed at its time limit after {}",
            seconds(checked.duration_ms)
        )),
        CheckOutcome::OutOfResources { limit } => Some(format!("killed at its limit of {limit}")),
        CheckOutcome::Skipped { reason } => Some(reason.clone()),
        CheckOutcome::Cancelled => Some("ended without a result".to_owned()),
    }
}

/// Returns what a check lacked that could not do its work, and how it is mended.
#[must_use]
pub fn hint(checked: &CheckResult) -> Option<String> {
    let CheckOutcome::Failed { code } = checked.outcome else {
        return None;
    };
    let lacked = missing(&checked.check.command, &checked.output, code)?;
    (lacked.certainty == Certainty::Certain).then(|| format!("{lacked}: {}", lacked.remedy))
}

fn checked_line(checked: &CheckResult) -> String {
    let word = match &checked.outcome {
        CheckOutcome::Passed => "passed",
        CheckOutcome::Failed { .. }
        | CheckOutcome::TimedOut
        | CheckOutcome::OutOfResources { .. } => "FAILED",
        CheckOutcome::Skipped { .. } => "skipped",
        CheckOutcome::Cancelled => "ended",
    };
    let text = why(checked).unwrap_or_else(|| seconds(checked.duration_ms));
    line(word, &checked.check, &text)
}

fn failure(checked: &CheckResult) -> String {
    let check = &checked.check;
    let (verb, root) = (check.verb, named(&check.root));
    let why = why(checked).unwrap_or_default();
    let command = fenced(&check.command, "sh");
    let output = if checked.output.trim().is_empty() {
        "It printed nothing.".to_owned()
    } else {
        fenced(&checked.output, "")
    };
    let hint = hint(checked).map(|hint| format!("hint: {hint}\n"));
    let hint = hint.unwrap_or_default();
    format!("\n{verb} of {root}: {why}\n{command}\n{output}\n{hint}")
}

fn total(report: &ChecksReport) -> String {
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
    let is_late = |checked: &CheckResult| checked.outcome == CheckOutcome::TimedOut;
    let more = if report.checks.iter().any(is_late) {
        "\nA first build takes longer: `kapi check --timeout 10m` gives each check more time."
    } else {
        ""
    };
    format!("{text} in {}.{more}", seconds(report.duration_ms))
}

fn seconds(ms: u64) -> String {
    format!("{}.{}s", ms / 1_000, ms % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::scenario;
    use crate::rules::checks::report::{CheckOutcome, CheckResult, ChecksReport};
    use crate::rules::checks::{Check, CheckVerb};

    fn checked(root: &str, verb: CheckVerb, outcome: CheckOutcome, output: &str) -> CheckResult {
        let check = Check {
            root: root.to_owned(),
            verb,
            provider: "go".to_owned(),
            command: format!("go {verb} ./..."),
            timeout_ms: verb.timeout_ms(),
            needs: Vec::new(),
            nothing: None,
            otherwise: None,
        };
        CheckResult {
            check,
            outcome,
            duration_ms: 1_290,
            output: output.to_owned(),
        }
    }

    #[test]
    fn a_story_has_a_line_for_each_and_failures_in_full() {
        let reason = "golangci-lint is not on PATH".to_owned();
        let report = ChecksReport {
            checks: vec![
                checked("", CheckVerb::Typecheck, CheckOutcome::Passed, "noise"),
                checked("", CheckVerb::Lint, CheckOutcome::Skipped { reason }, ""),
                checked(
                    "api",
                    CheckVerb::Test,
                    CheckOutcome::Failed { code: 1 },
                    "a ``` b\n",
                ),
                checked("api", CheckVerb::Build, CheckOutcome::TimedOut, " \n"),
                checked("api", CheckVerb::Format, CheckOutcome::Cancelled, ""),
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

1 passed, 2 failed, 1 skipped, 1 stopped in 61.0s.
A first build takes longer: `kapi check --timeout 10m` gives each check more time.";
        assert_eq!(scenario(&report), expected);
    }

    #[test]
    fn a_check_without_its_program_says_what_installs_it() {
        let mut failed = checked(
            "",
            CheckVerb::Lint,
            CheckOutcome::Failed { code: 127 },
            "sh: 1: eslint: not found\n",
        );
        failed.check.command = "npm run --silent lint".to_owned();
        let hint =
            "the program `eslint` is missing: run `npm install` in your checkout and start again.";
        assert_eq!(super::hint(&failed).as_deref(), Some(hint));
        let report = ChecksReport {
            checks: vec![failed],
            duration_ms: 9,
        };
        let scenario = scenario(&report);
        assert!(
            scenario.contains(&format!("```\nhint: {hint}\n\n")),
            "{scenario}"
        );
    }

    #[test]
    fn a_report_of_skips_says_that_nothing_was_checked() {
        let reason = "go is not on PATH".to_owned();
        let report = ChecksReport {
            checks: vec![checked(
                "",
                CheckVerb::Lint,
                CheckOutcome::Skipped { reason },
                "",
            )],
            duration_ms: 9,
        };
        let scenario = scenario(&report);
        assert!(
            scenario.ends_with("\n\nNothing was checked: 0 passed, 0 failed, 1 skipped."),
            "{scenario}"
        );
    }
}
