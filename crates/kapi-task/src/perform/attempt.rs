//! One attempt at a task: the task, its worker's hands, and what is left of its budget.
//!
//! What everything that asks a model for it goes through: booked under the task's name, held by the
//! caps on spending.

use kapi_core::failure::Failure;
use kapi_launch::error::LaunchError;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::spending::metering::Metering;
use kapi_run::spending::turn::{BookedTurn, TurnKey};

use super::allowance::Allowance;
use super::{Performer, ending};
use crate::record::worker::LeaseHandle;
use crate::rules::task::{End, KernelTask};

/// One attempt at a task.
#[derive(Clone, Copy)]
pub(super) struct TaskAttempt<'a> {
    pub(super) task: &'a KernelTask,
    pub(super) handle: &'a LeaseHandle<'a>,
    /// What is left of the task's budget.
    pub(super) allowance: &'a Allowance<'a>,
}

impl TaskAttempt<'_> {
    /// Returns the name under which something that it asks of a model is booked.
    pub(super) fn booked_as(&self, what: &str) -> TurnKey {
        TurnKey {
            goal: self.task.id.to_string(),
            effect: format!("{what}-{}", self.handle.hold().fence),
        }
    }

    /// Reserves what a turn may cost, once the caps on spending have room; that time does not count.
    ///
    /// # Errors
    /// When it is called off before, or the ledger cannot be had and there are caps to keep.
    pub(super) fn reserve<'s>(
        &self,
        performer: &'s Performer<'_>,
        turn: &'s BookedTurn,
        watch: &'s EffectWatch<'s>,
    ) -> Result<Metering<'s>, End> {
        let reported = |cap: &str| {
            let text = format!("{} waits for: spend: {cap}", self.task.id);
            (watch.notice)(Activity::Note { text });
        };
        let spending = &performer.spending;
        let wait = || spending.begin_when_there_is_room(turn, watch, &reported);
        match self.allowance.paused(wait) {
            Ok(Some(metering)) => Ok(metering),
            Ok(None) => Err(self.allowance.spent().unwrap_or(End::Cancelled)),
            Err(stopped) => Err(ending::refused(&stopped.failure())),
        }
    }

    /// Returns the end of an attempt whose agent could not be launched.
    pub(super) fn not_begun(&self, error: &LaunchError) -> End {
        if self.handle.cancel().is_raised() {
            return End::Cancelled;
        }
        if let Some(end) = self.allowance.spent() {
            return end;
        }
        ending::refused(&Failure {
            message: error.message.clone(),
            hint: error.hint.clone(),
        })
    }
}
