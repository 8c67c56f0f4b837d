//! How a workflow came out or where it rests, for a person: what was built, on what evidence, and
//! what to type next.
//!
//! Everything here stands in the workflow's own documents, which are named.

use std::path::Path;

use kapi_core::workflow::evidence::{Evidence, Weight};
use kapi_core::workflow::modes::Body;
use kapi_core::workflow::next_command::next_commands;
use kapi_core::workflow::ralph::state::{Ralph, Stand};
use kapi_core::workflow::state::{Status, Workflow};
use kapi_wire::workflow::{Looked, WorkflowView};

use crate::contract::short;
use crate::event_words::first_line;
use crate::exit_code::Exit;
use crate::ui::{Format, Ui};
use crate::workflow::{event_words, words};

/// Prints how a workflow came out, and returns what the process exits with.
pub(crate) fn outcome(ui: Ui, dir: &Path, workflow: &Workflow) -> Exit {
    match ui.format {
        Format::Json => ui.json(&WorkflowView::of(
            workflow,
            Looked::Last,
            next_commands(workflow),
        )),
        Format::Human => {
            summary(ui, dir, workflow);
            next(ui, workflow);
        }
    }
    exit_of(workflow)
}

/// Prints a workflow for whoever looks at it.
pub(crate) fn looked_at(ui: Ui, dir: &Path, workflow: &Workflow) {
    match ui.format {
        Format::Json => ui.json(&WorkflowView::of(
            workflow,
            Looked::At,
            next_commands(workflow),
        )),
        Format::Human => {
            summary(ui, dir, workflow);
            if let Body::Ralph(ralph) = &workflow.body {
                tasks(ui, ralph);
            }
            next(ui, workflow);
        }
    }
}

/// Returns the exit code for where a workflow came to rest.
pub(crate) const fn exit_of(workflow: &Workflow) -> Exit {
    match workflow.status {
        Status::Completed | Status::Linked | Status::Integrated => Exit::Success,
        // A spec is approved; what comes next is another workflow.
        Status::Active if is_at_branch(workflow) => Exit::Success,
        Status::Active | Status::Blocked | Status::Failed | Status::Abandoned => Exit::NotDone,
    }
}

const fn is_at_branch(workflow: &Workflow) -> bool {
    use kapi_core::workflow::interview::state::InterviewPhase;
    match &workflow.body {
        Body::Interview(interview) => matches!(interview.phase, InterviewPhase::Branch),
        Body::Ralph(_) => false,
    }
}

fn summary(ui: Ui, dir: &Path, workflow: &Workflow) {
    ui.line(&format!(
        "Workflow {} ({}): {}",
        workflow.id,
        workflow.mode(),
        words::standing(workflow)
    ));
    ui.line(&format!("  purpose  {}", first_line(&workflow.purpose)));
    if let Some(blocked) = &workflow.blocked {
        ui.line(&format!("  because  {}", first_line(&blocked.reason)));
        // Not cut: it holds commands to type.
        let hint = blocked.unblock.trim().lines().next().unwrap_or_default();
        ui.line(&format!("  hint     {hint}"));
    }
    if let Some(question) = workflow.body.rules().open_question() {
        ui.line(&format!("  question {}", first_line(question.text)));
    }
    if let Some(pending) = &workflow.pending {
        let artifact = pending.decision.artifact();
        ui.line(&format!("  waits    {artifact}, hash {}", pending.sha256));
        for risk in &pending.risks {
            ui.line(&format!("  risk     {}", first_line(risk)));
        }
    }
    for link in &workflow.links {
        ui.line(&format!("  linked   {} {}", link.mode, link.workflow));
    }
    if let Body::Ralph(ralph) = &workflow.body {
        built(ui, workflow, ralph);
    }
    ui.line(&format!("  files    {}", dir.display()));
}

fn built(ui: Ui, workflow: &Workflow, ralph: &Ralph) {
    if let Some(branch) = &ralph.branch {
        ui.line(&format!(
            "  branch   {} at {}",
            branch.name,
            short(&branch.head)
        ));
        ui.line(&format!("  worktree {}", branch.worktree));
    }
    if let Some(review) = ralph.reviews.last() {
        let findings = &review.findings.findings;
        ui.line(&format!(
            "  review   {} of {}: {}",
            review.cycle,
            short(&review.commit),
            first_line(&review.findings.summary)
        ));
        for finding in findings.iter().filter(|finding| finding.must_fix) {
            let about = event_words::category(finding.category);
            ui.line(&format!(
                "           {about}: {}",
                first_line(&finding.title)
            ));
        }
    }
    if let Some(account) = &ralph.account {
        for accepted in &account.acceptance {
            ui.line(&format!(
                "  holds    {}",
                criterion(ralph, &accepted.criterion)
            ));
            for number in &accepted.evidence {
                evidence(ui, workflow, *number);
            }
        }
        for risk in &account.risks {
            ui.line(&format!("  risk     {}", first_line(risk)));
        }
    }
}

/// Returns a criterion's name with its text, where the plan has it.
fn criterion(ralph: &Ralph, id: &str) -> String {
    let plan = ralph.plan.iter();
    let mut criteria = plan.flat_map(|plan| &plan.criteria);
    match criteria.find(|criterion| criterion.id == id) {
        Some(criterion) => format!("{id}: {}", first_line(&criterion.text)),
        None => first_line(id),
    }
}

fn evidence(ui: Ui, workflow: &Workflow, number: u32) {
    let place = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(evidence) = workflow.evidence.get(place) else {
        return;
    };
    ui.line(&format!(
        "           {number}: {}",
        evidence_words(evidence)
    ));
}

fn evidence_words(evidence: &Evidence) -> String {
    let weight = match evidence.weight {
        Weight::Validation => "",
        Weight::Narrative => " (words)",
    };
    let exit = evidence
        .exit_code
        .map_or_else(String::new, |code| format!(", exit {code}"));
    format!(
        "{}{weight}: {}{exit} [{}]",
        evidence.kind,
        first_line(&evidence.summary),
        evidence.reference
    )
}

fn tasks(ui: Ui, ralph: &Ralph) {
    for state in ralph.tasks.values() {
        let stand = match &state.stand {
            Stand::Waiting if state.base.is_some() => "at work".to_owned(),
            Stand::Waiting => "waits".to_owned(),
            Stand::Proved { commit } => format!("proved, {}", short(commit)),
            Stand::Landed { head } => format!("landed, {}", short(head)),
            Stand::Rested { status, reason } => reason.as_deref().map_or_else(
                || format!("its goal is {status}"),
                |reason| format!("its goal is {status}: {}", first_line(reason)),
            ),
        };
        let goal = state
            .goal
            .as_ref()
            .map_or_else(String::new, |goal| format!("  goal {goal}"));
        ui.line(&format!(
            "  {:<8} {}: {stand}{goal}",
            state.task.id,
            first_line(&state.task.title)
        ));
    }
}

fn next(ui: Ui, workflow: &Workflow) {
    for command in next_commands(workflow) {
        ui.line(&format!("  next     {command}"));
    }
    let Body::Ralph(ralph) = &workflow.body else {
        return;
    };
    let (Status::Completed, Some(branch)) = (workflow.status, &ralph.branch) else {
        return;
    };
    ui.line(&format!(
        "  next     git diff {}...{}",
        short(&ralph.base),
        branch.name
    ));
    ui.line(&format!("  next     git merge {}", branch.name));
}
