//! Adds up the closing lines of a whole run, also those that take several lines.
//!
//! Forms that stand in one line are in `form.rs`. The first form that fits a line takes it.

use super::TestTally;
use super::form::{FORMS, node_tap, number_of, swift};

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct ClosingReading {
    /// The sum of the forms that stand in one line.
    sum: Option<TestTally>,
    /// `Ran 3 tests in 0.1s`, whose verdict comes after it.
    ran: Option<u64>,
    /// Counts of a block whose last line has not come yet.
    block: TestTally,
    tap: Tap,
    /// `# pass 3` and `ℹ pass 3`, which stand for the points of the same run.
    trailer: Option<TestTally>,
    prove_failed: u64,
    prove_skipped: u64,
    prove: bool,
    go: Go,
    /// Nested suites each say theirs; the last one says all.
    swift: Option<TestTally>,
    /// Under the heading of tests that did not run.
    not_run: bool,
    meson: bool,
    automake: bool,
    /// Files of tests could not be loaded, so that no test was run.
    broken_off: bool,
}

#[derive(Debug, Default)]
struct Tap {
    is_planned: bool,
    points: TestTally,
}

#[derive(Debug, Default)]
struct Go {
    is_verbose: bool,
    packages: Option<TestTally>,
    tests: TestTally,
}

impl ClosingReading {
    pub(super) fn read(&mut self, line: &str) {
        let line = line.trim_end();
        self.broken_off |= is_pytest_interrupted(line);
        let _: bool = self.verdict(line)
            || self.one_line(line)
            || self.block(line)
            || self.go(line)
            || self.tap(line)
            || self.prove(line);
    }

    pub(super) fn close(self) -> Option<TestTally> {
        let tap = (self.tap.is_planned && !self.prove).then_some(self.tap.points);
        let go = self.go.packages.map(|packages| {
            if self.go.is_verbose {
                self.go.tests
            } else {
                packages
            }
        });
        let parts = [self.sum, self.trailer.or(tap), go, self.swift];
        let whole = parts.into_iter().flatten().reduce(|mut all, part| {
            all.add(part);
            all
        });
        whole.map(|whole| TestTally {
            broken_off: self.broken_off,
            ..whole
        })
    }

    fn found(&mut self, tally: TestTally) -> bool {
        self.sum.get_or_insert_default().add(tally);
        true
    }

