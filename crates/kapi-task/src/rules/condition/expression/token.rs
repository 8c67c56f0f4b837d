//! The words of an expression and where they stand.
//!
//! Places are counted in UTF-16 units from 0, as the original counts them. Knows no grammar.

use kapi_core::value::KernelValue;

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: TokenKind,
    /// Where it begins.
    pub(super) location: usize,
}

/// What a word is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `(`, `)` or an operator.
    Sign(&'static str),
    /// A text, a number, true, false or null.
    Literal(KernelValue),
    /// A dotted path.
    Path(String),
    /// Nothing more.
    End,
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenError {
    /// Where.
    pub(super) location: usize,
    /// In the words of the original.
    pub(super) reason: String,
}

/// The longer ones first.
const SIGNS: &[&str] = &["&&", "||", "==", "!=", ">=", "<=", "!", ">", "<", "(", ")"];

/// Tells whether a character is blank where ECMAScript says so.
pub(super) fn is_blank(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Counts the characters before a place.
pub(super) fn chars_before(text: &str, location: usize) -> usize {
    let mut units = 0;
    text.chars()
        .take_while(|c| {
            units += c.len_utf16();
            units <= location
        })
        .count()
}

/// Cuts an expression into words; the last one says where it ends.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, TokenError> {
    let mut found = Vec::new();
    let (mut rest, mut location) = (text, 0);
    while let Some(first) = rest.chars().next() {
        let (kind, length) = if is_blank(first) {
            (None, first.len_utf8())
        } else {
            let (kind, length) = token(rest, first, location)?;
            (Some(kind), length)
        };
        let (taken, left) = rest.split_at(length);
        found.extend(kind.map(|kind| Token { kind, location }));
        location += taken.encode_utf16().count();
        rest = left;
    }
    found.push(Token {
        kind: TokenKind::End,
        location,
    });
    Ok(found)
}

/// Returns the word at the beginning of a text, and its length in bytes.
fn token(rest: &str, first: char, location: usize) -> Result<(TokenKind, usize), TokenError> {
    let wrong = |reason: String| TokenError { location, reason };
    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        return Ok((TokenKind::Sign(sign), sign.len()));
    }
    match first {
        '\'' | '"' => {
            quoted(rest, first).ok_or_else(|| wrong("unterminated string literal".to_owned()))
        }
        '-' | '0'..='9' => {
            let length = number_length(rest);
            let number = rest.get(..length).and_then(KernelValue::parse_number);
            let invalid = || wrong(format!("invalid number at {location}"));
            number
                .map(|number| (TokenKind::Literal(number), length))
                .ok_or_else(invalid)
        }
        'a'..='z' | 'A'..='Z' | '_' => {
            let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let word = rest.split(|c| !is_path(c)).next().unwrap_or_default();
            let kind = match word {
                "true" => TokenKind::Literal(KernelValue::Bool(true)),
                "false" => TokenKind::Literal(KernelValue::Bool(false)),
                "null" => TokenKind::Literal(KernelValue::Null),
                path => TokenKind::Path(path.to_owned()),
            };
            Ok((kind, word.len()))
        }
        other => Err(wrong(format!("unexpected token '{other}' at {location}"))),
    }
}

/// Reads a text in quotes; `None` if nothing closes it.
fn quoted(rest: &str, quote: char) -> Option<(TokenKind, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => {
                return Some((
                    TokenKind::Literal(KernelValue::Text(text)),
                    at + c.len_utf8(),
                ));
            }
            '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
            c => text.push(c),
        }
    }
    None
}

/// Measures a number: digits, and a point only with digits after it.
fn number_length(rest: &str) -> usize {
    let sign = usize::from(rest.starts_with('-'));
    let digits = |from: usize| {
        let rest = rest.get(from..).unwrap_or_default();
        rest.bytes().take_while(u8::is_ascii_digit).count()
    };
    let whole = sign + digits(sign);
    let has_point = rest.get(whole..).is_some_and(|rest| rest.starts_with('.'));
    match digits(whole + 1) {
        fraction if has_point && fraction > 0 => whole + 1 + fraction,
        _ => whole,
    }
}
