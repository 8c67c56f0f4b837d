//! What an integration wants under way, by name: the same answer for planning and for reports.
//!
//! Looks at nothing but the state. One thing at a time: each begins where the one before it ended. An
//! effect that is not wanted any more is stale, and what it brings changes nothing.

use kapi_core::id::{EffectId, GoalId};

use crate::rules::modes::integrate::bisect::{Suspicion, suspicion};
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::state::{Integrate, IntegratePhase};

/// One thing that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IntegrateWant {
    /// A look at the sources.
    Inspect,
    /// An agent's answer.
    Ask(IntegrateRole),
    /// The branch.
    Prepare,
    /// What the checks show on the integration branch.
    Baseline,
    /// The next source on the branch.
    Apply,
    /// A resolution, in the worktree.
    Resolve,
    /// Files that tools write, anew.
    Regenerate,
    /// The worktree as the conflict left it.
    Restore,
    /// The resolved conflict on the branch.
    Settle,
    /// The result, verified.
    VerifyHead,
    /// Some sources without the others.
    Try(Vec<GoalId>),
    /// These, verified.
    VerifyTrial {
        /// The commit.
        commit: String,
        /// The sources that it has.
        sources: Vec<GoalId>,
    },
    /// The result, traced to its sources.
    Trace,
    /// The integration branch at the result.
    Advance,
    /// The record of it in each source.
    Mark,
}

/// Returns what is wanted now with the name of its effect.
pub(crate) fn want(state: &Integrate) -> Option<(EffectId, IntegrateWant)> {
    let (stage, want) = wanted(state)?;
    let id = EffectId::new(state.cycle, stage, state.ordinal(stage));
    Some((id, want))
}

fn wanted(state: &Integrate) -> Option<(&'static str, IntegrateWant)> {
    let ask = |role: IntegrateRole| Some((role.as_str(), IntegrateWant::Ask(role)));
    match state.phase {
        IntegratePhase::Inspect if state.unclear.is_some() => None,
        IntegratePhase::Inspect => Some(("inspect", IntegrateWant::Inspect)),
        IntegratePhase::Draft => ask(IntegrateRole::Planner),
        IntegratePhase::Baseline => Some(("baseline", IntegrateWant::Baseline)),
        IntegratePhase::Approval => None,
        IntegratePhase::Prepare => Some(("prepare", IntegrateWant::Prepare)),
        IntegratePhase::Apply => Some(("apply", IntegrateWant::Apply)),
        IntegratePhase::Conflict => conflict(state),
        IntegratePhase::Head => Some(("verify-head", IntegrateWant::VerifyHead)),
        IntegratePhase::Bisect => match suspicion(state) {
            Suspicion::Try(sources) => Some(("try", IntegrateWant::Try(sources))),
            Suspicion::Verify { commit, sources } => Some((
                "verify-trial",
                IntegrateWant::VerifyTrial { commit, sources },
            )),
            Suspicion::Culprits(_) => None,
        },
        IntegratePhase::Review if state.coverage.is_none() => Some(("trace", IntegrateWant::Trace)),
        IntegratePhase::Review => ask(IntegrateRole::Reviewer),
        IntegratePhase::Thesis => ask(IntegrateRole::Thesis),
        IntegratePhase::Antithesis => ask(IntegrateRole::Antithesis),
        IntegratePhase::Synthesis => ask(IntegrateRole::Synthesis),
        IntegratePhase::Land if state.landed.is_none() => Some(("advance", IntegrateWant::Advance)),
        IntegratePhase::Land => Some(("mark", IntegrateWant::Mark)),
    }
}

fn conflict(state: &Integrate) -> Option<(&'static str, IntegrateWant)> {
    let conflict = state.conflict.as_ref()?;
    Some(if conflict.is_worktree_left {
        ("restore", IntegrateWant::Restore)
    } else if conflict.needs_resolver() && conflict.proposed.is_none() {
        ("resolver", IntegrateWant::Resolve)
    } else if conflict.awaits_tools() {
        ("regenerate", IntegrateWant::Regenerate)
    } else {
        ("settle", IntegrateWant::Settle)
    })
}
