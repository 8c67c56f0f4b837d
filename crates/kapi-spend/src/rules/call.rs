//! Whether one more model call may be sent, and how much it may write.
//!
//! Pure. A call that fits at its worst beside all others under way is sent at once. One that may not
//! fit goes alone: it waits for the others, and then gets what is left. So calls side by side never
//! use more together than there is, and a limit is passed by one answer at most.

use kapi_core::room::{CallClaim, Room};

use crate::rules::price::Price;

/// The most that an answer is granted under a limit where the request names nothing.
pub const UNNAMED_ANSWER_TOKENS: u64 = 32 * 1024;
/// An answer of fewer tokens is of no use to an agent.
pub const ANSWER_TOKENS_MIN: u64 = 256;
/// The most that a model can read of what its provider keeps.
const KEPT_INPUT_TOKENS: u64 = 2_000_000;

/// What a call may use, as far as its request tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallBounds {
    /// The least that the model reads, in tokens.
    pub input_least: u64,
    /// What the model probably reads, in tokens.
    pub input_likely: u64,
    /// The most that the model reads, in tokens; `None` where the provider keeps a part of it.
    pub input_max: Option<u64>,
    /// The most that the model writes.
    pub output: OutputLimit,
}

/// The most that a model may write in answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimit {
    /// The gateway can lower it; `Named` in the request.
    Named(u64),
    /// The gateway can set it, and the request names none; so many tokens at most by itself.
    Unnamed(u64),
    /// The provider takes no limit; so many tokens at most.
    Fixed(u64),
}

/// What calls under way have claimed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenCalls {
    /// How many there are.
    pub count: usize,
    /// The most they may still use together.
    pub claim: CallClaim,
}

/// Whether a call may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallDecision {
    /// It may.
    Go {
        /// The most tokens that it may write; `None` to leave its request as it is.
        output_max: Option<u64>,
        /// What it claims.
        claim: CallClaim,
    },
    /// It may not fit beside those under way, and has to wait for them.
    Wait,
    /// It may not.
    Refused(CallRefusal),
}

/// Why a call may not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallRefusal {
    /// Money is limited, and nobody knows what the model costs.
    Unpriced,
    /// What is left is too little for an answer of any use.
    TooLittle,
}

/// Decides about a call; `room` is what is left for it and for those under way together.
#[must_use]
pub fn decide(
    bounds: &CallBounds,
    price: Option<&Price>,
    room: &Room,
    open: &OpenCalls,
) -> CallDecision {
    if price.is_none() && room.needs_price {
        return CallDecision::Refused(CallRefusal::Unpriced);
    }
    // What has no price takes none of the money.
    let room = Room {
        usd_micros: room.usd_micros.filter(|_| price.is_some()),
        ..*room
    };
    let is_limited = room.tokens.is_some() || room.usd_micros.is_some();
    let longest = bounds.longest(is_limited);
    let granted = |tokens: u64| (is_limited && bounds.is_settable()).then_some(tokens);
    let worst = bounds.worst(price, longest);
    if !is_limited || (bounds.input_max.is_some() && room.less(&open.claim).holds(&worst)) {
        return CallDecision::Go {
            output_max: granted(longest),
            claim: worst,
        };
    }
    if open.count > 0 {
        return CallDecision::Wait;
    }
    let least = ANSWER_TOKENS_MIN.min(longest);
    if answer_beside(bounds.input_least, price, &room) < least {
        return CallDecision::Refused(CallRefusal::TooLittle);
    }
    let fits = answer_beside(bounds.input_likely, price, &room);
    CallDecision::Go {
        output_max: granted(fits.min(longest).max(least)),
        // Nothing else is sent until it has ended.
        claim: worst.at_most(&room),
    }
}

/// Returns how many tokens a model may write that probably reads this many.
fn answer_beside(input: u64, price: Option<&Price>, room: &Room) -> u64 {
    let by_tokens = room.tokens.map(|left| left.saturating_sub(input));
    let by_money = price.zip(room.usd_micros).map(|(price, left)| {
        let left = left.saturating_sub(price.most(input, 0));
        price.tokens_written_for(left)
    });
    let both = [by_tokens, by_money];
    both.into_iter().flatten().min().unwrap_or(u64::MAX)
}

impl CallBounds {
    const fn is_settable(&self) -> bool {
        matches!(self.output, OutputLimit::Named(_) | OutputLimit::Unnamed(_))
    }

    const fn longest(&self, is_limited: bool) -> u64 {
        match self.output {
            OutputLimit::Unnamed(_) if is_limited => UNNAMED_ANSWER_TOKENS,
            OutputLimit::Named(tokens)
            | OutputLimit::Unnamed(tokens)
            | OutputLimit::Fixed(tokens) => tokens,
        }
    }

