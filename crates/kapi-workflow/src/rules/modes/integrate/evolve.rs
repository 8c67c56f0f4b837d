//! The fold of an integration's facts: total, without rules.
//!
//! A fact that fits nothing changes nothing.

use kapi_core::id::GoalId;

use crate::rules::branch::Branch;
use crate::rules::modes::integrate::answer::{LandingVerdict, RevisionCause};
use crate::rules::modes::integrate::conflict::{
    OpenConflict, ProposedResolution, Regeneration, SettledConflict,
};
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::plan::Clarification;
use crate::rules::modes::integrate::state::{
    AppliedSource, Argument, Eviction, HeadTrial, Integrate, IntegratePhase, LandedStep, Redo,
    Statement, Unclear,
};

/// The most entries that are kept of what was said, reviewed, resolved.
const PAST_MAX: usize = 100;

/// The plan was approved: what is on the branch already and comes first in it stays there.
pub(crate) fn approved(state: &mut Integrate) {
    let start = state.start().to_owned();
    let steps: Vec<(GoalId, _)> = state
        .steps()
        .iter()
        .map(|step| (step.source.clone(), step.method))
        .collect();
    let begins_there = state
        .applied
        .first()
        .is_none_or(|first| first.before == start);
    let same = state.applied.iter().zip(&steps);
    let n_same = same
        .take_while(|(applied, (source, method))| {
            applied.source == *source && applied.method == *method
        })
        .count();
    state
        .applied
        .truncate(if begins_there { n_same } else { 0 });
    state.conflict = None;
    state.wanted = None;
    state.refused.clear();
    state.phase = if state.branch.is_none() {
        IntegratePhase::Prepare
    } else {
        IntegratePhase::Apply
    };
    head_changed(state);
}

/// A person lets it go on: what was counted is counted anew.
pub(crate) fn unblocked(state: &mut Integrate) {
    state.refused.clear();
}

/// Applies one fact.
pub(crate) fn evolve(state: &mut Integrate, event: &IntegrateEvent) {
    match event {
        IntegrateEvent::SourcesInspected { .. }
        | IntegrateEvent::SourcesUnfit { .. }
        | IntegrateEvent::Clarified { .. }
        | IntegrateEvent::PlanDrafted { .. }
        | IntegrateEvent::PlanReopened { .. } => planning(state, event),
        IntegrateEvent::BranchPrepared { .. } | IntegrateEvent::BaselineRecorded { .. } => {
            beginning(state, event);
        }
        IntegrateEvent::SourceApplied { .. } => plainly_applied(state, event),
        IntegrateEvent::SourceConflicted { .. }
        | IntegrateEvent::ResolutionProposed { .. }
        | IntegrateEvent::WorktreeRestored {}
        | IntegrateEvent::ConflictResolved { .. } => conflict(state, event),
        IntegrateEvent::FilesRegenerated { regeneration } => regenerated(state, regeneration),
        IntegrateEvent::HeadVerified { .. }
        | IntegrateEvent::TrialMade { .. }
        | IntegrateEvent::TrialVerified { .. }
        | IntegrateEvent::CoverageCounted { .. } => shown(state, event),
        IntegrateEvent::CulpritsFound { .. } => {}
        IntegrateEvent::SourceEvicted { eviction } => evicted(state, eviction),
        IntegrateEvent::Reviewed { review } => {
            answered(state, "reviewer");
            state.reviews.push(review.clone());
            cap(&mut state.reviews);
            state.phase = IntegratePhase::Thesis;
        }
        IntegrateEvent::ConsensusSaid { statement } => said(state, statement),
        IntegrateEvent::Returned {
            cause,
            source,
            why,
            checks,
        } => {
            state.attempt = state.attempt.saturating_add(1);
            returned(state, *cause, source.as_ref(), why);
            for check in checks {
                if !state.more_checks.contains(check) {
                    state.more_checks.push(check.clone());
                }
            }
        }
        IntegrateEvent::ResolutionDiscarded { source, why } => redone(state, source, why),
        IntegrateEvent::Stopped { reason } => state.stopped = Some(reason.clone()),
        IntegrateEvent::AnswerRefused { role, why } => refused(state, role, why),
        IntegrateEvent::TargetMoved { .. } => {
            count(state, "advance");
            // What was said held for a result that would have landed there.
            state.cycle = state.cycle.saturating_add(1);
            state.attempt = 1;
            anew(state, None);
        }
        IntegrateEvent::TargetAdvanced { from, to, brought } => {
            count(state, "advance");
            state.landed = Some(LandedStep {
                from: from.clone(),
                to: to.clone(),
                brought: brought.clone(),
            });
        }
        IntegrateEvent::SourcesMarked {} => count(state, "mark"),
    }
}

