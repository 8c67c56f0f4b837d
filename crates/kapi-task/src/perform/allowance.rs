//! What is left of a task's budget for one attempt: time, tokens and money.
//!
//! One for the whole attempt: the agent uses it up, and so do conditions, verify commands, evals and
//! judges. Whoever does something asks how long it may take, and looks afterwards whether the budget
//! was what ended it. Knows no agent and no sandbox.

use std::sync::atomic::{AtomicU64, Ordering};

use kapi_core::usage::Usage;
use kapi_run::spending::usage_meter::{UsageLimits, UsageMeter};
use kapi_sys::cancel::{Cancel, ended_when};
use kapi_sys::clock::monotonic_ms;

use crate::record::worker::LeaseHandle;
use crate::rules::task::{AttemptFailure, End, FailureKind, KernelTask};

/// How what was killed at its time limit is reported, as `timeout` does.
pub(super) const TIMED_OUT: i32 = 124;

/// What is left for one attempt.
pub(super) struct Allowance<'a> {
    /// Counts tokens and money.
    pub(super) meter: UsageMeter<'a>,
    /// Raised when the attempt is not wanted any more, or has used too much.
    pub(super) own: &'a Cancel,
    /// Raised when the attempt is not wanted any more.
    wanted: &'a Cancel,
    /// What earlier attempts used that counts against the budget.
    before: Usage,
    time_ms: Option<u64>,
    /// What of the time an earlier worker has used.
    used_ms: u64,
    began_ms: u64,
    /// Time that does not count.
    paused_ms: AtomicU64,
}

/// Does the work of one attempt within the task's budget, less what the phases used and took that
/// another worker has ended.
pub(super) fn within<T>(
    task: &KernelTask,
    handle: &LeaseHandle<'_>,
    work: impl FnOnce(&Allowance<'_>) -> T,
) -> T {
    let own = Cancel::new();
    let notify = |usage: Usage| handle.used(usage);
    let budget = task.request.budget;
    let limits = UsageLimits {
        tokens: budget.tokens,
        usd_micros: budget.usd_micros,
    };
    let allowance = Allowance {
        meter: UsageMeter::new(limits, used_before(task), &own, &notify),
        own: &own,
        wanted: handle.cancel(),
        before: used_before(task),
        time_ms: budget.time_ms,
        used_ms: phases_ms(task),
        began_ms: monotonic_ms(),
        paused_ms: AtomicU64::new(0),
    };
    let is_unwanted = || handle.cancel().is_raised();
    ended_when(is_unwanted, &own, || work(&allowance))
}

/// Returns what the phases used that are over. What an attempt used that failed is not its next
/// one's to answer for, and cannot be told from it.
fn used_before(task: &KernelTask) -> Usage {
    if task.phases.is_empty() || task.retries > 0 {
        Usage::default()
    } else {
        task.usage
    }
}

fn phases_ms(task: &KernelTask) -> u64 {
    let began_ms = match task.loop_run() {
        Some(_) => task.phases.first().map(|first| first.at_ms),
        // How long one of several attempts took nobody has recorded.
        None => task.started_at_ms.filter(|_| task.attempts == 2),
    };
    match (began_ms, task.phases.last()) {
        (Some(began_ms), Some(last)) => u64::try_from(last.at_ms - began_ms).unwrap_or(0),
        (None, _) | (_, None) => 0,
    }
}

impl Allowance<'_> {
    /// Returns how many milliseconds are left; `None` where nobody set a limit.
    pub(super) fn left_ms(&self) -> Option<u64> {
        let paused = self.paused_ms.load(Ordering::SeqCst);
        let passed = monotonic_ms()
            .saturating_sub(self.began_ms)
            .saturating_sub(paused)
            .saturating_add(self.used_ms);
        Some(self.time_ms?.saturating_sub(passed))
    }

    /// Returns what this attempt has told so far.
    pub(super) fn told(&self) -> Usage {
        let (used, before) = (self.meter.used(), self.before);
        Usage {
            input_tokens: used.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: used.output_tokens.saturating_sub(before.output_tokens),
            usd_micros: used
                .usd_micros
                .map(|micros| micros.saturating_sub(before.usd_micros.unwrap_or(0))),
            ..Usage::ZERO
        }
    }

    /// Returns how long something may take that has a limit of its own.
    ///
    /// # Errors
    /// When the attempt is not wanted any more, or nothing is left.
    pub(super) fn bounded(&self, own_ms: u64) -> Result<u64, End> {
        if self.wanted.is_raised() {
            return Err(End::Cancelled);
        }
        match self.spent() {
            Some(end) => Err(end),
            None => Ok(self.left_ms().map_or(own_ms, |left| left.min(own_ms))),
        }
    }

    /// Returns the end of an attempt whose budget is spent, if it is.
    pub(super) fn spent(&self) -> Option<End> {
        self.spent_in("")
    }

    /// Does the same, and says what was under way.
    pub(super) fn spent_in(&self, what: &str) -> Option<End> {
        let under_way = match what {
            "" => String::new(),
            what => format!(", while {what} was running"),
        };
        let (why, exit_code) = match (self.meter.over(), self.left_ms(), self.time_ms) {
            (Some(why), _, _) => (why, None),
            (None, Some(0), Some(time_ms)) => {
                let why = format!("it took longer than {}", seconds(time_ms));
                (why, Some(TIMED_OUT))
            }
            (None, _, _) => return None,
        };
        Some(End::Failed(AttemptFailure {
            kind: FailureKind::BudgetSpent,
            message: format!("the budget is spent: {why}{under_way}"),
            hint: None,
            exit_code,
        }))
    }

    /// Does something whose time does not count.
    pub(super) fn paused<T>(&self, wait: impl FnOnce() -> T) -> T {
        let before = monotonic_ms();
        let value = wait();
        let passed = monotonic_ms().saturating_sub(before);
        self.paused_ms.fetch_add(passed, Ordering::SeqCst);
        value
    }
}

/// Returns a time for people.
pub(super) fn seconds(ms: u64) -> String {
    match (ms / 1_000, ms % 1_000) {
        (whole, 0) => format!("{whole} s"),
        (whole, rest) => format!("{whole}.{rest:03} s"),
    }
}
