//! `decision-report.md`: what was decided and what it rests on, in nine parts.
//!
//! Everything comes from the facts; the accountant gives rationale, risks and follow-up only, and
//! they are marked as an agent's words.

use std::collections::BTreeSet;

use kapi_core::judge::Judge;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::decide::phase_name;
use crate::rules::modes::ralph::documents::acceptance::entry;
use crate::rules::modes::ralph::documents::markdown::{code, lines, list, quote};
use crate::rules::modes::ralph::documents::plan::same_agent;
use crate::rules::modes::ralph::documents::verify;
use crate::rules::modes::ralph::graph;
use crate::rules::modes::ralph::state::{Ralph, RalphPhase, Stand, TaskState};
use crate::rules::pending::{DecisionApproval, Means};
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::ralph) fn text(workflow: &Workflow, ralph: &Ralph) -> String {
    let status = workflow.status.as_str();
    let parts = [
        format!("# Decision report of {}", workflow.id),
        format!("It is {status}, in {}.", phase_name(workflow)),
        format!("## Scope\n\n{}", scope(workflow, ralph)),
        format!(
            "## Inputs and artifacts inspected\n\n{}",
            inputs(workflow, ralph)
        ),
        format!("## Conditions checked\n\n{}", conditions(workflow, ralph)),
        format!("## Options considered\n\n{}", options(ralph)),
        format!("## Chosen decision\n\n{}", chosen(workflow, ralph)),
        format!("## Rationale\n\n{}", rationale(ralph)),
        format!("## Verification\n\n{}", verification(workflow)),
        format!("## Risks\n\n{}", risks(workflow, ralph)),
        format!("## Follow-up\n\n{}", follow_up(workflow, ralph)),
    ];
    format!("{}\n", parts.join("\n\n"))
}

fn scope(workflow: &Workflow, ralph: &Ralph) -> String {
    let excluded = ralph
        .plan
        .as_deref()
        .map_or(&[][..], |plan| &plan.excluded[..]);
    let spec = ralph.spec.iter().flat_map(|spec| &spec.non_goals);
    let mut named = BTreeSet::new();
    // A plan often repeats what its spec leaves out.
    let excluded: Vec<String> = excluded
        .iter()
        .map(|text| one_line(text))
        .chain(spec.map(|item| one_line(&item.text)))
        .filter(|text| named.insert(text.clone()))
        .collect();
    format!(
        "{}\n\nLeft out:\n\n{}",
        quote(&workflow.purpose),
        list(&excluded)
    )
}

fn inputs(workflow: &Workflow, ralph: &Ralph) -> String {
    let mut items = vec![format!("The repository at {}", code(&ralph.base))];
    let links = workflow.links.iter();
    items.extend(links.map(|link| {
        format!(
            "{} workflow {}",
            link.mode,
            code(&link.workflow.to_string())
        )
    }));
    for name in [
        "context.md",
        "plan.md",
        "consensus.md",
        "review.md",
        "verify.md",
    ] {
        let is_there = match name {
            "plan.md" => ralph.plan.is_some(),
            "consensus.md" => !ralph.attempts.is_empty(),
            "review.md" => !ralph.reviews.is_empty(),
            "verify.md" => verify::has_something(workflow),
            _ => true,
        };
        items.extend(is_there.then(|| code(name)));
    }
    let reviews = ralph.reviews.iter();
    items.extend(reviews.map(|review| {
        format!(
            "Commit {}, by review {}",
            code(&review.commit),
            review.cycle
        )
    }));
    list(&items)
}

fn conditions(workflow: &Workflow, ralph: &Ralph) -> String {
    let n_attempts = ralph.attempts.len();
    let mut items = vec![format!(
        "Consensus: {n_attempts} attempts in {} planning cycles.",
        ralph.cycle
    )];
    items.extend(workflow.approvals.iter().map(approval));
    let tasks = graph::in_order(ralph);
    items.extend(tasks.into_iter().map(stand));
    let conflicts = workflow.conflicts.iter();
    items.extend(conflicts.map(|conflict| format!("{}.", one_line(&conflict.words()))));
    let evidence = &workflow.evidence;
    let n_passed = evidence
        .iter()
        .filter(|found| found.kind == "verify" && found.exit_code == Some(0));
    let n_verified = evidence
        .iter()
        .filter(|found| found.kind == "verify")
        .count();
    items.push(format!(
        "{} of {n_verified} verify commands passed.",
        n_passed.count()
    ));
    list(&items)
}

fn approval(approval: &DecisionApproval) -> String {
    let means = match approval.means {
        Means::Terminal => "at a terminal, after it was shown",
        Means::YesFlag => "with --yes",
        Means::NamedHash => "by naming its hash",
        Means::InAdvance => "in advance, for whatever reaches consensus",
    };
    let accepted = if approval.accepted.is_empty() {
        String::new()
    } else {
        format!(", accepting: {}", one_line(&approval.accepted.join("; ")))
    };
    format!(
        "{} with SHA-256 {} was approved by {} {means}{accepted}.",
        code(approval.decision.artifact()),
        code(&approval.sha256),
        one_line(&approval.by)
    )
}

