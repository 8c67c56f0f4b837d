//! Counts what one call uses, from the provider's own answer as it passes.
//!
//! Fed with the answer's bytes in whatever pieces they come; keeps none of them. It does not know
//! what may be used, nor who reads the answer.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Serialize;

use crate::model::dialect::ModelDialect;
use crate::model::event_lines::{EventLines, EventToken};
use crate::model::pick::{PickedObject, Picker};

/// Why what a call used is not exactly known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownUsage {
    /// The provider's answer tells no usage.
    NotTold,
    /// The answer broke off before its last word on usage; what it told by then was counted.
    BrokenOff,
    /// The answer tells usage in a way that cannot be read.
    Unreadable,
    /// The answer is encoded although the provider was asked not to.
    Encoded,
}

/// How far an answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerExtent {
    Complete,
    BrokenOff,
}

/// What one piece of an answer held.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PieceUsage {
    /// What was used beyond what was known before.
    pub(crate) more: Option<TokenCounts>,
    /// The place in the piece after the first event that ended in it.
    pub(crate) first_end: Option<usize>,
}

/// The counter of one call.
#[derive(Debug)]
pub(crate) struct CallMeter {
    picker: Picker,
    /// Only where the answer is a stream of events.
    lines: Option<EventLines>,
    count: EventCount,
}

#[derive(Debug)]
struct EventCount {
    dialect: ModelDialect,
    seen: Option<TokenCounts>,
    n_events: u64,
    /// The event that first told any usage.
    first_reported_at: Option<u64>,
    is_final: bool,
    is_flawed: bool,
}

impl CallMeter {
    /// Returns a counter for an answer of this content type.
    pub(crate) fn new(dialect: ModelDialect, content_type: &[u8]) -> Self {
        let kind = content_type.split(|&byte| byte == b';').next();
        let kind = kind.unwrap_or_default().trim_ascii();
        let has_events = kind.eq_ignore_ascii_case(b"text/event-stream");
        Self {
            picker: Picker::new(dialect.usage_paths()),
            lines: has_events.then(EventLines::new),
            count: EventCount {
                dialect,
                seen: None,
                n_events: 0,
                first_reported_at: None,
                is_final: false,
                is_flawed: false,
            },
        }
    }

    /// Reads on in the answer.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> PieceUsage {
        let before = self.count.seen;
        let mut first_end = None;
        let Self {
            picker,
            lines,
            count,
        } = self;
        match lines {
            None => count.take(picker.feed(piece)),
            Some(lines) => lines.feed(piece, &mut |met| match met {
                EventToken::Data(bytes) => count.take(picker.feed(bytes)),
                EventToken::End { offset } => {
                    count.n_events += 1;
                    picker.reset();
                    first_end = first_end.or(Some(offset));
                }
            }),
        }
        PieceUsage {
            more: difference(before, self.count.seen),
            first_end,
        }
    }

    /// Tells whether the answer is a stream of events and so far consists of whole ones.
    pub(crate) fn is_between_events(&self) -> bool {
        self.lines
            .as_ref()
            .is_some_and(EventLines::is_between_events)
    }

    /// Tells whether the answer has said its last word on usage.
    pub(crate) const fn is_final(&self) -> bool {
        self.count.is_final
    }

    /// Returns what the answer has told so far.
    pub(crate) fn reported(&self) -> TokenCounts {
        self.count.seen.unwrap_or_default()
    }

    /// Returns why the count is not exact; nothing if it is.
    pub(crate) fn doubt(&self, reach: AnswerExtent) -> Option<UnknownUsage> {
        let count = &self.count;
        if count.is_flawed {
            return Some(UnknownUsage::Unreadable);
        }
        let is_exact = match (count.seen, &self.lines) {
            (None, _) => false,
            (Some(_), None) => true,
            // Only Anthropic says more at the end than what a complete stream has told by then.
            (Some(_), Some(_)) => {
                let has_all =
                    reach == AnswerExtent::Complete && count.dialect != ModelDialect::Anthropic;
                count.is_final || has_all
            }
        };
        match (is_exact, reach) {
            (true, _) => None,
            (false, AnswerExtent::Complete) if count.seen.is_none() => Some(UnknownUsage::NotTold),
            (false, AnswerExtent::Complete | AnswerExtent::BrokenOff) => {
                Some(UnknownUsage::BrokenOff)
            }
        }
    }
}

impl EventCount {
    fn take(&mut self, found: Vec<PickedObject>) {
        for picked in found {
            let usage = picked.text.and_then(|text| self.dialect.usage(&text));
            let Some(usage) = usage else {
                self.is_flawed = true;
                continue;
            };
            let seen = self.seen.get_or_insert_default();
            // Every answer tells sums so far, but not every object tells all of them.
            *seen = seen.larger(&usage);
            let first_reported_at = *self.first_reported_at.get_or_insert(self.n_events);
            self.is_final |= self.dialect.is_final(picked.wanted_idx, first_reported_at);
        }
    }
}

fn difference(before: Option<TokenCounts>, after: Option<TokenCounts>) -> Option<TokenCounts> {
    let more = after?.beyond(&before.unwrap_or_default());
    (!more.is_zero()).then_some(more)
}

#[cfg(test)]
mod tests;
