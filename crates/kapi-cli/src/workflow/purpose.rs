//! What a workflow is for, in whatever way a person gives it: words, quotes, standard input, an
//! editor.
//!
//! Knows no workflow; it returns a text that is not empty.

use std::io::{self, IsTerminal as _, Read as _};

use kapi_core::mode::Mode;

use crate::context::Context;
use crate::error::Error;
use crate::workflow::editor;

/// Bytes of a purpose that are read at most.
const PURPOSE_BYTES_MAX: u64 = 64 * 1024;
/// Words that are a mode's own, and no purpose.
const RESERVED: [&str; 5] = ["status", "resume", "approve", "clear", "help"];
/// What the editor opens with; lines that begin with the sign are left out.
const FORM: &str = "\n\
    # Describe what you want, on as many lines as you like.\n\
    # Lines that start with # are ignored; an empty text starts nothing.\n";

/// Where a purpose comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PurposeSource {
    /// The command line.
    Words(String),
    /// Standard input.
    Stdin,
    /// The person's editor.
    Editor,
}

/// Returns what a workflow is for.
pub(crate) fn purpose(context: &Context, mode: Mode, words: &[String]) -> Result<String, Error> {
    let text = match source(mode, words)? {
        PurposeSource::Words(text) => text,
        PurposeSource::Stdin => read_stdin()?,
        PurposeSource::Editor if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            editor::edited(context, FORM)?
        }
        PurposeSource::Editor => String::new(),
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::usage("no purpose was given").with_hint(format!(
            "give one: `kapi {mode} <purpose>`; `-` reads it from standard input."
        )));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(
            Error::usage(format!("{text:?} is not a purpose: it is a number")).with_hint(format!(
                "to continue a workflow: `kapi {mode} resume {text}`."
            )),
        );
    }
    if text.contains('\0') {
        return Err(Error::usage("the purpose contains a zero byte"));
    }
    Ok(text.to_owned())
}

fn source(mode: Mode, words: &[String]) -> Result<PurposeSource, Error> {
    match words {
        [] => Ok(PurposeSource::Editor),
        [word] if word == "-" => Ok(PurposeSource::Stdin),
        [word] if RESERVED.contains(&word.trim()) => Err(own_word(mode, word.trim(), &[])),
        words => Ok(PurposeSource::Words(words.join(" "))),
    }
}

/// Refuses words that come after one of the mode's own: they may be a purpose that begins with it.
pub(crate) fn own_word(mode: Mode, word: &str, more: &[String]) -> Error {
    let hint = format!(
        "to use that word in a purpose, quote the whole purpose: `kapi {mode} \"{word} …\"`; \
         options come after it."
    );
    if more.is_empty() {
        return Error::usage(format!(
            "`{word}` is a subcommand of `kapi {mode}`, not a purpose"
        ))
        .with_hint(hint);
    }
    let more = more.join(" ");
    Error::usage(format!(
        "`kapi {mode} {word}` is a subcommand and does not take {more:?}"
    ))
    .with_hint(hint)
}

fn read_stdin() -> Result<String, Error> {
    let mut text = String::new();
    let mut input = io::stdin().lock().take(PURPOSE_BYTES_MAX + 1);
    match input.read_to_string(&mut text) {
        Ok(_) if text.len() as u64 > PURPOSE_BYTES_MAX => Err(Error::usage(format!(
            "the purpose on standard input is longer than {} KiB",
            PURPOSE_BYTES_MAX / 1024
        ))
        .with_hint("describe the purpose in a few sentences and refer to files for details.")),
        Ok(_) => Ok(text),
        Err(error) => Err(Error::usage(format!(
            "failed to read the purpose from standard input: {error}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::mode::Mode;

    use super::{PurposeSource, own_word, source};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn words_quotes_and_signs_are_told_apart() {
        let of = |words: &[String]| source(Mode::Ralph, words).unwrap();
        assert_eq!(
            of(&words("add a health endpoint")),
            PurposeSource::Words("add a health endpoint".to_owned())
        );
        let quoted = ["two\nlines, and \"quotes\"".to_owned()];
        assert_eq!(of(&quoted), PurposeSource::Words(quoted[0].clone()));
        assert_eq!(of(&[]), PurposeSource::Editor);
        assert_eq!(of(&words("-")), PurposeSource::Stdin);
        assert_eq!(
            of(&words("a - b")),
            PurposeSource::Words("a - b".to_owned())
        );
        let whole = ["status page of the shop".to_owned()];
        assert_eq!(of(&whole), PurposeSource::Words(whole[0].clone()));
    }

    #[test]
    fn a_mode_s_own_word_alone_is_no_purpose_and_the_error_says_what_to_do() {
        for word in ["status", "resume", "approve", "clear", "help", " status "] {
            let error = source(Mode::Ralph, &[word.to_owned()]).unwrap_err();
            let hint = error.hint.unwrap();
            assert!(
                hint.contains(&format!("kapi ralph \"{} …\"", word.trim())),
                "{hint}"
            );
        }
        let error = own_word(Mode::DeepInterview, "resume", &words("the old import"));
        assert!(error.message.contains("\"the old import\""), "{error}");
        assert!(
            error
                .hint
                .unwrap()
                .contains("kapi deep-interview \"resume …\"")
        );
    }
}
