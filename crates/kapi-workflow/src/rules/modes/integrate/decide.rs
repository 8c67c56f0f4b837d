//! Where the rules of an integration say no, and what follows from what came back.
//!
//! What came back is taken for what is wanted now, by the effect's name: what nobody wants any more
//! changes nothing.

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};

use crate::rules::decide::{human, said, wrong_phase};
use crate::rules::decision_context::DecisionContext;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::combine::CombineReport;
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::integrate::command::IntegrateCommand;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::state::{Integrate, IntegratePhase};
use crate::rules::modes::integrate::want::{IntegrateWant, want};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

mod argue;
mod draft;
mod evict;
mod land;
mod merge;
mod plan;
mod verify;

/// Decides a request.
pub(crate) fn ask(
    workflow: &Workflow,
    state: &Integrate,
    actor: &Actor,
    command: &IntegrateCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let mut draft = DecisionDraft::new(workflow, state, given);
    match command {
        IntegrateCommand::Clarify { source, text } => {
            let action = "say what a source was meant to do";
            human(actor, action)?;
            let text = said(text, "clarify a source without saying what was meant")?;
            known(state, source)?;
            if state.landed.is_some() {
                return Err(wrong_phase(workflow, action));
            }
            plan::clarified(&mut draft, source, text);
        }
        IntegrateCommand::Evict { source, why } => {
            let action = "continue without a source";
            let by = human(actor, action)?;
            let why = said(why, "leave a source out without saying why")?;
            known(state, source)?;
            if state.landed.is_some() {
                return Err(wrong_phase(workflow, action));
            }
            evict::by_person(&mut draft, source, &why, by)?;
        }
    }
    Ok(draft.events)
}

fn known(state: &Integrate, source: &GoalId) -> Result<(), WorkflowRule> {
    if state.left().iter().any(|left| left.id == *source) {
        return Ok(());
    }
    let left: Vec<String> = state.left().iter().map(|it| it.id.to_string()).collect();
    Err(WorkflowRule::Malformed {
        rule: format!("name {source}: the sources are {}", left.join(", ")),
    })
}

/// Decides what follows what a person wants changed: another plan, in another cycle.
pub(crate) fn revised(
    workflow: &Workflow,
    state: &Integrate,
    text: &str,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    if state.landed.is_some() {
        return Err(wrong_phase(workflow, "change"));
    }
    let mut draft = DecisionDraft::new(workflow, state, given);
    draft.fact(IntegrateEvent::PlanReopened {
        reason: Some(text.to_owned()),
    });
    draft.unblock();
    Ok(draft.events)
}

/// Returns what follows a person's word to go on: what only their word lets begin anew does, and what
/// only they can tell is asked again.
pub(crate) fn let_go_on(
    workflow: &Workflow,
    state: &Integrate,
    given: &DecisionContext,
) -> Vec<WorkflowEvent> {
    let mut draft = DecisionDraft::new(workflow, state, given);
    if let Some(stopped) = state.stopped.clone() {
        let is_worlds = state.phase == IntegratePhase::Baseline;
        draft.fact(IntegrateEvent::PlanReopened {
            reason: (!is_worlds).then_some(stopped),
        });
    } else if state.unclear.is_some() {
        argue::ask_person(&mut draft);
    }
    draft.events
}

