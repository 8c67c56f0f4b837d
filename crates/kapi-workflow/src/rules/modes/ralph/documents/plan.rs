//! `plan.md`: what is approved, by the hash of these bytes.

use kapi_goal::rules::plan::task::PlanTaskId;

use crate::rules::modes::ralph::decide::best;
use crate::rules::modes::ralph::documents::markdown::{cell, code, lines, list, quote};
use crate::rules::modes::ralph::graph::runs_alone;
use crate::rules::modes::ralph::plan::sound::doubts;
use crate::rules::modes::ralph::plan::{
    Attempt, Consensus, Criterion, Isolation, PlanTask, RalphPlan,
};
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::ralph) fn text(workflow: &Workflow, ralph: &Ralph) -> String {
    let Some(plan) = ralph.plan.as_deref() else {
        return String::new();
    };
    let attempt = attempt_of(ralph, plan);
    let mut parts = vec![format!("# Plan of {}", workflow.id)];
    parts.push(quote(&workflow.purpose));
    if let Some(branch) = ralph.branch_name(&workflow.id) {
        parts.push(format!(
            "Branch: {}, from {}.",
            code(&branch),
            code(&ralph.base)
        ));
    }
    if let Some(attempt) = attempt {
        parts.push(argued(attempt));
    }
    parts.push(body(plan));
    let doubts = doubts(plan);
    if !doubts.is_empty() {
        parts.push(format!("## Doubts\n\n{}", list(&doubts)));
    }
    if let Some(attempt) = attempt {
        parts.push(dissent(attempt));
    }
    format!("{}\n", parts.join("\n\n"))
}

/// Returns the last attempt that ended with a plan.
fn attempt_of<'a>(ralph: &'a Ralph, plan: &RalphPlan) -> Option<&'a Attempt> {
    ralph.attempts.iter().rev().find(|attempt| {
        let is_best = || best(&ralph.attempts, attempt.cycle) == Some(*attempt);
        let synthesis = attempt.synthesis.as_ref();
        synthesis.is_some_and(|(_, found)| found.plan == *plan) && is_best()
    })
}

fn argued(attempt: &Attempt) -> String {
    let verdict = match attempt.synthesis.as_ref().map(|(_, found)| found.verdict) {
        Some(Consensus::Consensus) => "Consensus was reached",
        Some(Consensus::Revise) | None => "**No consensus was reached**; this is the best plan",
    };
    format!(
        "{verdict}: planning cycle {}, attempt {}. The discussion is in `consensus.md`.",
        attempt.cycle, attempt.number
    )
}

fn dissent(attempt: &Attempt) -> String {
    let synthesis = attempt.synthesis.as_ref().map(|(_, found)| found);
    let dissent = synthesis.map_or(&[][..], |found| &found.dissent[..]);
    let text = format!("## Dissent\n\n{}", lines(dissent));
    match same_agent(attempt) {
        Some(risk) => format!("{text}\n\n{risk}"),
        None => text,
    }
}

/// Returns the risk that lies in one agent arguing with itself.
pub(in crate::rules::modes::ralph) fn same_agent(attempt: &Attempt) -> Option<String> {
    let (thesis, _) = attempt.thesis.as_ref()?;
    let (antithesis, _) = attempt.antithesis.as_ref()?;
    let agent = code(&thesis.agent);
    (thesis.agent == antithesis.agent)
        .then(|| format!("The same agent, {agent}, proposed and objected, in separate runs."))
}

/// Returns a plan for people, without what is around it.
pub(in crate::rules::modes::ralph) fn body(plan: &RalphPlan) -> String {
    let mut parts = vec![
        format!("## Summary\n\n{}", quote(&plan.summary)),
        format!("## Context\n\n{}", quote(&plan.context)),
        format!("## Options\n\n{}", options(plan)),
        format!("## Tasks\n\n{}", table(plan)),
    ];
    parts.extend(plan.tasks.iter().map(task));
    let criteria: Vec<String> = plan.criteria.iter().map(criterion).collect();
    parts.push(format!("## Acceptance criteria\n\n{}", list(&criteria)));
    let verify: Vec<String> = plan.verify.iter().map(|command| code(command)).collect();
    parts.push(format!("## The whole is verified by\n\n{}", list(&verify)));
    parts.push(format!(
        "## Left out on purpose\n\n{}",
        lines(&plan.excluded)
    ));
    parts.push(format!("## Risks\n\n{}", lines(&plan.risks)));
    parts.join("\n\n")
}

fn options(plan: &RalphPlan) -> String {
    let is_only = plan.options.len() == 1;
    let options: Vec<String> = plan
        .options
        .iter()
        .map(|option| {
            let disposition = match &option.rejected {
                None => "Chosen.".to_owned(),
                Some(why) if is_only => format!("Chosen; there is no other: {}", one_line(why)),
                Some(why) => format!("Rejected: {}", one_line(why)),
            };
            format!(
                "**{}**: {} {disposition}",
                one_line(&option.name),
                one_line(&option.summary)
            )
        })
        .collect();
    list(&options)
}

fn table(plan: &RalphPlan) -> String {
    let mut rows = vec![
        "| task | what | after | at once with others | touches |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for task in &plan.tasks {
        let after: Vec<&str> = task.depends_on.iter().map(PlanTaskId::as_str).collect();
        let at_once = match (task.isolation, runs_alone(task)) {
            (Isolation::Alone, _) => "no, it must run alone",
            (Isolation::Own, true) => "no, it lists no paths",
            (Isolation::Own, false) => "yes",
        };
        rows.push(format!(
            "| {} | {} | {} | {at_once} | {} |",
            cell(task.id.as_str()),
            cell(&task.title),
            cell(&after.join(", ")),
            cell(&task.touches.join(", "))
        ));
    }
    rows.join("\n")
}

fn task(task: &PlanTask) -> String {
    let verify: Vec<String> = task.verify.iter().map(|command| code(command)).collect();
    let criteria = if task.criteria.is_empty() {
        String::new()
    } else {
        format!("\n\nServes {}.", one_line(&task.criteria.join(", ")))
    };
    format!(
        "### {}: {}\n\n{}{criteria}\n\nVerified by:\n\n{}",
        task.id,
        one_line(&task.title),
        quote(&task.description),
        list(&verify)
    )
}

fn criterion(criterion: &Criterion) -> String {
    let proof = match (&criterion.verify, &criterion.exempt) {
        (Some(verify), _) => format!("verified by {}", code(verify)),
        (None, Some(exempt)) => format!("no command: {}", one_line(exempt)),
        (None, None) => "no command".to_owned(),
    };
    format!(
        "{}: {} ({proof})",
        one_line(&criterion.id),
        one_line(&criterion.text)
    )
}
