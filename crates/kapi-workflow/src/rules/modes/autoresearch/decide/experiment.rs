//! One experiment: what it is compared with, whether it may be measured, and what its measurement
//! means.
//!
//! A run is decided by one fact and counted by it, before anything is kept or put back.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::{MeasurementReport, Reading, statistics};
use kapi_core::glob::covers;
use kapi_core::text::one_line;

use crate::rules::decide::TEXT_BYTES_MAX;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::evidence::BASELINE;
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::autoresearch::answer::{AutoresearchAnswer, Experiment};
use crate::rules::modes::autoresearch::contract::Contract;
use crate::rules::modes::autoresearch::event::{AutoresearchEvent, Candidate, Ending};
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::modes::autoresearch::round::Round;
use crate::rules::modes::autoresearch::run::{Run, RunStatus};
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::autoresearch::verdict;
use crate::rules::modes::autoresearch::verdict::{Inputs, Ruling, Verdict};
use crate::rules::outcome::ProposalReport;

/// The most bytes of one text that a researcher gives.
const SAID_BYTES_MAX: usize = 4_000;
/// The most ideas that are taken from one answer.
const IDEAS_MAX: usize = 10;
/// Paths that are named in a reason.
const NAMED_MAX: usize = 5;

/// Takes what a segment is compared with.
pub(super) fn baseline(
    draft: &mut DecisionDraft<'_, Autoresearch>,
    measured: &MeasurementReport,
) -> Result<(), WorkflowRule> {
    let contract = contract(draft)?;
    is_of(measured, draft.now.head())?;
    let judged = match verdict::baseline(&contract, measured) {
        Ok(judged) => judged,
        Err(failed) => {
            let reason = failed.reason;
            draft.fact(AutoresearchEvent::BaselineFailed {
                measured: Box::new(measured.clone()),
                reason: reason.clone(),
            });
            let resume = draft.resume();
            draft.block(
                format!("nothing can be compared with where the branch is: {reason}"),
                format!("{resume} measures again, {resume} --revise '…' drafts another contract"),
            );
            return Ok(());
        }
    };
    draft.fact(AutoresearchEvent::Measured {
        measured: Box::new(measured.clone()),
    });
    let head = draft.now.head().to_owned();
    for sample in &measured.samples {
        draft.saw(BASELINE, "benchmark.sh", &sample.run, &head);
    }
    if let Some(checks) = &measured.checks {
        draft.saw(BASELINE, "checks.sh", checks, &head);
    }
    let mut run = decided(draft, &contract, judged);
    run.is_baseline = true;
    run.rule = None;
    run.commit = head;
    run.tree.clone_from(&measured.tree);
    "baseline".clone_into(&mut run.description);
    draft.fact(AutoresearchEvent::RunDecided { run: Box::new(run) });
    Ok(())
}

/// What an agent's turn comes to.
pub(super) enum ExperimentAnswer {
    /// A change, with ideas that were not known.
    Candidate {
        candidate: Box<Candidate>,
        ideas: Vec<String>,
    },
    /// Something that was not asked for.
    Refused { why: String },
    /// Nothing is left to try.
    Exhausted { ideas: Vec<String> },
}

/// Reads what an agent's turn comes to.
pub(super) fn answer(
    draft: &DecisionDraft<'_, Autoresearch>,
    proposed: &ProposalReport,
) -> ExperimentAnswer {
    let refused = |why: &str| ExperimentAnswer::Refused {
        why: why.to_owned(),
    };
    let ModeAnswer::Autoresearch(AutoresearchAnswer::Experiment(said)) = &proposed.answer else {
        return refused("an experiment was asked for");
    };
    let ideas = new_ideas(&draft.now, &said.ideas);
    let Some(commit) = &proposed.candidate else {
        if said.exhausted {
            return ExperimentAnswer::Exhausted { ideas };
        }
        return refused("no file was changed: make one change, or say `exhausted`");
    };
    if let Err(why) = is_sound(said) {
        return refused(&why);
    }
    ExperimentAnswer::Candidate {
        candidate: Box::new(Candidate {
            by: proposed.by.clone(),
            hypothesis: said.hypothesis.trim().to_owned(),
            description: one_line(&said.description),
            idea: said.idea.filter(|number| *number > 0),
            commit: commit.commit.clone(),
            tree: commit.tree.clone(),
            changed: commit.changed.clone(),
        }),
        ideas,
    }
}

