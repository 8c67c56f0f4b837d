//! The text of a lesson: one line that cannot be taken for anything but data, and when two lessons
//! say the same.
//!
//! Knows nothing of files, domains or time.

use std::fmt;

use kapi_core::quote::{head, visible};
use kapi_core::text::one_line;

/// The longest lesson in bytes; what is longer is cut.
pub const LESSON_BYTES_MAX: usize = 500;
/// Two lessons are near when this many hundredths of their words are the same, in the same order.
const NEAR_PERCENT: usize = 90;
/// What marks a cut.
const CUT: &str = "…";

/// Words that turn a sentence around: lessons that differ in one of them are two lessons.
const TURNING_WORDS: &[&str] = &[
    "add", "after", "always", "arent", "avoid", "before", "cannot", "cant", "didnt", "disable",
    "doesnt", "dont", "enable", "except", "false", "instead", "isnt", "mustnt", "never", "no",
    "none", "not", "off", "on", "only", "remove", "shouldnt", "true", "unless", "with", "without",
    "wont",
];

/// A text that is no lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("lesson is required")]
pub struct LessonError;

/// One line of text: no control or hidden character, no line break, no HTML comment, at most
/// [`LESSON_BYTES_MAX`] bytes, and at least one letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lesson(String);

impl Lesson {
    /// Makes a lesson of any text: white space becomes single spaces, what is hidden is written
    /// out, comments are broken, and a long text is cut.
    ///
    /// # Errors
    /// When there is no letter or digit in it.
    pub fn clean(text: &str) -> Result<Self, LessonError> {
        let line = visible(&one_line(text))
            .replace("<!--", "<! --")
            .replace("-->", "-- >")
            .replace("--!>", "-- !>");
        let line = if line.len() > LESSON_BYTES_MAX {
            let kept = head(&line, LESSON_BYTES_MAX - CUT.len());
            format!("{}{CUT}", kept.trim_end())
        } else {
            line
        };
        if !line.chars().any(char::is_alphanumeric) {
            return Err(LessonError);
        }
        Ok(Self(line))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns its words without case, quotes and punctuation: two lessons with the same words
    /// are the same lesson.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        words(&self.0)
    }
}

impl fmt::Display for Lesson {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Returns the words of any text, as they are compared.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let is_quote = |c: &char| matches!(c, '\'' | '"' | '`' | '*' | '’' | '‘' | '“' | '”');
    let is_break = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                ',' | ';'
                    | ':'
                    | '!'
                    | '?'
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '{'
                    | '}'
                    | '-'
                    | '–'
                    | '—'
                    | '…'
            )
    };
    let plain: String = text
        .to_lowercase()
        .chars()
        .filter(|c| !is_quote(c))
        .collect();
    plain
        .split(is_break)
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns whether two lessons, given as their words, say the same.
///
/// Either all words are the same, or nine in ten are, in the same order, and those that differ
/// neither turn the sentence around nor look like a name, a path or a number: "before" for
/// "after", or one file for another, is another lesson.
#[must_use]
pub fn is_same(one: &[String], other: &[String]) -> bool {
    if one == other {
        return true;
    }
    let n_both = one.len() + other.len();
    let n_shorter = one.len().min(other.len());
    if 2 * n_shorter * 100 < NEAR_PERCENT * n_both {
        return false;
    }
    let differing = differing(one, other);
    let n_common = n_both - differing.len();
    n_common * 100 >= NEAR_PERCENT * n_both && !differing.iter().any(|word| tells_apart(word))
}

fn tells_apart(word: &str) -> bool {
    TURNING_WORDS.contains(&word) || !word.chars().all(char::is_alphabetic)
}

/// Returns the words that are not in the longest common sequence of both.
fn differing<'a>(one: &'a [String], other: &'a [String]) -> Vec<&'a str> {
    let width = other.len() + 1;
    // The length of the longest common sequence of what follows `row` and `column`.
    let mut longest = vec![0_usize; (one.len() + 1) * width];
    let at = |row: usize, column: usize| row * width + column;
    for row in (0..one.len()).rev() {
        for column in (0..other.len()).rev() {
            longest[at(row, column)] = if one[row] == other[column] {
                longest[at(row + 1, column + 1)] + 1
            } else {
                longest[at(row + 1, column)].max(longest[at(row, column + 1)])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut differing = Vec::new();
    while row < one.len() && column < other.len() {
        if one[row] == other[column] {
            row += 1;
            column += 1;
        } else if longest[at(row + 1, column)] >= longest[at(row, column + 1)] {
            differing.push(one[row].as_str());
            row += 1;
        } else {
            differing.push(other[column].as_str());
            column += 1;
        }
    }
    differing.extend(one[row..].iter().map(String::as_str));
    differing.extend(other[column..].iter().map(String::as_str));
    differing
}
