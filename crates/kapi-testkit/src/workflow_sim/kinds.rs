//! The kinds of facts that a workflow's log can hold, each by its name in the code.
//!
//! A new kind does not compile until it stands in a list here, and then is missing from the stories
//! until one of them leads to it.

use std::collections::BTreeSet;

use kapi_workflow::rules::event::WorkflowEvent;

use crate::workflow_sim::modes::{self, kind as of_mode};

/// Makes the list of names and the match from the same words, so that neither can have more than
/// the other.
macro_rules! kinds {
    (
        $every:ident, $kind:ident: $enum:ident as $prefix:literal
        [$($variant:ident),* $(,)?]
        $($outer:ident => $inner:ident),*
    ) => {
        pub(super) const $every: &[&str] = &[$(concat!($prefix, stringify!($variant))),*];

        pub(super) const fn $kind(event: &$enum) -> &'static str {
            match event {
                $($enum::$variant { .. } => concat!($prefix, stringify!($variant)),)*
                $($enum::$outer(event) => $inner(event),)*
            }
        }
    };
}

kinds! {
    SHARED, kind: WorkflowEvent as ""
    [
        Started, DecisionAsked, Approved, Revised, Blocked, Unblocked, LimitsRaised, Abandoned, Failed, Completed,
        Integrated, EvidenceRecorded, ConflictFound, ConflictSettled, WorkerPrepared, WorkerDispatched, WorkerRefreshed,
        WorkerClosed, EffectIntended, EffectUsed, RunRecorded, GoalUsed, TimeUsed, EffectEnded,
    ]
    Mode => of_mode
}

/// Returns every kind of fact there is.
#[must_use]
pub fn every_kind() -> BTreeSet<&'static str> {
    let of_modes = modes::KINDS.concat();
    SHARED.iter().copied().chain(of_modes).collect()
}
