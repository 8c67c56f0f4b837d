//! A condition that is one comparison, and its two sides.
//!
//! What is joined, chosen or ordered beside it is none: there another value need not change the whole.

use std::ops::Range;

use crate::rules::proof::language::Language;
use crate::rules::proof::scan::{trimmed, walk};

/// Signs and words beside which a comparison is only a part of a condition.
const JOINS: &[&str] = &[
    "&", "|", "^", "?", "<", ">", "!=", "~=", "=~", " and ", " or ", " not ", " xor ",
];

/// Returns the sides of a condition that compares with an operator, the right one first.
pub(super) fn sides(
    text: &str,
    condition: &Range<usize>,
    language: Language,
    operator: &str,
) -> Option<Vec<Range<usize>>> {
    let whole = text.get(..condition.end)?;
    let (mut found, mut is_larger) = (Vec::new(), false);
    walk(whole, condition.start, language, |at, byte, depth| {
        let rest = whole.get(at..).unwrap_or_default();
        let is_arrow = byte == b'>' && whole.get(..at).is_some_and(|before| before.ends_with('-'));
        if depth == 0 && rest.starts_with(operator) {
            found.push(at);
        }
        let is_joined = JOINS.iter().any(|sign| rest.starts_with(sign));
        is_larger |= depth == 0 && is_joined && !is_arrow;
        false
    });
    let &[at] = found.as_slice() else {
        return None;
    };
    let left = trimmed(text, condition.start..at);
    let right = trimmed(text, at + operator.len()..condition.end);
    (!is_larger && !left.is_empty() && !right.is_empty()).then(|| vec![right, left])
}
