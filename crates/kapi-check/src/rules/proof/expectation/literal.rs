//! Another value in the place of one that a test expects.
//!
//! Where values are compared at run time alone, anything may stand there; where a compiler asks for a
//! type, only a literal can become another one.

use std::ops::Range;

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
        Language::Script | Language::Ruby | Language::Php => {
            Some((side.clone(), format!("[{whole}, \"kapi\"]")))
        }
        Language::Rust | Language::Go | Language::Jvm => constant(text, side, language),
        Language::C | Language::Shell | Language::Other => None,
    }
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
