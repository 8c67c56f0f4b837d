//! One turn under way: what it has used so far, reported to the ledger as often as it matters.
//!
//! Called from any thread of the turn. Raises the turn's cancel flag once a cap is exceeded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kapi_core::room::{CallClaim, Room};
use kapi_core::usage::{Doubt, Usage};
use kapi_machine::watch::{EffectWatch, RoomQuery};
use kapi_spend::record::Ledger;
use kapi_spend::record::error::LedgerError;
use kapi_spend::rules::account::ReservationId;
use kapi_spend::rules::decide::TurnAllowance;
use kapi_spend::rules::event::TurnUsage;
use kapi_spend::rules::tokens::TokenCounts;

use crate::spending::turn::BookedTurn;
use crate::spending::{Spending, SpendingStop, note_unbooked, unbookable, used_up};

/// Milliseconds between two reports where no cap is near: what a kill can make forget.
const REPORT_MS: i64 = 1_000;
/// The part of what is left under a cap that may be used between two reports.
const SHARE: u64 = 8;

/// A turn under way.
pub struct Metering<'a> {
    spending: &'a Spending<'a>,
    turn: &'a BookedTurn,
    watch: &'a EffectWatch<'a>,
    /// The reservation; `None` where nothing is booked.
    booked: Option<(ReservationId, &'a Ledger<'a>)>,
    counted: Mutex<MeterTotals>,
}

#[derive(Default)]
struct MeterTotals {
    tokens: TokenCounts,
    doubt: Doubt,
    /// `None` until some of it has a price.
    usd_micros: Option<u64>,
    /// What the ledger knows of it.
    reported_micros: u64,
    reported_at_ms: Option<i64>,
    /// What its model calls under way may still use.
    claim: CallClaim,
    /// What was left under the tightest cap then; `None` where there is none.
    left: Option<u64>,
    has_failed: bool,
    stopped: Option<SpendingStop>,
}

impl<'a> Metering<'a> {
    pub(super) fn booked(
        spending: &'a Spending<'a>,
        turn: &'a BookedTurn,
        watch: &'a EffectWatch<'a>,
    ) -> Self {
        let id = turn.reservation(&spending.project);
        Self {
            booked: spending.ledger.as_ref().map(|ledger| (id, ledger)),
            ..Self::unbooked(spending, turn, watch)
        }
    }

    pub(super) fn unbooked(
        spending: &'a Spending<'a>,
        turn: &'a BookedTurn,
        watch: &'a EffectWatch<'a>,
    ) -> Self {
        Self {
            spending,
            turn,
            watch,
            booked: None,
            counted: Mutex::new(MeterTotals::default()),
        }
    }

    /// Counts what was used, and ends the turn where that is more than a cap allows.
    pub(super) fn count(&self, usage: &Usage) {
        let mut counted = self.counted();
        counted.add(usage);
        let Some((id, ledger)) = &self.booked else {
            return;
        };
        let now_ms = self.spending.clock.now_ms();
        if counted.has_failed || !counted.is_due(now_ms, self.spending.has_caps()) {
            return;
        }
        let used = self.used(&counted);
        counted.reported_at_ms = Some(now_ms);
        counted.reported_micros = counted.usd_micros.unwrap_or(0);
        match ledger.meter(id, &used, &self.spending.caps) {
            Ok(TurnAllowance::Left(left)) => counted.left = left,
            Ok(TurnAllowance::Over(cap_status)) => {
                self.stop(&mut counted, SpendingStop::Cap(used_up(&cap_status)));
            }
            Err(error) => self.failed(&mut counted, &error),
        }
    }

    /// Answers what is left for model calls, by the caps and by whoever wants the turn. What calls
    /// under way may still use is in the ledger before this returns.
    pub(super) fn room(&self, query: &RoomQuery<'_>) -> Room {
        let mut wanted = (self.watch.room)(query);
        wanted.needs_price &= !self.spending.caps.allows_unpriced;
        match query {
            RoomQuery::Claim(claim) => wanted.within(self.capped(claim)),
            RoomQuery::Refused { why } => {
                let cap = SpendingStop::Cap((*why).to_owned());
                self.stop(&mut self.counted(), cap);
                wanted
            }
        }
    }

