//! Another value in the place of one that a test expects.
//!
//! Where values are compared at run time alone, anything may stand there; where a compiler asks for a
//! type, only a literal can become another one.

use std::ops::Range;

use super::command;
use crate::rules::proof::language::Language;
use crate::rules::proof::scan::literal_end;

/// Names that stand around a constant without computing anything.
const AROUND: &[&str] = &[
    "Some",
    "Ok",
    "Err",
    "vec",
    "String",
    "from",
    "to_string",
    "to_owned",
    "into",
    "as_str",
    "b",
    "r",
    "u8",
    "u16",
    "u32",
    "u64",
    "i8",
    "i16",
    "i32",
    "i64",
    "usize",
    "isize",
    "f32",
    "f64",
    "true",
    "false",
    "string",
    "int",
    "int64",
    "float64",
    "byte",
    "bool",
    "List",
    "of",
    "Arrays",
    "asList",
    "new",
];

/// Returns what makes a side of a comparison another value, as the part that is replaced and what
/// stands there then.
pub(super) fn another(
    text: &str,
    side: &Range<usize>,
    language: Language,
) -> Option<(Range<usize>, String)> {
    let whole = text.get(side.clone())?;
    match language {
        Language::Python => Some((side.clone(), format!("({whole}, \"kapi\")"))),
        Language::Script | Language::Ruby | Language::Php | Language::Perl => {
            Some((side.clone(), format!("[{whole}, \"kapi\"]")))
        }
        Language::Lua => Some((side.clone(), format!("{{{whole}, \"kapi\"}}"))),
        Language::Rust | Language::Go | Language::Jvm => constant(text, side, language),
        Language::C => literal_of_c(text, side),
        Language::Shell => command::another_word(text, side),
        Language::Other => None,
    }
}

/// Returns another literal in the place of a side that is one: a text, a character, a truth or a number.
fn literal_of_c(text: &str, side: &Range<usize>) -> Option<(Range<usize>, String)> {
    let whole = text.get(side.clone())?;
    let is_quoted = literal_end(text, side.start, Language::C) == Some(side.end);
    let other = match whole {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        "'k'" => "'a'".to_owned(),
        _ if is_quoted && whole.starts_with('"') => {
            return Some((side.end - 1..side.end - 1, "kapi".to_owned()));
        }
        _ if is_quoted => {
            let is_plain = whole.len() == 3 && whole.bytes().all(|byte| byte != b'\\');
            return is_plain.then(|| (side.clone(), "'k'".to_owned()));
        }
        _ => number_of_c(whole)?,
    };
    Some((side.clone(), other))
}

/// Returns a number with the lowest bit of its last digit turned, so that it fits where the first did.
/// Of one with a point it is the last digit before that: no tolerance is as large.
fn number_of_c(whole: &str) -> Option<String> {
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    let (digits, radix) = match unsigned.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (unsigned, 10),
    };
    let length = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    let (number, suffix) = digits.split_at_checked(length)?;
    let is_octal = radix == 10 && number.len() > 1 && number.starts_with('0');
    let is_whole = suffix.chars().all(|c| "uUlLzZ".contains(c));
    let fraction = suffix.strip_prefix('.').filter(|_| radix == 10);
    let is_fraction = fraction.is_some_and(|rest| {
        let end = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        number.len() <= 3 && ["", "f", "F", "l", "L"].contains(&end)
    });
    if is_octal || !(is_whole || is_fraction) {
        return None;
    }
    let last = number.chars().next_back()?.to_digit(radix)?;
    let other = char::from_digit(last ^ 1, radix)?;
    let before = whole.len() - suffix.len() - 1;
    Some(format!("{}{other}{suffix}", whole.get(..before)?))
}

/// Does the same with the last literal of a side that computes nothing.
pub(super) fn constant(
    text: &str,
    side: &Range<usize>,
    language: Language,
) -> Option<(Range<usize>, String)> {
    let mut last = None;
    let mut at = side.start;
    while at < side.end {
        let rest = text.get(at..side.end)?;
        let first = rest.chars().next()?;
        if let Some(end) = literal_end(text, at, language) {
            if rest.starts_with('"') && end <= side.end {
                last = Some((end - 1..end - 1, "kapi".to_owned()));
            }
            at = end;
        } else if first.is_alphanumeric() || first == '_' {
            let length = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            let word = rest.get(..length)?;
            match word {
                "true" => last = Some((at..at + length, "false".to_owned())),
                "false" => last = Some((at..at + length, "true".to_owned())),
                word if first.is_ascii_digit() => {
                    last = Some((at..at + length, other_number(word)?));
                }
                word if AROUND.contains(&word) => {}
                _ => return None,
            }
            at += length;
        } else {
            at += first.len_utf8();
        }
    }
    last
}

/// Returns a number with another last digit, its suffix kept.
fn other_number(word: &str) -> Option<String> {
    if word.starts_with("0x") || word.starts_with("0b") || word.starts_with("0o") {
        return None;
    }
    let digits = word
        .find(|c: char| !(c.is_ascii_digit() || c == '_'))
        .unwrap_or(word.len());
    let number = word.get(..digits)?.trim_end_matches('_');
    let suffix = word.get(number.len()..)?;
    let last = number.chars().next_back()?.to_digit(10)?;
    let other = if last == 9 { 8 } else { last + 1 };
    Some(format!(
        "{}{other}{suffix}",
        number.get(..number.len() - 1)?
    ))
}
