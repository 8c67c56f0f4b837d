//! What a person says to a question: an answer, yes to what was proposed, or one of four words.
//!
//! The same at a terminal, with `--answer` and in a file of answers.

/// A reply to an open question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DialogReply {
    /// Accept what was proposed.
    Accept,
    /// An answer.
    Answer(String),
    /// Leave it for later.
    Later(Option<String>),
    /// Take the question back.
    Back(Option<String>),
    /// Draft with what there is.
    Enough,
    /// Go on another day.
    Quit,
    /// A word with a slash that is none of these.
    Unknown(String),
}

impl DialogReply {
    /// Reads a reply.
    pub(crate) fn read(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::Accept;
        }
        if !text.starts_with('/') {
            return Self::Answer(text.to_owned());
        }
        let (word, rest) = text
            .split_once(char::is_whitespace)
            .map_or((text, ""), |(word, rest)| (word, rest.trim()));
        let reason = Some(rest.to_owned()).filter(|reason| !reason.is_empty());
        match (word, reason) {
            ("/later", reason) => Self::Later(reason),
            ("/back", reason) => Self::Back(reason),
            ("/enough", None) => Self::Enough,
            ("/quit", None) => Self::Quit,
            // A path is an answer; only one bare word looks like a mistyped command.
            (word, None) if !word.get(1..).unwrap_or_default().contains('/') => {
                Self::Unknown(word.to_owned())
            }
            _ => Self::Answer(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DialogReply;

    #[test]
    fn replies_are_told_apart() {
        let answer = |text: &str| DialogReply::Answer(text.to_owned());
        for (text, expected) in [
            ("", DialogReply::Accept),
            ("  \n", DialogReply::Accept),
            (" yes, both\nof them ", answer("yes, both\nof them")),
            ("/later", DialogReply::Later(None)),
            (
                "/later ask Ada",
                DialogReply::Later(Some("ask Ada".to_owned())),
            ),
            ("/back", DialogReply::Back(None)),
            (
                "/back not ours",
                DialogReply::Back(Some("not ours".to_owned())),
            ),
            ("/enough", DialogReply::Enough),
            ("/quit", DialogReply::Quit),
            ("/quti", DialogReply::Unknown("/quti".to_owned())),
            ("/etc/kapi/config", answer("/etc/kapi/config")),
            ("/health answers 200", answer("/health answers 200")),
        ] {
            assert_eq!(DialogReply::read(text), expected, "{text:?}");
        }
    }
}