/// Takes a change that an agent made, says what is wrong with it, or ends the search.
pub(super) fn proposed(draft: &mut DecisionDraft<'_, Autoresearch>, proposed: &ProposalReport) {
    match answer(draft, proposed) {
        ExperimentAnswer::Candidate { candidate, ideas } => {
            draft.fact(AutoresearchEvent::CandidateProposed { candidate, ideas });
            discard_unmeasured(draft);
        }
        ExperimentAnswer::Refused { why } => draft.refuse(AutoresearchRole::Researcher, &why),
        ExperimentAnswer::Exhausted { ideas } => {
            for text in ideas {
                draft.fact(AutoresearchEvent::IdeaNoted { text });
            }
            draft.fact(AutoresearchEvent::SearchEnded {
                ending: Ending::Exhausted,
            });
        }
    }
}

/// Discards the change at hand as it is, where it may not be measured.
pub(super) fn discard_unmeasured(draft: &mut DecisionDraft<'_, Autoresearch>) {
    let found = draft.now.candidate.clone();
    let reason = found.and_then(|found| not_to_be_measured(draft, &found));
    if let Some(reason) = reason {
        let judged = Ruling {
            status: RunStatus::Discard,
            metric: None,
            reason,
        };
        decide(draft, judged);
    }
}

/// Takes a measurement of the candidate, and decides about it where the rule has an answer.
pub(super) fn measured(
    draft: &mut DecisionDraft<'_, Autoresearch>,
    measured: &MeasurementReport,
) -> Result<(), WorkflowRule> {
    let contract = contract(draft)?;
    let candidate = draft.now.candidate.as_ref();
    is_of(
        measured,
        candidate.map_or("", |candidate| &candidate.commit),
    )?;
    let reference = draft.now.reference();
    let reference = reference.ok_or_else(|| WorkflowRule::Malformed {
        rule: "judge a measurement without a baseline".to_owned(),
    })?;
    let inputs = verdict::inputs(&contract, &reference, &draft.now.measured);
    if measured.held_back != (inputs == Inputs::HeldBack) {
        let rule = "take a measurement on other inputs than those that were asked for".to_owned();
        return Err(WorkflowRule::Malformed { rule });
    }
    draft.fact(AutoresearchEvent::Measured {
        measured: Box::new(measured.clone()),
    });
    match verdict::candidate(&contract, &reference, &draft.now.measured) {
        Verdict::Again(_) => {}
        Verdict::Decided(judged) => {
            let round = draft.now.round.as_ref();
            let is_first = round.is_some_and(Round::is_first_measured);
            if judged.status == RunStatus::Keep && is_first {
                draft.fact(AutoresearchEvent::GainHeld {});
            } else {
                decide(draft, judged);
            }
        }
    }
    Ok(())
}

/// Decides about the candidate.
pub(super) fn decide(draft: &mut DecisionDraft<'_, Autoresearch>, judged: Ruling) {
    let Some(contract) = draft.now.contract.clone() else {
        return;
    };
    let status = judged.status;
    let mut run = decided(draft, &contract, judged);
    if let Some(candidate) = &draft.now.candidate {
        run.commit.clone_from(&candidate.commit);
        run.tree.clone_from(&candidate.tree);
        run.description.clone_from(&candidate.description);
        run.hypothesis.clone_from(&candidate.hypothesis);
        run.changed.clone_from(&candidate.changed);
    }
    if status == RunStatus::Keep {
        for measured in draft.now.measured.clone() {
            for sample in &measured.samples {
                draft.saw("measure", "benchmark.sh", &sample.run, &run.commit);
            }
            if let Some(checks) = &measured.checks {
                draft.saw("measure", "checks.sh", checks, &run.commit);
            }
        }
    }
    draft.fact(AutoresearchEvent::RunDecided { run: Box::new(run) });
}

/// Returns the record of a decision, as far as the measurements tell it.
fn decided(draft: &DecisionDraft<'_, Autoresearch>, contract: &Contract, judged: Ruling) -> Run {
    let search = &draft.now;
    let number = search.runs.last().map_or(0, |run| run.number);
    let measured = search.measured.iter().filter(|it| !it.held_back);
    let samples = measured.clone().flat_map(|it| &it.samples);
    let name = &contract.metric.name;
    let has_metric = judged.metric.is_some();
    let parents = measured.flat_map(|it| &it.against);
    let parents: Vec<Number> = parents.filter_map(|sample| sample.value(name)).collect();
    let lines = samples.clone().map(|sample| sample.lines(name)).max();
    let is_measured = !search.measured.is_empty();
    Run {
        number: number.saturating_add(1),
        segment: search.segment,
        is_baseline: false,
        commit: String::new(),
        tree: String::new(),
        status: judged.status,
        metric: judged.metric,
        samples: samples
            .clone()
            .filter(|_| has_metric)
            .filter_map(|sample| sample.value(name))
            .collect(),
        parent: statistics::median(&parents).filter(|_| has_metric),
        lines: lines.unwrap_or(1).max(1),
        rule: is_measured.then_some(contract.rule.keep),
        metrics: if has_metric {
            others(search, name)
        } else {
            Vec::new()
        },
        description: String::new(),
        hypothesis: String::new(),
        reason: judged.reason,
        changed: Default::default(),
        benchmark_ms: samples.map(|sample| sample.run.duration_ms).sum(),
        at_ms: draft.given.now_ms,
    }
}

