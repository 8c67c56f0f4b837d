//! Reading an agent's answer: the last fenced block of JSON in its last message, or an object without a
//! named fence, in exactly the shape that its role demands.
//!
//! Whatever else it says is not looked at. Why an answer cannot be read is written for the agent,
//! who is asked again.

use crate::rules::modes::ModeAnswer;
use crate::rules::role::RoleSpec;

/// Bytes of a message that are kept.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of one character: a cut is made between two.
const CHAR_BYTES_MAX: usize = 4;
/// Characters of a line of the answer that are repeated where it is wrong.
const LINE_CHARS_MAX: usize = 120;

/// Which end of a message is kept where it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageEnd {
    /// What was said first: the answer at its end is missing, and an example may stand before it.
    Beginning,
    /// What was printed last, which is where an answer stands.
    End,
}

/// Reads an answer in a role.
///
/// # Errors
/// With what is wrong, as the agent may be told.
pub(super) fn read(role: &RoleSpec, message: &str, kept: MessageEnd) -> Result<ModeAnswer, String> {
    let is_full = message.len() + CHAR_BYTES_MAX > MESSAGE_BYTES_MAX;
    if is_full && kept == MessageEnd::Beginning {
        return Err(
            "your message fills the 64 KiB that are read of one, so its end, where the \
             answer stands, may be missing: say it in fewer words"
                .to_owned(),
        );
    }
    let block = last_block(message)?;
    // A list would otherwise pass for the fields of an object in order.
    if !block.trim_start().starts_with('{') {
        return Err("the block of JSON is not an object".to_owned());
    }
    let mut json = serde_json::Deserializer::from_str(&block);
    let answer = ModeAnswer::read(role, &mut json);
    let answer = answer.and_then(|answer| json.end().map(|()| answer));
    answer.map_err(|error| {
        let line = error.line().checked_sub(1);
        let text = line.and_then(|line| block.lines().nth(line));
        let text: String = text
            .unwrap_or_default()
            .trim()
            .chars()
            .take(LINE_CHARS_MAX)
            .collect();
        format!("the block of JSON is not in the form that was asked for: {error}, at {text:?}")
    })
}

/// Returns the text of the last block that says it is JSON; where there is none, of the last one that
/// says nothing and holds an object, or the message that is an object itself.
fn last_block(message: &str) -> Result<String, String> {
    let (mut found, mut unnamed) = (None, None);
    let mut open: Option<(usize, &str, Vec<&str>)> = None;
    for line in message.lines() {
        let ticks = fence(line);
        match &mut open {
            None if ticks > 0 => {
                let word = line.trim().trim_start_matches('`').trim();
                open = Some((ticks, word, Vec::new()));
            }
            None => {}
            Some((opened, word, lines)) if ticks >= *opened && is_bare(line) => {
                let text = lines.join("\n");
                if is_json(word) {
                    found = Some(text);
                } else if word.is_empty() && is_object(&text) {
                    unnamed = Some(text);
                }
                open = None;
            }
            Some((_, _, lines)) => lines.push(line),
        }
    }
    if matches!(open, Some((_, word, _)) if is_json(word)) {
        return Err(
            "the last block of JSON has no end: close it with ``` on a line of its own".to_owned(),
        );
    }
    // Asked for JSON, some models name no language or write no fence.
    let whole = || is_object(message).then(|| message.trim().to_owned());
    found.or(unnamed).or_else(whole).ok_or_else(|| {
        "there is no block of JSON: end your message with ```json, the object, and ``` on lines \
         of their own"
            .to_owned()
    })
}

fn is_json(word: &str) -> bool {
    word.eq_ignore_ascii_case("json")
}

fn is_object(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('{') && text.ends_with('}')
}

/// Tells whether a line holds backticks and nothing else.
fn is_bare(line: &str) -> bool {
    line.trim().bytes().all(|byte| byte == b'`')
}

