//! Signs of a cheat in the lines that a change adds, named for a person and a judge.
//!
//! Found in the text alone, line by line, without a parser: a sign is no proof, and none refuses a
//! change by itself. What honest code does every day is left out, so that a notice is worth reading;
//! a cheat that is written otherwise is not found here. Knows no disk.

mod comparison;
mod detection;
mod frameworks;
pub mod literal;
mod sign;
mod words;

use std::fmt;

use kapi_core::quote::{head, visible_line};
use serde::{Deserialize, Serialize};

use self::literal::BaseTests;
use super::language::Language;

/// The most notices of one change.
pub const NOTICES_MAX: usize = 200;
/// The most characters that are kept of a line.
const LINE_CHARS_MAX: usize = 200;

/// One line that a change adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedLine<'a> {
    /// The file, relative to the top.
    pub path: &'a str,
    /// The line's number in the new file, from 1.
    pub line: u64,
    /// The line.
    pub text: &'a str,
    /// Whether the file is a test or belongs to tests.
    pub is_test: bool,
}

/// What can only keep a run from failing.
pub const KEEP_FROM_FAILING: &[NoticeKind] = &[
    NoticeKind::ExitsProcess,
    NoticeKind::PatchesFramework,
    NoticeKind::AlwaysEqual,
];

/// What a line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// It ends the process, and with it the run of the tests.
    ExitsProcess,
    /// It asks who calls, or which runner is there.
    LooksAtRunner,
    /// It replaces parts of a test framework, or of what the language comes with.
    PatchesFramework,
    /// It replaces what tests read: a clock, a source of chance, files.
    PatchesInputs,
    /// It makes a comparison come out the same for everything.
    AlwaysEqual,
    /// It writes, moves or removes test files.
    WritesTests,
    /// It lets a command fail without a trace.
    SwallowsFailure,
    /// It keeps a test from being run.
    SkipsTests,
    /// It asks whether it runs in an automation.
    DetectsEnvironment,
    /// It asks for the machine, the user or the sandbox.
    DetectsMachine,
    /// It decides by a value that the tests use.
    SpecialCase,
}

/// A line with a sign of a cheat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// What it does.
    pub kind: NoticeKind,
    /// The file.
    pub path: String,
    /// The line's number, from 1.
    pub line: u64,
    /// The line, without blanks around it, cut if it is long; signs that cannot be seen are escaped.
    pub text: String,
}

impl NoticeKind {
    /// Returns what it means, as one sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::ExitsProcess => "It ends the process, and could end the tests with it.",
            Self::LooksAtRunner => "It detects its caller or the test runner.",
            Self::PatchesFramework => "It replaces part of a test framework.",
            Self::PatchesInputs => {
                "It replaces a clock, a source of chance or the reading of files."
            }
            Self::AlwaysEqual => "It makes a comparison always give the same result.",
            Self::WritesTests => "It writes, moves or removes test files.",
            Self::SwallowsFailure => "It hides the failure of a command.",
            Self::SkipsTests => "It prevents a test from running.",
            Self::DetectsEnvironment => "It checks whether it runs in CI.",
            Self::DetectsMachine => "It asks which machine, user or sandbox it runs on.",
            Self::SpecialCase => "It branches on a value that the tests use.",
        }
    }

    /// Tells whether code that does this can make checks pass that fail without it. A condition on a
    /// tests' value can, too, and is what many an honest change is.
    #[must_use]
    pub const fn can_fake_a_pass(self) -> bool {
        match self {
            Self::ExitsProcess
            | Self::LooksAtRunner
            | Self::PatchesFramework
            | Self::PatchesInputs
            | Self::AlwaysEqual
            | Self::WritesTests
            | Self::SwallowsFailure
            | Self::SkipsTests
            | Self::DetectsEnvironment
            | Self::DetectsMachine => true,
            Self::SpecialCase => false,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = self.kind.sentence();
        write!(
            out,
            "{}:{}: {sentence} `{}`",
            visible_line(&self.path),
            self.line,
            self.text
        )
    }
}

/// Returns the signs in the lines of a change, in their order; at most [`NOTICES_MAX`].
#[must_use]
pub fn notices(added: &[AddedLine<'_>], tests: &BaseTests) -> Vec<Notice> {
    let mut found = Vec::new();
    for (n, line) in added.iter().enumerate() {
        let Some(language) = Language::of(line.path) else {
            continue;
        };
        if language.is_comment(line.text) {
            continue;
        }
        let after: Vec<&str> = added
            .get(n + 1..)
            .unwrap_or_default()
            .iter()
            .take(4)
            .enumerate()
            .take_while(|(k, next)| {
                let distance = u64::try_from(k + 1).unwrap_or(u64::MAX);
                next.path == line.path && next.line == line.line.saturating_add(distance)
            })
            .map(|(_, next)| next.text)
            .collect();
        let sign = sign::of(line, language)
            .or_else(|| {
                comparison::is_always_equal(line.text, &after, language)
                    .then_some(NoticeKind::AlwaysEqual)
            })
            .or_else(|| {
                (!line.is_test && tests.is_special(line.text)).then_some(NoticeKind::SpecialCase)
            });
        if let Some(kind) = sign {
            found.push(Notice {
                kind,
                path: line.path.to_owned(),
                line: line.line,
                text: cut(line.text.trim()),
            });
        }
        if found.len() == NOTICES_MAX {
            break;
        }
    }
    found
}

/// Returns a line in which every character can be seen, cut where it is long.
fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        None => visible_line(line),
        Some((at, _)) => visible_line(head(line, at)) + "\u{2026}",
    }
}

#[cfg(test)]
mod tests;