fn planning(state: &mut Integrate, event: &IntegrateEvent) {
    if let IntegrateEvent::SourcesInspected { foresight } = event {
        count(state, "inspect");
        state.target.clone_from(&foresight.target);
        state.foresight = Some((**foresight).clone());
        state.phase = IntegratePhase::Draft;
    } else if let IntegrateEvent::SourcesUnfit { .. } = event {
        count(state, "inspect");
    } else if let IntegrateEvent::Clarified { source, text } = event {
        state.clarified.push(Clarification {
            source: source.clone(),
            text: text.clone(),
        });
        cap(&mut state.clarified);
        state.unclear = None;
    } else if let IntegrateEvent::PlanDrafted { by, plan } = event {
        if by.is_some() {
            answered(state, "planner");
        }
        state.wanted = None;
        state.plan = Some(plan.clone());
        await_approval(state);
    } else if let IntegrateEvent::PlanReopened { reason } = event {
        state.cycle = state.cycle.saturating_add(1);
        state.attempt = 1;
        state.stopped = None;
        state.unclear = None;
        state.refused.clear();
        anew(state, reason.as_deref());
    }
}

/// What the checks show on the integration branch is seen before the approval.
fn await_approval(state: &mut Integrate) {
    state.phase = if state.has_baseline() {
        IntegratePhase::Approval
    } else {
        IntegratePhase::Baseline
    };
}

fn beginning(state: &mut Integrate, event: &IntegrateEvent) {
    if let IntegrateEvent::BranchPrepared {
        branch,
        worktree,
        base,
    } = event
    {
        state.first = Some(base.clone());
        state.branch = Some(Branch {
            name: branch.clone(),
            worktree: worktree.clone(),
            head: base.clone(),
            tree: None,
        });
        state.phase = IntegratePhase::Apply;
    } else if let IntegrateEvent::BaselineRecorded { report } = event {
        count(state, "baseline");
        state.baseline = Some((**report).clone());
        await_approval(state);
    }
}

fn plainly_applied(state: &mut Integrate, event: &IntegrateEvent) {
    let IntegrateEvent::SourceApplied {
        source,
        method,
        before,
        after,
        tree,
        by_rule,
    } = event
    else {
        return;
    };
    count(state, "apply");
    let applied = AppliedSource {
        source: source.clone(),
        method: *method,
        before: before.clone(),
        after: after.clone(),
        tree: tree.clone(),
        resolved: by_rule.clone(),
        generated: Vec::new(),
    };
    put_on(state, applied);
}

