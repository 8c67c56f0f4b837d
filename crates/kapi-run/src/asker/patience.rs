//! Waiting for a provider that failed, where nobody can be charged with a turn.
//!
//! Knows nothing of what is asked.

use std::thread;
use std::time::Duration;

use kapi_core::agent_end::ProviderFailure;
use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_sys::clock::monotonic_ms;

/// How long a provider that failed is waited for, before each further try.
const WAITS_MS: [u64; 4] = [2_000, 10_000, 60_000, 300_000];
/// The longest that a provider may ask us to wait here.
const WAIT_MS_MAX: u64 = 10 * 60 * 1000;
/// How often a wait looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// How often one question was waited for.
#[derive(Debug, Default)]
pub struct ProviderRetry {
    n_waits: usize,
}

/// What follows a try that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// It was waited, and the same is asked again.
    AskAgain,
    /// It is not waited any longer, or waiting does not help.
    GiveUp,
    /// Nobody wants the answer any more.
    Cancelled,
}

impl ProviderRetry {
    /// Waits after a try that used this much, and says what follows.
    pub fn wait(
        &mut self,
        trouble: &ProviderFailure,
        used: Usage,
        watch: &EffectWatch<'_>,
    ) -> AfterFailure {
        let Some(wait_ms) = WAITS_MS
            .get(self.n_waits)
            .filter(|_| trouble.kind.may_pass())
        else {
            return AfterFailure::GiveUp;
        };
        self.n_waits += 1;
        let wait_ms = trouble.retry_after_ms.unwrap_or(*wait_ms).min(WAIT_MS_MAX);
        // What the failed try used counts; the next one tells only its own.
        (watch.notice)(Activity::Used(used));
        (watch.notice)(Activity::Note {
            text: format!("{}; retrying in {} s", words(trouble), wait_ms / 1000),
        });
        let until = monotonic_ms().saturating_add(wait_ms);
        while monotonic_ms() < until && !watch.cancel.is_raised() {
            thread::sleep(LOOK);
        }
        if watch.cancel.is_raised() {
            AfterFailure::Cancelled
        } else {
            AfterFailure::AskAgain
        }
    }
}

/// Returns a provider's failure in words.
pub fn words(trouble: &ProviderFailure) -> String {
    format!("{}: {}", trouble.kind.words(), trouble.message)
}
