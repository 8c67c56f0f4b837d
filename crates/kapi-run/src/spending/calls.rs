//! The model calls of one run: each claims its worst case before it is sent, and is settled after.
//!
//! Whoever limits the run is asked for what is left; the rules decide; a call that may not fit waits
//! here for those under way. Knows no gateway, and no limit by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kapi_core::room::{CallClaim, Room};
use kapi_machine::watch::{EffectWatch, RoomQuery};
use kapi_spend::rules::call::{CallBounds, CallDecision, CallRefusal, OpenCalls, decide};
use kapi_spend::rules::day::Day;
use kapi_spend::rules::price::Price;
use kapi_spend::rules::prices::Prices;
use kapi_sys::clock::{Clock as _, SystemClock};

use crate::spending::usd;

/// How often a call that waits looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);
/// How often a claim is tried that another process may have been before.
const CLAIMS_MAX: u32 = 4;

/// The model calls of one run.
pub struct CallBook<'a> {
    watch: &'a EffectWatch<'a>,
    prices: Option<&'a Prices>,
    /// Under whose prices the models are asked.
    provider: String,
    open: Mutex<BTreeMap<u64, CallClaim>>,
    /// Calls of unknown price that were counted as such.
    unpriced: Mutex<BTreeSet<u64>>,
    /// Something has ended.
    changed: Condvar,
}

/// What became of the wish to make a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStart {
    /// It may be sent; it may write so much, or as its request says.
    Go {
        /// The most tokens.
        output_max: Option<u64>,
    },
    /// It may not be sent.
    Refused(CallRefusal),
    /// Nobody wants it any more.
    Stopped,
}

impl<'a> CallBook<'a> {
    /// Opens the book of a run.
    #[must_use]
    pub const fn new(
        watch: &'a EffectWatch<'a>,
        prices: Option<&'a Prices>,
        provider: String,
    ) -> Self {
        Self {
            watch,
            prices,
            provider,
            open: Mutex::new(BTreeMap::new()),
            unpriced: Mutex::new(BTreeSet::new()),
            changed: Condvar::new(),
        }
    }

    /// Claims what a call may use at most, and waits for others where it may not fit beside them.
    pub fn begin(
        &self,
        call: u64,
        model: &str,
        bounds: &CallBounds,
        is_stopped: &dyn Fn() -> bool,
    ) -> CallStart {
        let price = self.price(model);
        let mut n_claims = 0;
        let mut open = self.open();
        loop {
            if is_stopped() || self.watch.cancel.is_raised() {
                return CallStart::Stopped;
            }
            let before = sum(&open);
            let room = self.claim(&before.claim);
            let (output_max, claim) = match decide(bounds, price.as_ref(), &room, &before) {
                CallDecision::Go { output_max, claim } => (output_max, claim),
                CallDecision::Wait => {
                    open = self.wait(open);
                    continue;
                }
                CallDecision::Refused(why) => {
                    drop(open);
                    self.refused(why, model, &room);
                    return CallStart::Refused(why);
                }
            };
            open.insert(call, claim);
            let all = sum(&open).claim;
            n_claims += 1;
            // Another process may have claimed the same meanwhile: the later gives way.
            let room = self.claim(&all);
            if room.holds(&all) {
                return CallStart::Go { output_max };
            }
            open.remove(&call);
            if n_claims == CLAIMS_MAX {
                self.claim(&sum(&open).claim);
                drop(open);
                self.refused(CallRefusal::TooLittle, model, &room);
                return CallStart::Refused(CallRefusal::TooLittle);
            }
        }
    }

    /// Gives back what a call has claimed, all of its use having been told.
    pub fn end(&self, call: u64) {
        let mut open = self.open();
        if open.remove(&call).is_some() {
            self.claim(&sum(&open).claim);
            self.changed.notify_all();
        }
    }

    /// Waits until no call is under way, at most so long.
    pub fn settle(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let mut open = self.open();
        while !open.is_empty() && Instant::now() < until {
            open = self.wait(open);
        }
    }

    /// Tells whether a call of unknown price is met for the first time.
    pub fn is_new_unpriced(&self, call: u64) -> bool {
        let mut unpriced = self.unpriced.lock().unwrap_or_else(PoisonError::into_inner);
        unpriced.insert(call)
    }

    /// Returns what a model costs today; nothing where nobody knows.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        let today = Day::of_ms(SystemClock.now_ms());
        let found = self.prices?.find(&self.provider, model, today);
        found.map(|found| found.price)
    }

    fn claim(&self, claim: &CallClaim) -> Room {
        (self.watch.room)(&RoomQuery::Claim(claim))
    }

    fn refused(&self, why: CallRefusal, model: &str, room: &Room) {
        let why = words(why, &format!("{}/{model}", self.provider), room);
        (self.watch.room)(&RoomQuery::Refused { why: &why });
    }

    fn wait<'g>(
        &self,
        open: MutexGuard<'g, BTreeMap<u64, CallClaim>>,
    ) -> MutexGuard<'g, BTreeMap<u64, CallClaim>> {
        let waited = self.changed.wait_timeout(open, LOOK);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, CallClaim>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sum(open: &BTreeMap<u64, CallClaim>) -> OpenCalls {
    let mut claim = CallClaim::default();
    for one in open.values() {
        claim.add(one);
    }
    OpenCalls {
        count: open.len(),
        claim,
    }
}

/// Says why a call was refused, and what can be done about it.
fn words(why: CallRefusal, model: &str, room: &Room) -> String {
    match why {
        CallRefusal::Unpriced => format!(
            "the price of {model} is unknown, and money is limited; set it under \
             [prices.{model:?}], or allow such models with `allow_unpriced = true` under [spend]"
        ),
        CallRefusal::TooLittle => {
            let tokens = room.tokens.map(|tokens| format!("{tokens} tokens"));
            let money = room.usd_micros.map(usd);
            let left: Vec<String> = tokens.into_iter().chain(money).collect();
            format!(
                "{} left, which is too little for another call of {model}; raise the limit with \
                 `kapi budget`, or the cap under [spend]",
                left.join(" and ")
            )
        }
    }
}

#[cfg(test)]
mod tests;
