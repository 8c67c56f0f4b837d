//! Takes escapes out of what a program printed.
//!
//! Knows terminals only as far as their escapes have to go.

/// Returns a text without escapes and other controls; of a line that was written over, the last.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => pass_escape(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => plain.truncate(line_start),
            '\n' => {
                plain.push('\n');
                line_start = plain.len();
            }
            '\t' => plain.push('\t'),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Goes over what follows an escape character.
fn pass_escape(chars: &mut impl Iterator<Item = char>) {
    match chars.next() {
        // Parameters and intermediates, up to the final byte.
        Some('[') => {
            let _: Option<char> = chars.find(|c| ('@'..='~').contains(c));
        }
        Some(']') => {
            let mut last = ' ';
            let _: Option<char> = chars.find(|c| {
                let is_end = *c == '\u{7}' || (last == '\u{1b}' && *c == '\\');
                last = *c;
                is_end
            });
        }
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn escapes_go() {
        for (text, expected) in [
            ("\u{1b}[32m2 passed\u{1b}[0m\r\n", "2 passed\n"),
            ("\u{1b}]0;title\u{7}a", "a"),
            ("\u{1b}]8;;x\u{1b}\\a", "a"),
            ("50%\r100%\nx", "100%\nx"),
            ("a\u{1b}", "a"),
            ("\u{1b}[", ""),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
