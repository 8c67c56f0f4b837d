//! The closing lines of test runners that stand in one line, one small reader for each form.
//!
//! A form is matched as a whole line; a line that only holds such words is none.

use super::TestTally;

/// Reads one line in one form.
type Form = fn(&str) -> Option<TestTally>;

/// Every form, in the order in which they are tried.
pub(super) const FORMS: &[Form] = &[
    pytest,
    cargo,
    nextest,
    jest,
    vitest,
    words,
    unity,
    phpunit,
    surefire,
    gradle,
    dotnet,
    deno,
    zig,
    busted,
    ctest,
    check,
    criterion,
    catch,
    swift_testing,
];

pub(super) fn number_of(text: &str) -> Option<u64> {
    let is_number =
        !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// How a runner's word counts.
enum RunnerWord {
    Passed,
    Failed,
    Skipped,
    /// All tests, whatever became of them.
    Tests,
    /// Something else.
    Other,
}

fn word(text: &str) -> Option<RunnerWord> {
    Some(match text {
        "passed" | "xpassed" | "passing" | "success" | "successes" | "succeeded" | "Passed"
        | "Passing" | "flaky" => RunnerWord::Passed,
        "failed"
        | "failure"
        | "failures"
        | "failing"
        | "error"
        | "errors"
        | "Failed"
        | "Failures"
        | "Errors"
        | "Failing"
        | "exec failed"
        | "timed out"
        | "error occurred outside of examples"
        | "errors occurred outside of examples" => RunnerWord::Failed,
        "skipped" | "xfailed" | "pending" | "pendings" | "skip" | "skips" | "ignored" | "todo"
        | "omissions" | "Skipped" | "Incomplete" | "invalid" => RunnerWord::Skipped,
        "test" | "tests" | "run" | "runs" | "example" | "examples" | "doctest" | "doctests"
        | "property" | "properties" | "Tests" | "Tested" | "Checks" | "feature" | "features" => {
            RunnerWord::Tests
        }
        "total"
        | "warning"
        | "warnings"
        | "deselected"
        | "rerun"
        | "reruns"
        | "measured"
        | "filtered out"
        | "assertions"
        | "Assertions"
        | "notifications"
        | "excluded"
        | "Total"
        | "Warnings"
        | "Risky"
        | "Deprecations"
        | "Notices"
        | "PHPUnit Deprecations"
        | "PHPUnit Warnings"
        | "assertion"
        | "subtests passed"
        | "subtest passed"
        | "snapshots"
        | "leaky"
        | "slow" => RunnerWord::Other,
        _ => return None,
    })
}

/// Sums counts with their words; `None` where a part is none.
fn summed<'a>(parts: impl Iterator<Item = Option<(u64, &'a str)>>) -> Option<TestTally> {
    let (mut tally, mut tests, mut has_tests) = (TestTally::default(), 0_u64, false);
    let (mut n_words, mut has_passed) = (0, false);
    for part in parts {
        let (n, text) = part?;
        n_words += 1;
        match word(text)? {
            RunnerWord::Passed => {
                tally.passed += n;
                has_passed = true;
            }
            RunnerWord::Failed => tally.failed += n,
            RunnerWord::Skipped => tally.skipped += n,
            RunnerWord::Tests => {
                tests += n;
                has_tests = true;
            }
            RunnerWord::Other => {}
        }
    }
    if has_tests && !has_passed {
        tally.passed = tests.saturating_sub(tally.failed + tally.skipped);
    }
    (n_words > 0).then_some(tally)
}

/// `3 passed, 1 failed`.
fn counts(text: &str, between: &str) -> Option<TestTally> {
    summed(text.split(between).map(|part| {
        let (n, word) = part.trim().split_once(' ')?;
        Some((number_of(n)?, word.trim()))
    }))
}

/// `Passed: 3, Failed: 1`.
fn keyed(text: &str, between: &str) -> Option<TestTally> {
    summed(text.split(between).map(|part| {
        let (word, n) = part.trim().split_once(':')?;
        Some((number_of(n.trim())?, word.trim()))
    }))
}

fn is_seconds(text: &str) -> bool {
    text.strip_suffix('s')
        .is_some_and(|n| n.parse::<f64>().is_ok())
}

/// `== 2 failed, 4 passed in 0.33s ==`, with or without its frame.
fn pytest(line: &str) -> Option<TestTally> {
    let inner = line.trim_matches('=').trim();
    let is_framed = line.starts_with("===") && line.ends_with("===");
    let is_bare = !line.starts_with([' ', '=']);
    if !is_framed && !is_bare {
        return None;
    }
    let (counted, took) = inner.rsplit_once(" in ")?;
    let took = took.split_once(" (").map_or(took, |(took, _)| took);
    if !is_seconds(took) {
        return None;
    }
    match counted {
        "no tests ran" => Some(TestTally::default()),
        counted => counts(counted, ", "),
    }
}

