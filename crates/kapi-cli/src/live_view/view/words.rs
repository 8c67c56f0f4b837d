//! Text that fits: broken between words, cut where there is no room, measured in columns.
//!
//! Knows nothing of what the text is about.

use ratatui::text::Span;

/// Returns how many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Returns a text cut to so many columns, with a mark where something is left out.
pub(super) fn cut(text: &str, columns: usize, ellipsis: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(width(ellipsis));
    let (head, _) = split(text, room);
    let mark = if columns > width(ellipsis) {
        ellipsis
    } else {
        ""
    };
    format!("{}{mark}", head.trim_end())
}

/// Returns a text broken between words into lines of so many columns, at most so many lines; a word
/// that is longer than a line is broken itself.
pub(super) fn wrapped(text: &str, columns: usize, lines_max: usize, ellipsis: &str) -> Vec<String> {
    if columns == 0 || lines_max == 0 {
        return Vec::new();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word;
        let used = width(&line);
        if used > 0 && used + 1 + width(word) <= columns {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
        }
        while width(word) > columns {
            let (head, rest) = split(word, columns);
            if head.is_empty() {
                break;
            }
            lines.push(head.to_owned());
            word = rest;
        }
        word.clone_into(&mut line);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            let room = columns.saturating_sub(width(ellipsis));
            *last = format!("{}{ellipsis}", split(last, room).0);
        }
    }
    lines
}

/// Splits a text after as many characters as fit into so many columns.
fn split(text: &str, columns: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += width(c.encode_utf8(&mut [0; 4]));
        if used > columns {
            return text.split_at(at);
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::{cut, wrapped};

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrapped("one two three", 9, 9, "…"), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 9, 1, "…"), ["one two…"]);
        assert_eq!(wrapped("abcdefgh ij", 5, 9, "…"), ["abcde", "fgh", "ij"]);
        assert_eq!(wrapped("測試測試", 5, 9, "…"), ["測試", "測試"]);
        assert!(wrapped("", 5, 9, "…").is_empty() && wrapped("a", 0, 9, "…").is_empty());
    }

    #[test]
    fn what_does_not_fit_is_cut_and_marked() {
        assert_eq!(cut("abc", 3, "…"), "abc");
        assert_eq!(cut("abcd", 3, "…"), "ab…");
        assert_eq!(cut("測試測試", 6, "…"), "測試…");
        assert_eq!(cut("abcd", 1, "…"), "");
    }
}