    /// `Ran 3 tests in 0.1s` of unittest and its kin, and the verdict after it.
    fn verdict(&mut self, line: &str) -> bool {
        if line.is_empty() {
            return true;
        }
        let is_bun = line.starts_with("Ran ") && line.contains(" across ");
        if let Some(rest) = line.strip_prefix("Ran ").filter(|_| !is_bun) {
            let (number, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let is_end = after.starts_with("test in ")
                || after.starts_with("tests in ")
                || matches!(after, "test." | "tests.");
            self.ran = number_of(number).filter(|_| is_end);
            return self.ran.is_some();
        }
        let Some(ran) = self.ran.take() else {
            return false;
        };
        let (word, inner) = line.split_once(" (").unwrap_or((line, ")"));
        let (true, Some(inner)) = (
            matches!(word, "OK" | "FAILED" | "NO TESTS RAN"),
            inner.strip_suffix(')'),
        ) else {
            return false;
        };
        let mut tally = TestTally::default();
        for part in inner.split(", ").filter(|part| !part.is_empty()) {
            match part
                .split_once('=')
                .map(|(key, number)| (key, number_of(number)))
            {
                Some(("failures" | "errors" | "unexpected successes", Some(n))) => {
                    tally.failed += n;
                }
                Some(("skipped" | "expected failures" | "SKIP" | "skip", Some(n))) => {
                    tally.skipped += n;
                }
                Some(_) | None => return false,
            }
        }
        tally.passed = ran.saturating_sub(tally.failed + tally.skipped);
        self.found(tally)
    }

    /// Forms that say everything in one line.
    fn one_line(&mut self, line: &str) -> bool {
        if let Some(tally) = swift(line) {
            self.swift = Some(tally);
            return true;
        }
        if let Some(tally) = node_tap(line) {
            self.trailer.get_or_insert_default().add(tally);
            return true;
        }
        match FORMS.iter().find_map(|form| form(line)) {
            Some(tally) => self.found(tally),
            None => false,
        }
    }

    /// Forms that take several lines.
    fn block(&mut self, line: &str) -> bool {
        let bare = line.trim_start();
        if bare.starts_with("The following tests did not run") {
            self.not_run = true;
            return true;
        }
        if self.not_run {
            let is_skipped = [" (Skipped)", " (Disabled)"]
                .iter()
                .any(|end| bare.ends_with(end));
            self.not_run = bare.ends_with(')');
            if is_skipped && let Some(sum) = &mut self.sum {
                sum.skipped += 1;
                sum.passed = sum.passed.saturating_sub(1);
            }
            return self.not_run;
        }
        self.mocha(bare)
            || self.meson(line)
            || self.automake(line)
            || self.bun(line)
            || self.gtest(line)
    }

    /// Mocha's and ava's lines, of which each stands alone.
    fn mocha(&mut self, line: &str) -> bool {
        let mut words = line.split(' ');
        let Some(n) = words.next().and_then(number_of) else {
            return false;
        };
        let rest: Vec<&str> = words.collect();
        let mut tally = TestTally::default();
        match rest.as_slice() {
            ["passing", took] if took.starts_with('(') && took.ends_with(')') => tally.passed = n,
            ["failing"]
            | ["test" | "tests", "failed"]
            | ["uncaught", "exception" | "exceptions"] => {
                tally.failed = n;
            }
            ["pending"]
            | ["test" | "tests", "skipped" | "todo"]
            | ["known", "failure" | "failures"] => tally.skipped = n,
            ["test" | "tests", "passed"] => tally.passed = n,
            _ => return false,
        }
        self.found(tally)
    }

    fn meson(&mut self, line: &str) -> bool {
        let Some((key, n)) = line
            .split_once(": ")
            .and_then(|(key, n)| Some((key, number_of(n.trim())?)))
        else {
            self.meson = false;
            return false;
        };
        // The first line of the block; only there it may begin.
        let is_first = matches!(key, "Ok" | "Pass") && line.contains(":    ");
        self.meson |= is_first;
        if !self.meson {
            return false;
        }
        let mut tally = TestTally::default();
        match key {
            "Ok" | "Pass" => tally.passed = n,
            "Fail" | "Timeout" | "Unexpected Pass" => tally.failed = n,
            "Skipped" | "Expected Fail" | "Ignored" => tally.skipped = n,
            _ => return false,
        }
        self.found(tally)
    }

    fn automake(&mut self, line: &str) -> bool {
        let counted = line.strip_prefix("# ").and_then(|rest| {
            let (key, n) = rest.split_once(':')?;
            Some((key, number_of(n.trim())?))
        });
        let Some((key, n)) = counted else {
            self.automake = false;
            return false;
        };
        self.automake |= key == "TOTAL";
        if !self.automake {
            return false;
        }
        let mut tally = TestTally::default();
        match key {
            "PASS" => tally.passed = n,
            "FAIL" | "XPASS" | "ERROR" => tally.failed = n,
            "SKIP" | "XFAIL" => tally.skipped = n,
            "TOTAL" => {}
            _ => return false,
        }
        self.found(tally)
    }

    fn bun(&mut self, line: &str) -> bool {
        if line.starts_with("Ran ") && line.contains(" across ") {
            let block = std::mem::take(&mut self.block);
            return self.found(block);
        }
        let Some((n, word)) = line.strip_prefix(' ').and_then(|rest| rest.split_once(' ')) else {
            return false;
        };
        let Some(n) = number_of(n) else { return false };
        match word {
            "pass" => {
                self.block = TestTally {
                    passed: n,
                    ..TestTally::default()
                }
            }
            "fail" => self.block.failed = n,
            "skip" | "todo" => self.block.skipped += n,
            _ => return false,
        }
        true
    }

    fn gtest(&mut self, line: &str) -> bool {
        let counted = |start: &str| {
            let rest = line.strip_prefix(start)?.strip_prefix(' ')?;
            let (n, rest) = rest.split_once(' ')?;
            rest.starts_with("test").then(|| number_of(n)).flatten()
        };
        let mut tally = TestTally::default();
        if let Some(n) = counted("[  PASSED  ]") {
            tally.passed = n;
        } else if let Some(n) = counted("[  FAILED  ]").filter(|_| line.ends_with("listed below:"))
        {
            tally.failed = n;
        } else if let Some(n) = counted("[  SKIPPED ]").filter(|_| line.ends_with("listed below:"))
        {
            tally.skipped = n;
        } else {
            return false;
        }
        self.found(tally)
    }

    fn go(&mut self, line: &str) -> bool {
        let fields: Vec<&str> = line.split('\t').collect();
        let package = match fields.as_slice() {
            ["ok  ", _, rest @ ..]
                if rest.iter().any(|text| text.contains("[no tests to run]")) =>
            {
                Some(TestTally::default())
            }
            ["ok  ", _, ..] => Some(TestTally {
                passed: 1,
                ..TestTally::default()
            }),
            ["FAIL", _, ..] => Some(TestTally {
                failed: 1,
                ..TestTally::default()
            }),
            [only] if only.starts_with("FAIL ") && only.ends_with(']') => Some(TestTally {
                failed: 1,
                ..TestTally::default()
            }),
            _ => None,
        };
        if let Some(package) = package {
            self.go.packages.get_or_insert_default().add(package);
            return true;
        }
        if line.starts_with("{\"Time\":") || line.starts_with("{\"Action\":") {
            return self.go_event(line);
        }
        self.go.is_verbose |= line.starts_with("=== RUN ");
        let bare = line.trim_start();
        let counts = [("--- PASS: ", 0), ("--- FAIL: ", 1), ("--- SKIP: ", 2)];
        let found = counts.iter().find(|(start, _)| bare.starts_with(start));
        match found {
            Some((_, 0)) => self.go.tests.passed += 1,
            Some((_, 1)) => self.go.tests.failed += 1,
            Some(_) => self.go.tests.skipped += 1,
            None => return false,
        }
        true
    }

    fn go_event(&mut self, line: &str) -> bool {
        // Only the fields before what a test printed are looked at.
        let head = line.split(",\"Output\":").next().unwrap_or(line);
        let has = |text: &str| head.contains(text);
        let counted = [
            ("\"Action\":\"pass\"", 0),
            ("\"Action\":\"fail\"", 1),
            ("\"Action\":\"skip\"", 2),
        ];
        let Some((_, which)) = counted.iter().find(|(text, _)| has(text)) else {
            return true;
        };
        if !has("\"Test\":") {
            self.go.packages.get_or_insert_default();
            self.go.is_verbose = true;
            return true;
        }
        match which {
            0 => self.go.tests.passed += 1,
            1 => self.go.tests.failed += 1,
            _ => self.go.tests.skipped += 1,
        }
        true
    }

    /// The Test Anything Protocol: points and a plan at the start of lines, and what some add below.
    fn tap(&mut self, line: &str) -> bool {
        if let Some(rest) = line
            .strip_prefix("# ")
            .or_else(|| line.strip_prefix("\u{2139} "))
        {
            let (key, n) = rest.split_once(' ').unwrap_or((rest, ""));
            let Some(n) = number_of(n.trim()) else {
                return false;
            };
            let mut tally = TestTally::default();
            match key {
                "pass" => tally.passed = n,
                "fail" | "cancelled" => tally.failed = n,
                "skip" | "skipped" | "todo" => tally.skipped = n,
                _ => return false,
            }
            self.trailer.get_or_insert_default().add(tally);
            return true;
        }
        if let Some(plan) = line.strip_prefix("1..") {
            let (n, _) = plan.split_once(' ').unwrap_or((plan, ""));
            self.tap.is_planned |= number_of(n).is_some();
            return true;
        }
        let (is_ok, rest) = match (line.strip_prefix("ok"), line.strip_prefix("not ok")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return false,
        };
        if !(rest.is_empty() || rest.starts_with(' ')) {
            return false;
        }
        let directive = rest
            .rsplit_once('#')
            .map(|(_, text)| text.trim_start().to_ascii_lowercase());
        let is_skipped =
            directive.is_some_and(|text| text.starts_with("skip") || text.starts_with("todo"));
        match (is_skipped, is_ok) {
            (true, _) => self.tap.points.skipped += 1,
            (false, true) => self.tap.points.passed += 1,
            (false, false) => self.tap.points.failed += 1,
        }
        true
    }

    fn prove(&mut self, line: &str) -> bool {
        if let Some((_, rest)) = line.split_once(" (Wstat: ") {
            let failed = rest
                .split_once("Failed: ")
                .map(|(_, n)| n.trim_end_matches(')'));
            self.prove_failed += failed.and_then(number_of).unwrap_or_default();
            return true;
        }
        if line.contains(" .. skipped: ") {
            self.prove_skipped += 1;
            return true;
        }
        let Some((_, rest)) = line
            .strip_prefix("Files=")
            .and_then(|rest| rest.split_once(", Tests="))
            .filter(|(files, _)| number_of(files).is_some())
        else {
            return false;
        };
        let Some(n) = rest.split(',').next().and_then(number_of) else {
            return false;
        };
        self.prove = true;
        let failed = std::mem::take(&mut self.prove_failed).min(n);
        let skipped = std::mem::take(&mut self.prove_skipped);
        self.found(TestTally {
            passed: n - failed,
            failed,
            skipped,
            ..TestTally::default()
        })
    }
}

/// `!!!!! Interrupted: 2 errors during collection !!!!!`
fn is_pytest_interrupted(line: &str) -> bool {
    let said = line
        .strip_prefix("!!!")
        .and_then(|rest| rest.strip_suffix("!!!"));
    let said = said.map(|rest| rest.trim_matches('!').trim());
    let errors = said.and_then(|said| said.strip_prefix("Interrupted: "));
    errors.is_some_and(|errors| {
        errors.ends_with(" error during collection")
            || errors.ends_with(" errors during collection")
    })
}
