//! Guardrails: lessons of earlier runs, by domain, that later runs are told.
//!
//! What an entry is, who may have written it, and what becomes of it when it is learnt again. The
//! file a person edits, and the time, are somebody else's.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rules::guardrail::lesson::Lesson;

pub mod choose;
pub mod lesson;

/// The longest name of a domain in bytes: it is a file's name too.
pub const DOMAIN_BYTES_MAX: usize = 64;
/// The longest name in a source, in bytes.
const SOURCE_NAME_BYTES_MAX: usize = 48;
/// How many sources of one lesson are remembered, the last ones.
const SOURCES_MAX: usize = 8;

/// A text that is no name of a domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// Nothing is left of it.
    #[error("domain is required")]
    Empty,
    /// It is longer than a file's name should be.
    #[error("domain is longer than {DOMAIN_BYTES_MAX} bytes: {domain}")]
    TooLong {
        /// What it would be.
        domain: String,
    },
}

/// What lessons are about: an agent's name, a loop's, or any other word. Safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Domain(String);

impl Domain {
    /// Makes a domain of a text: lower case, and a dash for whatever is not `a-z`, `0-9`, `.`,
    /// `_` or `-`. A character outside the basic plane becomes two dashes, as in other tools that
    /// write these files.
    ///
    /// # Errors
    /// When nothing is left, or too much.
    pub fn parse(text: &str) -> Result<Self, DomainError> {
        let mut domain = String::new();
        for c in text.trim().to_lowercase().chars() {
            match c {
                'a'..='z' | '0'..='9' | '.' | '_' | '-' => domain.push(c),
                other => (0..other.len_utf16()).for_each(|_| domain.push('-')),
            }
        }
        if domain.is_empty() {
            return Err(DomainError::Empty);
        }
        if domain.len() > DOMAIN_BYTES_MAX {
            return Err(DomainError::TooLong { domain });
        }
        Ok(Self(domain))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TryFrom<String> for Domain {
    type Error = DomainError;
    fn try_from(text: String) -> Result<Self, DomainError> {
        Self::parse(&text)
    }
}

impl From<Domain> for String {
    fn from(domain: Domain) -> Self {
        domain.0
    }
}

/// How much a lesson matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Costs time when forgotten.
    Warning,
    /// Costs the run when forgotten.
    Critical,
}

impl Severity {
    /// Reads a severity as it stands in a file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Info, Self::Warning, Self::Critical]
            .into_iter()
            .find(|severity| severity.word() == text)
    }

    /// Returns its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Whether an entry is told to later runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LessonState {
    /// Learnt, and waiting for a person or a rule.
    Proposed,
    /// Told.
    Accepted,
    /// Refused: kept, so that it is not proposed again.
    Rejected,
}

impl LessonState {
    /// Reads a state as it stands in a file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Proposed, Self::Accepted, Self::Rejected]
            .into_iter()
            .find(|state| state.word() == text)
    }

    /// Returns its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }
}

/// Which kind of party a lesson comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SourceKind {
    Person,
    Agent,
    Loop,
    File,
}

/// Where a lesson comes from, written `person:alice`, `agent:task_17`, `loop:code-review` or
/// `file`. Its name holds nothing but letters, digits and `. _ @ -`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LessonSource {
    kind: SourceKind,
    name: String,
}

impl LessonSource {
    /// A person who said it.
    #[must_use]
    pub fn person(name: &str) -> Self {
        Self::new(SourceKind::Person, name)
    }

    /// An agent that said it by its tool: name the run or task, so that two can be told apart.
    #[must_use]
    pub fn agent(name: &str) -> Self {
        Self::new(SourceKind::Agent, name)
    }

    /// The learn phase of a loop: name the run or task, so that two can be told apart.
    #[must_use]
    pub fn in_loop(name: &str) -> Self {
        Self::new(SourceKind::Loop, name)
    }

    /// The file itself: somebody wrote the line there and said no more.
    #[must_use]
    pub const fn file() -> Self {
        Self {
            kind: SourceKind::File,
            name: String::new(),
        }
    }

