//! Going on without a source: by a person's word, or because it was found to fail.
//!
//! What was begun on the work of a source goes with it. The plan without them is approved anew, unless
//! its person allowed the integration to go on by itself.

use kapi_core::id::GoalId;

use crate::rules::conflict::Settlement;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::planning;
use crate::rules::modes::integrate::state::{Eviction, Integrate, IntegratePhase};

/// Leaves a source out because a person says so.
pub(super) fn by_person(
    draft: &mut DecisionDraft<'_, Integrate>,
    source: &GoalId,
    why: &str,
    by: &str,
) -> Result<(), WorkflowRule> {
    let gone = with_dependents(&draft.now, source);
    if gone.len() >= draft.now.left().len() {
        return Err(WorkflowRule::Malformed {
            rule: "leave out the last source: abandon the integration instead".to_owned(),
        });
    }
    let why = format!("{by} left it out: {why}");
    leave_out(draft, &gone, &why, None, "");
    draft.begin_anew_if_stopped();
    draft.unblock();
    match draft.now.phase {
        IntegratePhase::Inspect | IntegratePhase::Draft => {}
        IntegratePhase::Baseline
        | IntegratePhase::Approval
        | IntegratePhase::Prepare
        | IntegratePhase::Apply
        | IntegratePhase::Conflict
        | IntegratePhase::Head
        | IntegratePhase::Bisect
        | IntegratePhase::Review
        | IntegratePhase::Thesis
        | IntegratePhase::Antithesis
        | IntegratePhase::Synthesis
        | IntegratePhase::Land => plan_anew(draft),
    }
    Ok(())
}

/// Leaves out the last of these, which fails, alone or together with the others.
pub(super) fn found(
    draft: &mut DecisionDraft<'_, Integrate>,
    culprits: &[GoalId],
    why: &str,
    evidence: &str,
) {
    let Some((source, others)) = culprits.split_last() else {
        return;
    };
    let gone = with_dependents(&draft.now, source);
    let is_last = gone.len() >= draft.now.left().len();
    leave_out(draft, &gone, why, others.last(), evidence);
    if is_last {
        draft.events.push(WorkflowEvent::Failed {
            reason: format!("no source is left: {source} was left out because {why}"),
        });
    } else if !draft.now.leave.evicts {
        plan_anew(draft);
    }
}

fn plan_anew(draft: &mut DecisionDraft<'_, Integrate>) {
    let plan = planning::without_evicted(&draft.now, &draft.workflow.terms.verify);
    if let Some(plan) = plan {
        draft.propose(None, plan);
    }
}

fn leave_out(
    draft: &mut DecisionDraft<'_, Integrate>,
    gone: &[GoalId],
    why: &str,
    with: Option<&GoalId>,
    evidence: &str,
) {
    let Some(first) = gone.first().cloned() else {
        return;
    };
    for source in gone {
        let is_first = *source == first;
        let why = if is_first {
            why.to_owned()
        } else {
            format!("it was begun on the work of {first}, which was left out")
        };
        let settlement = Settlement {
            by: "nobody".to_owned(),
            commit: None,
            why: format!("{source} was left out: {why}"),
            at_ms: draft.given.now_ms,
        };
        draft.settle_conflicts(&source.to_string(), settlement);
        draft.fact(IntegrateEvent::SourceEvicted {
            eviction: Eviction {
                source: source.clone(),
                why,
                with: with.filter(|_| is_first).cloned(),
                evidence: if is_first { evidence } else { "" }.to_owned(),
            },
        });
    }
}

/// Returns a source with everything that was begun on its work.
fn with_dependents(state: &Integrate, source: &GoalId) -> Vec<GoalId> {
    let mut gone = vec![source.clone()];
    let order = state.foresight.iter().flat_map(|it| &it.order);
    // Whatever builds on another comes after it in the order.
    for ordered in order {
        let is_hit = ordered.after.iter().any(|before| gone.contains(before));
        let is_left = !state.is_evicted(&ordered.source) && !gone.contains(&ordered.source);
        if is_hit && is_left {
            gone.push(ordered.source.clone());
        }
    }
    gone
}
