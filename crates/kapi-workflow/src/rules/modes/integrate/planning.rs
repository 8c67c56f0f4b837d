//! How a merge plan comes about: from what was foreseen, from a planner's proposal, or from the last one
//! without what was left out since.
//!
//! Pure; who approves it is the lifecycle's affair.

use std::collections::BTreeSet;

use kapi_core::id::GoalId;

use crate::rules::effect::combine::{Foresight, MergeMethod};
use crate::rules::modes::integrate::plan::{
    LeftOut, MergePlan, MergeStep, ProposedPlan, REASON_BYTES_MAX, VERIFY_MAX,
};
use crate::rules::modes::integrate::state::Integrate;

/// Returns the plan that follows from what was foreseen, without an agent's help.
pub(crate) fn foreseen(state: &Integrate, foresight: &Foresight, always: &[String]) -> MergePlan {
    let left = state.left();
    let is_left = |id: &GoalId| left.iter().any(|source| source.id == *id);
    let steps = foresight.order.iter().filter(|it| is_left(&it.source));
    MergePlan {
        target: foresight.target.clone(),
        steps: steps
            .map(|ordered| MergeStep {
                source: ordered.source.clone(),
                method: MergeMethod::Merge,
                why: ordered.why.clone(),
            })
            .collect(),
        left_out: left_out(state),
        verify: state.checks(always),
        rationale:
            "Work that was begun on another's comes after it; then what clashes with the fewest \
                    others, so that as much as possible is in before anything has to be resolved."
                .to_owned(),
        foresight: foresight.clone(),
        clarified: state.clarified.clone(),
    }
}

/// Returns the plan without the sources that were left out since it was made.
pub(crate) fn without_evicted(state: &Integrate, always: &[String]) -> Option<MergePlan> {
    let Some(plan) = state.plan.as_deref() else {
        let foresight = state.foresight.as_ref()?;
        return Some(foreseen(state, foresight, always));
    };
    let checks = state.checks(always);
    let is_of_source =
        |command: &String| state.sources.iter().any(|it| it.check(command).is_some());
    let mut next = plan.clone();
    next.steps.retain(|step| !state.is_evicted(&step.source));
    next.verify
        .retain(|command| checks.contains(command) || !is_of_source(command));
    for gone in left_out(state) {
        if next
            .left_out
            .iter()
            .all(|known| known.source != gone.source)
        {
            next.left_out.push(gone);
        }
    }
    Some(next)
}

/// Returns the plan that a planner proposes, or what is wrong with it.
pub(crate) fn proposed(
    state: &Integrate,
    said: &ProposedPlan,
    always: &[String],
) -> Result<MergePlan, String> {
    let Some(foresight) = &state.foresight else {
        return Err("the sources were not compared yet".to_owned());
    };
    sound(state, foresight, said)?;
    let mut left_out = left_out(state);
    left_out.extend(said.left_out.iter().cloned());
    let mut verify = state.checks(always);
    for command in &said.verify {
        if !verify.contains(command) {
            verify.push(command.clone());
        }
    }
    Ok(MergePlan {
        target: foresight.target.clone(),
        steps: said.steps.clone(),
        left_out,
        verify,
        rationale: said.rationale.trim().to_owned(),
        foresight: foresight.clone(),
        clarified: state.clarified.clone(),
    })
}

fn left_out(state: &Integrate) -> Vec<LeftOut> {
    let evicted = state.evicted.iter();
    evicted
        .map(|evicted| LeftOut {
            source: evicted.source.clone(),
            why: evicted.why.clone(),
        })
        .collect()
}

fn sound(state: &Integrate, foresight: &Foresight, said: &ProposedPlan) -> Result<(), String> {
    let expected: BTreeSet<&GoalId> = state.left().iter().map(|source| &source.id).collect();
    let steps = said.steps.iter().map(|step| &step.source);
    let named: Vec<&GoalId> = steps
        .chain(said.left_out.iter().map(|it| &it.source))
        .collect();
    let once: BTreeSet<&GoalId> = named.iter().copied().collect();
    if once != expected || once.len() != named.len() {
        let names: Vec<String> = expected.iter().map(ToString::to_string).collect();
        return Err(format!(
            "steps and left_out together need each of these once: {}",
            names.join(", ")
        ));
    }
    if said.steps.is_empty() {
        return Err("a plan needs one step at least".to_owned());
    }
    let texts = said.steps.iter().map(|step| &step.why);
    let mut texts = texts
        .chain(said.left_out.iter().map(|it| &it.why))
        .chain([&said.rationale]);
    if texts.any(|text| text.trim().is_empty() || text.len() > REASON_BYTES_MAX) {
        return Err(format!("every reason needs 1 to {REASON_BYTES_MAX} bytes"));
    }
    let is_bad = |command: &String| command.trim().is_empty() || command.len() > REASON_BYTES_MAX;
    if said.verify.len() > VERIFY_MAX || said.verify.iter().any(is_bad) {
        return Err(format!(
            "verify may have {VERIFY_MAX} commands, none of them empty"
        ));
    }
    in_order(foresight, said)
}

/// What was begun on another's work comes after it, and not without it.
fn in_order(foresight: &Foresight, said: &ProposedPlan) -> Result<(), String> {
    let place = |id: &GoalId| said.steps.iter().position(|step| step.source == *id);
    for ordered in &foresight.order {
        let Some(own) = place(&ordered.source) else {
            continue;
        };
        for before in &ordered.after {
            if place(before).is_none_or(|place| place > own) {
                return Err(format!(
                    "{} was begun on the work of {before}, which has to come before it",
                    ordered.source
                ));
            }
        }
    }
    Ok(())
}
