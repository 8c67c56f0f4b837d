//! Goes over the text of a program: what is a literal, a comment, an argument.
//!
//! No parser: only what is needed to find the end of a statement and the parts of a call.

use std::ops::Range;

use crate::rules::proof::language::Language;

/// Bytes of the longest statement that is looked at.
const STATEMENT_BYTES_MAX: usize = 20_000;

/// The arguments of a call.
#[derive(Debug)]
pub(in crate::rules::proof) struct Arguments {
    /// Where each stands, without blanks around.
    pub(in crate::rules::proof) parts: Vec<Range<usize>>,
    /// Behind the closing parenthesis.
    pub(in crate::rules::proof) end: usize,
}

/// Returns the arguments of a call whose parenthesis opens at `open`.
pub(in crate::rules::proof) fn arguments(
    text: &str,
    open: usize,
    language: Language,
) -> Option<Arguments> {
    if text.as_bytes().get(open) != Some(&b'(') {
        return None;
    }
    let mut commas = Vec::new();
    let end = walk(text, open + 1, language, |at, byte, depth| {
        if depth == 0 && byte == b',' {
            commas.push(at);
        }
        depth == 0 && byte == b')'
    })?;
    let mut parts = Vec::new();
    let mut start = open + 1;
    for stop in commas.into_iter().chain([end]) {
        let part = trimmed(text, start..stop);
        if !part.is_empty() {
            parts.push(part);
        }
        start = stop + 1;
    }
    Some(Arguments {
        parts,
        end: end + 1,
    })
}

/// Goes from `from` on over what is no literal and no comment, until told to stop; returns where.
/// `stop` is given the place, the byte, and how many brackets are open.
pub(in crate::rules::proof) fn walk(
    text: &str,
    from: usize,
    language: Language,
    mut stop: impl FnMut(usize, u8, usize) -> bool,
) -> Option<usize> {
    let bytes = text.as_bytes();
    let last = text.len().min(from.saturating_add(STATEMENT_BYTES_MAX));
    let (mut at, mut depth) = (from, 0_usize);
    while at < last {
        if let Some(end) =
            literal_end(text, at, language).or_else(|| comment_end(text, at, language))
        {
            at = end;
            continue;
        }
        let byte = *bytes.get(at)?;
        if stop(at, byte, depth) {
            return Some(at);
        }
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the end of a literal in quotes that begins here.
pub(in crate::rules::proof) fn literal_end(
    text: &str,
    at: usize,
    language: Language,
) -> Option<usize> {
    let rest = text.get(at..)?;
    let first = rest.bytes().next()?;
    let closed = |quote: &str| {
        let escapes = !(language == Language::Go && quote == "`");
        quoted_end(rest, quote, escapes).map(|end| at + end)
    };
    match (language, first) {
        (Language::Python | Language::Jvm, b'"') if rest.starts_with("\"\"\"") => closed("\"\"\""),
        (Language::Python, b'\'') if rest.starts_with("'''") => closed("'''"),
        (Language::Rust, b'r') if is_start(text, at) => raw_end(rest).map(|end| at + end),
        (Language::Rust, b'\'') => {
            let is_char = rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'');
            is_char.then(|| closed("'")).flatten()
        }
        (Language::Script, b'/') if is_regex(text, at) => {
            quoted_end(rest, "/", true).map(|end| at + end)
        }
        (Language::Script | Language::Go, b'`') => closed("`"),
        (_, b'"') => closed("\""),
        (_, b'\'') => closed("'"),
        _ => None,
    }
}

/// Returns where the first other byte than a blank stands, from `at` on.
pub(in crate::rules::proof) fn past_blanks(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + (rest.len() - rest.trim_start().len())
}

/// Returns a range without the blanks around what stands there.
pub(in crate::rules::proof) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = text.get(range.clone()).unwrap_or_default();
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

fn quoted_end(rest: &str, quote: &str, escapes: bool) -> Option<usize> {
    let mut at = quote.len();
    while at < rest.len().min(STATEMENT_BYTES_MAX) {
        let left = rest.get(at..)?;
        if left.starts_with(quote) {
            return Some(at + quote.len());
        }
        let c = left.chars().next()?;
        at += c.len_utf8();
        if escapes && c == '\\' {
            at += left.chars().nth(1)?.len_utf8();
        }
    }
    None
}

/// Returns the end of a raw text of Rust.
fn raw_end(rest: &str) -> Option<usize> {
    let marks = rest
        .get(1..)?
        .bytes()
        .take_while(|byte| *byte == b'#')
        .count();
    let inner = rest.get(1 + marks..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(marks));
    let end = inner.find(&close)?;
    Some(2 + marks + end + close.len())
}

fn is_start(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// Tells whether a slash begins a pattern: where no value stands before it.
fn is_regex(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default().trim_end();
    let follows = text.get(at + 1..).and_then(|rest| rest.chars().next());
    !matches!(follows, Some('/' | '*'))
        && before.ends_with([
            '(', ',', '=', ':', '[', '!', '&', '|', '?', '{', '}', ';', '>',
        ])
}

fn comment_end(text: &str, at: usize, language: Language) -> Option<usize> {
    let rest = text.get(at..)?;
    let line = || at + rest.find('\n').unwrap_or(rest.len());
    match language {
        Language::Python | Language::Ruby | Language::Perl | Language::Shell | Language::Other => {
            rest.starts_with('#').then(line)
        }
        Language::Lua => rest.starts_with("--").then(line),
        Language::Script
        | Language::Rust
        | Language::Go
        | Language::Jvm
        | Language::C
        | Language::Php => {
            if rest.starts_with("/*") {
                let end = rest.find("*/")?;
                return Some(at + end + 2);
            }
            rest.starts_with("//").then(line)
        }
    }
}

/// Returns the bytes of a text that belong to no literal and no comment, each with its place.
pub(in crate::rules::proof) fn code_bytes(text: &str, language: Language) -> Vec<(usize, u8)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let passed = literal_end(text, at, language);
        match passed.or_else(|| comment_end(text, at, language)) {
            Some(end) => at = end,
            None => {
                found.push((at, *byte));
                at += 1;
            }
        }
    }
    found
}