/// Returns how many backticks a line begins with, if that makes a fence.
fn fence(line: &str) -> usize {
    let line = line.trim_start();
    let ticks = line.len() - line.trim_start_matches('`').len();
    if ticks >= 3 { ticks } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{MessageEnd, last_block};
    use crate::rules::modes::ModeAnswer;
    use crate::rules::modes::interview::spec::INTERVIEWER;
    use crate::rules::modes::ralph::answer::RalphAnswer;
    use crate::rules::modes::ralph::role::RalphRole;
    use crate::rules::role::RoleSpec;

    fn read(role: &RoleSpec, message: &str) -> Result<ModeAnswer, String> {
        super::read(role, message, MessageEnd::Beginning)
    }

    const REVIEW: &str = r#"{"approve":true,"summary":"looked at all","findings":[]}"#;

    #[test]
    fn the_last_block_of_json_is_the_answer() {
        let text = format!(
            "The file says:\n```json\n{{\"approve\": false}}\n```\nand\n```sh\nrm -r x\n```\n\
             ````json\n{REVIEW}\n````\nThat is all."
        );
        assert_eq!(last_block(&text).as_deref(), Ok(REVIEW));
        let Ok(ModeAnswer::Ralph(RalphAnswer::Review(findings))) =
            read(RalphRole::Reviewer.spec(), &text)
        else {
            panic!("it is a review");
        };
        assert!(findings.approve && findings.findings.is_empty());
    }

    #[test]
    fn a_fence_within_another_block_opens_nothing() {
        let text = "````text\n```json\n{\"approve\":true}\n```\n````\n";
        assert!(last_block(text).unwrap_err().starts_with("there is no"));
    }

    #[test]
    fn what_is_wrong_is_said_so_that_an_agent_can_mend_it() {
        let fenced = |json: &str| format!("```json\n{json}\n```");
        let cases = [
            String::new(),
            format!("It is fine: {REVIEW}"),
            format!("```rust\n{REVIEW}\n```"),
            format!("```json\n{REVIEW}"),
            fenced(r#"[true,"",[]]"#),
            fenced(r#"{"approve":"yes","summary":"","findings":[]}"#),
            fenced("{\"approve\":true,\n\"sumary\":\"\",\n\"findings\":[]}"),
            fenced(r#"{"approve":true,"approve":true,"summary":"","findings":[]}"#),
            fenced("{\"approve\":true,\n\"summary\":\"\",\"findings\":[{\"category\":\"style\"}]}"),
            fenced(r#"{"approve":true,"findings":[]}"#),
            fenced(&format!("{REVIEW}{REVIEW}")),
        ];
        let reported: Vec<String> = cases
            .iter()
            .map(|text| read(RalphRole::Reviewer.spec(), text).unwrap_err())
            .collect();
        let expected = [
            "there is no block of JSON: end your message with ```json, the object, and ``` on lines of their own",
            "there is no block of JSON: end your message with ```json, the object, and ``` on lines of their own",
            "there is no block of JSON: end your message with ```json, the object, and ``` on lines of their own",
            "the last block of JSON has no end: close it with ``` on a line of its own",
            "the block of JSON is not an object",
        ];
        assert_eq!(reported[..5], expected);
        for (reported, part) in reported[5..].iter().zip([
            "invalid type: string \"yes\", expected a boolean at line 1",
            "unknown field `sumary`, expected one of `approve`, `summary`, `findings`",
            "duplicate field `approve`",
            "unknown variant `style`",
            "missing field `summary`",
            "trailing characters at line 1",
        ]) {
            assert!(reported.contains(part), "{reported}");
        }
    }

    #[test]
    fn an_object_without_a_named_fence_is_read() {
        for text in [
            REVIEW.to_owned(),
            format!("\n  {REVIEW}\n"),
            format!("I read it.\n```\n{REVIEW}\n```\n"),
            format!("```\n{{\"approve\":false}}\n```\n```JSON\n{REVIEW}\n```\n"),
        ] {
            let answer = read(RalphRole::Reviewer.spec(), &text);
            assert!(answer.is_ok(), "{answer:?} of {text}");
        }
    }

    #[test]
    fn a_message_that_may_be_cut_is_not_read() {
        let answer = format!("```json\n{REVIEW}\n```\n");
        let filled = |bytes: usize| format!("{answer}{}", "x".repeat(bytes - answer.len()));
        for bytes in [65_533, 65_536, 100_000] {
            let reported = read(RalphRole::Reviewer.spec(), &filled(bytes)).unwrap_err();
            assert!(
                reported.contains("64 KiB") && reported.contains("fewer words"),
                "{reported}"
            );
        }
        assert!(read(RalphRole::Reviewer.spec(), &filled(65_000)).is_ok());
        let printed = format!("{}\n{answer}", "x".repeat(65_536 - answer.len() - 1));
        assert!(super::read(RalphRole::Reviewer.spec(), &printed, MessageEnd::End).is_ok());
    }

    #[test]
    fn every_role_has_a_shape_of_its_own() {
        let fenced = |json: &str| format!("```json\n{json}\n```");
        let account = fenced(r#"{"rationale":"r","risks":[],"follow_up":["f"]}"#);
        assert!(matches!(
            read(RalphRole::Accountant.spec(), &account),
            Ok(ModeAnswer::Ralph(RalphAnswer::Account(_)))
        ));
        let objections = fenced(r#"{"strongest":"s","tension":"t","objections":[]}"#);
        assert!(matches!(
            read(RalphRole::Antithesis.spec(), &objections),
            Ok(ModeAnswer::Ralph(RalphAnswer::Antithesis(_)))
        ));
        let step = fenced(r#"{"next":{"do":"restate","goal":"g"}}"#);
        assert!(matches!(
            read(&INTERVIEWER, &step),
            Ok(ModeAnswer::Interview(_))
        ));
        for role in [
            RalphRole::Thesis.spec(),
            RalphRole::Synthesis.spec(),
            RalphRole::Reviewer.spec(),
        ] {
            assert!(read(role, &account).is_err());
        }
    }
}
