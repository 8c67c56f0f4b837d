//! `decision-report.md`: what was decided and what it rests on, in nine parts.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::text::short_id;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::modes::integrate::documents::report::put_back;
use crate::rules::modes::integrate::state::{Argument, Integrate};
use crate::rules::report::{DecisionReport, approval_line, one_line};
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::integrate) fn text(workflow: &Workflow, state: &Integrate) -> String {
    let report = DecisionReport {
        scope: scope(workflow, state),
        inputs: state
            .sources
            .iter()
            .map(|it| format!("{}: {} at {}", it.id, it.branch, it.commit))
            .collect(),
        conditions: conditions(workflow, state),
        options: options(state),
        chosen: chosen(workflow, state),
        rationale: rationale(state),
        verification: workflow
            .evidence
            .iter()
            .filter(|it| it.kind == "verify" || it.kind == "coverage")
            .map(|it| format!("{} ({})", one_line(&it.summary), it.reference))
            .collect(),
        risks: risks(workflow, state),
        follow_up: follow_up(workflow, state),
    };
    report.render(workflow)
}

fn scope(workflow: &Workflow, state: &Integrate) -> Vec<String> {
    let mut lines = vec![one_line(&workflow.purpose)];
    lines.push(format!("dev, which was at {} when it began", state.began));
    lines.extend(
        state
            .evicted
            .iter()
            .map(|it| format!("Left out: {}", it.source)),
    );
    lines
}

fn conditions(workflow: &Workflow, state: &Integrate) -> Vec<String> {
    let mut lines: Vec<String> = workflow.approvals.iter().map(approval_line).collect();
    let holds = |holds: bool, what: &str| {
        let word = if holds { "holds" } else { "does not hold yet" };
        format!("{what}: {word}")
    };
    let is_verified = state.verified.as_ref().is_some_and(VerifyReport::passed);
    lines.push(holds(is_verified, "The checks pass on the result"));
    lines.push(holds(
        state.coverage.is_some(),
        "Every hunk is traced or reviewed",
    ));
    lines.push(holds(
        state.is_agreed(),
        "The consensus approves this head in this attempt",
    ));
    lines.push(holds(
        state.landed.is_some(),
        "dev moved from where the plan found it",
    ));
    lines
}

fn options(state: &Integrate) -> Vec<String> {
    let mut lines: Vec<String> = state
        .resolutions
        .iter()
        .flat_map(|settled| {
            let options = settled.said.options.iter();
            options.map(|it| format!("Conflict of {}: {}", settled.source, one_line(it)))
        })
        .collect();
    lines.push("Land everything, land without a source that fails, or land nothing".to_owned());
    lines
}

fn chosen(workflow: &Workflow, state: &Integrate) -> Vec<String> {
    let mut lines: Vec<String> = state
        .resolutions
        .iter()
        .map(|it| format!("Conflict of {}: {}", it.source, one_line(&it.said.choice)))
        .collect();
    lines.extend(state.applied.iter().map(|it| {
        format!(
            "{} by {} as {}",
            it.source,
            it.method.as_str(),
            short_id(&it.after)
        )
    }));
    lines.push(match (&state.landed, workflow.status) {
        (Some(landed), _) => format!("dev moved from {} to {}", landed.from, landed.to),
        (None, status) => format!("Nothing landed yet; the workflow is {}", status.as_str()),
    });
    lines
}

fn rationale(state: &Integrate) -> Vec<String> {
    let plan = state.plan.iter();
    let mut lines: Vec<String> = plan
        .flat_map(|plan| {
            let steps = plan.steps.iter();
            let steps = steps.map(|it| format!("{}: {}", it.source, one_line(&it.why)));
            std::iter::once(one_line(&plan.rationale)).chain(steps)
        })
        .collect();
    let resolutions = state.resolutions.iter();
    lines.extend(resolutions.map(|it| {
        let why = one_line(&it.said.rationale);
        format!("Conflict of {}, in an agent's words: {why}", it.source)
    }));
    lines.extend(state.said().filter_map(|it| match &it.said {
        Argument::Synthesis(ruling) => {
            let why = one_line(&ruling.why);
            Some(format!(
                "{}, in an agent's words: {why}",
                ruling.verdict.as_str()
            ))
        }
        Argument::Thesis(_) | Argument::Antithesis(_) => None,
    }));
    lines
}

fn risks(workflow: &Workflow, state: &Integrate) -> Vec<String> {
    let terms = &workflow.terms;
    let mut lines = Vec::new();
    if terms.reviewer() == terms.agent {
        lines.push(format!(
            "The same agent, {}, defends, attacks and reviews, in separate runs",
            one_line(&terms.agent)
        ));
    }
    let there = state.there();
    let plan = state.plan.iter().flat_map(|it| &it.verify);
    let excused = plan.filter(|command| state.is_excused(command, &there));
    lines.extend(
        excused.map(|it| format!("`{}` fails on dev already and was not run", one_line(it))),
    );
    if let Some(attack) = state.attack() {
        let open = attack.objections.iter().filter(|it| it.blocking);
        lines.extend(open.map(|it| format!("Objection: {}", one_line(&it.text))));
    }
    lines
}

fn follow_up(workflow: &Workflow, state: &Integrate) -> Vec<String> {
    let mut lines: Vec<String> = state
        .evicted
        .iter()
        .map(|it| format!("{} is its owner's again: {}", it.source, one_line(&it.why)))
        .collect();
    if let Some(landed) = &state.landed {
        let back = put_back(&landed.from, &landed.to);
        lines.push(format!(
            "Review dev and test it; main is a person's. `{back}` puts dev back"
        ));
    }
    lines.push(match workflow.status {
        WorkflowStatus::Completed | WorkflowStatus::Integrated => {
            "Branches and worktrees of the sources stay; kapi cleanup lists them".to_owned()
        }
        WorkflowStatus::Active
        | WorkflowStatus::Blocked
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked => "Branches and worktrees stay; nothing is deleted".to_owned(),
    });
    lines
}