    fn worst(&self, price: Option<&Price>, output: u64) -> CallClaim {
        let input = self.input_max.unwrap_or(KEPT_INPUT_TOKENS);
        CallClaim {
            tokens: input.saturating_add(output),
            usd_micros: price.map_or(0, |price| price.most(input, output)),
        }
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::room::{CallClaim, Room};

    use super::{CallBounds, CallDecision, CallRefusal, OpenCalls, OutputLimit, decide};
    use crate::rules::price::Price;

    /// A millionth for a token read, five for one written.
    const PRICE: Price = Price {
        input: 1_000_000,
        output: 5_000_000,
        cache_read: 100_000,
        cache_write: 1_000_000,
    };

    fn bounds(output: OutputLimit) -> CallBounds {
        CallBounds {
            input_least: 400,
            input_likely: 1_000,
            input_max: Some(4_000),
            output,
        }
    }

    const fn room(tokens: Option<u64>, usd_micros: Option<u64>) -> Room {
        Room {
            tokens,
            usd_micros,
            needs_price: usd_micros.is_some(),
        }
    }

    const fn claim(tokens: u64, usd_micros: u64) -> CallClaim {
        CallClaim { tokens, usd_micros }
    }

    const NOBODY: OpenCalls = OpenCalls {
        count: 0,
        claim: claim(0, 0),
    };

    #[test]
    fn without_a_limit_a_request_stays_as_it_is() {
        let found = decide(
            &bounds(OutputLimit::Unnamed(99_000)),
            None,
            &Room::UNLIMITED,
            &NOBODY,
        );
        let expected = CallDecision::Go {
            output_max: None,
            claim: claim(103_000, 0),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_fits_at_its_worst_is_sent_beside_others() {
        let open = OpenCalls {
            count: 3,
            claim: claim(90_000, 0),
        };
        let named = bounds(OutputLimit::Named(6_000));
        let found = decide(&named, None, &room(Some(100_000), None), &open);
        let expected = CallDecision::Go {
            output_max: Some(6_000),
            claim: claim(10_000, 0),
        };
        assert_eq!(found, expected);
        let found = decide(&named, None, &room(Some(99_999), None), &open);
        assert_eq!(found, CallDecision::Wait);
        let money = decide(&named, Some(&PRICE), &room(None, Some(34_000)), &NOBODY);
        let expected = CallDecision::Go {
            output_max: Some(6_000),
            claim: claim(10_000, 34_000),
        };
        assert_eq!(money, expected);
    }

    #[test]
    fn what_may_not_fit_goes_alone_with_what_is_left() {
        let named = bounds(OutputLimit::Named(6_000));
        let found = decide(&named, None, &room(Some(3_000), None), &NOBODY);
        let expected = CallDecision::Go {
            output_max: Some(2_000),
            claim: claim(3_000, 0),
        };
        assert_eq!(found, expected);
        let found = decide(&named, Some(&PRICE), &room(None, Some(3_000)), &NOBODY);
        let expected = CallDecision::Go {
            output_max: Some(400),
            claim: claim(10_000, 3_000),
        };
        assert_eq!(found, expected);
        let fixed = bounds(OutputLimit::Fixed(6_000));
        let found = decide(&fixed, None, &room(Some(3_000), None), &NOBODY);
        let expected = CallDecision::Go {
            output_max: None,
            claim: claim(3_000, 0),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_useful_is_refused() {
        let named = bounds(OutputLimit::Named(6_000));
        let refused = CallDecision::Refused(CallRefusal::TooLittle);
        for room in [room(Some(655), None), room(Some(0), None)] {
            assert_eq!(decide(&named, None, &room, &NOBODY), refused);
        }
        let short = bounds(OutputLimit::Named(1));
        let found = decide(&short, None, &room(Some(401), None), &NOBODY);
        assert!(matches!(found, CallDecision::Go { .. }), "it wants no more");
        let found = decide(&named, None, &room(Some(656), None), &NOBODY);
        let expected = CallDecision::Go {
            output_max: Some(256),
            claim: claim(656, 0),
        };
        assert_eq!(found, expected, "what is read may be less than it seems");
    }

    #[test]
    fn a_price_that_nobody_knows_is_refused_where_money_is_limited() {
        let named = bounds(OutputLimit::Named(6_000));
        let found = decide(&named, None, &room(None, Some(u64::MAX)), &NOBODY);
        assert_eq!(found, CallDecision::Refused(CallRefusal::Unpriced));
        let allowed = Room {
            needs_price: false,
            ..room(None, Some(1))
        };
        let found = decide(&named, None, &allowed, &NOBODY);
        let expected = CallDecision::Go {
            output_max: None,
            claim: claim(10_000, 0),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_conversation_that_the_provider_keeps_goes_alone() {
        let kept = CallBounds {
            input_max: None,
            ..bounds(OutputLimit::Named(6_000))
        };
        let one = OpenCalls {
            count: 1,
            claim: claim(1, 0),
        };
        let room = room(Some(9_000_000), None);
        assert_eq!(decide(&kept, None, &room, &one), CallDecision::Wait);
        let found = decide(&kept, None, &room, &NOBODY);
        assert!(matches!(found, CallDecision::Go { .. }));
    }
}
