//! Cutting and cleaning foreign text.
//!
//! Everything an agent prints is foreign: it is capped here before it is kept, and freed of
//! control characters where it becomes one line. Knows nothing of agents.

use std::iter::Peekable;
use std::str::Chars;

use kapi_core::quote::{head, is_hidden};

/// Bytes kept of a message: enough for the plan of many tasks, which is one message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Characters kept of a tool's detail and of a notice.
pub(crate) const LINE_CHARS_MAX: usize = 200;

/// What stands where text was cut off.
const ELLIPSIS: char = '…';

/// Returns a message without outer blank space and within the message cap.
pub(crate) fn message(text: &str) -> String {
    head(text.trim(), MESSAGE_BYTES_MAX).to_owned()
}

/// Returns a text as one line with no control characters and no terminal sequences.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut chars = text.chars().peekable();
    let mut n_chars = 0;
    let mut is_gap = false;
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            skip_escape_sequence(&mut chars);
            continue;
        }
        if c.is_whitespace() || is_hidden(c) {
            is_gap = !line.is_empty();
            continue;
        }
        if n_chars + usize::from(is_gap) + 1 >= LINE_CHARS_MAX && chars.peek().is_some() {
            line.push(ELLIPSIS);
            break;
        }
        if is_gap {
            line.push(' ');
            n_chars += 1;
            is_gap = false;
        }
        line.push(c);
        n_chars += 1;
    }
    line
}

/// Returns text in which only newlines and tabs are left of the control characters.
pub(crate) fn without_controls(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape_sequence(&mut chars),
            '\n' | '\t' => clean.push(c),
            _ if is_hidden(c) => {}
            _ => clean.push(c),
        }
    }
    clean
}

/// Passes over what follows an escape character: a control sequence, a string, or one character.
fn skip_escape_sequence(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        Some('[') => {
            for c in chars.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&c) {
                    break;
                }
            }
        }
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next_if_eq(&'\\');
                    break;
                }
            }
        }
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_CHARS_MAX, one_line, without_controls};

    #[test]
    fn a_line_holds_nothing_a_terminal_would_obey() {
        let cases = [
            ("  two\n\twords ", "two words"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}31mc1\u{85}", "31mc1"),
            ("rm \u{202e}txt.exe", "rm txt.exe"),
            ("a\u{2060}\u{e0041}b", "a b"),
            ("a\0b\u{8}", "a b"),
            ("\u{1b}", ""),
            ("", ""),
        ];
        for (text, line) in cases {
            assert_eq!(one_line(text), line, "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        for text in ["ü".repeat(5_000), "a b ".repeat(5_000)] {
            let line = one_line(&text);
            assert_eq!(line.chars().count(), LINE_CHARS_MAX, "{line}");
            assert!(line.ends_with('…'), "{line}");
        }
        let exact = "x".repeat(LINE_CHARS_MAX);
        assert_eq!(one_line(&exact), exact);
    }

    #[test]
    fn texts_keep_their_lines_and_lose_their_controls() {
        assert_eq!(without_controls("a\n\tb\u{1b}[2Jc\r\u{7}"), "a\n\tbc");
    }
}
