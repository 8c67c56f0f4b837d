//! What is left for models under limits, and what calls under way may still use of it.
//!
//! Numbers alone. Who sets a limit and who keeps the books is not known here.

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// What is left; `None` means no limit of that kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    pub usd_micros: Option<u64>,
    /// Whether a model of unknown price must not be asked, for it would count as nothing.
    pub needs_price: bool,
}

/// The most that model calls under way may still use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallClaim {
    /// Tokens, read and written.
    pub tokens: u64,
    /// Millionths of a US dollar; nothing for a model of unknown price.
    pub usd_micros: u64,
}

impl Room {
    /// No limit at all.
    pub const UNLIMITED: Self = Self {
        tokens: None,
        usd_micros: None,
        needs_price: false,
    };

    /// Returns what is left under limits of which some is used; money has to be counted then.
    #[must_use]
    pub fn left(tokens: Option<u64>, usd_micros: Option<u64>, used: &Usage) -> Self {
        Self {
            tokens,
            usd_micros,
            needs_price: usd_micros.is_some(),
        }
        .less_used(used)
    }

    /// Returns what is left after some use.
    #[must_use]
    pub fn less_used(self, used: &Usage) -> Self {
        self.less(&CallClaim {
            tokens: used.tokens(),
            usd_micros: used.usd_micros.unwrap_or(0),
        })
    }

    /// Returns what is left beside what is claimed.
    #[must_use]
    pub fn less(self, claim: &CallClaim) -> Self {
        Self {
            tokens: self.tokens.map(|left| left.saturating_sub(claim.tokens)),
            usd_micros: self
                .usd_micros
                .map(|left| left.saturating_sub(claim.usd_micros)),
            ..self
        }
    }

    /// Returns the smaller of each.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let smaller = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self {
            tokens: smaller(self.tokens, other.tokens),
            usd_micros: smaller(self.usd_micros, other.usd_micros),
            needs_price: self.needs_price || other.needs_price,
        }
    }

    /// Tells whether a claim fits.
    #[must_use]
    pub fn holds(&self, claim: &CallClaim) -> bool {
        self.tokens.is_none_or(|left| claim.tokens <= left)
            && self.usd_micros.is_none_or(|left| claim.usd_micros <= left)
    }
}

impl CallClaim {
    /// Adds another claim.
    pub const fn add(&mut self, more: &Self) {
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.usd_micros = self.usd_micros.saturating_add(more.usd_micros);
    }

    /// Returns as much of it as there is room for.
    #[must_use]
    pub fn at_most(&self, room: &Room) -> Self {
        Self {
            tokens: room
                .tokens
                .map_or(self.tokens, |left| self.tokens.min(left)),
            usd_micros: room
                .usd_micros
                .map_or(self.usd_micros, |left| self.usd_micros.min(left)),
        }
    }

    /// Tells whether nothing is claimed.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.tokens == 0 && self.usd_micros == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{CallClaim, Room};
    use crate::usage::Usage;

    #[test]
    fn the_smaller_limit_holds_and_what_is_claimed_is_gone() {
        let used = Usage {
            input_tokens: 30,
            usd_micros: Some(9),
            ..Usage::ZERO
        };
        let tokens = Room::left(Some(100), None, &used);
        assert_eq!((tokens.tokens, tokens.needs_price), (Some(70), false));
        let money = Room::left(None, Some(10), &used);
        let both = tokens.within(money).within(Room::UNLIMITED);
        assert_eq!((both.tokens, both.usd_micros), (Some(70), Some(1)));
        assert!(both.needs_price);
        let claim = |tokens, usd_micros| CallClaim { tokens, usd_micros };
        assert!(both.holds(&claim(70, 1)) && !both.holds(&claim(71, 0)));
        assert!(!both.holds(&claim(0, 2)) && Room::UNLIMITED.holds(&claim(u64::MAX, u64::MAX)));
        assert_eq!(claim(90, 90).at_most(&both), claim(70, 1));
        assert_eq!(both.less(&claim(90, 0)).tokens, Some(0));
    }
}
