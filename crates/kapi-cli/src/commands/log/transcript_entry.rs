//! What a transcript says, as people read it.
//!
//! A transcript holds Kapi's own account of an agent's stream, the same for every program. Foreign
//! text: shown, never acted on. A line that is no entry of a transcript is shown as it is.

use serde::Deserialize;

/// One line of a transcript.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TranscriptEntry {
    Text { text: String },
    Tool { name: String, detail: String },
    Retrying { message: String },
    Session {},
    Used {},
}

/// Returns what a line says; nothing where it only counts.
pub(super) fn lines(line: &str) -> Vec<String> {
    match serde_json::from_str(line) {
        Ok(TranscriptEntry::Text { text }) => text.lines().map(str::to_owned).collect(),
        Ok(TranscriptEntry::Tool { name, detail }) => vec![format!("> {name} {detail}")],
        Ok(TranscriptEntry::Retrying { message }) => {
            vec![format!("> its provider failed: {message}")]
        }
        Ok(TranscriptEntry::Session {} | TranscriptEntry::Used {}) => Vec::new(),
        Err(_) => vec![line.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn entries_are_told_in_words_and_everything_else_as_it_is() {
        assert_eq!(
            lines(r#"{"type":"text","text":"One.\nTwo."}"#),
            ["One.", "Two."]
        );
        let tool = r#"{"detail":"ls","name":"Bash","type":"tool"}"#;
        assert_eq!(lines(tool), ["> Bash ls"]);
        let counted = r#"{"type":"used","usage":{"input_tokens":1}}"#;
        assert_eq!(lines(counted), [""; 0]);
        assert_eq!(lines("plain"), ["plain"]);
    }
}
