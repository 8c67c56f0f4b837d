//! Lessons as others see them.

use kapi_task::rules::guardrail::GuardrailEntry;
use serde::Serialize;

/// One lesson of one domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryView {
    /// Names it among all domains.
    pub id: String,
    /// What it is about.
    pub domain: String,
    /// `info`, `warning` or `critical`.
    pub severity: &'static str,
    /// The lesson.
    pub lesson: String,
    /// `proposed`, `accepted` or `rejected`; only what is accepted is told.
    pub state: &'static str,
    /// Who said it, first to last.
    pub sources: Vec<String>,
    /// How many said it.
    pub hits: u32,
    /// When it was first said, in milliseconds since the epoch.
    pub at_ms: i64,
    /// When it was last said.
    pub last_at_ms: i64,
    /// When it is no longer told, if ever.
    pub expires_at_ms: Option<i64>,
    /// Whether that time is over.
    pub is_expired: bool,
    /// Whether its text was changed by hand.
    pub is_edited: bool,
}

impl EntryView {
    /// Builds the view of an entry at a time.
    #[must_use]
    pub fn of(entry: &GuardrailEntry, now_ms: i64) -> Self {
        Self {
            id: entry.id.clone(),
            domain: entry.domain.to_string(),
            severity: entry.severity.word(),
            lesson: entry.lesson.as_str().to_owned(),
            state: entry.state.word(),
            sources: entry.sources.iter().map(ToString::to_string).collect(),
            hits: entry.hits,
            at_ms: entry.at_ms,
            last_at_ms: entry.last_at_ms(),
            expires_at_ms: entry.expires_at_ms,
            is_expired: entry.is_expired(now_ms),
            is_edited: entry.is_edited,
        }
    }
}
