//! Added lines that keep what stands in a test from being run: it is left before, or stands in a
//! condition now.
//!
//! Told by the words and the brackets, in Python by the indentation. Of languages whose blocks have
//! neither, nothing is told.

use std::collections::{BTreeMap, BTreeSet};

use super::super::language::Language;
use super::Line;

/// What leaves a function, skips a test or ends the program.
const LEAVING: [&str; 20] = [
    "return",
    "throw",
    "raise",
    "exit",
    "_exit",
    "abort",
    "panic",
    "goto",
    "skip",
    "Skip",
    "SkipNow",
    "Skipf",
    "skipTest",
    "SkipTest",
    "todo",
    "pending",
    "assumeTrue",
    "assumeFalse",
    "assumeThat",
    "assume",
];
/// What a block begins with that is no function.
const CONTROL: [&str; 16] = [
    "if", "else", "for", "foreach", "while", "do", "loop", "unless", "until", "switch", "match",
    "case", "try", "catch", "finally", "with",
];
/// What makes a function of a block all the same.
const FUNCTION: [&str; 3] = ["function", "fn", "func"];

/// What added lines do to the lines that are kept.
pub(super) enum AddedLines {
    /// Lines that are kept stand in an added condition or loop, or below an added attribute.
    Wrap,
    /// These, by their places, leave a function that is kept.
    Leave(BTreeMap<usize, LeavingLine>),
}

/// An added line that leaves a function that is kept.
pub(super) struct LeavingLine {
    /// How far the function is indented, in Python.
    level: usize,
    /// Whether it stands in a condition or loop of that function.
    is_nested: bool,
}

/// An open block.
struct Block<'l> {
    /// How far its statements are indented, or nothing where brackets tell.
    level: usize,
    is_function: bool,
    line: &'l Line,
}

/// Where a text is read.
struct Reading<'l> {
    language: Language,
    /// Lines that the old text has.
    kept: BTreeSet<&'l Line>,
    /// The blocks that are open, the outermost first.
    open: Vec<Block<'l>>,
}

/// Tells what the lines of a text that are not among those of the `old` one do to the others.
pub(super) fn added_lines(lines: &[Line], old: &[Line], language: Language) -> AddedLines {
    let mut reading = Reading {
        language,
        kept: old.iter().collect(),
        open: Vec::new(),
    };
    let mut leaving = BTreeMap::new();
    for (place, line) in lines.iter().enumerate() {
        reading.begin(line);
        let is_kept = reading.kept.contains(line);
        let next = lines.get(place + 1);
        if !is_kept && is_attribute(line) && next.is_some_and(|it| reading.kept.contains(it)) {
            return AddedLines::Wrap;
        }
        if is_kept && reading.is_wrapped() && !line.iter().all(|word| is_bracket(word)) {
            return AddedLines::Wrap;
        }
        let left = line.iter().filter_map(|word| reading.read(word, line));
        let left = left.last().filter(|_| !is_kept);
        leaving.extend(left.map(|left| (place, left)));
    }
    AddedLines::Leave(leaving)
}

impl<'l> Reading<'l> {
    /// Closes what a statement of Python ends by its indentation.
    fn begin(&mut self, line: &Line) {
        if self.language == Language::Python {
            let level = level_of(line).unwrap_or(usize::MAX);
            self.open.retain(|block| block.level < level);
        }
    }

    /// Reads a word of a line and returns which kept function it leaves, if it does.
    fn read(&mut self, word: &str, line: &'l Line) -> Option<LeavingLine> {
        match (word, self.language) {
            ("def", Language::Python) => self.open.push(Block {
                level: level_of(line).unwrap_or_default(),
                is_function: true,
                line,
            }),
            ("{", language) if language != Language::Python => self.open.push(Block {
                level: 0,
                is_function: opens_function(line),
                line,
            }),
            ("}", language) if language != Language::Python => drop(self.open.pop()),
            _ if LEAVING.contains(&word) => return self.left(),
            _ => {}
        }
        None
    }

    /// Returns what is left here, if the innermost function is kept.
    fn left(&self) -> Option<LeavingLine> {
        let at = self.open.iter().rposition(|block| block.is_function)?;
        let function = self.open.get(at).filter(|block| !self.is_added(block))?;
        let mut inner = self.open.iter().skip(at + 1);
        Some(LeavingLine {
            level: function.level,
            is_nested: inner.any(|block| !self.is_added(block)),
        })
    }

    /// Tells whether there are added blocks in the innermost function, which is kept, or in none.
    fn is_wrapped(&self) -> bool {
        let inner = self.open.iter().rposition(|block| block.is_function);
        let function = inner.and_then(|at| self.open.get(at));
        let mut conditions = self.open.iter().skip(inner.map_or(0, |at| at + 1));
        !function.is_some_and(|block| self.is_added(block))
            && conditions.any(|block| self.is_added(block))
    }

    fn is_added(&self, block: &Block<'_>) -> bool {
        !self.kept.contains(block.line)
    }
}

impl LeavingLine {
    /// Tells whether nothing of the function that it leaves comes next.
    pub(super) fn is_last(&self, next: Option<&String>) -> bool {
        let Some(next) = next else {
            return true;
        };
        match level_in(next) {
            Some(level) => level <= self.level,
            None => is_bracket(next) && !self.is_nested,
        }
    }
}

fn opens_function(line: &Line) -> bool {
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    let first = words.iter().find(|word| **word != "}");
    !first.is_some_and(|word| CONTROL.contains(word))
        || words.iter().any(|word| FUNCTION.contains(word))
        || words.windows(2).any(|pair| pair == ["=", ">"])
}

/// Returns how far a statement of Python is indented.
fn level_of(line: &Line) -> Option<usize> {
    level_in(line.first()?)
}

fn level_in(word: &str) -> Option<usize> {
    word.strip_prefix('\n')?.parse().ok()
}

/// Tells whether a line is an attribute of Rust alone, which may say when the next one counts.
fn is_attribute(line: &Line) -> bool {
    matches!(line.as_slice(), [sign, bracket, .., end] if sign == "#" && bracket == "[" && end == "]")
}

fn is_bracket(word: &str) -> bool {
    [")", "]", "}"].contains(&word)
}