/// Returns the medians of everything beside the primary metric.
fn others(search: &Autoresearch, primary: &str) -> Vec<Reading> {
    let mut names: Vec<&str> = Vec::new();
    let measured = search.measured.iter().filter(|it| !it.held_back);
    for name in measured.clone().flat_map(MeasurementReport::names) {
        if name != primary && !names.contains(&name) {
            names.push(name);
        }
    }
    let samples = measured.flat_map(|it| &it.samples);
    let readings = names.into_iter().filter_map(|name| {
        let values = samples.clone().filter_map(|sample| sample.value(name));
        let values: Vec<Number> = values.collect();
        Some(Reading::of(name.to_owned(), statistics::median(&values)?))
    });
    readings.collect()
}

/// Returns why a change is discarded as it is.
fn not_to_be_measured(
    draft: &DecisionDraft<'_, Autoresearch>,
    found: &Candidate,
) -> Option<String> {
    let search = &draft.now;
    let contract = search.contract.as_deref()?;
    if found.changed.n_more > 0 {
        let n = found.changed.paths.len();
        return Some(format!("it changes more than {n} files"));
    }
    let protect = &draft.workflow.terms.protect;
    let paths = || found.changed.paths.iter();
    let named = |patterns: &[String], path: &str| patterns.iter().any(|one| covers(one, path));
    let sealed: Vec<&str> = paths()
        .filter(|path| named(&contract.off_limits, path) || named(protect, path))
        .map(String::as_str)
        .collect();
    if !sealed.is_empty() {
        return Some(format!("it changes {}, which is off limits", list(&sealed)));
    }
    let outside: Vec<&str> = paths()
        .filter(|path| !named(&contract.scope, path))
        .map(String::as_str)
        .collect();
    if !outside.is_empty() {
        return Some(format!(
            "it changes {}, which is not in scope",
            list(&outside)
        ));
    }
    let same = search.current().find(|run| run.tree == found.tree)?;
    Some(format!(
        "its files are those of run {}, which was decided already: {}",
        same.number, same.reason
    ))
}

fn list(paths: &[&str]) -> String {
    let named = paths.get(..NAMED_MAX).unwrap_or(paths).join(", ");
    match paths.len().saturating_sub(NAMED_MAX) {
        0 => named,
        n => format!("{named} and {n} more"),
    }
}

fn is_sound(said: &Experiment) -> Result<(), String> {
    let texts = [
        ("hypothesis", &said.hypothesis),
        ("description", &said.description),
    ];
    for (name, text) in texts {
        if text.trim().is_empty() || text.len() > SAID_BYTES_MAX {
            return Err(format!("give {name} 1 to {SAID_BYTES_MAX} bytes"));
        }
    }
    if said.exhausted {
        return Err("say `exhausted` only where nothing was changed".to_owned());
    }
    Ok(())
}

/// Returns ideas that say something and are not known.
fn new_ideas(search: &Autoresearch, ideas: &[String]) -> Vec<String> {
    let ideas = ideas.iter().map(|idea| one_line(idea));
    let is_new = |idea: &String| {
        !idea.is_empty()
            && idea.len() <= TEXT_BYTES_MAX.min(SAID_BYTES_MAX)
            && search.ideas.iter().all(|known| known.text != *idea)
    };
    ideas.filter(is_new).take(IDEAS_MAX).collect()
}

pub(super) fn contract(
    draft: &DecisionDraft<'_, Autoresearch>,
) -> Result<Box<Contract>, WorkflowRule> {
    let contract = draft.now.contract.clone();
    contract.ok_or_else(|| WorkflowRule::Malformed {
        rule: "measure without a contract".to_owned(),
    })
}

/// What was measured has to be what was asked for.
pub(super) fn is_of(measured: &MeasurementReport, commit: &str) -> Result<(), WorkflowRule> {
    let is_empty = measured.samples.is_empty() && measured.against.is_empty();
    if measured.commit == commit && !is_empty {
        return Ok(());
    }
    Err(WorkflowRule::Malformed {
        rule: format!(
            "take a measurement of {} with {} samples for one of {commit}",
            measured.commit,
            measured.samples.len()
        ),
    })
}