/// `test result: ok. 3 passed; 0 failed; …`.
fn cargo(line: &str) -> Option<TestTally> {
    let rest = line.strip_prefix("test result: ")?;
    let rest = rest
        .strip_prefix("ok. ")
        .or_else(|| rest.strip_prefix("FAILED. "))?;
    let counted = rest
        .split_once("; finished in ")
        .map_or(rest, |(counted, _)| counted);
    counts(counted, ";")
}

/// `Summary [ 2.6s] 29 tests run: 29 passed (1 slow), 613 skipped`.
fn nextest(line: &str) -> Option<TestTally> {
    let (took, rest) = line
        .trim_start()
        .strip_prefix("Summary [")?
        .split_once("] ")?;
    let (_, counted) = rest
        .split_once(" run: ")
        .filter(|_| is_seconds(took.trim()))?;
    counts(&without_brackets(counted), ",")
}

/// `Tests:       1 failed, 3 passed, 4 total`.
fn jest(line: &str) -> Option<TestTally> {
    let counted = line.strip_prefix("Tests: ")?;
    counts(counted, ", ").filter(|_| counted.ends_with(" total"))
}

/// `      Tests  1 failed | 3 passed (4)`.
fn vitest(line: &str) -> Option<TestTally> {
    let counted = line.trim_start().strip_prefix("Tests  ")?;
    if counted == "no tests" {
        return Some(TestTally::default());
    }
    let (counted, all) = counted.rsplit_once(" (")?;
    number_of(all.strip_suffix(')')?)?;
    counts(counted, "|")
}

/// `3 examples, 1 failure, 1 pending`, `3 runs, 2 assertions, 0 failures, 0 errors, 1 skips`,
/// `3 passed, 1 failed`.
fn words(line: &str) -> Option<TestTally> {
    let line = line.strip_suffix('.').unwrap_or(line);
    let n_parts = line.split(", ").count();
    let is_closing =
        line.contains(" failure") || line.contains(" passed, ") || line.contains(" failed, ");
    counts(&without_brackets(line), ", ").filter(|_| n_parts > 1 && is_closing)
}

/// `3 Tests 1 Failures 0 Ignored`.
fn unity(line: &str) -> Option<TestTally> {
    let words: Vec<&str> = line.split(' ').collect();
    let [tests, "Tests", failed, "Failures", skipped, "Ignored"] = words.as_slice() else {
        return None;
    };
    let (tests, failed, skipped) = (number_of(tests)?, number_of(failed)?, number_of(skipped)?);
    let passed = tests.saturating_sub(failed + skipped);
    Some(TestTally {
        passed,
        failed,
        skipped,
        ..TestTally::default()
    })
}

/// `OK (3 tests, 4 assertions)`, `Tests: 4, Assertions: 3, Failures: 1.`.
fn phpunit(line: &str) -> Option<TestTally> {
    if let Some(counted) = line.strip_prefix("OK (") {
        return counts(counted.strip_suffix(')')?, ", ").filter(|_| counted.contains("test"));
    }
    keyed(line.strip_suffix('.')?, ", ").filter(|_| line.starts_with("Tests: "))
}

/// `[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0`; a class's own line goes on.
fn surefire(line: &str) -> Option<TestTally> {
    let bare = ["[INFO] ", "[WARNING] ", "[ERROR] "]
        .iter()
        .find_map(|level| line.strip_prefix(level))
        .unwrap_or(line);
    let counted = bare.trim_start().strip_prefix("Tests run: ")?;
    let tally = keyed(&format!("Tests: {}", counted.trim()), ",")?;
    Some(TestTally {
        only_red: line.starts_with("[ERROR] "),
        ..tally
    })
}

/// `3 tests completed, 1 failed, 1 skipped`, which is said only where a test failed.
fn gradle(line: &str) -> Option<TestTally> {
    let (tests, rest) = line.split_once(" completed")?;
    let counted = format!("{tests}{rest}");
    let tally =
        counts(&counted, ", ").filter(|_| tests.ends_with(" tests") || tests.ends_with(" test"))?;
    Some(TestTally {
        only_red: true,
        ..tally
    })
}

/// `Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 8 ms - x.dll`.
fn dotnet(line: &str) -> Option<TestTally> {
    let counted = ["Passed!  - ", "Failed!  - ", "Skipped! - "]
        .iter()
        .find_map(|start| line.strip_prefix(start));
    if let Some(counted) = counted {
        return keyed(counted.split_once(", Duration:")?.0, ",");
    }
    let counted = line.strip_prefix("Test summary: ")?;
    let counted = counted
        .split_once(", duration:")
        .map_or(counted, |(counted, _)| counted);
    keyed(counted, ", ")
}

/// `ok | 3 passed | 0 failed (12ms)`.
fn deno(line: &str) -> Option<TestTally> {
    let counted = line
        .strip_prefix("ok | ")
        .or_else(|| line.strip_prefix("FAILED | "))?;
    counts(&without_brackets(counted), "|")
}

