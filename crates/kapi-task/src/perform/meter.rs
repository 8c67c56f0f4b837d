//! Counting what an attempt uses, and ending its process tree when that is more than it may.
//!
//! What is counted is reported to the kernel as it happens: by the agent, and by everybody else who asks
//! a model for the task. Knows no agent and no price.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kapi_core::room::Room;
use kapi_core::usage::Usage;
use kapi_sys::cancel::Cancel;

use crate::rules::task_terms::TaskBudget;

/// How often it is looked whether the task is still wanted.
const LOOK: Duration = Duration::from_millis(25);

/// The meter of one attempt, shared by all its parts.
pub(super) struct UsageMeter<'a> {
    budget: TaskBudget,
    /// Raised when the budget is spent.
    own: &'a Cancel,
    notify: &'a (dyn Fn(Usage) + Sync),
    used: Mutex<Usage>,
}

/// What one part of an attempt uses, such as its agent: counted alone, and with all others.
pub(super) struct MeterPart<'m> {
    meter: &'m UsageMeter<'m>,
    used: Mutex<Usage>,
}

impl<'a> UsageMeter<'a> {
    /// Begins to count, with what was used before.
    pub(super) fn new(
        budget: TaskBudget,
        before: Usage,
        own: &'a Cancel,
        notify: &'a (dyn Fn(Usage) + Sync),
    ) -> Self {
        Self {
            budget,
            own,
            notify,
            used: Mutex::new(before),
        }
    }

    /// Begins to count one part.
    pub(super) fn part(&self) -> MeterPart<'_> {
        MeterPart {
            meter: self,
            used: Mutex::new(Usage::default()),
        }
    }

    /// Says which limit was passed and by how much, if one was.
    pub(super) fn over(&self) -> Option<String> {
        over(&self.budget, &held(&self.used))
    }

    /// Returns what is left of the budget.
    pub(super) fn room(&self) -> Room {
        let TaskBudget {
            tokens, usd_micros, ..
        } = self.budget;
        Room::left(tokens, usd_micros, &held(&self.used))
    }

    fn count(&self, more: &Usage) {
        let mut used = held(&self.used);
        used.add(more);
        let is_over = over(&self.budget, &used).is_some();
        drop(used);
        (self.notify)(*more);
        if is_over {
            self.own.raise();
        }
    }
}

impl MeterPart<'_> {
    /// Counts what was used since the last call, and ends what uses too much.
    pub(super) fn count(&self, more: &Usage) {
        held(&self.used).add(more);
        self.meter.count(more);
    }

    /// Counts what only the end reported, and returns it: the sum of the part, less what was counted.
    pub(super) fn settle(&self, sum: &Usage) -> Usage {
        let used = *held(&self.used);
        let usd_micros = match (sum.usd_micros, used.usd_micros) {
            (Some(sum), counted) => Some(sum.saturating_sub(counted.unwrap_or(0))),
            (None, _) => None,
        };
        let rest = Usage {
            input_tokens: sum.input_tokens.saturating_sub(used.input_tokens),
            output_tokens: sum.output_tokens.saturating_sub(used.output_tokens),
            usd_micros: usd_micros.filter(|micros| *micros > 0 || used.usd_micros.is_none()),
            ..Usage::ZERO
        };
        if !rest.is_zero() || rest.usd_micros.is_some() {
            self.count(&rest);
        }
        rest
    }
}

fn held(used: &Mutex<Usage>) -> MutexGuard<'_, Usage> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

fn over(budget: &TaskBudget, used: &Usage) -> Option<String> {
    let tokens = used.tokens();
    if let Some(max) = budget.tokens.filter(|max| tokens > *max) {
        let by = tokens - max;
        return Some(format!(
            "it used {tokens} of {max} tokens, {by} over its budget"
        ));
    }
    let micros = used.usd_micros.unwrap_or(0);
    let max = budget.usd_micros.filter(|max| micros > *max)?;
    let (used, limit, by) = (dollars(micros), dollars(max), dollars(micros - max));
    Some(format!(
        "it used ${used} of ${limit}, ${by} over its budget"
    ))
}

