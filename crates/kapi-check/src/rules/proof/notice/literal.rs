//! Values that tests use, and conditions that decide by them.
//!
//! Numbers of two digits and more, and texts that are more than a plain word: what a program compares
//! with for reasons of its own is mostly a word or a round number, and is left out.

use std::collections::BTreeSet;

/// The most values that are kept.
const VALUES_MAX: usize = 200_000;
/// The fewest characters of a text.
const CHARS_MIN: usize = 4;
/// Numbers that mean something everywhere.
const COMMON: &[u64] = &[
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    20,
    24,
    25,
    28,
    29,
    30,
    31,
    32,
    36,
    50,
    52,
    59,
    60,
    62,
    63,
    64,
    65,
    80,
    90,
    97,
    99,
    100,
    122,
    126,
    127,
    128,
    180,
    200,
    201,
    204,
    255,
    256,
    270,
    301,
    302,
    304,
    360,
    364,
    365,
    366,
    400,
    401,
    403,
    404,
    409,
    429,
    443,
    500,
    502,
    503,
    512,
    999,
    1000,
    1023,
    1024,
    1900,
    1970,
    2000,
    2048,
    3600,
    4096,
    8080,
    8192,
    9999,
    10_000,
    32_767,
    32_768,
    65_535,
    65_536,
    86_400,
    100_000,
    1_000_000,
    1_048_576,
    2_147_483_647,
    4_294_967_295,
    1_000_000_000,
];

/// The values in the tests of the base.
#[derive(Debug, Clone, Default)]
pub struct BaseTests {
    values: BTreeSet<String>,
}

impl BaseTests {
    /// Gathers the values in the texts of tests.
    #[must_use]
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let values = texts.into_iter().flat_map(str::lines).flat_map(values_of);
        Self {
            values: values.take(VALUES_MAX).collect(),
        }
    }

    /// Tells whether a line decides by a value that the tests use.
    pub(super) fn is_special(&self, line: &str) -> bool {
        let bare = line.trim();
        let used: Vec<String> = values_of(bare)
            .into_iter()
            .filter(|value| self.values.contains(value))
            .collect();
        if used.is_empty() {
            return false;
        }
        let compares = used.iter().any(|value| is_compared(bare, value));
        compares || (used.len() > 1 && is_entry(bare, &used))
    }
}

/// Returns the values in a line as they are written, quotes apart.
fn values_of(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| matches!(c, '"' | '\'' | '`') || c.is_ascii_digit()) {
        let before = rest.get(..at).and_then(|before| before.chars().next_back());
        let from = rest.get(at..).unwrap_or_default();
        let first = from.chars().next().unwrap_or(' ');
        if first.is_ascii_digit() {
            let end = from
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
                .unwrap_or(from.len());
            let word = from.get(..end).unwrap_or_default();
            let is_part = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
            let number = word.replace('_', "");
            if !is_part && is_number(&number) {
                found.push(number);
            }
            rest = from.get(end..).unwrap_or_default();
        } else {
            let inner = from.get(1..).unwrap_or_default();
            let Some(end) = inner.find(first) else { break };
            let text = inner.get(..end).unwrap_or_default();
            if is_text(text) {
                found.push(format!("\"{text}"));
            }
            rest = inner.get(end + 1..).unwrap_or_default();
        }
    }
    found
}

fn is_number(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_common = text
        .parse::<u64>()
        .is_ok_and(|number| COMMON.contains(&number));
    is_plain && digits > 1 && !is_common && text.bytes().filter(|byte| *byte == b'.').count() < 2
}

/// Tells whether a text is more than a plain word.
fn is_text(text: &str) -> bool {
    let n_letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    let is_word = text.chars().all(|c| {
        c.is_alphabetic()
            || matches!(
                c,
                '_' | '-'
                    | '.'
                    | ':'
                    | '/'
                    | '%'
                    | '\\'
                    | '*'
                    | '$'
                    | '{'
                    | '}'
                    | '['
                    | ']'
                    | '('
                    | ')'
                    | '<'
                    | '>'
                    | '^'
                    | '+'
                    | '?'
                    | '|'
                    | '@'
                    | '='
                    | ','
                    | '#'
                    | '&'
                    | '!'
                    | ';'
            )
    });
    let is_encoding = [
        "utf-8",
        "utf8",
        "utf-16",
        "utf16",
        "latin1",
        "iso8859-1",
        "base64",
        "sha1",
        "sha256",
        "sha512",
        "md5",
    ]
    .contains(&text.to_ascii_lowercase().as_str());
    text.chars().count() >= CHARS_MIN && n_letters > 1 && !is_word && !is_encoding
}

/// Tells whether a value stands beside a comparison, in a `case` or before an arm.
fn is_compared(line: &str, value: &str) -> bool {
    let (plain, is_text) = value
        .strip_prefix('"')
        .map_or((value, false), |text| (text, true));
    line.match_indices(plain).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + plain.len()..).unwrap_or_default();
        let before = if is_text {
            before.trim_end_matches(['"', '\'', '`', 'b', 'r', 'f'])
        } else {
            before
        };
        let after = if is_text {
            after.trim_start_matches(['"', '\'', '`'])
        } else {
            after
        };
        let (before, after) = (before.trim_end(), after.trim_start());
        let follows = [
            "==", "===", "!=", "case", "when", " eq", " is", ".equals(", "Equals(", "-eq",
        ]
        .iter()
        .any(|sign| before.ends_with(sign))
            || (before.ends_with(['(', '[', '{', ','])
                && (before.contains(" in (")
                    || before.contains(" in [")
                    || before.contains(" in {")
                    || before.contains("matches!(")));
        let leads = ["==", "=>", "!=", "->"]
            .iter()
            .any(|sign| after.starts_with(sign))
            && !before.ends_with(['>', '<']);
        let is_arm = after.starts_with("=>") && before.is_empty()
            || after.starts_with("->") && before.is_empty();
        follows || is_arm || (leads && !after.starts_with("=>") && !after.starts_with("->"))
    })
}

/// Tells whether a line is an entry of a table from one such value to another.
fn is_entry(line: &str, used: &[String]) -> bool {
    let Some(first) = used.first() else {
        return false;
    };
    let plain = first.trim_start_matches('"');
    let start = line.trim_start_matches(['{', '(', '[', '"', '\'', '`', ' ']);
    let Some(rest) = start.strip_prefix(plain) else {
        return false;
    };
    let rest = rest.trim_start_matches(['"', '\'', '`', ' ', ']', ')']);
    rest.starts_with(':') || rest.starts_with("=>")
}
