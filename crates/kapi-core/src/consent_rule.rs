//! Whether a tool use falls under a contract's ask-before list.
//!
//! An entry matches as raw text, wherever it stands, and as a command, however it is quoted,
//! wrapped or nested. In doubt a person is asked: a reading that is too strict costs a question,
//! one that is too loose costs what the question was for. What is only known when a command runs (a
//! variable's value, an alias, the content of a file) is not seen here.

mod reading;
mod tool;

use crate::consent_rule::reading::{commands, squeezed};

/// Characters of a tool use that are read; longer ones fall under every entry.
const CHARS_MAX: usize = 1 << 20;
/// Words of an entry that are compared as a command; longer entries are only looked for as text.
const PATTERN_WORDS_MAX: usize = 32;

/// One text that a tool was called with, and the name of its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolField {
    /// The name of the innermost field that has one.
    pub key: String,
    /// The text; a list of words is one text, quoted so that it reads as the same words.
    pub text: String,
}

/// Returns the first entry that a tool use falls under.
#[must_use]
pub fn matches<'a>(ask_before: &'a [String], tool: &str, fields: &[ToolField]) -> Option<&'a str> {
    let reported: Vec<&str> = fields
        .iter()
        .filter(|field| tool::runs_field(tool, &field.key))
        .map(|field| field.text.as_str())
        .collect();
    let n_chars: usize = reported.iter().map(|text| text.len()).sum();
    if n_chars > CHARS_MAX {
        return ask_before.first().map(String::as_str);
    }
    let mut read = Vec::new();
    for text in &reported {
        match commands(text) {
            Some(commands) => read.extend(commands),
            // What cannot be read in bounds is asked about.
            None => return ask_before.first().map(String::as_str),
        }
    }
    let raw: Vec<String> = reported.iter().map(|text| squeezed(text)).collect();
    let mut entries = ask_before.iter().map(String::as_str);
    entries.find(|entry| {
        let pattern = ConsentPattern::new(entry);
        let is_text = |text: &String| !pattern.text.is_empty() && text.contains(&pattern.text);
        raw.iter().any(is_text) || read.iter().any(|words| pattern.begins_in(words))
    })
}

/// An entry as text and as a command.
struct ConsentPattern {
    text: String,
    program: String,
    /// Its words without a dash, the program aside.
    operands: Vec<String>,
    /// Its words with a dash.
    options: Vec<String>,
}

impl ConsentPattern {
    fn new(entry: &str) -> Self {
        let text = squeezed(entry);
        let mut words = text.split(' ').map(ToOwned::to_owned);
        let program = words.next().unwrap_or_default();
        let (options, operands) = words
            .take(PATTERN_WORDS_MAX)
            .partition(|word: &String| word.starts_with('-'));
        Self {
            text,
            program: base_name(&program).to_owned(),
            operands,
            options,
        }
    }

    /// Tells whether the command, or what a program before it runs, is the entry's.
    fn begins_in(&self, words: &[String]) -> bool {
        let starts = words.iter().enumerate();
        starts
            .filter(|(_, word)| base_name(word) == self.program)
            .any(|(at, _)| self.is(words.get(at + 1..).unwrap_or_default()))
    }

    /// Tells whether these words after the program are the entry's: its operands first, with nothing
    /// before or between them but options and what may be an option's value, its options anywhere.
    fn is(&self, words: &[String]) -> bool {
        let mut wanted = self.operands.iter();
        let mut next = wanted.next();
        let mut is_after_option = false;
        for word in words {
            let Some(operand) = next else { break };
            if word == operand {
                next = wanted.next();
            } else if !word.starts_with('-') && !is_after_option {
                return false;
            }
            is_after_option = word.starts_with('-');
        }
        next.is_none() && self.options.iter().all(|option| has_option(words, option))
    }
}

/// Tells whether an option is among words: `--force` also as `--force=…`, `-rf` also as `-f -r`.
fn has_option(words: &[String], option: &str) -> bool {
    let is_cluster = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let is_it = |word: &String| {
        let rest = word.strip_prefix(option);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if words.iter().any(is_it) {
        return true;
    }
    let has_letter = |letter: char| {
        let mut clusters = words.iter().filter(|word| is_cluster(word));
        clusters.any(|word| word.contains(letter))
    };
    is_cluster(option) && option.len() > 1 && option.chars().skip(1).all(has_letter)
}

fn base_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let plain = name.strip_suffix(".exe").unwrap_or(name);
    if plain.is_empty() { program } else { plain }
}

#[cfg(test)]
mod tests;