/// A word or a sign of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules::proof) struct Token {
    /// The word or the sign; of a literal what stands between its quotes, after a quote.
    pub(in crate::rules::proof) text: String,
    /// Where it begins.
    pub(in crate::rules::proof) start: usize,
}

/// Returns the words and signs of a text. In Python a statement begins with how many others it stands
/// within.
pub(in crate::rules::proof) fn tokens(text: &str, language: Language) -> Vec<Token> {
    let mut found = Vec::new();
    let mut push = |start: usize, text: String| found.push(Token { text, start });
    let mut indents = vec![0];
    let (mut at, mut depth, mut is_start) = (0, 0_usize, true);
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let begins = is_start && depth == 0 && language == Language::Python && !c.is_whitespace();
        if let Some(end) = comment_end(text, at, language) {
            at = end;
            continue;
        }
        if begins {
            let line = text.get(..at).unwrap_or_default();
            let indent = line.len() - line.rfind('\n').map_or(0, |at| at + 1);
            while indents.last().is_some_and(|last| *last > indent) {
                indents.pop();
            }
            if indents.last() != Some(&indent) {
                indents.push(indent);
            }
            push(at, format!("\n{}", indents.len()));
            is_start = false;
        }
        if let Some(end) = literal_end(text, at, language) {
            let inner = text.get(at..end).unwrap_or_default();
            push(at, format!("\"{}", inner.trim_matches(['"', '\'', '`'])));
            at = end;
        } else if c.is_alphanumeric() || c == '_' {
            let rest = text.get(at..).unwrap_or_default();
            let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let word = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
            push(at, word.to_owned());
            at += word.len();
        } else {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                '\n' => is_start = true,
                _ => {}
            }
            if !c.is_whitespace() {
                push(at, c.to_string());
            }
            at += c.len_utf8();
        }
    }
    found
}
