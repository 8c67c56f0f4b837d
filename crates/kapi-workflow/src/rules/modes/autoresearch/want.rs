//! What a search wants under way, by name: the same answer for planning and for reports.
//!
//! Looks at nothing but the state. An effect that is not in here any more is stale, and what it
//! brings changes nothing.

use kapi_core::id::EffectId;

use crate::rules::modes::autoresearch::round::Try;
use crate::rules::modes::autoresearch::state::{Autoresearch, AutoresearchPhase, Settling};

/// One thing that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// A contract.
    Draft,
    /// The branch.
    Prepare,
    /// What the segment is compared with.
    Baseline,
    /// A change to measure.
    Propose,
    /// One of several changes that are proposed at once, by its place.
    Try(u32),
    /// A gain of a round, applied to what was kept of it, by its place.
    Reapply(u32),
    /// A measurement of the candidate.
    Measure,
    /// Branch and worktree where they belong.
    Settle(Settling),
    /// A measurement of what was kept.
    VerifyHead,
    /// A branch for each independent part.
    Split,
}

/// Returns what is wanted now, each with the name of its effect: one thing at a time, so that nothing
/// disturbs a measurement; but proposals of a round, before any of them is measured. A decision that was
/// made is carried out before anything else.
pub(crate) fn wants(search: &Autoresearch) -> Vec<(EffectId, Want)> {
    let counters = &search.counters;
    let named = |stage: &str, n: u32, want: Want| {
        let turn = search.segment.saturating_add(1);
        (EffectId::new(turn, stage, n.saturating_add(1)), want)
    };
    if let Some(settling) = search.settling {
        let stage = match settling {
            Settling::Keep => "keep",
            Settling::Restore => "restore",
        };
        return vec![named(stage, counters.settlements, Want::Settle(settling))];
    }
    vec![match search.phase {
        AutoresearchPhase::Draft => named("drafter", counters.drafts, Want::Draft),
        AutoresearchPhase::Approval => return Vec::new(),
        AutoresearchPhase::Baseline if search.branch.is_none() => {
            named("prepare", 0, Want::Prepare)
        }
        AutoresearchPhase::Baseline => named("baseline", counters.measurements, Want::Baseline),
        AutoresearchPhase::Propose => {
            let Some(round) = search.round_or_next() else {
                return vec![named("researcher", counters.proposals, Want::Propose)];
            };
            let number = |place: u32| round.first.saturating_add(place);
            let asked = round.of(|found| *found == Try::Asked {});
            let tries: Vec<_> = asked
                .map(|place| named("researcher", number(place), Want::Try(place)))
                .collect();
            if !tries.is_empty() {
                return tries;
            }
            let mut overtaken = round.of(|found| matches!(found, Try::Overtaken { .. }));
            let next = overtaken.next();
            let wanted = next.map(|place| named("reapply", number(place), Want::Reapply(place)));
            return wanted.into_iter().collect();
        }
        AutoresearchPhase::Measure => named("measure", counters.measurements, Want::Measure),
        AutoresearchPhase::Verify => named("verify-head", counters.measurements, Want::VerifyHead),
        AutoresearchPhase::Split => named("split", 0, Want::Split),
    }]
}