    fn new(kind: SourceKind, name: &str) -> Self {
        let clean = |c: char| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '@' | '-' => c,
            _ => '-',
        };
        let name: String = name
            .chars()
            .take(SOURCE_NAME_BYTES_MAX)
            .map(clean)
            .collect();
        Self { kind, name }
    }

    /// Reads a source as it is written.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (word, name) = text.split_once(':').unwrap_or((text, ""));
        let source = match word {
            "person" => Self::person(name),
            "agent" => Self::agent(name),
            "loop" => Self::in_loop(name),
            "file" => Self::file(),
            _ => return None,
        };
        (source.to_string() == text).then_some(source)
    }

    /// Returns the state of a lesson that this source says first. Only what a person says is
    /// told at once.
    #[must_use]
    pub const fn first_state(&self) -> LessonState {
        match self.kind {
            SourceKind::Person | SourceKind::File => LessonState::Accepted,
            SourceKind::Agent | SourceKind::Loop => LessonState::Proposed,
        }
    }
}

impl fmt::Display for LessonSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.kind {
            SourceKind::Person => "person",
            SourceKind::Agent => "agent",
            SourceKind::Loop => "loop",
            SourceKind::File => return out.write_str("file"),
        };
        write!(out, "{word}:{}", self.name)
    }
}

/// One lesson of one domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailEntry {
    /// Names it among all domains; follows from domain and lesson.
    pub id: String,
    /// What it is about.
    pub domain: Domain,
    /// When it was first said, in milliseconds since the epoch.
    pub at_ms: i64,
    /// How much it matters.
    pub severity: Severity,
    /// The lesson.
    pub lesson: Lesson,
    /// Who said it, first to last.
    pub sources: Vec<LessonSource>,
    /// Whether it is told.
    pub state: LessonState,
    /// How many said it.
    pub hits: u32,
    /// When it was last said, if that was later than the first time.
    pub seen_at_ms: Option<i64>,
    /// When it is no longer told, if ever.
    pub expires_at_ms: Option<i64>,
    /// Whether its text was changed after Kapi wrote it.
    pub is_edited: bool,
}

/// A lesson that is said again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetition {
    /// How much it matters this time.
    pub severity: Severity,
    /// Who says it.
    pub source: LessonSource,
    /// When.
    pub at_ms: i64,
    /// When it is no longer told.
    pub expires_at_ms: Option<i64>,
    /// From how many sources on a proposed lesson is accepted without a person.
    pub accept_after_hits: Option<u32>,
}

impl GuardrailEntry {
    /// Returns whether it is no longer told.
    #[must_use]
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// Returns when it was last said.
    #[must_use]
    pub fn last_at_ms(&self) -> i64 {
        self.seen_at_ms.unwrap_or(self.at_ms).max(self.at_ms)
    }

    /// Takes in that the lesson was said again. One source counts once, so that an agent cannot
    /// make its own lesson accepted by repeating it. What was rejected stays rejected until a
    /// person says it.
    pub fn repeat(&mut self, again: &Repetition) {
        let by_person = again.source.first_state() == LessonState::Accepted;
        let is_new = !self.sources.contains(&again.source);
        if is_new {
            self.hits = self.hits.saturating_add(1);
            self.seen_at_ms = Some(again.at_ms.max(self.last_at_ms()));
            self.sources.push(again.source.clone());
            let n_old = self.sources.len().saturating_sub(SOURCES_MAX);
            self.sources.drain(..n_old);
        }
        if by_person {
            self.state = LessonState::Accepted;
        }
        if is_new || by_person {
            self.severity = self.severity.max(again.severity);
            self.expires_at_ms = later(self.expires_at_ms, again.expires_at_ms);
        }
        let enough = again
            .accept_after_hits
            .is_some_and(|n| self.hits >= n.max(1));
        if enough && self.state == LessonState::Proposed {
            self.state = LessonState::Accepted;
        }
    }
}

/// Returns the later end; no end is later than any.
fn later(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    Some(one?.max(other?))
}

#[cfg(test)]
mod tests;