fn dollars(micros: u64) -> String {
    let (whole, rest) = (micros / 1_000_000, micros % 1_000_000);
    let digits = format!("{rest:06}");
    let cut = digits.trim_end_matches('0');
    // Cents are always written.
    let shown = digits.get(..cut.len().max(2)).unwrap_or(&digits);
    format!("{whole}.{shown}")
}

/// Does something that `own` ends, while `wanted` ends it too.
pub(super) fn linked<T>(wanted: &Cancel, own: &Cancel, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (alive, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            let is_under_way = || ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout);
            while !wanted.is_raised() && is_under_way() {}
            if wanted.is_raised() {
                own.raise();
            }
        });
        let value = work();
        drop(alive);
        value
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kapi_core::usage::Usage;
    use kapi_sys::cancel::Cancel;

    use super::{UsageMeter, dollars, linked};
    use crate::rules::task_terms::TaskBudget;

    fn usage(input_tokens: u64, usd_micros: Option<u64>) -> Usage {
        Usage {
            input_tokens,
            output_tokens: 0,
            usd_micros,
            ..Usage::ZERO
        }
    }

    #[test]
    fn a_spent_budget_ends_it_and_says_by_how_much() {
        for (budget, expected) in [
            (
                TaskBudget {
                    tokens: Some(10),
                    ..TaskBudget::default()
                },
                "it used 12 of 10 tokens, 2 over its budget",
            ),
            (
                TaskBudget {
                    usd_micros: Some(1_000_000),
                    ..TaskBudget::default()
                },
                "it used $1.25 of $1.00, $0.25 over its budget",
            ),
        ] {
            let cancel = Cancel::new();
            let reported = Mutex::new(Usage::default());
            let notify = |usage: Usage| reported.lock().unwrap().add(&usage);
            let meter = UsageMeter::new(budget, Usage::default(), &cancel, &notify);
            meter.part().count(&usage(6, Some(625_000)));
            assert!(!cancel.is_raised() && meter.over().is_none());
            meter.part().count(&usage(6, Some(625_000)));
            assert!(cancel.is_raised());
            assert_eq!(meter.over().as_deref(), Some(expected));
            assert_eq!(*reported.lock().unwrap(), usage(12, Some(1_250_000)));
        }
    }

    #[test]
    fn the_end_adds_what_was_not_told_and_nothing_twice() {
        let cancel = Cancel::new();
        let reported = Mutex::new(Usage::default());
        let notify = |usage: Usage| reported.lock().unwrap().add(&usage);
        let before = usage(100, Some(1));
        let meter = UsageMeter::new(TaskBudget::default(), before, &cancel, &notify);
        let part = meter.part();
        part.count(&usage(6, None));
        part.settle(&usage(6, None));
        part.settle(&usage(9, Some(5)));
        part.settle(&usage(9, Some(5)));
        assert_eq!(*reported.lock().unwrap(), usage(9, Some(5)));
        meter.part().settle(&usage(1, None));
        assert_eq!(*reported.lock().unwrap(), usage(10, Some(5)));
    }

    #[test]
    fn what_was_used_before_is_gone_from_the_budget() {
        let cancel = Cancel::new();
        let budget = TaskBudget {
            tokens: Some(10),
            ..TaskBudget::default()
        };
        let meter = UsageMeter::new(budget, usage(9, None), &cancel, &|_| {});
        meter.part().count(&usage(1, None));
        assert!(!cancel.is_raised());
        meter.part().count(&usage(1, None));
        assert!(cancel.is_raised());
    }

    #[test]
    fn what_is_not_wanted_any_more_is_ended() {
        let (wanted, own) = (Cancel::new(), Cancel::new());
        assert_eq!(linked(&wanted, &own, || 1), 1);
        assert!(!own.is_raised());
        linked(&wanted, &own, || {
            wanted.raise();
            while !own.is_raised() {
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn money_is_written_with_cents() {
        let shown: Vec<String> = [0, 1, 250_000, 1_000_000, 12_345_678]
            .into_iter()
            .map(dollars)
            .collect();
        assert_eq!(shown, ["0.00", "0.000001", "0.25", "1.00", "12.345678"]);
    }
}
