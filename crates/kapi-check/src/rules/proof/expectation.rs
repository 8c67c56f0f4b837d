//! What a test expects, and the same test with another expectation.
//!
//! Checks are worth something only if they can fail. A test that passes whatever it expects, although
//! it gets as far as that, compares with something that is equal to everything, or with a framework
//! that was replaced; one that passes although it fails is not what ends the run. Text in, text out:
//! which of these is run, and what the runs say, is not known here. A statement that is not
//! understood has no other version.

mod assertion_macro;
mod command;
mod comparison;
mod condition;
mod failing;
mod literal;
mod statement;

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use self::comparison::Comparison;
use self::literal::{another, constant};
use super::language::Language;
use super::scan::{past_blanks, trimmed};
use crate::rules::proof::tally;

/// A line of a test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestLine {
    /// The file, relative to the top.
    pub path: String,
    /// The line's number, from 1.
    pub line: usize,
}

/// What becomes of a line of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alteration {
    /// It expects another value.
    AnotherValue,
    /// It compares what it expects with a value that is surely another, in the place of what is tested.
    AnotherActual,
    /// It fails before it compares.
    Failure,
}

/// Returns the lines of tests that an output names, in its order, each once.
#[must_use]
pub fn failing_lines(output: &str, tests: &[&Path]) -> Vec<TestLine> {
    let tests: Vec<&str> = tests.iter().filter_map(|path| path.to_str()).collect();
    failing::failing(&tally::without_escapes(output), &tests)
}

/// Returns a test with lines altered, numbered from 1; nothing where none of them can be.
#[must_use]
pub fn altered(path: &str, text: &str, lines: &[usize], how: Alteration) -> Option<String> {
    let test = TestText::of(path, text)?;
    let mut edits: Vec<Edit> = lines
        .iter()
        .filter_map(|line| test.edit(*line, how))
        .collect();
    edits.sort_by_key(|edit| edit.range.start);
    edits.dedup_by_key(|edit| edit.range.start);
    (!edits.is_empty()).then(|| apply(text, &edits))
}

/// Returns the numbers of the lines that expect a value that can be another one.
#[must_use]
pub fn comparing_lines(path: &str, text: &str) -> Vec<usize> {
    let Some(test) = TestText::of(path, text) else {
        return Vec::new();
    };
    let lines = 1..=test.starts.len();
    let can_be = |line: &usize| {
        !test.is_left_out(*line) && test.edit(*line, Alteration::AnotherValue).is_some()
    };
    lines.filter(can_be).collect()
}

/// Returns a file of tests that fails as a whole where it is loaded; nothing where that cannot be.
#[must_use]
pub fn failing_file(path: &str, text: &str) -> Option<String> {
    let append = |line: &str| Some(format!("{}\n{line}\n", text.trim_end()));
    match Language::of(path)? {
        Language::Python => {
            let failure = "raise AssertionError(\"kapi\")\n";
            let main = text.find("\nif __name__").map(|at| at + 1);
            let at = main.unwrap_or(text.len());
            let (before, after) = text.split_at_checked(at)?;
            Some(format!("{}\n\n{failure}{after}", before.trim_end()))
        }
        Language::Script => append("throw new Error(\"kapi\");"),
        Language::Go => append("func init() { panic(\"kapi\") }"),
        Language::Ruby => append("raise \"kapi\""),
        Language::Php if !text.trim_end().ends_with("?>") => {
            append("throw new \\Exception('kapi');")
        }
        Language::Jvm if path.ends_with(".java") => {
            let (before, after) = text.rsplit_once('}')?;
            let failure =
                "static { if (System.nanoTime() != 0) throw new AssertionError(\"kapi\"); }";
            Some(format!("{before}{failure}\n}}{after}"))
        }
        Language::Rust => failing_functions(text),
        Language::Perl if is_test_of_perl(text) => Some(prepended(text, "die \"kapi\";")),
        Language::Lua => Some(prepended(text, "error(\"kapi\")")),
        Language::Php
        | Language::Jvm
        | Language::C
        | Language::Perl
        | Language::Shell
        | Language::Other => None,
    }
}

