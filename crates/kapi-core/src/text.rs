//! Texts for people: one line of what somebody wrote, and a number with its noun.
//!
//! Changes white space alone: what is hidden in a text is shown by `goal::quote::visible`.

use std::fmt;

/// Returns a text as one line: its words, with one space between them.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a text as one line of at most `chars_max` characters; where it was cut, `…` is the last.
#[must_use]
pub fn shortened(text: &str, chars_max: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= chars_max {
        return line;
    }
    let cut: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// Returns a number with its noun, which takes an `s` unless the number is 1.
#[must_use]
pub fn counted(count: impl fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::{counted, one_line, shortened};

    #[test]
    fn white_space_of_any_kind_becomes_one_space() {
        assert_eq!(one_line(" a\n\tb  c\u{a0}d "), "a b c d");
    }

    #[test]
    fn only_what_is_longer_is_cut() {
        assert_eq!(shortened("ä ö", 3), "ä ö");
        assert_eq!(shortened("ä ö ü", 4), "ä ö…");
    }

    #[test]
    fn one_thing_has_no_s() {
        let counts = [0, 1, 2].map(|n| counted(n, "turn"));
        assert_eq!(counts, ["0 turns", "1 turn", "2 turns"]);
    }
}
