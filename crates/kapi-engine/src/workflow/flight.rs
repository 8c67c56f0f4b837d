//! One effect under way, in a thread of its own that speaks over a bounded channel.
//!
//! Knows nothing of rules: it says what happened, how it ended, or that it is gone.

use std::sync::mpsc::SyncSender;
use std::thread::{Scope, ScopedJoinHandle};

use kapi_core::goal::outcome::Failure;
use kapi_core::id::EffectId;
use kapi_core::usage::Usage;
use kapi_core::workflow::effect::{Action, Effect};
use kapi_core::workflow::outcome::Outcome;
use kapi_sys::cancel::Cancel;

use crate::workflow::drive::Perform;
use crate::world::{Activity, Watch};

/// What a flight says.
pub(super) enum Message {
    Activity(EffectId, Activity),
    Ended(EffectId, Box<Outcome>),
    /// Its thread has panicked.
    Gone(EffectId),
}

/// An effect under way.
pub(super) struct Flight<'scope> {
    pub(super) effect: Effect,
    pub(super) cancel: Cancel,
    /// What was used and not reported yet.
    usage: Usage,
    /// Since when, by the clock that never goes back.
    since_ms: u64,
    thread: ScopedJoinHandle<'scope, ()>,
}

/// Says that a thread is gone unless it said how its effect ended.
struct Farewell {
    sender: SyncSender<Message>,
    effect: EffectId,
    is_said: bool,
}

impl<'scope> Flight<'scope> {
    /// Begins to perform an effect.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        perform: &'env Perform<'env>,
        effect: Effect,
        (sender, now_ms): (&SyncSender<Message>, u64),
    ) -> Self {
        let cancel = Cancel::new();
        let (own, cancelled) = (effect.clone(), cancel.clone());
        let sender = sender.clone();
        let thread = scope.spawn(move || {
            let mut farewell = Farewell {
                sender,
                effect: own.id.clone(),
                is_said: false,
            };
            let notice = |activity| {
                let message = Message::Activity(own.id.clone(), activity);
                say(&farewell.sender, message);
            };
            let watch = Watch {
                cancel: &cancelled,
                notice: &notice,
            };
            let outcome = perform(&own, &watch);
            farewell.is_said = true;
            let ended = Message::Ended(own.id.clone(), Box::new(outcome));
            say(&farewell.sender, ended);
        });
        Self {
            effect,
            cancel,
            usage: Usage::default(),
            since_ms: now_ms,
            thread,
        }
    }

    /// Counts what a model used. A goal keeps its own account.
    pub(super) fn notice(&mut self, activity: &Activity) {
        let is_metered = match self.effect.action {
            Action::Ask(_) => true,
            Action::Prepare { .. } | Action::Work(_) | Action::Land(_) | Action::Verify(_) => false,
        };
        if let (true, Activity::Used(usage)) = (is_metered, activity) {
            self.usage.add(usage);
        }
    }

    /// Takes what was used, if that is due to be reported.
    pub(super) fn due(&mut self, now_ms: u64, progress_ms: u64) -> Option<Usage> {
        if self.usage.is_zero() || now_ms.saturating_sub(self.since_ms) < progress_ms {
            return None;
        }
        self.since_ms = now_ms;
        Some(std::mem::take(&mut self.usage))
    }

    /// Waits for the thread, and returns the outcome with what was used and not reported yet.
    pub(super) fn end(self, outcome: Option<Outcome>) -> Outcome {
        let panicked = self.thread.join().is_err();
        assert!(
            panicked != outcome.is_some(),
            "a thread says how its effect ended, or it has panicked"
        );
        let mut outcome = outcome.unwrap_or_else(|| {
            failed(
                format!("perform effect {}: its thread panicked", self.effect.id),
                Some("this is a defect of Kapi; please report it."),
                false,
            )
        });
        if matches!(outcome, Outcome::Cancelled { .. }) && !self.cancel.is_raised() {
            // It would be asked for again for ever.
            let message = format!(
                "perform effect {}: it was cut off, and nobody asked for that",
                self.effect.id
            );
            outcome = failed(message, None, true);
        }
        match &mut outcome {
            Outcome::Answered { usage, .. }
            | Outcome::Unreadable { usage, .. }
            | Outcome::Cancelled { usage }
            | Outcome::Failed { usage, .. } => usage.add(&self.usage),
            // Nothing of this is metered.
            Outcome::Prepared { .. }
            | Outcome::Rested { .. }
            | Outcome::Landed { .. }
            | Outcome::Conflicted { .. }
            | Outcome::Verified(_) => {}
        }
        outcome
    }

    /// Asks it to stop and waits until it has, whatever it says: nobody listens any more.
    pub(super) fn abort(self) {
        self.cancel.raise();
        // Its panic is told by the failure because of which nobody listens.
        drop(self.thread.join());
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if !self.is_said {
            say(&self.sender, Message::Gone(self.effect.clone()));
        }
    }
}

fn say(sender: &SyncSender<Message>, message: Message) {
    // Nobody listens any more when the drive has failed, and then it says so itself.
    drop(sender.send(message));
}

fn failed(message: String, hint: Option<&str>, may_pass: bool) -> Outcome {
    Outcome::Failed {
        failure: Failure {
            message,
            hint: hint.map(str::to_owned),
        },
        may_pass,
        usage: Usage::default(),
    }
}
