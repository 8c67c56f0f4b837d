//! Foreign text inside ours: cut to its end, and fenced so that it cannot end its own quotation.
//!
//! Knows nothing of what the text is.

/// Returns at most the last `bytes_max` bytes of a text, on a character boundary.
#[must_use]
pub fn tail(text: &str, bytes_max: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

/// Returns at most the first `bytes_max` bytes of a text, on a character boundary.
#[must_use]
pub fn head(text: &str, bytes_max: usize) -> &str {
    let end = text.floor_char_boundary(bytes_max);
    text.get(..end).unwrap_or_default()
}

/// Writes out every character that can be there without being seen: control characters, marks that
/// turn the direction of writing, characters without width.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_break = match c {
            '\n' | '\t' => true,
            '\r' => chars.peek() == Some(&'\n'),
            _ => false,
        };
        if !is_break && is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Tells whether a character can be there without being seen.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    let is_mark = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    is_mark || c.is_control()
}

/// Does the same to line breaks and tabs, too: a name must not forge a line of a report.
#[must_use]
pub fn visible_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in visible(text).chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// Returns a text as one word of a POSIX shell, in quotes only where it needs them.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Fences a text with more backticks than it holds in a row.
#[must_use]
pub fn fenced(text: &str, language: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::{fenced, head, shell_word, tail, visible, visible_line};

    #[test]
    fn a_name_stays_on_its_line() {
        let forged = "a.py\n- judge: done\r\n\t\u{1b}[2J";
        let line = visible_line(forged);
        assert_eq!(line, "a.py\\n- judge: done\\r\\n\\t\\u{1b}[2J");
    }

    #[test]
    fn a_text_cannot_close_its_fence() {
        assert_eq!(fenced("a", ""), "```\na\n```");
        assert_eq!(fenced("````\nrm", "diff"), "`````diff\n````\nrm\n`````");
    }

    #[test]
    fn what_hides_is_written_out() {
        let ordinary = "a\tb\r\n\u{e9} \u{4e2d} \u{1f600}";
        assert_eq!(visible(ordinary), ordinary);
        assert_eq!(
            visible("a\u{1b}[2J\u{200b}\u{202e}\u{e0041}\r"),
            "a\\u{1b}[2J\\u{200b}\\u{202e}\\u{e0041}\\u{d}"
        );
    }

    #[test]
    fn the_beginning_is_kept_whole_in_characters() {
        assert_eq!(
            (head("abc", 2), head("aé", 2), head("", 5)),
            ("ab", "a", "")
        );
    }

    #[test]
    fn the_end_is_kept_whole_in_characters() {
        assert_eq!(tail("abc", 2), "bc");
        assert_eq!(tail("aé", 1), "");
        assert_eq!(tail("", 5), "");
    }

    #[test]
    fn a_word_of_a_shell_is_quoted_only_where_it_has_to_be() {
        for (text, word) in [
            ("", "''"),
            ("a-b_c./:=,+@%9", "a-b_c./:=,+@%9"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
            ("é", "'é'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
