//! `decision-report.md`: what was decided and what it rests on, in nine parts.
//!
//! Everything comes from the facts; what agents said of their changes is marked as theirs.

use kapi_core::text::short_id;

use crate::rules::modes::autoresearch::contract::sound;
use crate::rules::modes::autoresearch::run::{Run, RunStatus};
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::autoresearch::summary::{shown, summary};
use crate::rules::report::{DecisionReport, approval_line, one_line};
use crate::rules::state::Workflow;

/// Returns the document.
pub(super) fn text(workflow: &Workflow, search: &Autoresearch) -> String {
    let report = DecisionReport {
        scope: scope(workflow, search),
        inputs: inputs(workflow, search),
        conditions: conditions(workflow, search),
        options: search.runs.iter().map(option).collect(),
        chosen: chosen(search),
        rationale: rationale(search),
        verification: verification(workflow),
        risks: risks(workflow, search),
        follow_up: follow_up(search),
    };
    report.render(workflow)
}

fn scope(workflow: &Workflow, search: &Autoresearch) -> Vec<String> {
    let mut lines = vec![workflow.purpose.clone()];
    if let Some(contract) = &search.contract {
        lines.push(contract.objective.clone());
        lines.push(format!("May be changed: {}", contract.scope.join(", ")));
    }
    lines
}

fn inputs(workflow: &Workflow, search: &Autoresearch) -> Vec<String> {
    let mut lines = vec![format!("The repository at `{}`", search.base)];
    let links = workflow.links.iter();
    lines.extend(links.map(|link| format!("{} workflow `{}`", link.mode, link.workflow)));
    if search.contract.is_some() {
        lines.push("`contract.md`, `benchmark.sh`, `checks.sh`".to_owned());
    }
    let n_imported = search.runs.iter().filter(|run| run.tree.is_empty()).count();
    if n_imported > 0 {
        lines.push(format!("{n_imported} runs of another tool's ledger"));
    }
    lines
}

fn conditions(workflow: &Workflow, search: &Autoresearch) -> Vec<String> {
    let mut lines: Vec<String> = workflow.approvals.iter().map(approval_line).collect();
    if let Some(contract) = &search.contract {
        lines.push(format!(
            "A run is kept by the rule {}",
            contract.rule.words()
        ));
    }
    if let Some(ending) = search.ended {
        lines.push(format!("The search ended: {}", ending.words()));
    }
    lines
}

fn option(run: &Run) -> String {
    let metric = run.metric.map_or_else(|| "no metric".to_owned(), shown);
    let hypothesis = match run.hypothesis.trim() {
        "" => String::new(),
        said => format!(" (the agent's hypothesis: {})", one_line(said)),
    };
    format!(
        "Run {}, {}: {}, {metric}; {}{hypothesis}",
        run.number,
        run.status.as_str(),
        one_line(&run.description),
        one_line(&run.reason)
    )
}

fn chosen(search: &Autoresearch) -> Vec<String> {
    let mut lines: Vec<String> = search
        .gains()
        .map(|run| {
            let commit = short_id(&run.commit);
            format!(
                "Run {} is kept as `{commit}`: {}",
                run.number,
                one_line(&run.description)
            )
        })
        .collect();
    let made = search.branches.iter();
    lines.extend(made.map(|made| format!("Branch `{}` at `{}`", made.branch, made.commit)));
    lines
}

fn rationale(search: &Autoresearch) -> Vec<String> {
    let (Some(found), Some(contract)) = (summary(search), &search.contract) else {
        return Vec::new();
    };
    let unit = &contract.metric.unit;
    let gain = found
        .gain_percent
        .map_or_else(String::new, |gain| format!(", {} % better", shown(gain)));
    let mut lines = vec![format!(
        "{} was {}{unit} on the base and is {}{unit} by run {}{gain}",
        contract.metric.name,
        shown(found.baseline),
        shown(found.best),
        found.best_run
    )];
    lines.extend(found.noise.map(|noise| {
        format!(
            "The samples of the baseline scatter by {}{unit}: smaller gains may be luck",
            shown(noise)
        )
    }));
    lines.extend(found.confidence.map(|confidence| {
        format!(
            "The gain is {} times what all results scatter; that decided nothing",
            shown(confidence)
        )
    }));
    lines
}

fn verification(workflow: &Workflow) -> Vec<String> {
    let numbered = (1_u32..).zip(&workflow.evidence);
    let found = numbered.filter(|(_, found)| found.kind == "verify");
    found
        .map(|(number, found)| format!("{number}: {} [{}]", found.summary, found.reference))
        .collect()
}

fn risks(workflow: &Workflow, search: &Autoresearch) -> Vec<String> {
    let contract = search.contract.as_deref();
    let mut lines = contract.map_or_else(Vec::new, sound::risks);
    let accepted = workflow.approvals.iter().flat_map(|it| &it.accepted);
    for risk in accepted {
        if !lines.contains(risk) {
            lines.push(risk.clone());
        }
    }
    lines
}

fn follow_up(search: &Autoresearch) -> Vec<String> {
    let open = search.ideas.iter().filter(|idea| idea.tried.is_none());
    let mut lines: Vec<String> = open
        .map(|idea| format!("Not tried: {}", idea.text))
        .collect();
    let is_refuted = |run: &&Run| run.status == RunStatus::ChecksFailed;
    let broken = search.runs.iter().filter(is_refuted);
    lines.extend(broken.map(|run| {
        format!(
            "Faster and wrong as it was: run {}, {}",
            run.number,
            one_line(&run.description)
        )
    }));
    lines
}