fn conflict(state: &mut Integrate, event: &IntegrateEvent) {
    if let IntegrateEvent::SourceConflicted {
        source,
        before,
        at,
        paths,
    } = event
    {
        count(state, "apply");
        branch_is_at(state, at, None);
        state.conflict = Some(OpenConflict {
            source: source.clone(),
            before: before.clone(),
            at: at.clone(),
            paths: paths.clone(),
            proposed: None,
            regenerated: None,
            is_worktree_left: false,
        });
        state.phase = IntegratePhase::Conflict;
    } else if let IntegrateEvent::ResolutionProposed {
        by, said, commit, ..
    } = event
    {
        count(state, "resolver");
        if let Some(conflict) = &mut state.conflict {
            conflict.proposed = Some(ProposedResolution {
                by: by.clone(),
                said: said.clone(),
                commit: commit.clone(),
            });
        }
    } else if let IntegrateEvent::WorktreeRestored {} = event {
        count(state, "restore");
        if let Some(conflict) = &mut state.conflict {
            conflict.is_worktree_left = false;
        }
    } else if let IntegrateEvent::ConflictResolved {
        method,
        after,
        tree,
        ..
    } = event
    {
        count(state, "settle");
        state.refused.remove("resolver");
        let Some(conflict) = state.conflict.take() else {
            return;
        };
        let applied = AppliedSource {
            source: conflict.source.clone(),
            method: *method,
            before: conflict.before.clone(),
            after: after.clone(),
            tree: tree.clone(),
            resolved: conflict.paths.iter().map(|it| it.path.clone()).collect(),
            generated: generated(&conflict),
        };
        state.resolutions.extend(settled(conflict, after));
        cap(&mut state.resolutions);
        put_on(state, applied);
    }
}

/// Takes what tools wrote anew. Where one failed, what was left for it goes as well: somebody resolves all
/// of it.
fn regenerated(state: &mut Integrate, regeneration: &Regeneration) {
    count(state, "regenerate");
    state.regenerations.push(regeneration.clone());
    cap(&mut state.regenerations);
    if let Some(conflict) = &mut state.conflict {
        conflict.regenerated = Some(regeneration.clone());
        if regeneration.commit.is_none() {
            conflict.is_worktree_left = conflict.proposed.take().is_some();
        }
    }
}

/// Returns the paths of a conflict that tools wrote anew.
fn generated(conflict: &OpenConflict) -> Vec<String> {
    let made = conflict.regenerated.iter().filter(|it| it.commit.is_some());
    let runs = made.flat_map(|it| &it.runs);
    runs.map(|it| it.path.clone()).collect()
}

fn settled(conflict: OpenConflict, after: &str) -> Option<SettledConflict> {
    let proposed = conflict.proposed?;
    Some(SettledConflict {
        source: conflict.source,
        before: conflict.before,
        paths: conflict.paths,
        by: proposed.by,
        said: proposed.said,
        after: after.to_owned(),
    })
}

fn shown(state: &mut Integrate, event: &IntegrateEvent) {
    if let IntegrateEvent::HeadVerified { report, holds } = event {
        count(state, "verify-head");
        state.verified = Some((**report).clone());
        state.phase = if *holds {
            IntegratePhase::Review
        } else {
            IntegratePhase::Bisect
        };
    } else if let IntegrateEvent::TrialMade { sources, commit } = event {
        count(state, "try");
        state.trials.push(HeadTrial {
            sources: sources.clone(),
            commit: commit.clone(),
            report: None,
        });
    } else if let IntegrateEvent::TrialVerified { sources, report } = event {
        count(state, "verify-trial");
        let mut trials = state.trials.iter_mut();
        if let Some(trial) = trials.find(|trial| trial.sources == *sources) {
            trial.report = Some((**report).clone());
        } else {
            state.trials.push(HeadTrial {
                sources: sources.clone(),
                commit: Some(report.commit.clone()),
                report: Some((**report).clone()),
            });
        }
    } else if let IntegrateEvent::CoverageCounted { coverage } = event {
        count(state, "trace");
        state.coverage = Some(coverage.clone());
    }
}

fn refused(state: &mut Integrate, role: &str, why: &str) {
    count(state, role);
    let refused = state.refused.entry(role.to_owned()).or_default();
    refused.push(why.to_owned());
    if role == "resolver"
        && let Some(conflict) = &mut state.conflict
    {
        conflict.proposed = None;
        conflict.is_worktree_left = true;
        // What tools made of it goes with it; one that failed is not tried again.
        conflict.regenerated.take_if(|it| it.commit.is_some());
    }
}