fn stand(state: &TaskState) -> String {
    let goal = state
        .goal
        .as_ref()
        .map(|goal| format!(" (goal {})", code(&goal.to_string())));
    let stand = match &state.stand {
        Stand::Waiting if state.is_working => "is at work".to_owned(),
        Stand::Waiting => "waits".to_owned(),
        Stand::Proved { commit } => format!("is proved as {}", code(commit)),
        Stand::Landed { head } => format!("landed as {}", code(head)),
        Stand::Rested { status, reason } => {
            let why = reason.as_deref().unwrap_or("no reason was given");
            format!("stopped: {} ({})", status.as_str(), one_line(why))
        }
    };
    let tries = if state.attempt > 1 {
        format!(", in try {}", state.attempt)
    } else {
        String::new()
    };
    let goal = goal.unwrap_or_default();
    format!(
        "{}: {} {stand}{tries}{goal}.",
        state.task.id,
        one_line(&state.task.title)
    )
}

fn options(ralph: &Ralph) -> String {
    let Some(plan) = &ralph.plan else {
        return "No plan has been agreed on yet.".to_owned();
    };
    let options: Vec<String> = plan
        .options
        .iter()
        .map(|option| {
            let why = option.rejected.as_ref();
            let why = why.map_or_else(|| "chosen".to_owned(), |why| one_line(why));
            format!(
                "{}: {} ({why})",
                one_line(&option.name),
                one_line(&option.summary)
            )
        })
        .collect();
    list(&options)
}

fn chosen(workflow: &Workflow, ralph: &Ralph) -> String {
    let Some(plan) = &ralph.plan else {
        return "Nothing yet.".to_owned();
    };
    let branch = ralph.branch.as_ref().map_or_else(String::new, |branch| {
        format!(
            "\n\nBranch {} at {}.",
            code(&branch.name),
            code(&branch.head)
        )
    });
    let is_approved = ralph.phase != RalphPhase::Approval || workflow.pending.is_none();
    let word = if is_approved {
        ""
    } else {
        "Not approved yet:\n\n"
    };
    format!("{word}{}{branch}", quote(&plan.summary))
}

fn rationale(ralph: &Ralph) -> String {
    ralph.account.as_ref().map_or_else(
        || "The closeout has not run yet.".to_owned(),
        |account| format!("In an agent's words:\n\n{}", quote(&account.rationale)),
    )
}

fn verification(workflow: &Workflow) -> String {
    let entries: Vec<String> = (1_u32..)
        .zip(&workflow.evidence)
        .map(|(number, found)| entry(number, found))
        .collect();
    if entries.is_empty() {
        return "There is no evidence yet.".to_owned();
    }
    entries.join("\n")
}

fn risks(workflow: &Workflow, ralph: &Ralph) -> String {
    let accepted = workflow
        .approvals
        .iter()
        .flat_map(|approval| &approval.accepted);
    let mut known: Vec<String> = accepted
        .map(|risk| format!("Accepted: {}", one_line(risk)))
        .collect();
    known.extend(ralph.attempts.last().and_then(same_agent));
    let reviews = ralph.reviews.iter();
    let same = reviews
        .filter(|review| review.by.agent == workflow.terms.agent)
        .count();
    if same > 0 {
        known.push(format!(
            "In {same} reviews the reviewer was the agent that also did the work."
        ));
    }
    known.extend(verify::strayed(workflow));
    match &workflow.terms.judge {
        Judge::None => known.push(
            "No judge reviews the goals: their commands and the review decide alone.".to_owned(),
        ),
        Judge::Same => known.push("Each goal is judged by the agent that did it.".to_owned()),
        Judge::Agent(_) => {}
    }
    let held = workflow.blocked.iter();
    known.extend(held.map(|blocked| format!("It is blocked: {}", one_line(&blocked.reason))));
    let planned = ralph
        .plan
        .as_deref()
        .map_or(&[][..], |plan| &plan.risks[..]);
    let reported = ralph
        .account
        .as_ref()
        .map_or(&[][..], |account| &account.risks[..]);
    format!(
        "Known to Kapi:\n\n{}\n\nIn an agent's words, with the plan:\n\n{}\n\nIn an agent's words, at \
         the end:\n\n{}",
        list(&known),
        lines(planned),
        lines(reported)
    )
}

fn follow_up(workflow: &Workflow, ralph: &Ralph) -> String {
    let reported = ralph
        .account
        .as_ref()
        .map_or(&[][..], |account| &account.follow_up[..]);
    let left = ralph
        .reviews
        .last()
        .map_or(&[][..], |review| &review.findings.findings[..]);
    let left: Vec<String> = left
        .iter()
        .filter(|finding| !finding.must_fix)
        .map(|finding| format!("{}: {}", finding.category.words(), one_line(&finding.title)))
        .collect();
    let next = match workflow.status {
        WorkflowStatus::Completed => "Review the branch, then integrate or merge it.",
        WorkflowStatus::Blocked => "Remove the cause of the block, then resume.",
        WorkflowStatus::Active => "It continues when it runs or when you decide.",
        WorkflowStatus::Failed | WorkflowStatus::Abandoned => {
            "The branch and its worktree stay; nothing is deleted."
        }
        WorkflowStatus::Linked | WorkflowStatus::Integrated => "It continues elsewhere.",
    };
    format!(
        "{next}\n\nLeft by the last review:\n\n{}\n\nIn an agent's words:\n\n{}",
        list(&left),
        lines(reported)
    )
}
