//! What follows a failure of a provider: soon again, parked until its quota is reset, or never.
//!
//! The same for executor and judge; only how often it is tried differs.

use kapi_core::agent_end::ProviderFailure;

use crate::rules::event::GoalEvent;
use crate::rules::state::{Goal, GoalStatus};
use crate::rules::wait::{GoalWait, WaitFor};

/// The first wait after a provider's failure, in milliseconds; it doubles each time.
const FIRST_DELAY_MS: u64 = 1_000;
/// The longest wait, in milliseconds, unless the provider asks for more; then the goal is parked.
const DELAY_MS_MAX: u64 = 5 * 60 * 1_000;
/// The longest wait a provider may ask for, in milliseconds: a weekly quota, and a day more.
const RETRY_AFTER_MS_MAX: u64 = 8 * 24 * 60 * 60 * 1_000;
/// What follows a failure of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// The effect is tried again at this time; the process stays.
    At(i64),
    /// The wait is long: the goal is parked until this time.
    Parked(i64),
    /// It is not tried again.
    Never,
}

impl RetryDecision {
    /// Returns when the effect is tried again by the process that failed.
    pub(super) const fn retry_at_ms(self) -> Option<i64> {
        match self {
            Self::At(at_ms) => Some(at_ms),
            Self::Parked(_) | Self::Never => None,
        }
    }
}

pub(super) fn again(
    goal: &Goal,
    failure: &ProviderFailure,
    attempts_max: u32,
    now_ms: i64,
) -> RetryDecision {
    if !failure.kind.may_pass() || goal.failures.saturating_add(1) >= attempts_max {
        return RetryDecision::Never;
    }
    let doublings = goal.failures.min(20);
    let backoff = FIRST_DELAY_MS
        .saturating_mul(1 << doublings)
        .min(DELAY_MS_MAX);
    let asked = failure.retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MS_MAX);
    let delay = i64::try_from(backoff.max(asked)).unwrap_or(i64::MAX);
    let at_ms = now_ms.saturating_add(delay);
    match (asked > DELAY_MS_MAX, goal.status) {
        (true, GoalStatus::Active) => RetryDecision::Parked(at_ms),
        // Only an active goal can be parked, and no process sits through a quota.
        (true, _) => RetryDecision::Never,
        (false, _) => RetryDecision::At(at_ms),
    }
}

/// Parks the goal until a provider's quota is reset.
pub(super) fn quota_wait(goal: &Goal, provider: &str, at_ms: i64, now_ms: i64) -> GoalEvent {
    GoalEvent::GoalParked {
        wait: GoalWait {
            number: goal.waits.saturating_add(1),
            until: WaitFor::Quota {
                provider: provider.to_owned(),
                at_ms,
            },
            reason: Some("the provider asks to wait".to_owned()),
            since_ms: now_ms,
            deadline_ms: None,
        },
    }
}
