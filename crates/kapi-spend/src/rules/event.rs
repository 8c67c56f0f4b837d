//! The facts of the spend ledger, as they stand in its log.
//!
//! When a fact was recorded stands in the envelope around it. Sums follow from these alone.

use kapi_core::room::CallClaim;
use kapi_core::usage::Doubt;
use serde::{Deserialize, Serialize};

use crate::rules::account::{Account, ReservationId};
use crate::rules::day::Day;
use crate::rules::tokens::TokenCounts;

/// What a turn has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnUsage {
    /// Tokens.
    pub tokens: TokenCounts,
    /// Millionths of a US dollar; `None` where nobody knows the price.
    pub usd_micros: Option<u64>,
    /// What of these is not certain.
    #[serde(default, skip_serializing_if = "Doubt::is_none")]
    pub doubt: Doubt,
}

impl TurnUsage {
    /// Returns what a turn has used at most that calls under way may have used more for.
    #[must_use]
    pub fn with_claim(mut self, claim: &CallClaim) -> Self {
        if claim.is_zero() {
            return self;
        }
        self.tokens.input = self.tokens.input.saturating_add(claim.tokens);
        self.usd_micros = match self.usd_micros {
            Some(micros) => Some(micros.saturating_add(claim.usd_micros)),
            None => Some(claim.usd_micros).filter(|micros| *micros > 0),
        };
        self.doubt.add(&Doubt {
            calls: 1,
            tokens: claim.tokens,
            usd_micros: claim.usd_micros,
            unpriced_calls: 0,
        });
        self
    }
}

/// Who ended a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The process that made it.
    Holder,
    /// Another one, because that process was gone.
    Recovery,
}

/// What a person let go on for a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpendPermit {
    /// A daily cap is nearly used up.
    Threshold,
    /// There is a cap, and nobody knows what the model costs.
    UnknownPrice,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum SpendEvent {
    /// A turn may spend so much.
    Reserved {
        /// The reservation.
        id: ReservationId,
        /// Where it will be booked.
        account: Account,
        /// Millionths of a US dollar; `None` where nobody knows the price.
        usd_micros: Option<u64>,
        /// The place of the process that holds it.
        holder: u32,
    },
    /// A turn has used so much so far; each report replaces the one before.
    Metered {
        /// The reservation.
        id: ReservationId,
        /// Everything so far.
        used: TurnUsage,
    },
    /// Model calls that a turn has under way may use so much more; each report replaces the one
    /// before.
    Claimed {
        /// The reservation.
        id: ReservationId,
        /// The most.
        claim: CallClaim,
    },
    /// A turn has ended and used so much in all.
    Settled {
        /// The reservation.
        id: ReservationId,
        /// Everything.
        used: TurnUsage,
        /// Who says so.
        by: EndedBy,
    },
    /// A turn has ended and used nothing that anybody knows of.
    Released {
        /// The reservation.
        id: ReservationId,
        /// Who says so.
        by: EndedBy,
    },
    /// A person let turns go on that would be asked about.
    Allowed {
        /// What was asked.
        question: SpendPermit,
        /// The day it holds for.
        day: Day,
    },
}
