//! What a search should have under way now, with everything that is needed to do it.

use kapi_check::rules::measure::{Measurement, Script};
use kapi_core::text::one_line;

use crate::rules::effect::{
    AgentQuestion, KeptChange, Proposal, Reapplication, Restoration, Split, SplitPart,
    Verification, WorkflowAction, WorkflowEffect,
};
use crate::rules::guidance;
use crate::rules::modes::autoresearch::contract::{Contract, Keep};
use crate::rules::modes::autoresearch::groups::Group;
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::modes::autoresearch::round::Try;
use crate::rules::modes::autoresearch::run::Run;
use crate::rules::modes::autoresearch::state::{Autoresearch, Settling};
use crate::rules::modes::autoresearch::verdict::Inputs;
use crate::rules::modes::autoresearch::want::{Want, wants};
use crate::rules::modes::autoresearch::{prompt, verdict};
use crate::rules::state::Workflow;

/// Samples of a baseline: as many show how far the numbers scatter.
const BASELINE_SAMPLES: u32 = 3;
/// Pairs of one measurement for the sign test.
pub const PAIRS: u32 = 3;
/// Pairs of one measurement for the signed-rank test: it looks after so many.
pub const RANKED_PAIRS: u32 = 6;

/// Returns what should be under way now.
#[must_use]
pub fn next(workflow: &Workflow, search: &Autoresearch) -> Vec<WorkflowEffect> {
    let wanted = wants(search).into_iter();
    let effects = wanted.filter_map(|(id, want)| {
        Some(WorkflowEffect {
            id,
            workflow: workflow.id.clone(),
            action: action(workflow, search, want)?,
        })
    });
    effects.collect()
}

fn action(workflow: &Workflow, search: &Autoresearch, want: Want) -> Option<WorkflowAction> {
    Some(match want {
        Want::Draft => WorkflowAction::Ask(Box::new(question(
            workflow,
            search,
            AutoresearchRole::Drafter,
        ))),
        Want::Prepare => WorkflowAction::Prepare {
            branch: Autoresearch::branch_name(&workflow.id),
            base: search.base.clone(),
            checks: Box::new(nothing_to_check(workflow, search)),
        },
        Want::Baseline => {
            let contract = search.contract.as_deref()?;
            let samples = contract.rule.samples.max(BASELINE_SAMPLES);
            measure(workflow, search, samples)?
        }
        Want::Propose => WorkflowAction::Propose(Box::new(proposal(workflow, search, 0)?)),
        Want::Try(place) => WorkflowAction::Propose(Box::new(proposal(workflow, search, place)?)),
        Want::Reapply(place) => {
            WorkflowAction::Reapply(Box::new(reapplication(workflow, search, place)?))
        }
        Want::Measure => candidate(workflow, search)?,
        Want::Settle(settling) => {
            WorkflowAction::Restore(Box::new(restoration(workflow, search, settling)?))
        }
        Want::VerifyHead => measure(workflow, search, 1)?,
        Want::Split => WorkflowAction::Split(Box::new(split(workflow, search)?)),
    })
}

fn question(workflow: &Workflow, search: &Autoresearch, role: AutoresearchRole) -> AgentQuestion {
    let terms = &workflow.terms;
    let answered = match role {
        AutoresearchRole::Drafter => search.counters.drafts,
        AutoresearchRole::Researcher => search.counters.proposals,
    };
    AgentQuestion {
        role: role.spec(),
        ordinal: answered.saturating_add(1),
        agent: role.spec().agent(terms).to_owned(),
        prompt: prompt::question(workflow, search, role),
        guidance: guidance::documents(workflow).to_vec(),
        commit: Some(search.head().to_owned()),
        since: None,
        deadline_ms: terms.question_timeout_ms,
        sandbox: terms.sandbox,
        network: terms.network,
    }
}

/// The branch is made before anything is measured on it.
fn nothing_to_check(workflow: &Workflow, search: &Autoresearch) -> Verification {
    Verification {
        commit: search.base.clone(),
        base: search.base.clone(),
        commands: Vec::new(),
        protect: Vec::new(),
        timeout_ms: workflow.terms.verify_timeout_ms,
        sandbox: workflow.terms.sandbox,
    }
}

/// Returns the patterns of files that stay as they are.
fn sealed(workflow: &Workflow, contract: &Contract) -> Vec<String> {
    let mut sealed = contract.off_limits.clone();
    for pattern in &workflow.terms.protect {
        if !sealed.contains(pattern) {
            sealed.push(pattern.clone());
        }
    }
    sealed
}

fn measurement(workflow: &Workflow, search: &Autoresearch) -> Option<Measurement> {
    let contract = search.contract.as_deref()?;
    let script = |name, text: &String, seconds: u32| Script {
        name,
        text: text.clone(),
        timeout_ms: u64::from(seconds).saturating_mul(1_000),
    };
    Some(Measurement {
        commit: search.head().to_owned(),
        against: None,
        base: search.base.clone(),
        benchmark: script(
            "benchmark.sh",
            &contract.benchmark,
            contract.benchmark_seconds,
        ),
        checks: contract
            .checks
            .as_ref()
            .map(|checks| script("checks.sh", checks, contract.checks_seconds)),
        samples: contract.rule.samples,
        warmups: contract.warmups,
        processors: contract.processors.clone(),
        counters: contract.counters(),
        held_back: None,
        sealed: sealed(workflow, contract),
        sandbox: workflow.terms.sandbox,
    })
}

/// Measures where the branch is.
fn measure(workflow: &Workflow, search: &Autoresearch, samples: u32) -> Option<WorkflowAction> {
    Some(WorkflowAction::Measure(Box::new(Measurement {
        samples,
        ..measurement(workflow, search)?
    })))
}