fn put_on(state: &mut Integrate, applied: AppliedSource) {
    branch_is_at(state, &applied.after, Some(&applied.tree));
    state.applied.push(applied);
    state.phase = IntegratePhase::Apply;
    head_changed(state);
}

/// Whatever was shown of a head holds for that head alone.
fn head_changed(state: &mut Integrate) {
    state.verified = None;
    state.trials.clear();
    state.coverage = None;
    if state.phase == IntegratePhase::Apply && state.next_step().is_none() {
        state.phase = IntegratePhase::Head;
    }
}

fn branch_is_at(state: &mut Integrate, commit: &str, tree: Option<&String>) {
    if let Some(branch) = &mut state.branch {
        commit.clone_into(&mut branch.head);
        branch.tree = tree.cloned();
    }
}

/// Takes a source and whatever came after it off the result.
fn taken_off(state: &mut Integrate, source: &GoalId) {
    let place = state.applied.iter().position(|it| it.source == *source);
    if let Some(place) = place {
        state.applied.truncate(place);
    }
    state.conflict = None;
    state.phase = IntegratePhase::Apply;
}

fn evicted(state: &mut Integrate, eviction: &Eviction) {
    let was_carried = !matches!(
        state.phase,
        IntegratePhase::Inspect
            | IntegratePhase::Draft
            | IntegratePhase::Baseline
            | IntegratePhase::Approval
            | IntegratePhase::Prepare
    );
    let phase = state.phase;
    taken_off(state, &eviction.source);
    if !was_carried {
        state.phase = phase;
    }
    state.evicted.push(eviction.clone());
    state.refused.clear();
    state.unclear = None;
    head_changed(state);
}

fn said(state: &mut Integrate, statement: &Statement) {
    let (role, next) = match &statement.said {
        Argument::Thesis(_) => ("thesis", IntegratePhase::Antithesis),
        Argument::Antithesis(_) => ("antithesis", IntegratePhase::Synthesis),
        Argument::Synthesis(ruling) if ruling.verdict == LandingVerdict::Approve => {
            ("synthesis", IntegratePhase::Land)
        }
        Argument::Synthesis(_) => ("synthesis", IntegratePhase::Synthesis),
    };
    answered(state, role);
    state.statements.push(statement.clone());
    cap(&mut state.statements);
    state.phase = next;
}

fn returned(state: &mut Integrate, cause: RevisionCause, source: Option<&GoalId>, why: &str) {
    match (cause, source) {
        (RevisionCause::Verification, _) => {
            state.phase = IntegratePhase::Head;
            state.verified = None;
            state.trials.clear();
        }
        (RevisionCause::Resolution, Some(source)) => redone(state, source, why),
        (RevisionCause::Resolution, None) | (RevisionCause::Scope, _) => anew(state, Some(why)),
        (RevisionCause::Intent, source) => {
            anew(state, None);
            state.unclear = Some(Unclear {
                source: source.cloned(),
                question: why.to_owned(),
            });
        }
    }
}

/// Takes a source off whose conflict is resolved again.
fn redone(state: &mut Integrate, source: &GoalId, why: &str) {
    state.redo.push(Redo {
        source: source.clone(),
        why: why.to_owned(),
    });
    cap(&mut state.redo);
    taken_off(state, source);
    head_changed(state);
}

/// Begins with the sources again; what is on the branch stays as far as the next plan begins so.
fn anew(state: &mut Integrate, wanted: Option<&str>) {
    state.phase = IntegratePhase::Inspect;
    state.conflict = None;
    if let Some(wanted) = wanted {
        state.wanted = Some(wanted.to_owned());
    }
}

fn answered(state: &mut Integrate, role: &str) {
    count(state, role);
    state.refused.remove(role);
}

fn count(state: &mut Integrate, stage: &str) {
    let n = state.counts.entry(stage.to_owned()).or_default();
    *n = n.saturating_add(1);
}

/// Keeps the newest entries.
fn cap<T>(list: &mut Vec<T>) {
    let surplus = list.len().saturating_sub(PAST_MAX);
    list.drain(..surplus);
}