/// Returns a text with a line before all others but the one that names its interpreter.
fn prepended(text: &str, line: &str) -> String {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    let named = if first.starts_with("#!") { first } else { "" };
    let rest = text.get(named.len()..).unwrap_or_default();
    format!("{named}{line}\n{rest}")
}

/// Tells whether a text is a test in Perl: other languages end their files with `.t`, too.
fn is_test_of_perl(text: &str) -> bool {
    text.contains("use Test::") || text.contains("use Test2::")
}

/// What fails at run time in Rust, and is no code that cannot be reached for its compiler.
const FAILURE_OF_RUST: &str = "if std::hint::black_box(true) { panic!(\"kapi\") }";

/// Returns a file of Rust in which every test function fails.
fn failing_functions(text: &str) -> Option<String> {
    let mut is_test = false;
    let mut found = false;
    let lines = text.lines().map(|line| {
        let bare = line.trim();
        is_test |= bare.starts_with("#[test]") || bare.ends_with("::test]");
        if is_test && bare.contains("fn ") && bare.ends_with('{') {
            (is_test, found) = (false, true);
            return format!("{line} {FAILURE_OF_RUST}\n");
        }
        format!("{line}\n")
    });
    let text: String = lines.collect();
    found.then_some(text)
}

/// A part of a text and what stands there instead.
#[derive(Debug)]
struct Edit {
    range: Range<usize>,
    text: String,
}