/// The checks are run with the first measurement of a candidate.
fn candidate(workflow: &Workflow, search: &Autoresearch) -> Option<WorkflowAction> {
    let candidate = search.candidate.as_ref()?;
    let contract = search.contract.as_deref()?;
    let mut wanted = measurement(workflow, search)?;
    wanted.commit.clone_from(&candidate.commit);
    let inputs = verdict::inputs(contract, &search.reference()?, &search.measured);
    if inputs == Inputs::HeldBack {
        wanted.held_back.clone_from(&contract.held_back);
    }
    if contract.rule.keep.is_in_turn() || inputs == Inputs::HeldBack {
        wanted.against = Some(search.head().to_owned());
    }
    wanted.samples = match contract.rule.keep {
        Keep::Plain | Keep::Confirm | Keep::Interleaved => contract.rule.samples,
        Keep::Paired => PAIRS,
        Keep::Ranked => RANKED_PAIRS,
    };
    if !search.measured.is_empty() {
        wanted.checks = None;
    }
    Some(WorkflowAction::Measure(Box::new(wanted)))
}

fn proposal(workflow: &Workflow, search: &Autoresearch, place: u32) -> Option<Proposal> {
    let contract = search.contract.as_deref()?;
    let round = search.round_or_next();
    let first = round
        .as_ref()
        .map_or(search.counters.proposals, |round| round.first);
    let number = first.saturating_add(place).saturating_add(1);
    let mut question = question(workflow, search, AutoresearchRole::Researcher);
    question.ordinal = number;
    if let Some(round) = &round {
        question.prompt = prompt::beside_others(&question.prompt, place, round.tries.len());
    }
    Some(Proposal {
        question,
        branch: search.branch.as_ref()?.name.clone(),
        first: search.base.clone(),
        sealed: sealed(workflow, contract),
        message: format!(
            "Proposal {number} of workflow {}, not decided yet\n",
            workflow.id
        ),
        at_s: workflow.started_at_ms.div_euclid(1000),
        place,
    })
}

fn reapplication(workflow: &Workflow, search: &Autoresearch, place: u32) -> Option<Reapplication> {
    let round = search.round.as_ref()?;
    let Try::Overtaken { candidate } = round.at(place)? else {
        return None;
    };
    let number = round.first.saturating_add(place).saturating_add(1);
    Some(Reapplication {
        commit: candidate.commit.clone(),
        parent: round.parent.clone(),
        head: search.head().to_owned(),
        branch: search.branch.as_ref()?.name.clone(),
        name: format!("proposal-{number}-reapplied"),
        message: format!(
            "Proposal {number} of workflow {}, applied to what was kept since, not decided yet\n",
            workflow.id
        ),
        at_s: workflow.started_at_ms.div_euclid(1000),
    })
}

fn restoration(
    workflow: &Workflow,
    search: &Autoresearch,
    settling: Settling,
) -> Option<Restoration> {
    let branch = search.branch.as_ref()?;
    let keep = match settling {
        Settling::Restore => None,
        Settling::Keep => {
            let run = search.runs.last()?;
            Some(KeptChange {
                commit: search.candidate.as_ref()?.commit.clone(),
                message: message(workflow, search, run),
                at_s: run.at_ms.div_euclid(1000),
            })
        }
    };
    Some(Restoration {
        branch: branch.name.clone(),
        first: search.base.clone(),
        head: branch.head.clone(),
        keep,
    })
}

/// Says what was kept, and by which numbers, as the last line of pi-autoresearch's commits does.
fn message(workflow: &Workflow, search: &Autoresearch, run: &Run) -> String {
    let metric = search
        .contract
        .as_ref()
        .map(|contract| &contract.metric.name);
    let number = run
        .metric
        .map_or_else(|| "null".to_owned(), |it| it.to_string());
    let name = metric.map_or("", String::as_str);
    let others: String = run
        .metrics
        .iter()
        .map(|reading| format!(",\"{}\":{}", reading.name, reading.value))
        .collect();
    format!(
        "perf: {}\n\n{}\n\nRun {}. {}.\n\nKapi-Workflow: {}\nResult: {{\"status\":\"{}\",\"{name}\":{number}{others}}}\n",
        one_line(&run.description),
        run.hypothesis.trim(),
        run.number,
        run.reason,
        workflow.id,
        run.status.as_str(),
    )
}

fn split(workflow: &Workflow, search: &Autoresearch) -> Option<Split> {
    let branch = search.branch.as_ref()?;
    let parts = (1_u32..).zip(&search.groups);
    let last = search.gains().last()?;
    Some(Split {
        base: search.base.clone(),
        head: branch.head.clone(),
        parts: parts
            .map(|(number, group)| part(workflow, search, number, group))
            .collect(),
        at_s: last.at_ms.div_euclid(1000),
    })
}

fn part(workflow: &Workflow, search: &Autoresearch, number: u32, group: &Group) -> SplitPart {
    let name = search.branch.as_ref().map_or("", |branch| &branch.name);
    let is_of = |run: &&Run| group.runs.contains(&run.number);
    let runs: Vec<&Run> = search.gains().filter(is_of).collect();
    let lines: String = runs
        .iter()
        .map(|run| format!("- run {}: {}\n", run.number, one_line(&run.description)))
        .collect();
    SplitPart {
        branch: format!("{name}-part-{number}"),
        message: format!(
            "perf: {}\n\nPart {number} of {}:\n\n{lines}\nKapi-Workflow: {}\n",
            one_line(&group.title),
            search.groups.len(),
            workflow.id
        ),
        commits: runs.iter().map(|run| run.commit.clone()).collect(),
    }
}