/// Decides what follows from how an effect ended.
pub(crate) fn report(
    workflow: &Workflow,
    state: &Integrate,
    effect: &EffectId,
    outcome: &WorkflowOutcome,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let Some((_, want)) = want(state).filter(|(id, _)| id == effect) else {
        return Ok(Vec::new());
    };
    let mut draft = DecisionDraft::new(workflow, state, given);
    if let WorkflowOutcome::Combined(found) = outcome {
        return combined(draft, &want, found, effect);
    }
    match (want, outcome) {
        (_, WorkflowOutcome::Cancelled { .. } | WorkflowOutcome::Failed { .. }) => {}
        (IntegrateWant::Ask(role), WorkflowOutcome::Answered { by, answer, .. }) => {
            argue::answered(&mut draft, role, by, answer);
        }
        (IntegrateWant::Ask(role), WorkflowOutcome::Unreadable { why, .. }) => {
            draft.refuse(role, why);
        }
        (
            IntegrateWant::Prepare,
            WorkflowOutcome::Prepared {
                branch, worktree, ..
            },
        ) => {
            draft.fact(IntegrateEvent::BranchPrepared {
                branch: branch.clone(),
                worktree: worktree.clone(),
                base: state.start().to_owned(),
            });
        }
        (IntegrateWant::Baseline, WorkflowOutcome::Verified(report)) => {
            verify::baseline(&mut draft, report)?;
        }
        (IntegrateWant::Resolve, WorkflowOutcome::Proposed(proposed)) => {
            merge::proposed(&mut draft, proposed);
        }
        (IntegrateWant::Resolve, WorkflowOutcome::Unreadable { why, .. }) => {
            draft.refuse(IntegrateRole::Resolver, why);
        }
        (IntegrateWant::Restore, WorkflowOutcome::Restored(_)) => {
            draft.fact(IntegrateEvent::WorktreeRestored {});
        }
        (IntegrateWant::VerifyHead, WorkflowOutcome::Verified(report)) => {
            verify::head(&mut draft, report)?;
        }
        (IntegrateWant::VerifyTrial { commit, sources }, WorkflowOutcome::Verified(report)) => {
            verify::trial(&mut draft, report, &commit, sources)?;
        }
        (IntegrateWant::Advance, WorkflowOutcome::Advanced { at, brought }) => {
            land::advanced(&mut draft, at, brought.as_deref())?;
        }
        (IntegrateWant::Advance, WorkflowOutcome::Moved { found }) => {
            land::moved(&mut draft, found.as_deref());
        }
        (_, _) => return Err(other(effect)),
    }
    Ok(draft.events)
}

fn combined(
    mut draft: DecisionDraft<'_, Integrate>,
    want: &IntegrateWant,
    found: &CombineReport,
    effect: &EffectId,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    match (want, found) {
        (IntegrateWant::Inspect, CombineReport::Inspected(foresight)) => {
            plan::inspected(&mut draft, foresight)?;
        }
        (IntegrateWant::Inspect, CombineReport::Unfit { reasons }) => {
            plan::unfit(&mut draft, reasons);
        }
        (
            IntegrateWant::Apply,
            CombineReport::Applied {
                head,
                tree,
                by_rule,
            },
        ) => {
            merge::applied(&mut draft, [head, tree], by_rule);
        }
        (IntegrateWant::Apply, CombineReport::Conflicted { at, paths }) => {
            merge::conflicted(&mut draft, at, paths);
        }
        (IntegrateWant::Apply, CombineReport::MethodUnfit { why }) => {
            argue::method_unfit(&mut draft, why);
        }
        (IntegrateWant::Regenerate, CombineReport::Regenerated { commit, runs }) => {
            merge::regenerated(&mut draft, commit.as_ref(), runs)?;
        }
        (IntegrateWant::Settle, CombineReport::Applied { head, tree, .. }) => {
            merge::settled(&mut draft, head, tree);
        }
        (IntegrateWant::Settle, CombineReport::MarkersLeft { paths }) => {
            let paths = paths.join(", ");
            let why = format!("conflict markers are left in {paths}");
            draft.refuse(IntegrateRole::Resolver, &why);
        }
        (IntegrateWant::Try(sources), CombineReport::Tried { commit }) => {
            draft.fact(IntegrateEvent::TrialMade {
                sources: sources.clone(),
                commit: commit.clone(),
            });
            verify::blame(&mut draft);
        }
        (IntegrateWant::Trace, CombineReport::Traced(coverage)) => {
            verify::traced(&mut draft, coverage)?;
        }
        (IntegrateWant::Mark, CombineReport::Marked) => {
            draft.fact(IntegrateEvent::SourcesMarked {});
            draft.events.push(WorkflowEvent::Completed {});
        }
        (_, _) => return Err(other(effect)),
    }
    Ok(draft.events)
}

fn other(effect: &EffectId) -> WorkflowRule {
    WorkflowRule::Malformed {
        rule: format!("take what came back for {effect}: it is not what was asked for"),
    }
}

#[cfg(test)]
mod tests;
