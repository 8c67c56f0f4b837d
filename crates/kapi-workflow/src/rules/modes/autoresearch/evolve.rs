//! The fold of a search's facts: total, without rules.
//!
//! A fact that fits nothing changes nothing.

use kapi_check::rules::measure::MeasurementReport;

use crate::rules::branch::Branch;
use crate::rules::modes::autoresearch::event::{AutoresearchEvent, Candidate, Ending, TryAnswer};
use crate::rules::modes::autoresearch::history::History;
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::modes::autoresearch::round::Try;
use crate::rules::modes::autoresearch::run::{Idea, Run, RunStatus};
use crate::rules::modes::autoresearch::state::{Autoresearch, AutoresearchPhase, Settling};

/// The most ideas that are kept.
const IDEAS_MAX: usize = 200;

/// The contract was approved: what follows is compared with a baseline of its own.
pub(crate) fn approved(search: &mut Autoresearch) {
    if let Some(last) = search.runs.last()
        && last.segment >= search.segment
    {
        search.segment = last.segment.saturating_add(1);
    }
    search.phase = AutoresearchPhase::Baseline;
    search.reopened = None;
    search.refused.clear();
    search.ended = None;
    search.verified = None;
    search.groups.clear();
    search.branches.clear();
}

/// A person lets it go on: what was counted is counted anew.
pub(crate) fn unblocked(search: &mut Autoresearch) {
    search.refused.clear();
}

/// Applies one fact.
pub(crate) fn evolve(search: &mut Autoresearch, event: &AutoresearchEvent) {
    match event {
        AutoresearchEvent::ContractDrafted { by, contract } => {
            if by.is_some() {
                count(&mut search.counters.drafts);
            }
            search.refused.clear();
            search.contract = Some(contract.clone());
            search.phase = AutoresearchPhase::Approval;
        }
        AutoresearchEvent::HistoryImported { history } => imported(search, history),
        AutoresearchEvent::BranchPrepared {
            branch,
            worktree,
            base,
        } => {
            search.branch = Some(Branch {
                name: branch.clone(),
                worktree: worktree.clone(),
                head: base.clone(),
                tree: None,
            });
        }
        AutoresearchEvent::BaselineFailed { .. } => count(&mut search.counters.measurements),
        AutoresearchEvent::CandidateProposed { candidate, ideas } => {
            proposed(search, candidate, ideas);
        }
        AutoresearchEvent::TryAnswered {
            place,
            found,
            ideas,
        } => {
            for idea in ideas {
                note(search, idea);
            }
            tried(search, *place, found);
        }
        AutoresearchEvent::GainHeld {} => held(search),
        AutoresearchEvent::GainChosen { place } => chosen(search, *place),
        AutoresearchEvent::GainReapplied { place, candidate } => {
            if let Some(round) = &mut search.round {
                round.put(*place, Try::AtHand { again: true });
            }
            at_hand(search, candidate.clone(), Vec::new());
        }
        AutoresearchEvent::Measured { measured } => {
            count(&mut search.counters.measurements);
            search.measured.push((**measured).clone());
        }
        AutoresearchEvent::RunDecided { run } => decided(search, run),
        AutoresearchEvent::Settled { commit, tree, .. } => settled(search, commit, tree),
        AutoresearchEvent::AnswerRefused { role, why } => refused(search, role, why),
        AutoresearchEvent::IdeaNoted { text } => note(search, text),
        AutoresearchEvent::SegmentOpened { reason } => {
            search.reopened = Some(reason.clone());
            search.phase = AutoresearchPhase::Draft;
            search.refused.clear();
            search.ended = None;
            close_round(search);
            let_go(search);
        }
        AutoresearchEvent::SearchEnded { ending } => ended(search, *ending),
        AutoresearchEvent::HeadVerified { measured, groups } => {
            count(&mut search.counters.measurements);
            verified(search, measured);
            search.groups.clone_from(groups);
        }
        AutoresearchEvent::BranchesMade { branches } => search.branches.clone_from(branches),
    }
}

const fn count(counter: &mut u32) {
    *counter = counter.saturating_add(1);
}

/// What was recorded elsewhere comes before everything of ours.
fn imported(search: &mut Autoresearch, history: &History) {
    if search.runs.is_empty() {
        search.runs.clone_from(&history.runs);
        search.imported.clone_from(&history.metric);
        for run in &history.runs {
            let metric = history.metric.clone().map(|metric| (run.segment, metric));
            search.metrics.extend(metric);
        }
    }
    for idea in &history.ideas {
        note(search, idea);
    }
}

fn proposed(search: &mut Autoresearch, candidate: &Candidate, ideas: &[String]) {
    count(&mut search.counters.proposals);
    search.refused.clear();
    search.candidate = Some(Box::new(candidate.clone()));
    search.measured.clear();
    search.phase = AutoresearchPhase::Measure;
    for idea in ideas {
        note(search, idea);
    }
}

fn note(search: &mut Autoresearch, text: &str) {
    let is_known = search.ideas.iter().any(|idea| idea.text == text);
    if !is_known && search.ideas.len() < IDEAS_MAX {
        search.ideas.push(Idea {
            text: text.to_owned(),
            tried: None,
        });
    }
}

