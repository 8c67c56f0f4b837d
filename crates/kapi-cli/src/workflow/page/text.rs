//! Foreign text on a page: cut to what a reader takes in, and nothing in it that is there unseen.

use std::borrow::Cow;

use kapi_core::quote::{head, visible};
use maud::{Markup, html};

/// The most bytes of what is told in a line.
pub(crate) const LINE_BYTES_MAX: usize = 200;
/// The most bytes of a text of an agent or a person.
pub(crate) const FACT_BYTES_MAX: usize = 4_000;
/// The most bytes of a document or a patch.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// Returns a text that is not longer than so many bytes, and says where more was left out.
pub(crate) fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    let text = text.trim();
    let kept = head(text, bytes_max);
    if kept.len() == text.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!(
        "{kept}\u{2026} ({} more bytes)",
        text.len() - kept.len()
    ))
}

/// Shows a text whose lines matter, in a box that scrolls by itself.
pub(crate) fn block(text: &str, name: &str) -> Markup {
    html! {
        pre tabindex="0" role="region" aria-label=(name) { (cut(text, BLOCK_BYTES_MAX)) }
    }
}

/// Shows a patch, its lines told apart by their signs and by colour.
pub(crate) fn patch(text: &str, is_cut: bool, name: &str) -> Markup {
    let kept = head(text, BLOCK_BYTES_MAX);
    html! {
        pre.patch tabindex="0" role="region" aria-label=(name) {
            @for line in kept.lines() {
                @match line.as_bytes().first() {
                    Some(b'+') => ins { (line) },
                    Some(b'-') => del { (line) },
                    Some(b'@') => span.hunk { (line) },
                    _ => (line),
                }
                "\n"
            }
        }
        @if is_cut || kept.len() < text.len() {
            p.note { "The patch continues; git has all of it." }
        }
    }
}

/// Returns a page or a picture that is ready: nothing is in it that a reader cannot see, or that XML
/// has no place for.
pub(crate) fn finished(markup: &str) -> String {
    visible(markup).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::{cut, finished, patch};

    #[test]
    fn a_long_text_says_what_it_leaves_out() {
        assert_eq!(cut(" a ", 5), "a");
        assert_eq!(cut("abcdef", 5), "abcde\u{2026} (1 more bytes)");
        assert_eq!(cut("aaa\u{e9}", 4), "aaa\u{2026} (2 more bytes)");
    }

    #[test]
    fn nothing_hides() {
        let text = "a\0\u{202e}b\u{ffff}\r";
        assert_eq!(finished(text), "a\\u{0}\\u{202e}b\u{fffd}\\u{d}");
    }

    #[test]
    fn a_patch_cannot_leave_its_box() {
        let shown = patch("+</pre><script>\n-a\n@@ 1\n b", false, "a \"name\"").into_string();
        assert_eq!(
            shown,
            "<pre class=\"patch\" tabindex=\"0\" role=\"region\" aria-label=\"a &quot;name&quot;\">\
             <ins>+&lt;/pre&gt;&lt;script&gt;</ins>\n<del>-a</del>\n\
             <span class=\"hunk\">@@ 1</span>\n b\n</pre>"
        );
    }
}
