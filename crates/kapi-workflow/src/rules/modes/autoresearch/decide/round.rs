//! Several changes from one parent: what follows from the answers, which gain is kept, and what becomes
//! of the others.
//!
//! Each proposal is one run, decided by one fact, as where one change is tried at a time.

use crate::rules::decision_draft::DecisionDraft;
use crate::rules::modes::autoresearch::decide::experiment::{
    ExperimentAnswer, decide, discard_unmeasured,
};
use crate::rules::modes::autoresearch::event::{AutoresearchEvent, Candidate, Ending, TryAnswer};
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::modes::autoresearch::round::{Round, Try};
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::autoresearch::verdict;
use crate::rules::modes::autoresearch::verdict::{Ruling, Verdict};
use crate::rules::outcome::ProposedCommit;

/// Paths that are named in a reason.
const NAMED_MAX: usize = 5;

/// Takes the answer of one of several agents.
pub(super) fn answered(
    draft: &mut DecisionDraft<'_, Autoresearch>,
    place: u32,
    answer: ExperimentAnswer,
) {
    let (found, ideas) = match answer {
        ExperimentAnswer::Candidate { candidate, ideas } => {
            (TryAnswer::Candidate(candidate), ideas)
        }
        ExperimentAnswer::Refused { why } => (TryAnswer::Refused { why }, Vec::new()),
        ExperimentAnswer::Exhausted { ideas } => (TryAnswer::Exhausted {}, ideas),
    };
    let is_exhausted = found == TryAnswer::Exhausted {};
    let others = draft.now.round_or_next();
    let none_has_an_idea =
        is_exhausted && others.is_some_and(|round| is_rest_exhausted(&round, place));
    draft.fact(AutoresearchEvent::TryAnswered {
        place,
        found,
        ideas,
    });
    if none_has_an_idea {
        draft.fact(AutoresearchEvent::SearchEnded {
            ending: Ending::Exhausted,
        });
        return;
    }
    if draft.now.round.is_none() {
        stop_where_all_were_refused(draft);
        return;
    }
    pursue(draft);
}

fn is_rest_exhausted(round: &Round, place: u32) -> bool {
    let mut rest = (0..).zip(&round.tries).filter(|(other, _)| *other != place);
    rest.all(|(_, found)| *found == Try::Exhausted {})
}

/// Rounds that brought nothing are a person's affair, as refused answers in a row are.
fn stop_where_all_were_refused(draft: &mut DecisionDraft<'_, Autoresearch>) {
    draft.stop_if_refused(AutoresearchRole::Researcher.spec().name);
}

/// Goes on with a round: discards what may not be measured, and keeps the best once all are measured.
pub(super) fn pursue(draft: &mut DecisionDraft<'_, Autoresearch>) {
    if draft.now.candidate.is_some() {
        if draft.now.measured.is_empty() {
            discard_unmeasured(draft);
        }
        return;
    }
    let Some(place) = best(draft) else {
        return;
    };
    draft.fact(AutoresearchEvent::GainChosen { place });
    let (Some(contract), Some(reference)) = (draft.now.contract.clone(), draft.now.reference())
    else {
        return;
    };
    match verdict::candidate(&contract, &reference, &draft.now.measured) {
        Verdict::Decided(judged) => decide(draft, judged),
        Verdict::Again(_) => {}
    }
}

/// Returns the place of the gain that is largest by its measurements; nothing while others may come.
fn best(draft: &DecisionDraft<'_, Autoresearch>) -> Option<u32> {
    let search = &draft.now;
    let (round, contract) = (search.round.as_ref()?, search.contract.as_deref()?);
    let is_pending = |found: &Try| {
        matches!(
            found,
            Try::Asked {} | Try::Waiting { .. } | Try::Overtaken { .. }
        )
    };
    if round.tries.iter().any(is_pending) {
        return None;
    }
    let gains = (0_u32..).zip(&round.tries).filter_map(|(place, found)| {
        let Try::Gain { measured, .. } = found else {
            return None;
        };
        let gain = verdict::relative_gain(contract, &search.reference()?, measured)?;
        Some((place, gain))
    });
    // Of equal ones the first.
    let best = gains.reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map(|(place, _)| place)
}

/// Takes a gain as it is on what was kept of its round.
pub(super) fn reapplied(
    draft: &mut DecisionDraft<'_, Autoresearch>,
    place: u32,
    applied: &ProposedCommit,
) {
    let Some(candidate) = overtaken(draft, place) else {
        return;
    };
    draft.fact(AutoresearchEvent::GainReapplied {
        place,
        candidate: Box::new(Candidate {
            commit: applied.commit.clone(),
            tree: applied.tree.clone(),
            changed: applied.changed.clone(),
            ..candidate
        }),
    });
    discard_unmeasured(draft);
}

/// Discards a gain that does not fit what was kept of its round.
pub(super) fn conflicted(
    draft: &mut DecisionDraft<'_, Autoresearch>,
    place: u32,
    paths: &[String],
) {
    let Some(candidate) = overtaken(draft, place) else {
        return;
    };
    let kept = draft.now.best().map_or(0, |run| run.number);
    let named = paths.get(..NAMED_MAX).unwrap_or(paths).join(", ");
    draft.fact(AutoresearchEvent::GainReapplied {
        place,
        candidate: Box::new(candidate),
    });
    let judged = Ruling {
        status: RunStatus::Discard,
        metric: None,
        reason: format!(
            "it is better than its parent, and does not fit run {kept}, which was better still: both \
             change {named}"
        ),
    };
    decide(draft, judged);
}

fn overtaken(draft: &DecisionDraft<'_, Autoresearch>, place: u32) -> Option<Candidate> {
    match draft.now.round.as_ref()?.at(place)? {
        Try::Overtaken { candidate } => Some((**candidate).clone()),
        Try::Asked {}
        | Try::Nothing {}
        | Try::Exhausted {}
        | Try::Waiting { .. }
        | Try::AtHand { .. }
        | Try::Gain { .. }
        | Try::Decided {} => None,
    }
}

#[cfg(test)]
mod tests;
