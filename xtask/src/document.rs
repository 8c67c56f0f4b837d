//! Documents that a person writes and a command completes: the part between two lines is the command's.
//!
//! Knows neither the documents nor what is in them.

use anyhow::Context as _;

/// The line that ends a part.
const END: &str = "<!-- until here -->\n";

/// Returns a document with the part after its line `begin` replaced.
///
/// # Errors
/// When the document has no such part.
pub(crate) fn with_part(document: &str, begin: &str, part: &str) -> anyhow::Result<String> {
    let parts = document.split_once(begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = parts.with_context(|| format!("find {begin:?} and its end"))?;
    Ok(format!("{before}{begin}{part}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::with_part;

    #[test]
    fn only_the_part_after_its_own_line_is_replaced() {
        let document =
            "a\n<one>\nold\n<!-- until here -->\nb\n<two>\nold\n<!-- until here -->\nc\n";
        assert_eq!(
            with_part(document, "<two>\n", "new\n").unwrap(),
            document.replace("<two>\nold", "<two>\nnew")
        );
        with_part(document, "<three>\n", "").unwrap_err();
        with_part("<one>\nold\n", "<one>\n", "").unwrap_err();
    }
}
