//! What other agents and files said, put so that it cannot pass for Kapi's own words.
//!
//! A fence that is longer than any within it, and lines without control characters.

use kapi_core::text::one_line;

/// The longest text of an output that an answer repeats, in bytes; the data has all of it.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Returns a text in one line, without anything that moves a cursor.
#[must_use]
pub fn line(text: &str) -> String {
    let plain = text.chars().map(|c| if is_plain(c) { c } else { ' ' });
    let line: String = plain.collect();
    one_line(&line)
}

/// Returns a text of many lines between two fences that it does not hold.
#[must_use]
pub fn fenced(text: &str) -> String {
    let kept = text.floor_char_boundary(TEXT_BYTES_MAX);
    let (shown, rest) = text.split_at(kept);
    let plain: String = shown
        .chars()
        .filter(|&c| c == '\n' || c == '\t' || is_plain(c))
        .collect();
    let fence = "`".repeat(longest_run(&plain).max(2) + 1);
    let cut = match rest.len() {
        0 => String::new(),
        bytes => format!("\n({bytes} more bytes are in the details)"),
    };
    format!("{fence}\n{}\n{fence}{cut}", plain.trim_end_matches('\n'))
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// Line and paragraph separators and what turns the direction of writing are no text either.
fn is_plain(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns && !matches!(c, '\u{2028}' | '\u{2029}')
}
