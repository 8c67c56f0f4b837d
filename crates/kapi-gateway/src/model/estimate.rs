//! What a call used at most, where its answer does not tell.
//!
//! Pure, and meant to be too high: nobody may save by hanging up. Knows no provider's prices and no
//! connection.

use kapi_core::usage::Usage;

use crate::model::meter::AnswerExtent;

/// Tokens have more bytes than this, but for rare scripts.
const BYTES_PER_TOKEN: u64 = 3;
/// What a model may have written where the request names no limit.
const UNNAMED_OUTPUT_TOKENS: u64 = 4096;
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
    /// Returns what was used at most beyond what the answer has told.
    pub(crate) fn beyond(&self, reported: Usage, answer_bytes: u64, reach: AnswerExtent) -> Usage {
        // Answers tell the input exactly, or not at all.
        let input_tokens = if reported.input_tokens > 0 {
            0
        } else {
            u64::try_from(self.body_bytes).unwrap_or(u64::MAX) / BYTES_PER_TOKEN
        };
        let read = answer_bytes / BYTES_PER_TOKEN;
        let output_tokens = match reach {
            AnswerExtent::Complete => read,
            AnswerExtent::BrokenOff => read.max(self.unread()),
        };
        Usage {
            input_tokens,
            output_tokens: output_tokens.saturating_sub(reported.output_tokens),
            usd_micros: None,
        }
    }

    /// Returns what the provider may have written out of sight.
    fn unread(&self) -> u64 {
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
                };
                let found = basis.beyond(reported, read.0, read.1);
                let found = (found.input_tokens, found.output_tokens);
                assert_eq!(found, expected, "{named:?} {reported:?} {read:?}");
            };
        let (complete, broken_off) = (AnswerExtent::Complete, AnswerExtent::BrokenOff);
        check(None, (0, 0), (300, complete), (1000, 100));
        check(None, (0, 0), (300, broken_off), (1000, 4096));
        check(Some(50), (0, 0), (300, broken_off), (1000, 100));
        check(Some(500), (0, 0), (300, broken_off), (1000, 500));
        check(Some(500), (7, 200), (300, broken_off), (0, 300));
        check(Some(500), (7, 900), (300, broken_off), (0, 0));
        let capped = (1000, OUTPUT_TOKENS_MAX);
        check(Some(u64::MAX), (0, 0), (0, broken_off), capped);
    }
}
