//! Booking every turn and every judgement: reserved before, metered while it runs, settled after.
//!
//! A cap that is used up stops a turn before it begins, and one that is exceeded ends it in the
//! middle. Without caps nothing is refused and the books are kept all the same. Knows no rule: the
//! ledger answers.

pub mod turn;

mod metering;

use kapi_core::goal::outcome::{Failure, Outcome};
use kapi_core::spend::caps::{Caps, Standing};
use kapi_core::spend::day::Day;
use kapi_core::spend::decide::{Answer, Request};
use kapi_core::spend::event::Question;
use kapi_core::usage::Usage;
use kapi_engine::spend::Ledger;
use kapi_engine::spend::error::LedgerError;
use kapi_engine::world::{Activity, Watch};
use kapi_sys::clock::Clock;

use crate::failure;
use crate::spending::metering::Metering;
use crate::spending::turn::Turn;

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
pub enum Stopped {
    /// A cap, in words for people.
    Cap(String),
    /// The ledger cannot be written, and there are caps to keep.
    Ledger(Failure),
}

impl Spending<'_> {
    /// Tells whether anything may be refused.
    #[must_use]
    pub const fn has_caps(&self) -> bool {
        self.caps.machine_per_day.is_some() || self.caps.project_per_day.is_some()
    }

    /// Performs a turn within the caps, and books it.
    pub(crate) fn within(
        &self,
        turn: &Turn,
        watch: &Watch<'_>,
        act: impl FnOnce(&Watch<'_>) -> Outcome,
    ) -> Outcome {
        let metering = match self.begin(turn, watch) {
            Ok(metering) => metering,
            Err(stopped) => return stopped.outcome(),
        };
        let notice = |activity: Activity| {
            if let Activity::Used(usage) = &activity {
                metering.count(usage);
            }
            (watch.notice)(activity);
        };
        let outcome = act(&Watch {
            cancel: watch.cancel,
            notice: &notice,
        });
        let stopped = metering.finish(&unreported(&outcome), has_run(&outcome));
        match (outcome, stopped) {
            (Outcome::Cancelled { usage, .. }, Some(stopped)) => {
                // This outcome has no place for it.
                (watch.notice)(Activity::Used(usage));
                stopped.outcome()
            }
            (outcome, _) => outcome,
        }
    }

    /// Reserves what a turn may cost; what it uses is counted from here on.
    fn begin<'s>(&'s self, turn: &'s Turn, watch: &'s Watch<'s>) -> Result<Metering<'s>, Stopped> {
        let answer = match &self.ledger {
            None => Ok(None),
            Some(ledger) => self.reserve(ledger, turn).map(Some),
        };
        match answer {
            Ok(None) => Ok(Metering::unbooked(self, turn, watch)),
            Ok(Some(Answer::Granted { .. })) => Ok(Metering::booked(self, turn, watch)),
            Ok(Some(Answer::AskPerson { question, standing })) => {
                Err(Stopped::Cap(asked(question, &standing)))
            }
            Ok(Some(Answer::Refused { standing, .. })) => Err(Stopped::Cap(used_up(&standing))),
            Err(error) if self.has_caps() => Err(Stopped::Ledger(unbookable(&error))),
            Err(error) => {
                note_unbooked(&error, watch);
                Ok(Metering::unbooked(self, turn, watch))
            }
        }
    }

    fn reserve(&self, ledger: &Ledger<'_>, turn: &Turn) -> Result<Answer, LedgerError> {
        let today = Day::of_ms(self.clock.now_ms());
        let account = turn.account(&self.project);
        let dearest = ledger.books()?.dearest_turn(&account.agent, &account.model);
        let request = Request {
            id: turn.reservation(&self.project),
            amount: turn.amount(today, dearest),
            account,
            // The contract's own budget is the goal's affair: it stops the goal by itself.
            goal: None,
        };
        ledger.reserve(&request, &self.caps)
    }
}

impl Stopped {
    fn outcome(self) -> Outcome {
        match self {
            Self::Cap(cap) => Outcome::CapReached { cap },
            Self::Ledger(failure) => Outcome::Failed(failure),
        }
    }
}

/// Returns what an outcome says was used and no notice told.
fn unreported(outcome: &Outcome) -> Usage {
    match outcome {
        Outcome::Agent(run) => run.usage,
        Outcome::Judged(run) => run.usage,
        Outcome::Cancelled { usage, .. } => *usage,
        Outcome::Workspace { .. }
        | Outcome::Committed(_)
        | Outcome::Verified(_)
        | Outcome::Published { .. }
        | Outcome::Waited
        | Outcome::CapReached { .. }
        | Outcome::Failed(_) => Usage::default(),
    }
}

/// Tells whether somebody was really asked, whether or not anybody counted it.
const fn has_run(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Agent(_) | Outcome::Judged(_))
}

fn note_unbooked(error: &LedgerError, watch: &Watch<'_>) {
    let text = format!(
        "what this turn costs is not booked: failed to {}",
        failure::chain(error)
    );
    (watch.notice)(Activity::Note { text });
}

fn unbookable(error: &LedgerError) -> Failure {
    Failure {
        message: format!("keep to the caps on spending: {}", failure::chain(error)),
        hint: error.hint(),
    }
}

fn used_up(standing: &Standing) -> String {
    let reserved = match standing.reserved {
        0 => String::new(),
        reserved => format!(", and {} are reserved by turns under way", usd(reserved)),
    };
    format!(
        "{} has spent {} of {}{reserved}",
        standing.scope,
        usd(standing.spent),
        usd(standing.cap)
    )
}

fn asked(question: Question, standing: &Standing) -> String {
    let standing = used_up(standing);
    match question {
        Question::Threshold => format!(
            "{standing}, which is near the cap; `kapi spend --go-on threshold` lets turns go on \
             today"
        ),
        Question::UnknownPrice => format!(
            "{standing}, and the price of the model is not known; set it in [prices], or `kapi \
             spend --go-on unknown-price` lets turns go on today"
        ),
    }
}

/// Returns an amount in US dollars, with as many decimals as it has, and at least two.
fn usd(micros: u64) -> String {
    let (whole, fraction) = (micros / 1_000_000, format!("{:06}", micros % 1_000_000));
    let significant = fraction.trim_end_matches('0').len().max(2);
    let decimals = fraction.get(..significant).unwrap_or_default();
    format!("${whole}.{decimals}")
}

#[cfg(test)]
mod tests;
