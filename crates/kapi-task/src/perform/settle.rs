//! Settling what a task has used by the books: a worker that was lost has told of it up to its last sign
//! of life, and the books know more.
//!
//! Only adds. What a worker tells as it happens is the task's use; this is what is missing from it.

use kapi_core::usage::Usage;

use super::Performer;
use super::attempt::TaskAttempt;

/// Tells the worker what the books have for a task and no attempt has told, where one of them was lost.
///
/// A day is the smallest part of the books: of a queue that was made anew on the same day, tasks of the
/// same number count as one.
pub(super) fn settle(performer: &Performer<'_>, attempt: TaskAttempt<'_>) {
    let task = attempt.task;
    if task.losses == 0 {
        return;
    }
    let goal = task.id.to_string();
    let Some(booked) = performer.spending.used_for(&goal, task.submitted_at_ms) else {
        return;
    };
    let mut told = task.usage;
    told.add(&attempt.allowance.told());
    let missing = beyond(&booked, &told);
    if !missing.is_zero() || missing.usd_micros.is_some() {
        attempt.handle.used(missing);
    }
}

/// Returns what one sum has beyond another.
fn beyond(booked: &Usage, told: &Usage) -> Usage {
    let micros = booked.usd_micros.unwrap_or(0);
    let micros = micros.saturating_sub(told.usd_micros.unwrap_or(0));
    Usage {
        input_tokens: booked.input_tokens.saturating_sub(told.input_tokens),
        output_tokens: booked.output_tokens.saturating_sub(told.output_tokens),
        usd_micros: Some(micros).filter(|micros| *micros > 0),
        ..Usage::ZERO
    }
}
