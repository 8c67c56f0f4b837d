//! Booking whatever asks a model: reserved before, metered while it runs, settled after.
//!
//! Turns and judgements of goals, attempts and judges of tasks, launches, side questions. A cap that
//! is used up stops one before it begins, and one that is exceeded ends it in the middle. Without
//! caps nothing is refused and the books are kept all the same. Knows no rule: the ledger answers.

pub mod calls;
pub mod metering;
pub mod turn;
pub mod usage_meter;

use std::thread;
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, EffectWatch, RoomQuery};
use kapi_spend::record::Ledger;
use kapi_spend::record::error::LedgerError;
use kapi_spend::rules::caps::{CapStatus, Caps};
use kapi_spend::rules::day::Day;
use kapi_spend::rules::decide::{SpendAnswer, SpendRequest};
use kapi_spend::rules::event::SpendPermit;
use kapi_spend::rules::totals::LedgerTotals;
use kapi_sys::clock::{Clock, monotonic_ms};

use crate::failure;
use crate::spending::metering::Metering;
use crate::spending::turn::BookedTurn;

/// How often it is looked whether a cap has room again: at midnight, or when another turn ends.
const CAPACITY_MS: u64 = 2_000;
/// How often whoever waits for that looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Where turns are booked, and what they may cost.
pub struct Spending<'a> {
    /// The ledger; `None` where it cannot be had and nobody set a cap.
    pub ledger: Option<Ledger<'a>>,
    /// What a day may cost.
    pub caps: Caps,
    /// The project's key in the ledger.
    pub project: String,
    /// The time.
    pub clock: &'a dyn Clock,
}

/// Why a turn does not begin, or does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendingStop {
    /// A cap, in words for people.
    Cap(String),
    /// The ledger cannot be written, and there are caps to keep.
    Ledger(Failure),
}

/// Something that was booked, after its end.
pub struct BookedResult<T> {
    /// What came of it.
    pub value: T,
    /// What it used and no notice reported.
    pub rest: Usage,
    /// Whether somebody was really asked, whether or not anybody counted it.
    pub has_run: bool,
}

impl Spending<'_> {
    /// Tells whether anything may be refused.
    #[must_use]
    pub const fn has_caps(&self) -> bool {
        self.caps.machine_per_day.is_some() || self.caps.project_per_day.is_some()
    }

    /// Tells whether models of unknown price may be asked today although there are caps.
    fn may_ask_unpriced(&self, ledger: &Ledger<'_>) -> bool {
        let today = Day::of_ms(self.clock.now_ms());
        let is_permitted =
            |totals: LedgerTotals| totals.is_allowed(SpendPermit::UnknownPrice, today);
        self.caps.allows_unpriced || ledger.totals().is_ok_and(is_permitted)
    }

    /// Returns what the books have for one goal, or whatever stands for one, since a time; nothing where
    /// there are no books that can be read.
    #[must_use]
    pub fn used_for(&self, goal: &str, since_ms: i64) -> Option<Usage> {
        let totals = self.ledger.as_ref()?.totals().ok()?;
        let used = totals.used_for(&self.project, goal, Day::of_ms(since_ms));
        Some(used.tokens.usage(used.usd_micros))
    }

    /// Does something within the caps, and books it; also returns what ended it early, if the caps
    /// did. The cancel flag of the watch is raised then.
    ///
    /// # Errors
    /// When it may not begin.
    pub fn booked<T>(
        &self,
        turn: &BookedTurn,
        watch: &EffectWatch<'_>,
        act: impl FnOnce(&EffectWatch<'_>) -> BookedResult<T>,
    ) -> Result<(T, Option<SpendingStop>), SpendingStop> {
        let metering = self.begin(turn, watch)?;
        Ok(metered(&metering, watch, act))
    }

    /// Reserves what something may cost, and waits as long as a cap is used up; `None` when it is
    /// called off before. `reported` is handed each new reason for waiting.
    ///
    /// # Errors
    /// When the ledger cannot be written, and there are caps to keep.
    pub fn begin_when_there_is_room<'s>(
        &'s self,
        turn: &'s BookedTurn,
        watch: &'s EffectWatch<'s>,
        reported: &dyn Fn(&str),
    ) -> Result<Option<Metering<'s>>, SpendingStop> {
        let mut reason = String::new();
        while !watch.cancel.is_raised() {
            match self.begin(turn, watch) {
                Ok(metering) => return Ok(Some(metering)),
                Err(SpendingStop::Cap(cap)) if cap == reason => {}
                Err(SpendingStop::Cap(cap)) => {
                    reported(&cap);
                    reason = cap;
                }
                Err(stopped @ SpendingStop::Ledger(_)) => return Err(stopped),
            }
            let until_ms = monotonic_ms() + CAPACITY_MS;
            while monotonic_ms() < until_ms && !watch.cancel.is_raised() {
                thread::sleep(LOOK);
            }
        }
        Ok(None)
    }

    /// Reserves what a turn may cost; what it uses is counted from here on.
    ///
    /// # Errors
    /// When it may not begin.
    pub fn begin<'s>(
        &'s self,
        turn: &'s BookedTurn,
        watch: &'s EffectWatch<'s>,
    ) -> Result<Metering<'s>, SpendingStop> {
        let answer = match &self.ledger {
            None => Ok(None),
            Some(ledger) => self.reserve(ledger, turn).map(Some),
        };
        match answer {
            Ok(None) => Ok(Metering::unbooked(self, turn, watch)),
            Ok(Some(SpendAnswer::Granted { .. })) => Ok(Metering::booked(self, turn, watch)),
            Ok(Some(SpendAnswer::AskPerson {
                question,
                cap_status,
            })) => Err(SpendingStop::Cap(asked(question, &cap_status))),
            Ok(Some(SpendAnswer::Refused { cap_status, .. })) => {
                Err(SpendingStop::Cap(used_up(&cap_status)))
            }
            Err(error) if self.has_caps() => Err(SpendingStop::Ledger(unbookable(&error))),
            Err(error) => {
                note_unbooked(&error, watch);
                Ok(Metering::unbooked(self, turn, watch))
            }
        }
    }

    fn reserve(&self, ledger: &Ledger<'_>, turn: &BookedTurn) -> Result<SpendAnswer, LedgerError> {
        let today = Day::of_ms(self.clock.now_ms());
        let account = turn.account(&self.project);
        let dearest = ledger
            .totals()?
            .dearest_turn(&account.agent, &account.model);
        let request = SpendRequest {
            id: turn.reservation(&self.project),
            amount: turn.amount(today, dearest),
            account,
            // The contract's own budget is the goal's affair: it stops the goal by itself.
            goal: None,
        };
        ledger.reserve(&request, &self.caps)
    }
}