    /// Notes what calls under way may still use, and returns what the caps leave for them.
    fn capped(&self, claim: &CallClaim) -> Room {
        let mut counted = self.counted();
        counted.claim = *claim;
        let Some((id, ledger)) = &self.booked else {
            return Room::UNLIMITED;
        };
        let used = self.used(&counted);
        counted.reported_at_ms = Some(self.spending.clock.now_ms());
        counted.reported_micros = counted.usd_micros.unwrap_or(0);
        let left = match ledger.claim(id, &used, claim, &self.spending.caps) {
            Ok(TurnAllowance::Left(left)) => left,
            Ok(TurnAllowance::Over(cap_status)) => {
                self.stop(&mut counted, SpendingStop::Cap(used_up(&cap_status)));
                Some(0)
            }
            Err(error) => {
                self.failed(&mut counted, &error);
                self.spending.has_caps().then_some(0)
            }
        };
        counted.left = left;
        let needs_price = left.is_some() && !self.spending.may_ask_unpriced(ledger);
        Room {
            tokens: None,
            usd_micros: left.filter(|_| !self.turn.is_free()),
            needs_price: needs_price && !self.turn.is_free(),
        }
    }

    /// Books everything the turn used; returns what ended it early, if the caps did.
    pub(super) fn finish(&self, rest: &Usage, has_run: bool) -> Option<SpendingStop> {
        let mut counted = self.counted();
        counted.add(rest);
        if let Some((id, ledger)) = &self.booked {
            let used = self.used(&counted);
            let is_nothing = used.tokens.is_zero() && matches!(used.usd_micros, None | Some(0));
            let may_be_unseen = has_run && self.turn.is_unseen();
            let settled = if is_nothing && !may_be_unseen {
                ledger.release(id)
            } else {
                ledger.settle(id, &used)
            };
            // The turn is over, so all that is left to do is to say it; whoever opens the ledger
            // next books what was metered.
            if let Err(error) = settled {
                note_unbooked(&error, self.watch);
            }
        }
        counted.stopped.take()
    }

    /// Returns why the caps ended the turn, if they did.
    pub fn stopped(&self) -> Option<SpendingStop> {
        self.counted().stopped.clone()
    }

    fn used(&self, counted: &MeterTotals) -> TurnUsage {
        TurnUsage {
            tokens: counted.tokens,
            usd_micros: if self.turn.is_free() {
                Some(0)
            } else {
                counted.usd_micros
            },
            doubt: counted.doubt,
        }
    }

    fn stop(&self, counted: &mut MeterTotals, stopped: SpendingStop) {
        counted.stopped.get_or_insert(stopped);
        self.watch.cancel.raise();
    }

    /// What cannot be booked cannot be kept to a cap; without caps the turn goes on.
    fn failed(&self, counted: &mut MeterTotals, error: &LedgerError) {
        counted.has_failed = true;
        if self.spending.has_caps() {
            self.stop(counted, SpendingStop::Ledger(unbookable(error)));
        } else {
            note_unbooked(error, self.watch);
        }
    }

    fn counted(&self) -> MutexGuard<'_, MeterTotals> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MeterTotals {
    fn add(&mut self, usage: &Usage) {
        self.tokens.add(&TokenCounts::of_usage(usage));
        self.doubt.add(&usage.doubt);
        self.usd_micros = match (self.usd_micros, usage.usd_micros) {
            (Some(have), Some(more)) => Some(have.saturating_add(more)),
            (have, more) => have.or(more),
        };
    }

    fn is_due(&self, now_ms: i64, has_caps: bool) -> bool {
        let Some(reported_at_ms) = self.reported_at_ms else {
            return true;
        };
        let since = self
            .usd_micros
            .unwrap_or(0)
            .saturating_sub(self.reported_micros);
        let is_near = |left: u64| since.saturating_mul(SHARE) >= left && since > 0;
        let is_costly = has_caps && self.left.is_none_or(is_near);
        is_costly || now_ms.saturating_sub(reported_at_ms) >= REPORT_MS
    }
}
