//! Counting what a launch or an attempt at a task uses, and ending it when that is more than it may.
//!
//! What is counted is told as it happens: by the agent, and by everybody else who asks a model for it.
//! Knows no agent and no price.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kapi_core::room::Room;
use kapi_core::usage::Usage;
use kapi_sys::cancel::Cancel;
use serde::{Deserialize, Serialize};

use crate::spending::usd;

/// The most that may be used; `None` means no limit of that kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageLimits {
    /// Tokens, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
}

impl UsageLimits {
    /// Tells whether there is a limit at all.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.tokens.is_some() || self.usd_micros.is_some()
    }

    /// Returns them for people.
    #[must_use]
    pub fn words(&self) -> String {
        let tokens = self.tokens.map(|tokens| format!("{tokens} tokens"));
        let words: Vec<String> = tokens.into_iter().chain(self.usd_micros.map(usd)).collect();
        if words.is_empty() {
            return "no limit".to_owned();
        }
        words.join(" and ")
    }
}

/// The meter of one launch or attempt, shared by all its parts.
pub struct UsageMeter<'a> {
    limits: Mutex<UsageLimits>,
    /// Raised when more than that is used.
    own: &'a Cancel,
    notify: &'a (dyn Fn(Usage) + Sync),
    used: Mutex<Usage>,
}

/// What one part of it uses, such as its agent: counted alone, and with all others.
pub struct MeterPart<'m> {
    meter: &'m UsageMeter<'m>,
    used: Mutex<Usage>,
}

impl<'a> UsageMeter<'a> {
    /// Begins to count, with what was used before.
    pub fn new(
        limits: UsageLimits,
        before: Usage,
        own: &'a Cancel,
        notify: &'a (dyn Fn(Usage) + Sync),
    ) -> Self {
        Self {
            limits: Mutex::new(limits),
            own,
            notify,
            used: Mutex::new(before),
        }
    }

    /// Begins to count one part.
    pub fn part(&self) -> MeterPart<'_> {
        MeterPart {
            meter: self,
            used: Mutex::new(Usage::default()),
        }
    }

    /// Says which limit was passed and by how much, if one was.
    pub fn over(&self) -> Option<String> {
        over(&self.limits(), &held(&self.used))
    }

    /// Takes other limits from now on.
    pub fn limit(&self, limits: UsageLimits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Returns everything that was counted, what was used before included.
    pub fn used(&self) -> Usage {
        *held(&self.used)
    }

    /// Returns the limits as they are now.
    pub fn limits(&self) -> UsageLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is left.
    pub fn room(&self) -> Room {
        let UsageLimits { tokens, usd_micros } = self.limits();
        Room::left(tokens, usd_micros, &held(&self.used))
    }

    fn count(&self, more: &Usage) {
        let mut used = held(&self.used);
        used.add(more);
        let is_over = over(&self.limits(), &used).is_some();
        drop(used);
        (self.notify)(*more);
        if is_over {
            self.own.raise();
        }
    }
}

impl MeterPart<'_> {
    /// Counts what was used since the last call, and ends what uses too much.
    pub fn count(&self, more: &Usage) {
        held(&self.used).add(more);
        self.meter.count(more);
    }

    /// Counts what only the end reported, and returns it: the sum of the part, less what was counted.
    pub fn settle(&self, sum: &Usage) -> Usage {
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

fn over(limits: &UsageLimits, used: &Usage) -> Option<String> {
    let tokens = used.tokens();
    if let Some(max) = limits.tokens.filter(|max| tokens > *max) {
        let by = tokens - max;
        return Some(format!(
            "it used {tokens} of {max} tokens, {by} over its budget"
        ));
    }
    let micros = used.usd_micros.unwrap_or(0);
    let max = limits.usd_micros.filter(|max| micros > *max)?;
    let (used, limit, by) = (usd(micros), usd(max), usd(micros - max));
    Some(format!("it used {used} of {limit}, {by} over its budget"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kapi_core::usage::Usage;
    use kapi_sys::cancel::Cancel;

    use super::{UsageLimits, UsageMeter};

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
        for (limits, expected) in [
            (
                UsageLimits {
                    tokens: Some(10),
                    ..UsageLimits::default()
                },
                "it used 12 of 10 tokens, 2 over its budget",
            ),
            (
                UsageLimits {
                    usd_micros: Some(1_000_000),
                    ..UsageLimits::default()
                },
                "it used $1.25 of $1.00, $0.25 over its budget",
            ),
        ] {
            let cancel = Cancel::new();
            let reported = Mutex::new(Usage::default());
            let notify = |usage: Usage| reported.lock().unwrap().add(&usage);
            let meter = UsageMeter::new(limits, Usage::default(), &cancel, &notify);
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
        let meter = UsageMeter::new(UsageLimits::default(), before, &cancel, &notify);
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
    fn what_was_used_before_is_gone_from_the_limits() {
        let cancel = Cancel::new();
        let limits = UsageLimits {
            tokens: Some(10),
            ..UsageLimits::default()
        };
        let meter = UsageMeter::new(limits, usage(9, None), &cancel, &|_| {});
        meter.part().count(&usage(1, None));
        assert!(!cancel.is_raised());
        meter.part().count(&usage(1, None));
        assert!(cancel.is_raised());
    }
}