/// `All 3 tests passed.`, `1 passed; 1 skipped; 1 failed.`.
fn zig(line: &str) -> Option<TestTally> {
    if let Some(n) = line
        .strip_prefix("All ")
        .and_then(|rest| rest.strip_suffix(" tests passed."))
    {
        return Some(TestTally {
            passed: number_of(n)?,
            ..TestTally::default()
        });
    }
    let counted = line.strip_suffix('.').filter(|_| line.contains("; "))?;
    counts(counted, "; ")
}

/// `1 success / 1 failure / 0 errors / 1 pending : 0.1 seconds`.
fn busted(line: &str) -> Option<TestTally> {
    let (counted, took) = line.split_once(" : ")?;
    counts(counted, " / ").filter(|_| took.ends_with(" seconds") && counted.contains(" / "))
}

/// `50% tests passed, 1 tests failed out of 2`.
fn ctest(line: &str) -> Option<TestTally> {
    let (percent, rest) = line.split_once("% tests passed, ")?;
    let (failed, all) = rest
        .split_once(" tests failed out of ")
        .or_else(|| rest.split_once(" test failed out of "))?;
    number_of(percent)?;
    let (failed, all) = (number_of(failed)?, number_of(all)?);
    Some(TestTally {
        passed: all.saturating_sub(failed),
        failed,
        ..TestTally::default()
    })
}

/// `100%: Checks: 3, Failures: 0, Errors: 0`.
fn check(line: &str) -> Option<TestTally> {
    let (percent, counted) = line.split_once("%: ")?;
    number_of(percent)?;
    keyed(counted, ", ").filter(|_| counted.starts_with("Checks: "))
}

/// `[====] Synthesis: Tested: 3 | Passing: 3 | Failing: 0 | Crashing: 0`; a crash counts as a failure
/// as well.
fn criterion(line: &str) -> Option<TestTally> {
    let (counted, _) = line
        .strip_prefix("[====] Synthesis: ")?
        .split_once(" | Crashing:")?;
    keyed(counted, "|")
}

/// Catch2's `test cases: 3 | 2 passed | 1 failed` and doctest's; `All tests passed (3 assertions in
/// 1 test case)`.
fn catch(line: &str) -> Option<TestTally> {
    if let Some(rest) = line.strip_prefix("All tests passed (") {
        let (_, cases) = rest.strip_suffix(')')?.split_once(" in ")?;
        let n = cases
            .strip_suffix(" test case")
            .or_else(|| cases.strip_suffix(" test cases"))?;
        return Some(TestTally {
            passed: number_of(n)?,
            ..TestTally::default()
        });
    }
    let rest = line.strip_prefix("[doctest] ").unwrap_or(line);
    let (_, counted) = rest.strip_prefix("test cases:")?.split_once('|')?;
    counts(counted.trim_end_matches('|'), "|")
}

/// `# { total: 3, pass: 1, fail: 1, skip: 1 }`.
pub(super) fn node_tap(line: &str) -> Option<TestTally> {
    let inner = line.strip_prefix("# { total: ")?.strip_suffix(" }")?;
    let mut tally = TestTally::default();
    for part in inner.split(", ").skip(1) {
        let (key, n) = part.split_once(": ")?;
        let n = number_of(n)?;
        match key {
            "pass" => tally.passed += n,
            "fail" => tally.failed += n,
            "skip" | "todo" => tally.skipped += n,
            _ => return None,
        }
    }
    Some(tally)
}

/// `Executed 3 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.1 (0.2) seconds`.
pub(super) fn swift(line: &str) -> Option<TestTally> {
    let (tests, rest) = line
        .trim_start()
        .strip_prefix("Executed ")?
        .split_once(" test")?;
    let (_, rest) = rest
        .split_once(", with ")
        .filter(|_| rest.ends_with(" seconds"))?;
    let tests = number_of(tests)?;
    let mut tally = TestTally::default();
    let (counted, _) = rest.split_once(" (")?;
    for part in counted.split(" and ") {
        let (n, what) = part.split_once(' ')?;
        match what {
            "failure" | "failures" => tally.failed = number_of(n)?,
            "test skipped" | "tests skipped" => tally.skipped = number_of(n)?,
            _ => return None,
        }
    }
    tally.passed = tests.saturating_sub(tally.failed + tally.skipped);
    Some(tally)
}

/// `✔ Test run with 3 tests in 1 suite passed after 0.1 seconds.`.
fn swift_testing(line: &str) -> Option<TestTally> {
    let (_, rest) = line.split_once(" Test run with ")?;
    let (n, rest) = rest.split_once(" test")?;
    let n = number_of(n)?;
    let failed = match (
        rest.contains(" passed after "),
        rest.split_once(" seconds with "),
    ) {
        (true, _) => 0,
        (false, Some((_, issues))) => number_of(issues.split(' ').next()?)?.min(n),
        (false, None) => return None,
    };
    Some(TestTally {
        passed: n - failed,
        failed,
        ..TestTally::default()
    })
}

/// Takes out what stands in round brackets.
fn without_brackets(text: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
        .split("  ")
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" ,", ",")
}
