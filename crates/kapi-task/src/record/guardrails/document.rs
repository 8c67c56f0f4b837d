//! A guardrail file as its lines: those that are entries, and all others, kept byte for byte.
//!
//! Reads no file; knows nothing of locks.

use kapi_store::hash::sha256_hex;

use crate::record::guardrails::line;
use crate::record::guardrails::line::{LineReading, ParsedEntry};
use crate::rules::guardrail::lesson::Lesson;
use crate::rules::guardrail::{Domain, GuardrailEntry};

/// How many hexadecimal digits name an entry.
const ID_DIGITS: usize = 10;

/// A file, line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardrailDocument {
    /// Each with its end, as it was read.
    lines: Vec<Vec<u8>>,
}

/// Names an entry: the same words in the same domain are the same entry.
pub(super) fn entry_id(domain: &Domain, lesson: &Lesson) -> String {
    let key = format!("{domain}\n{}", lesson.words().join(" "));
    let mut id = sha256_hex(key.as_bytes());
    id.truncate(ID_DIGITS);
    id
}

impl GuardrailDocument {
    /// Takes a file's content apart.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        Self {
            lines: lines.map(<[u8]>::to_vec).collect(),
        }
    }

    /// Returns the content.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.lines.concat()
    }

    /// Returns the entries with their places.
    pub(super) fn entries(&self, domain: &Domain) -> Vec<(usize, GuardrailEntry)> {
        let entry = |(location, line): (usize, &Vec<u8>)| match line::read(text(line)?.0) {
            LineReading::Entry(read) => Some((location, entry(domain, *read))),
            LineReading::Prose | LineReading::Unread(_) => None,
        };
        self.lines.iter().enumerate().filter_map(entry).collect()
    }

    /// Returns the lines that look like entries and are none, from 1, and why.
    pub(super) fn unread(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let unread = |(location, line): (usize, &Vec<u8>)| match line::read(text(line)?.0) {
            LineReading::Unread(why) => Some((location + 1, why)),
            LineReading::Entry(_) | LineReading::Prose => None,
        };
        self.lines.iter().enumerate().filter_map(unread)
    }

    /// Adds an entry at the end, with the line ends the file has.
    pub(super) fn append(&mut self, entry: &GuardrailEntry) {
        let end = match self.lines.first() {
            Some(line) if line.ends_with(b"\r\n") => "\r\n",
            Some(_) | None => "\n",
        };
        if let Some(last) = self.lines.last_mut()
            && !last.ends_with(b"\n")
        {
            last.extend_from_slice(end.as_bytes());
        }
        let line = format!("{}{end}", line::write(entry));
        self.lines.push(line.into_bytes());
    }

    /// Writes an entry's facts at its place.
    pub(super) fn rewrite(&mut self, location: usize, entry: &GuardrailEntry) {
        if let Some(line) = self.lines.get_mut(location)
            && let Some((before, end)) = text(line)
        {
            *line = format!("{}{end}", line::rewrite(before, entry)).into_bytes();
        }
    }

    /// Removes a line.
    pub(super) fn remove(&mut self, location: usize) {
        if location < self.lines.len() {
            self.lines.remove(location);
        }
    }
}

fn entry(domain: &Domain, read: ParsedEntry) -> GuardrailEntry {
    let id = entry_id(domain, &read.lesson);
    let is_edited = read.facts.id.is_some_and(|written| written != id);
    GuardrailEntry {
        id,
        domain: domain.clone(),
        at_ms: read.at_ms,
        severity: read.severity,
        lesson: read.lesson,
        sources: read.facts.sources,
        state: read.facts.state,
        hits: read.facts.hits,
        seen_at_ms: read.facts.seen_at_ms,
        expires_at_ms: read.facts.expires_at_ms,
        is_edited,
    }
}

/// Returns a line's text and its end; `None` when it is no text, and so nothing of ours.
fn text(line: &[u8]) -> Option<(&str, &str)> {
    let text = str::from_utf8(line).ok()?;
    let said = text.trim_end_matches(['\n', '\r']);
    text.split_at_checked(said.len())
}