fn apply(text: &str, edits: &[Edit]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        // What lies within another edit is left to that.
        let Some(before) = text.get(at..edit.range.start) else {
            continue;
        };
        out.push_str(before);
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// A test whose lines can be found.
struct TestText<'t> {
    text: &'t str,
    language: Language,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl<'t> TestText<'t> {
    fn of(path: &str, text: &'t str) -> Option<Self> {
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = [0].into_iter().chain(behind);
        let language = Language::of(path)?;
        let is_ending = |end: &&str| path.ends_with(*end);
        let is_meant = match language {
            Language::C => !path.ends_with(".zig"),
            // Recipes and settings are of the same group.
            Language::Shell => [".sh", ".bash", ".bats", ".zsh"].iter().any(is_ending),
            Language::Perl => is_test_of_perl(text),
            _ => true,
        };
        is_meant.then(|| Self {
            text,
            language,
            starts: starts.filter(|at| *at < text.len()).collect(),
        })
    }

    /// Returns where a line begins, numbered from 1.
    fn start_of(&self, line: usize) -> Option<usize> {
        self.starts.get(line.checked_sub(1)?).copied()
    }

    /// Tells whether a build can leave out the comparison in a line, so that it need not be run.
    fn is_left_out(&self, line: usize) -> bool {
        let found = self
            .start_of(line)
            .filter(|_| self.language == Language::C)
            .and_then(|start| self.comparison(start));
        found.is_some_and(|found| assertion_macro::is_left_out(self.text, &found))
    }

    /// Returns the comparison that begins in the line at `line`.
    fn comparison(&self, line: usize) -> Option<Comparison> {
        let start = past_blanks(self.text, line);
        match self.language {
            Language::C => assertion_macro::comparison(self.text, start),
            Language::Shell => command::comparison(self.text, start),
            _ => statement::comparison(self.text, line, self.language),
        }
    }

    /// Returns what alters a line, if it can be altered.
    fn edit(&self, line: usize, how: Alteration) -> Option<Edit> {
        let start = self.start_of(line)?;
        if self.language == Language::Go
            && let Some(found) = self.reported(line, how)
        {
            return Some(found);
        }
        let found = self.comparison(start)?;
        match how {
            Alteration::AnotherValue => {
                let mut sides = found.sides.iter();
                let other = sides.find_map(|side| another(self.text, side, self.language));
                let (range, text) = other.or_else(|| opposite(self.text, &found))?;
                Some(Edit { range, text })
            }
            Alteration::AnotherActual => self.other_side(&found),
            Alteration::Failure => self.failure(start, &found),
        }
    }

    /// Returns what puts another value than the one that is expected in the place of what is tested.
    fn other_side(&self, found: &Comparison) -> Option<Edit> {
        let [one, other] = found.sides.as_slice() else {
            return None;
        };
        let altered = |side: &Range<usize>| another(self.text, side, self.language);
        let (side, replaced, (part, text)) = altered(one)
            .map(|it| (one, other, it))
            .or_else(|| altered(other).map(|it| (other, one, it)))?;
        let mut value = self.text.get(side.clone())?.to_owned();
        let begin = part.start.checked_sub(side.start)?;
        value.replace_range(begin..begin + part.len(), &text);
        Some(Edit {
            range: replaced.clone(),
            text: value,
        })
    }

    /// Returns what makes a comparison, which begins in the line at `line`, fail before it compares.
    fn failure(&self, line: usize, found: &Comparison) -> Option<Edit> {
        let before = |failure: &str| {
            let range = found.start..found.start;
            let text = failure.to_owned();
            Some(Edit { range, text })
        };
        let instead = |callee: &str| {
            let range = found.callee.clone();
            let text = callee.to_owned();
            Some(Edit { range, text })
        };
        match self.language {
            Language::Python => {
                let indent = self.text.get(line..found.start)?;
                before(&format!("raise AssertionError(\"kapi\")\n{indent}"))
            }
            Language::Script => Some(Edit {
                range: found.callee.clone(),
                text: "void (() => { throw new Error(\"kapi\"); })".to_owned(),
            }),
            Language::Ruby => before("raise \"kapi\"; "),
            Language::Php => before("throw new \\Exception('kapi'); "),
            Language::Go => before("if true { panic(\"kapi\") }; "),
            Language::Jvm => {
                before("if (System.nanoTime() != 0) throw new AssertionError(\"kapi\"); ")
            }
            Language::Rust => before(&format!("{FAILURE_OF_RUST} ")),
            Language::C => {
                // One statement, also below a condition without braces.
                let end = assertion_macro::statement_end(self.text, found)?;
                let range = found.start..end;
                let statement = self.text.get(range.clone())?;
                let text = format!("do {{ __builtin_trap(); {statement} }} while (0);");
                Some(Edit { range, text })
            }
            Language::Perl => instead("die"),
            Language::Lua => instead("error"),
            Language::Shell if found.callee.is_empty() => before("exit 1; "),
            // The same as where it compares and finds another value.
            Language::Shell => instead("false"),
            Language::Other => None,
        }
    }

    /// Returns the edit of a comparison of Go by hand: `if got != want {`, and below it what reports.
    fn reported(&self, line: usize, how: Alteration) -> Option<Edit> {
        let start = self.start_of(line)?;
        let report = self.text.get(past_blanks(self.text, start)..)?;
        let receivers = ["t", "b", "tb"];
        let is_report = receivers.iter().any(|name| {
            let call = report
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('.'));
            call.is_some_and(|call| call.starts_with("Error") || call.starts_with("Fatal"))
        });
        if !is_report {
            return None;
        }
        let at = past_blanks(self.text, self.start_of(line.checked_sub(1)?)?);
        let condition = self.text.get(at..start)?.trim_end();
        let asked = condition.strip_prefix("if ")?.strip_suffix('{')?;
        let (range, text) = match how {
            Alteration::AnotherValue => {
                let (_, right) = asked.rsplit_once(" != ")?;
                let end = at + condition.len() - 1;
                let side = trimmed(self.text, end - right.len()..end);
                constant(self.text, &side, Language::Go)?
            }
            Alteration::AnotherActual => return None,
            Alteration::Failure => (at..at, "if true { panic(\"kapi\") }; ".to_owned()),
        };
        Some(Edit { range, text })
    }
}

/// Returns the call that expects two values to differ in the place of one that expects them to be the
/// same: where neither of them is a constant.
fn opposite(text: &str, found: &Comparison) -> Option<(Range<usize>, String)> {
    let pairs = [
        ("assert_eq!", "assert_ne!"),
        (".Equal", ".NotEqual"),
        ("assertEquals", "assertNotEquals"),
    ];
    let callee = text.get(found.callee.clone())?;
    let (last, other) = pairs.iter().find(|(last, _)| callee.ends_with(last))?;
    let end = found.callee.end;
    Some((end - last.len()..end, (*other).to_owned()))
}

#[cfg(test)]
mod tests;