/// The worktree is put where it belongs next, whatever was decided.
fn decided(search: &mut Autoresearch, run: &Run) {
    let idea = search
        .candidate
        .as_ref()
        .and_then(|candidate| candidate.idea);
    let location = idea.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
    if let Some(idea) = location.and_then(|location| search.ideas.get_mut(location)) {
        idea.tried = Some(run.number);
    }
    let is_kept = run.status == RunStatus::Keep && !run.is_baseline;
    search.settling = Some(if is_kept {
        Settling::Keep
    } else {
        Settling::Restore
    });
    if let Some(contract) = search.contract.as_deref().filter(|_| run.is_baseline) {
        search.metrics.insert(run.segment, contract.metric.clone());
    }
    search.runs.push(run.clone());
    search.phase = AutoresearchPhase::Propose;
    put_at_hand(search, Try::Decided {});
}

/// One of several agents has ended its turn; once all have, the first change is at hand.
fn tried(search: &mut Autoresearch, place: u32, found: &TryAnswer) {
    let Some(mut round) = search.round_or_next() else {
        return;
    };
    let found = match found {
        TryAnswer::Candidate(candidate) => {
            search.refused.clear();
            Try::Waiting {
                candidate: candidate.clone(),
            }
        }
        TryAnswer::Refused { why } => {
            search.refused.push(why.clone());
            Try::Nothing {}
        }
        TryAnswer::Exhausted {} => Try::Exhausted {},
    };
    round.put(place, found);
    search.round = Some(round);
    take_next(search);
}

/// The change at hand waits for the others of its round.
fn held(search: &mut Autoresearch) {
    let measured = std::mem::take(&mut search.measured);
    if let Some(candidate) = search.candidate.take() {
        let gain = Try::Gain {
            candidate,
            measured,
        };
        put_at_hand(search, gain);
    }
    search.phase = AutoresearchPhase::Propose;
    take_next(search);
}

/// A gain is the best of its round; the others have to be applied to it.
fn chosen(search: &mut Autoresearch, place: u32) {
    let Some(round) = &mut search.round else {
        return;
    };
    let Some(Try::Gain {
        candidate,
        measured,
    }) = round.at(place).cloned()
    else {
        return;
    };
    round.put(place, Try::AtHand { again: false });
    for found in &mut round.tries {
        if let Try::Gain { candidate, .. } = found {
            let candidate = candidate.clone();
            *found = Try::Overtaken { candidate };
        }
    }
    at_hand(search, candidate, measured);
}

fn at_hand(search: &mut Autoresearch, candidate: Box<Candidate>, measured: Vec<MeasurementReport>) {
    search.candidate = Some(candidate);
    search.measured = measured;
    search.phase = AutoresearchPhase::Measure;
}

/// Says what became of the change at hand, where it is of a round.
fn put_at_hand(search: &mut Autoresearch, found: Try) {
    let Some(round) = &mut search.round else {
        return;
    };
    let place = round.of(|found| matches!(found, Try::AtHand { .. })).next();
    if let Some(place) = place {
        round.put(place, found);
    }
}

/// Takes the next change of a round in hand, once all are proposed; a round with nothing left is over.
fn take_next(search: &mut Autoresearch) {
    let Some(round) = &mut search.round else {
        return;
    };
    if search.candidate.is_some() || !round.is_answered() {
        return;
    }
    let waiting = round
        .of(|found| matches!(found, Try::Waiting { .. }))
        .next();
    if let Some(place) = waiting
        && let Some(Try::Waiting { candidate }) = round.at(place).cloned()
    {
        round.put(place, Try::AtHand { again: false });
        at_hand(search, candidate, Vec::new());
        return;
    }
    let is_open = |found: &Try| matches!(found, Try::Gain { .. } | Try::Overtaken { .. });
    if !round.tries.iter().any(is_open) {
        close_round(search);
    }
}

/// Ends a round, whatever is left of it.
fn close_round(search: &mut Autoresearch) {
    if let Some(round) = search.round.take() {
        search.counters.proposals = round.last();
    }
}

fn settled(search: &mut Autoresearch, commit: &str, tree: &str) {
    count(&mut search.counters.settlements);
    if search.settling == Some(Settling::Keep)
        && let Some(run) = search.runs.last_mut()
    {
        commit.clone_into(&mut run.commit);
    }
    if let Some(branch) = &mut search.branch {
        commit.clone_into(&mut branch.head);
        branch.tree = Some(tree.to_owned());
    }
    search.settling = None;
    search.candidate = None;
    search.measured.clear();
    take_next(search);
}

/// What was refused may have left something in the worktree.
fn refused(search: &mut Autoresearch, role: &str, why: &str) {
    search.refused.push(why.to_owned());
    if role == AutoresearchRole::Researcher.spec().name {
        count(&mut search.counters.proposals);
        let_go(search);
    } else {
        count(&mut search.counters.drafts);
    }
}

fn ended(search: &mut Autoresearch, ending: Ending) {
    search.ended = Some(ending);
    search.phase = AutoresearchPhase::Verify;
    close_round(search);
    let_go(search);
}

/// Lets go of a change that nothing was decided about; a decision is carried out all the same.
fn let_go(search: &mut Autoresearch) {
    if search.settling.is_some() || search.branch.is_none() {
        return;
    }
    search.candidate = None;
    search.measured.clear();
    search.settling = Some(Settling::Restore);
}

fn verified(search: &mut Autoresearch, measured: &MeasurementReport) {
    search.verified = Some(Box::new(measured.clone()));
    search.phase = AutoresearchPhase::Split;
}
