//! The comparison of a test in a shell: a command that compares two words.
//!
//! Only in one line, and only where it says what has to be: it ends the test, or what stands behind it
//! reports that it failed. What a branch depends on is none.

use std::ops::Range;

use super::comparison::Comparison;

/// Commands of frameworks that compare two words, and how many words may stand before these.
const ASSERTIONS: &[(&str, usize)] = &[("assert_equal", 0), ("assertEquals", 1), ("assertSame", 1)];
/// What ends or reports a test that failed.
const REPORTS: &[&str] = &[
    "exit", "return", "fail", "die", "error", "false", "flunk", "not_ok", "abort",
];
/// What makes a command that fails end a test.
const ENDS_AT_FAILURE: &[&str] = &["@test ", "set -e", "set -o errexit", "set -ue", "sh -e"];

/// The words of a command in one line.
struct CommandWords {
    words: Vec<Range<usize>>,
    /// Where it ends: at the end of the line, or at what is done where it fails.
    end: usize,
}

/// Returns the comparison that begins at `start`.
pub(super) fn comparison(text: &str, start: usize) -> Option<Comparison> {
    let line = text.get(start..)?;
    let line_end = line.find('\n').map_or(text.len(), |at| start + at);
    let command = CommandWords::of(text.get(..line_end)?, start)?;
    let said: Vec<&str> = command
        .words
        .iter()
        .filter_map(|word| text.get(word.clone()))
        .collect();
    let after = text.get(command.end..line_end)?;
    let (["[", inner @ .., "]"] | ["[[", inner @ .., "]]"] | ["test", inner @ ..]) =
        said.as_slice()
    else {
        return assertion(&command, &said, after);
    };
    let &[_, operator, right] = inner else {
        return None;
    };
    let is_number = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'))
    };
    let is_comparison = match operator {
        "=" | "==" => true,
        "-eq" => is_number(right),
        _ => false,
    };
    if !is_comparison || said.get(1) == Some(&"!") || !has_to_hold(text, after) {
        return None;
    }
    let is_bare = said.first() == Some(&"test");
    let side = command
        .words
        .get(command.words.len() - if is_bare { 1 } else { 2 })?;
    Some(Comparison {
        start,
        callee: start..command.words.last()?.end,
        sides: vec![side.clone()],
    })
}

/// Returns another word in the place of one, as the part that is replaced and what stands there then.
pub(super) fn another_word(text: &str, side: &Range<usize>) -> Option<(Range<usize>, String)> {
    let is_counted = text.get(..side.start)?.trim_end().ends_with(" -eq");
    if !is_counted {
        return Some((side.end..side.end, "\"kapi\"".to_owned()));
    }
    let last = text.get(side.clone())?.chars().next_back()?.to_digit(10)?;
    Some((side.end - 1..side.end, (last ^ 1).to_string()))
}

fn assertion(command: &CommandWords, said: &[&str], after: &str) -> Option<Comparison> {
    let (first, values) = said.split_first()?;
    let (_, before) = ASSERTIONS.iter().find(|(name, _)| name == first)?;
    let is_meant = (2..=2 + before).contains(&values.len()) && after.is_empty();
    let start = command.words.first()?.start;
    is_meant.then(|| Comparison {
        start,
        callee: start..start,
        sides: command.words.last().cloned().into_iter().collect(),
    })
}

/// Tells whether a test fails with a command, by what stands behind it in its line.
fn has_to_hold(text: &str, after: &str) -> bool {
    let Some(done) = after.strip_prefix("||") else {
        return ENDS_AT_FAILURE.iter().any(|words| text.contains(words));
    };
    let done = done.trim_start();
    let mut words = done.split([' ', ';', '\t']);
    // Of a group of commands, one has to.
    let reports = match done.strip_prefix('{') {
        Some(_) => words.any(|word| REPORTS.contains(&word)),
        None => words.next().is_some_and(|word| REPORTS.contains(&word)),
    };
    let ends_well = ["exit 0", "return 0"]
        .iter()
        .any(|well| done.contains(well));
    reports && !ends_well
}

impl CommandWords {
    /// Reads a command; `text` ends where its line does.
    fn of(text: &str, start: usize) -> Option<Self> {
        let (mut words, mut at) = (Vec::new(), start);
        loop {
            let rest = text.get(at..)?;
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            at += blanks;
            let rest = text.get(at..)?;
            if rest.is_empty() || rest.starts_with("||") {
                return Some(Self { words, end: at });
            }
            if rest.starts_with('#') {
                let end = text.len();
                return Some(Self { words, end });
            }
            let end = word_end(text, at)?;
            if end == at {
                return None;
            }
            words.push(at..end);
            at = end;
        }
    }
}

/// Returns where a word ends; nothing where it does not end in its line.
fn word_end(text: &str, mut at: usize) -> Option<usize> {
    while let Some(byte) = text.as_bytes().get(at) {
        at = match byte {
            b' ' | b'\t' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => return Some(at),
            _ => part_end(text, at, true)?,
        };
    }
    Some(at)
}

/// Returns where a part of a word ends: a quoted text, what is substituted, or one character.
/// Single quotes are none within double ones.
fn part_end(text: &str, at: usize, is_outside: bool) -> Option<usize> {
    let rest = text.get(at..)?;
    let closed = |quote: char| {
        let inner = rest.get(1..)?;
        inner.find(quote).map(|end| at + end + 2)
    };
    let first = rest.chars().next()?;
    match first {
        '\\' => Some(at + 1 + rest.get(1..)?.chars().next()?.len_utf8()),
        '\'' if is_outside => closed('\''),
        '`' => closed('`'),
        '"' if is_outside => {
            let mut end = at + 1;
            while text.as_bytes().get(end)? != &b'"' {
                end = part_end(text, end, false)?;
            }
            Some(end + 1)
        }
        '$' if rest.starts_with("$(") || rest.starts_with("${") => substituted_end(text, at + 1),
        _ => Some(at + first.len_utf8()),
    }
}

/// Returns where what is substituted ends; its bracket opens at `open`.
fn substituted_end(text: &str, open: usize) -> Option<usize> {
    let (mut at, mut depth) = (open, 0_usize);
    loop {
        match text.as_bytes().get(at)? {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.checked_sub(1)?,
            _ => {
                at = part_end(text, at, true)?;
                continue;
            }
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}