/// Does something whose use is counted, and books it; also returns what ended it early, if the caps
/// did.
pub fn metered<T>(
    metering: &Metering<'_>,
    watch: &EffectWatch<'_>,
    act: impl FnOnce(&EffectWatch<'_>) -> BookedResult<T>,
) -> (T, Option<SpendingStop>) {
    let notice = |activity: Activity| {
        if let Activity::Used(usage) = &activity {
            metering.count(usage);
        }
        (watch.notice)(activity);
    };
    let room = |query: &RoomQuery<'_>| metering.room(query);
    let spent = act(&EffectWatch {
        cancel: watch.cancel,
        notice: &notice,
        room: &room,
    });
    let stopped = metering.finish(&spent.rest, spent.has_run);
    (spent.value, stopped)
}

impl SpendingStop {
    /// Returns why, for people.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Cap(cap) => format!("a spending cap is reached: {cap}"),
            Self::Ledger(failure) => format!("failed to {}", failure.message),
        }
    }

    /// Returns it as the failure of what was not begun, or was ended.
    pub fn failure(self) -> Failure {
        match self {
            Self::Cap(cap) => Failure {
                message: format!("stay within the spending caps: {cap}"),
                hint: Some("see `kapi spend`; set caps under [spend].".to_owned()),
            },
            Self::Ledger(failure) => failure,
        }
    }
}

fn note_unbooked(error: &LedgerError, watch: &EffectWatch<'_>) {
    let text = format!(
        "the cost of this turn is not recorded: failed to {}",
        failure::chain(error)
    );
    (watch.notice)(Activity::Note { text });
}

fn unbookable(error: &LedgerError) -> Failure {
    Failure {
        message: format!("enforce the spending caps: {}", failure::chain(error)),
        hint: error.hint(),
    }
}

fn used_up(cap_status: &CapStatus) -> String {
    let reserved = match cap_status.reserved {
        0 => String::new(),
        reserved => format!(", and running turns reserve {}", usd(reserved)),
    };
    format!(
        "{} has spent {} of {}{reserved}",
        cap_status.scope,
        usd(cap_status.spent),
        usd(cap_status.cap)
    )
}

fn asked(question: SpendPermit, cap_status: &CapStatus) -> String {
    let cap_status = used_up(cap_status);
    match question {
        SpendPermit::Threshold => format!(
            "{cap_status}, which is near the cap; continue today with `kapi spend --go-on threshold`"
        ),
        SpendPermit::UnknownPrice => format!(
            "{cap_status}, and the price of the model is unknown; set it in [prices], allow it \
             with `allow_unpriced = true` under [spend], or continue today with `kapi spend --go-on unknown-price`"
        ),
    }
}

/// Returns an amount in US dollars, with as many decimals as it has, and at least two.
pub fn usd(micros: u64) -> String {
    let (whole, fraction) = (micros / 1_000_000, format!("{:06}", micros % 1_000_000));
    let significant = fraction.trim_end_matches('0').len().max(2);
    let decimals = fraction.get(..significant).unwrap_or_default();
    format!("${whole}.{decimals}")
}
