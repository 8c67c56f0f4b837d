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
    use super::{fenced, tail};

    #[test]
    fn a_text_cannot_close_its_fence() {
        assert_eq!(fenced("a", ""), "```\na\n```");
        assert_eq!(fenced("````\nrm", "diff"), "`````diff\n````\nrm\n`````");
    }

    #[test]
    fn the_end_is_kept_whole_in_characters() {
        assert_eq!(tail("abc", 2), "bc");
        assert_eq!(tail("aé", 1), "");
        assert_eq!(tail("", 5), "");
    }
}
