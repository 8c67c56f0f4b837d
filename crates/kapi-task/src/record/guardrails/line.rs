//! One line of a guardrail file: `- <time> [severity] lesson`, and behind it, in an HTML comment,
//! what only Kapi needs.
//!
//! Other tools read the part before the comment. A line without a comment is a person's.

use kapi_store::timestamp::{format_ms, parse_instant_ms};

use crate::rules::guardrail::lesson::Lesson;
use crate::rules::guardrail::{GuardrailEntry, LessonSource, LessonState, Severity};

/// What begins our comment.
const OPEN: &str = "<!-- kapi:";
/// What ends it.
const CLOSE: &str = "-->";

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineReading {
    /// An entry.
    Entry(Box<ParsedEntry>),
    /// Anything a person writes.
    Prose,
    /// An entry that cannot be read; it is told to nobody.
    Unread(&'static str),
}

/// An entry as its line says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedEntry {
    pub(super) at_ms: i64,
    pub(super) severity: Severity,
    pub(super) lesson: Lesson,
    pub(super) facts: CommentFacts,
}

/// What stands in the comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommentFacts {
    /// The id when Kapi wrote the line; another than now when the text was edited.
    pub(super) id: Option<String>,
    pub(super) sources: Vec<LessonSource>,
    pub(super) state: LessonState,
    pub(super) hits: u32,
    pub(super) seen_at_ms: Option<i64>,
    pub(super) expires_at_ms: Option<i64>,
}

/// What a line without a comment means.
fn of_a_person() -> CommentFacts {
    CommentFacts {
        id: None,
        sources: vec![LessonSource::file()],
        state: LessonState::Accepted,
        hits: 1,
        seen_at_ms: None,
        expires_at_ms: None,
    }
}

/// The parts of an entry's line.
struct LineParts<'a> {
    time: &'a str,
    /// Everything between the severity's bracket and our comment.
    text: &'a str,
    severity: &'a str,
    /// What is in our comment.
    comment: Option<&'a str>,
}

/// Reads a line, without its end.
pub(super) fn read(line: &str) -> LineReading {
    let line = line.trim_start_matches('\u{feff}');
    let parts = match parts(line) {
        Ok(Some(parts)) => parts,
        Ok(None) => return LineReading::Prose,
        Err(why) => return LineReading::Unread(why),
    };
    match entry(&parts) {
        Ok(read) => LineReading::Entry(Box::new(read)),
        Err(why) => LineReading::Unread(why),
    }
}

fn entry(parts: &LineParts<'_>) -> Result<ParsedEntry, &'static str> {
    let at_ms = parse_instant_ms(parts.time).ok_or("the time is not a time with an offset")?;
    let severity =
        Severity::parse(parts.severity).ok_or("the severity is not info, warning or critical")?;
    // Other comments are a person's remarks, and hidden: nobody is told them.
    let said = parts.text.split("<!--").next().unwrap_or_default();
    let lesson = Lesson::clean(said).map_err(|_| "the lesson is empty")?;
    let facts = match parts.comment {
        Some(comment) => facts(comment)?,
        None => of_a_person(),
    };
    Ok(ParsedEntry {
        at_ms,
        severity,
        lesson,
        facts,
    })
}

/// Takes a line apart; `None` when it is prose.
fn parts(line: &str) -> Result<Option<LineParts<'_>>, &'static str> {
    let Some(rest) = line.strip_prefix("- ") else {
        return Ok(None);
    };
    let (time, rest) = rest.trim_start().split_once(' ').unwrap_or((rest, ""));
    let year = time.split('-').next().unwrap_or_default();
    let is_dated = time.contains('-') && year.len() == 4 && year.parse::<u16>().is_ok();
    // A note that begins with a day is a person's own.
    if !is_dated || !(time.contains('T') || rest.trim_start().starts_with('[')) {
        return Ok(None);
    }
    let bracketed = rest
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    let Some((severity, body)) = bracketed else {
        return Err("there is no [severity] after the time");
    };
    let Some((text, comment)) = body.rsplit_once(OPEN) else {
        return Ok(Some(LineParts {
            time,
            text: body,
            severity,
            comment: None,
        }));
    };
    let comment = comment
        .trim_end()
        .strip_suffix(CLOSE)
        .ok_or("Kapi's comment is not at the end of the line")?;
    Ok(Some(LineParts {
        time,
        text,
        severity,
        comment: Some(comment),
    }))
}

/// Reads the comment. What is not known is wrong: a state nobody understands is not told.
fn facts(comment: &str) -> Result<CommentFacts, &'static str> {
    let mut facts = CommentFacts {
        state: LessonState::Proposed,
        ..of_a_person()
    };
    let mut has_state = false;
    for word in comment.split_whitespace() {
        let (key, value) = word
            .split_once('=')
            .ok_or("Kapi's comment has a key without a value")?;
        match key {
            "id" => facts.id = Some(value.to_owned()),
            "by" => {
                let sources: Option<Vec<LessonSource>> =
                    value.split(',').map(LessonSource::parse).collect();
                facts.sources = sources.ok_or("Kapi's comment names an unknown source")?;
            }
            "state" => {
                facts.state =
                    LessonState::parse(value).ok_or("Kapi's comment names an unknown state")?;
                has_state = true;
            }
            "hits" => {
                facts.hits = value
                    .parse()
                    .map_err(|_| "the hits in Kapi's comment are not a number")?;
            }
            "seen" => facts.seen_at_ms = Some(instant(value)?),
            "expires" => facts.expires_at_ms = Some(instant(value)?),
            _ => return Err("Kapi's comment has an unknown key"),
        }
    }
    if has_state {
        Ok(facts)
    } else {
        Err("Kapi's comment has no state")
    }
}

fn instant(value: &str) -> Result<i64, &'static str> {
    parse_instant_ms(value).ok_or("a time in Kapi's comment is not a time with an offset")
}

/// Writes a new entry's line, without its end.
pub(super) fn write(entry: &GuardrailEntry) -> String {
    format!(
        "- {} [{}] {} {}",
        format_ms(entry.at_ms),
        entry.severity.word(),
        entry.lesson,
        comment(entry)
    )
}

/// Writes an entry's new facts into its line, without its end; everything else in it stays.
pub(super) fn rewrite(line: &str, entry: &GuardrailEntry) -> String {
    let (said, _) = line.rsplit_once(OPEN).unwrap_or((line, ""));
    let (before, rest) = said.split_once('[').unwrap_or((said, ""));
    let (_, after) = rest.split_once(']').unwrap_or(("", rest));
    format!(
        "{before}[{}]{} {}",
        entry.severity.word(),
        after.trim_end(),
        comment(entry)
    )
}

fn comment(entry: &GuardrailEntry) -> String {
    let sources: Vec<String> = entry.sources.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "{OPEN} id={} by={} state={} hits={}",
        entry.id,
        sources.join(","),
        entry.state.word(),
        entry.hits
    );
    let times = [("seen", entry.seen_at_ms), ("expires", entry.expires_at_ms)];
    for (key, at_ms) in times {
        if let Some(at_ms) = at_ms {
            text = format!("{text} {key}={}", format_ms(at_ms));
        }
    }
    format!("{text} {CLOSE}")
}
