//! What a completed workflow or a proved goal brings to an integration.
//!
//! Read from its own record when the integration begins, so that nobody's later words stand between what
//! was approved and what is compared with the result.

use kapi_check::rules::proof::verify_report::{VerifyReport, run_end};
use kapi_core::text::one_line;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::state::{Goal, GoalStatus};

use crate::rules::evidence::{BASELINE, Weight, WorkflowEvidence};
use crate::rules::modes::Body;
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::integrate::source::{Source, SourceCheck, SourceIntent};
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::state::Workflow;

/// The most intents that are kept of one source.
const INTENTS_MAX: usize = 64;
/// The most bytes of one intent.
const INTENT_BYTES_MAX: usize = 2_000;
/// The most pieces of evidence that are repeated of one source.
const EVIDENCE_MAX: usize = 40;

impl Source {
    /// Returns what a workflow brings; `None` of a mode whose work cannot be integrated, or before
    /// there is a branch.
    #[must_use]
    pub fn of_workflow(workflow: &Workflow) -> Option<Self> {
        let branch = workflow.body.rules().branch()?;
        let base = workflow.body.rules().base()?;
        let mut source = Self {
            id: workflow.id.clone(),
            mode: Some(workflow.mode()),
            title: one_line(&workflow.purpose),
            branch: branch.name.clone(),
            base: base.to_owned(),
            commit: branch.head.clone(),
            intents: Vec::new(),
            excluded: Vec::new(),
            checks: Vec::new(),
            evidence: workflow
                .evidence
                .iter()
                .filter(|found| found.weight == Weight::Validation)
                .rev()
                .take(EVIDENCE_MAX)
                .map(evidence_line)
                .collect(),
        };
        if let Body::Ralph(ralph) = &workflow.body {
            of_build(&mut source, workflow, ralph)?;
        } else if let Body::Autoresearch(search) = &workflow.body {
            of_search(&mut source, search)?;
        } else {
            return None;
        }
        source.cap();
        Some(source)
    }

    /// Returns what a goal brings; `None` before it has a proved commit.
    #[must_use]
    pub fn of_goal(goal: &Goal) -> Option<Self> {
        let contract = &goal.contract;
        let mut source = Self {
            id: goal.id.clone(),
            mode: None,
            title: one_line(&contract.intent),
            branch: contract.branch.clone(),
            base: contract.base.commit.clone(),
            commit: goal.result.clone()?,
            intents: vec![
                intent("contract", &contract.intent),
                intent("criteria", &contract.done_criteria),
            ],
            excluded: contract
                .protect
                .iter()
                .map(|path| format!("files under {path}"))
                .collect(),
            checks: contract
                .verify
                .iter()
                .map(|command| SourceCheck {
                    command: command.clone(),
                    failed_before: goal
                        .baseline
                        .as_ref()
                        .and_then(|report| report.runs.iter().find(|run| run.command == *command))
                        .is_none_or(|run| !run.passed()),
                })
                .collect(),
            evidence: goal.verify.iter().flat_map(proof_lines).collect(),
        };
        source.cap();
        Some(source)
    }

    fn cap(&mut self) {
        self.intents.retain(|intent| !intent.text.trim().is_empty());
        self.intents.truncate(INTENTS_MAX);
        for intent in &mut self.intents {
            intent.text = kapi_core::quote::head(intent.text.trim(), INTENT_BYTES_MAX).to_owned();
        }
    }
}

/// Why a workflow's work is not finished, in words; `None` where it is.
#[must_use]
pub fn unfinished(workflow: &Workflow) -> Option<String> {
    match workflow.status {
        WorkflowStatus::Completed => None,
        WorkflowStatus::Integrated => Some("is integrated already".to_owned()),
        WorkflowStatus::Active
        | WorkflowStatus::Blocked
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked => {
            Some(format!("is not completed ({})", workflow.status.as_str()))
        }
    }
}

/// Why a goal's work is not finished, in words; `None` where it is.
#[must_use]
pub fn unproved(goal: &Goal) -> Option<String> {
    if let Some(of) = &goal.contract.working.workflow {
        return Some(format!("is a part of workflow {}; integrate that", of.id));
    }
    match goal.status {
        GoalStatus::Done if goal.result.is_some() => None,
        status => Some(format!("has no proved commit ({})", status.as_str())),
    }
}

fn intent(name: &str, text: &str) -> SourceIntent {
    SourceIntent {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

fn evidence_line(found: &WorkflowEvidence) -> String {
    let summary = one_line(&found.summary);
    format!("{}: {summary} ({})", found.kind, found.reference)
}

fn proof_lines(report: &VerifyReport) -> Vec<String> {
    let runs = report.runs.iter();
    runs.map(|run| {
        let command = one_line(&run.command);
        format!("`{command}` {} on {}", run_end(run), report.commit)
    })
    .collect()
}

/// The approved plan says what a build is for.
fn of_build(source: &mut Source, workflow: &Workflow, ralph: &Ralph) -> Option<()> {
    let plan = ralph.plan.as_deref()?;
    let tasks = plan.tasks.iter().map(|task| {
        let text = format!("{}: {}", task.title, task.description);
        intent(task.id.as_str(), &text)
    });
    let criteria = plan.criteria.iter();
    let criteria = criteria.map(|criterion| intent(&criterion.id, &criterion.text));
    source.intents = tasks.chain(criteria).collect();
    source.excluded.clone_from(&plan.excluded);
    let proofs = plan.criteria.iter().filter_map(|it| it.verify.as_ref());
    let mut checks: Vec<SourceCheck> = Vec::new();
    for command in proofs.chain(&plan.verify).chain(&workflow.terms.verify) {
        if checks.iter().any(|check| check.command == *command) {
            continue;
        }
        let mut began = workflow.evidence.iter().filter(|it| it.kind == BASELINE);
        let began = began.find(|found| found.command.as_ref() == Some(command));
        checks.push(SourceCheck {
            command: command.clone(),
            failed_before: began.is_none_or(|found| found.exit_code != Some(0)),
        });
    }
    source.checks = checks;
    Some(())
}

/// The contract says what a search is for, and its kept runs what it changed. Its checks pass before
/// the first experiment, or there is none.
fn of_search(source: &mut Source, search: &Autoresearch) -> Option<()> {
    let contract = search.contract.as_deref()?;
    source.intents = vec![intent("objective", &contract.objective)];
    source.intents.extend(search.gains().map(|run| {
        let (what, why) = (one_line(&run.description), one_line(&run.hypothesis));
        intent(&format!("run {}", run.number), &format!("{what}: {why}"))
    }));
    source.excluded.clone_from(&contract.off_limits);
    source.excluded.extend(contract.constraints.iter().cloned());
    let checks = contract.checks.iter().map(|command| SourceCheck {
        command: command.clone(),
        failed_before: false,
    });
    source.checks = checks.collect();
    search.gains().next().map(|_| ())
}

#[cfg(test)]
mod tests;
