//! What one change did to the text of a file, and how it is undone when the rest has changed since.
//!
//! Knows text and nothing of formats.

use serde::{Deserialize, Serialize};

/// The one place in which a text changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextPatch {
    /// What stood there.
    pub(super) removed: String,
    /// What stands there now.
    pub(super) inserted: String,
}

impl TextPatch {
    /// Returns what leads from one text to the other.
    pub(super) fn between(before: &str, after: &str) -> Self {
        let same = |(a, b): &(char, char)| a == b;
        let head: usize = before
            .chars()
            .zip(after.chars())
            .take_while(same)
            .map(|(c, _)| c.len_utf8())
            .sum();
        let (before, after) = (
            before.get(head..).unwrap_or_default(),
            after.get(head..).unwrap_or_default(),
        );
        let tail: usize = before
            .chars()
            .rev()
            .zip(after.chars().rev())
            .take_while(same)
            .map(|(c, _)| c.len_utf8())
            .sum();
        let middle = |text: &str| {
            let end = text.len().saturating_sub(tail);
            text.get(..end).unwrap_or_default().to_owned()
        };
        Self {
            removed: middle(before),
            inserted: middle(after),
        }
    }

    /// Returns the text without the change; `None` where it is not there, or not only once.
    pub(super) fn undo(&self, text: &str) -> Option<String> {
        if self.inserted.is_empty() || text.matches(&self.inserted).count() != 1 {
            return None;
        }
        Some(text.replacen(&self.inserted, &self.removed, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::TextPatch;

    #[test]
    fn a_change_is_undone_where_the_rest_is_another() {
        for (before, after) in [
            ("", "{}\n"),
            ("{ }", "{\n  \"kapi\": 1\n}"),
            ("{\"a\": 1}", "{\"a\": 1, \"kapi\": 1}"),
            ("a = \"é\"\n", "a = \"é\"\n\n[kapi]\nx = 1\n"),
        ] {
            let patch = TextPatch::between(before, after);
            assert_eq!(patch.undo(after).unwrap(), before, "{patch:?}");
            let grown = format!("// more\n{after}");
            assert_eq!(patch.undo(&grown).unwrap(), format!("// more\n{before}"));
            assert_eq!(patch.undo(before), None);
        }
    }
}
