//! The plan: what follows from a look at the sources, from a planner's proposal and from what a person
//! says of an unclear intent.

use kapi_core::id::GoalId;

use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::combine::Foresight;
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::plan::ProposedPlan;
use crate::rules::modes::integrate::planning;
use crate::rules::modes::integrate::state::{Integrate, IntegratePhase};

/// Takes what was foreseen: the plan follows from it, unless somebody wants another one.
pub(super) fn inspected(
    draft: &mut DecisionDraft<'_, Integrate>,
    foresight: &Foresight,
) -> Result<(), WorkflowRule> {
    let left = draft.now.left();
    let is_once = |id: &GoalId| foresight.order.iter().filter(|it| it.source == *id).count() == 1;
    let is_whole = left.len() == foresight.order.len() && left.iter().all(|it| is_once(&it.id));
    if !is_whole || foresight.target.is_empty() {
        return Err(WorkflowRule::Malformed {
            rule: "take an order that does not name every source once".to_owned(),
        });
    }
    draft.fact(IntegrateEvent::SourcesInspected {
        foresight: Box::new(foresight.clone()),
    });
    if draft.now.wanted.is_none() {
        let always = &draft.workflow.terms.verify;
        let plan = planning::foreseen(&draft.now, foresight, always);
        draft.propose(None, plan);
    }
    Ok(())
}

/// Takes that sources are not as they were; only a person can do something about it.
pub(super) fn unfit(draft: &mut DecisionDraft<'_, Integrate>, reasons: &[String]) {
    draft.fact(IntegrateEvent::SourcesUnfit {
        reasons: reasons.to_vec(),
    });
    let resume = draft.resume();
    draft.block(
        format!("not as it was found: {}", reasons.join("; ")),
        format!("put it back, or leave it out with `{resume} --evict <source>`, then {resume}"),
    );
}

/// Takes a planner's proposal, or says what is wrong with it.
pub(super) fn proposed(
    draft: &mut DecisionDraft<'_, Integrate>,
    by: &ReviewerIdentity,
    said: &ProposedPlan,
) -> Result<(), String> {
    let plan = planning::proposed(&draft.now, said, &draft.workflow.terms.verify)?;
    draft.propose(Some(by.clone()), plan);
    Ok(())
}

/// Takes what a person says of a source. A plan that was made without it is made anew.
pub(super) fn clarified(draft: &mut DecisionDraft<'_, Integrate>, source: &GoalId, text: String) {
    draft.fact(IntegrateEvent::Clarified {
        source: source.clone(),
        text,
    });
    draft.begin_anew_if_stopped();
    let is_planned = matches!(
        draft.now.phase,
        IntegratePhase::Baseline | IntegratePhase::Approval
    );
    if is_planned {
        let plan = planning::without_evicted(&draft.now, &draft.workflow.terms.verify);
        if let Some(mut plan) = plan {
            plan.clarified.clone_from(&draft.now.clarified);
            draft.propose(None, plan);
        }
    }
    draft.unblock();
}
