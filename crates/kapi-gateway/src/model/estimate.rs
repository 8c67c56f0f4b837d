//! What a call used at most, where its answer does not tell.
//!
//! Pure, and meant to be too high: nobody may save by hanging up. Knows no provider's prices and no
//! connection.

use kapi_core::usage::Usage;

use crate::model::meter::AnswerExtent;

/// What tokens of text and code have in the mean.
const LIKELY_BYTES_PER_TOKEN: u64 = 4;
/// Few requests have more bytes than this for each token.
const MOST_BYTES_PER_TOKEN: u64 = 8;
/// What a token of an answer has with what stands around it in the answer, at least.
const ANSWER_BYTES_PER_TOKEN: u64 = 2;
/// What a provider adds to a request by itself, at most: words about tools, marks of roles.
const ADDED_INPUT_TOKENS: u64 = 1024;
/// What a model may have written where the request names no limit: the most that any model of the
/// vendors writes by itself.
pub(crate) const UNNAMED_OUTPUT_TOKENS: u64 = 128 * 1024;
/// No model writes more in one answer, whatever the request names.
const OUTPUT_TOKENS_MAX: u64 = 1 << 20;

/// What an estimate stands on, known before there is an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Basis {
    /// Bytes of the request's body.
    pub(crate) body_bytes: usize,
    /// The most tokens that the request lets the model write.
    pub(crate) output_tokens_max: Option<u64>,
}

impl Basis {
    /// Returns the basis of a request that costs nothing.
    pub(crate) const fn none() -> Self {
        Self {
            body_bytes: 0,
            output_tokens_max: None,
        }
    }

    /// Returns the least that the model reads, in tokens.
    pub(crate) fn input_least(&self) -> u64 {
        self.body_bytes() / MOST_BYTES_PER_TOKEN
    }

    /// Returns what the model probably reads, in tokens.
    pub(crate) fn input_likely(&self) -> u64 {
        self.body_bytes() / LIKELY_BYTES_PER_TOKEN
    }

    /// Returns the most that the model reads, in tokens: no token is shorter than a byte.
    pub(crate) fn input_max(&self) -> u64 {
        self.body_bytes().saturating_add(ADDED_INPUT_TOKENS)
    }

    fn body_bytes(&self) -> u64 {
        u64::try_from(self.body_bytes).unwrap_or(u64::MAX)
    }

    /// Returns what was used at most beyond what the answer has told.
    pub(crate) fn beyond(&self, reported: Usage, answer_bytes: u64, reach: AnswerExtent) -> Usage {
        // Answers tell the input exactly, or not at all.
        let input_tokens = if reported.input_tokens > 0 {
            0
        } else {
            self.input_max()
        };
        let read = answer_bytes / ANSWER_BYTES_PER_TOKEN;
        let output_tokens = match reach {
            AnswerExtent::Complete => read,
            AnswerExtent::BrokenOff => read.max(self.unread()),
        };
        Usage {
            input_tokens,
            output_tokens: output_tokens.saturating_sub(reported.output_tokens),
            usd_micros: None,
            ..Usage::ZERO
        }
    }

    /// Returns what the provider may have written out of sight.
    pub(crate) fn unread(&self) -> u64 {
        self.output_tokens_max
            .unwrap_or(UNNAMED_OUTPUT_TOKENS)
            .min(OUTPUT_TOKENS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::usage::Usage;

    use super::{Basis, OUTPUT_TOKENS_MAX};
    use crate::model::meter::AnswerExtent;

    #[test]
    fn an_estimate_is_what_may_have_been_used_beyond_what_was_told() {
        let check =
            |named: Option<u64>, reported: (u64, u64), read: (u64, AnswerExtent), expected| {
                let basis = Basis {
                    body_bytes: 3000,
                    output_tokens_max: named,
                };
                let reported = Usage {
                    input_tokens: reported.0,
                    output_tokens: reported.1,
                    usd_micros: None,
                    ..Usage::ZERO
                };
                let found = basis.beyond(reported, read.0, read.1);
                let found = (found.input_tokens, found.output_tokens);
                assert_eq!(found, expected, "{named:?} {reported:?} {read:?}");
            };
        let (complete, broken_off) = (AnswerExtent::Complete, AnswerExtent::BrokenOff);
        check(None, (0, 0), (300, complete), (4024, 150));
        check(None, (0, 0), (300, broken_off), (4024, 128 * 1024));
        check(Some(50), (0, 0), (300, broken_off), (4024, 150));
        check(Some(500), (0, 0), (300, broken_off), (4024, 500));
        check(Some(500), (7, 200), (300, broken_off), (0, 300));
        check(Some(500), (7, 900), (300, broken_off), (0, 0));
        let capped = (4024, OUTPUT_TOKENS_MAX);
        check(Some(u64::MAX), (0, 0), (0, broken_off), capped);
    }
}
