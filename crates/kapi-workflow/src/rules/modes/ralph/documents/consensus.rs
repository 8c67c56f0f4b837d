//! `consensus.md`: every attempt, who said what, and where they did not agree.

use crate::rules::modes::ralph::documents::markdown::{lines, list, quote};
use crate::rules::modes::ralph::documents::plan::same_agent;
use crate::rules::modes::ralph::plan::{Attempt, Consensus, RalphPlan};
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::ralph) fn text(workflow: &Workflow, ralph: &Ralph) -> String {
    let mut parts = vec![format!("# The discussion of the plan of {}", workflow.id)];
    parts.extend(ralph.attempts.iter().map(attempt));
    format!("{}\n", parts.join("\n\n"))
}

fn attempt(attempt: &Attempt) -> String {
    let mut parts = vec![format!(
        "## Cycle {}, attempt {}",
        attempt.cycle, attempt.number
    )];
    if let Some((by, plan)) = &attempt.thesis {
        let head = format!("### Thesis, by {}", one_line(&by.to_string()));
        parts.push(format!(
            "{head}\n\n{}\n\n{}",
            quote(&plan.summary),
            tasks(plan)
        ));
    }
    parts.extend(antithesis(attempt));
    parts.extend(synthesis(attempt));
    parts.extend(same_agent(attempt));
    parts.join("\n\n")
}

fn tasks(plan: &RalphPlan) -> String {
    let tasks: Vec<String> = plan
        .tasks
        .iter()
        .map(|task| format!("{}: {}", task.id, one_line(&task.title)))
        .collect();
    list(&tasks)
}

fn antithesis(attempt: &Attempt) -> Option<String> {
    let (by, said) = attempt.antithesis.as_ref()?;
    let objections: Vec<String> = said
        .objections
        .iter()
        .enumerate()
        .map(|(at, objection)| {
            let weight = if objection.blocking {
                "**blocking** "
            } else {
                ""
            };
            let answer = attempt
                .synthesis
                .as_ref()
                .and_then(|(_, found)| found.answers.get(at));
            let answer = answer.map(|text| format!("\n  - Answer: {}", one_line(text)));
            format!(
                "{weight}{}{}",
                one_line(&objection.text),
                answer.unwrap_or_default()
            )
        })
        .collect();
    Some(format!(
        "### Antithesis, by {}\n\nStrongest argument:\n\n{}\n\nTension:\n\n{}\n\nObjections:\n\n{}",
        one_line(&by.to_string()),
        quote(&said.strongest),
        quote(&said.tension),
        list(&objections)
    ))
}

fn synthesis(attempt: &Attempt) -> Option<String> {
    let (by, found) = attempt.synthesis.as_ref()?;
    let verdict = match found.verdict {
        Consensus::Consensus => "consensus",
        Consensus::Revise => "revise",
    };
    Some(format!(
        "### Synthesis, by {}: {verdict}\n\n{}\n\n{}\n\nDissent that is left:\n\n{}",
        one_line(&by.to_string()),
        quote(&found.plan.summary),
        tasks(&found.plan),
        lines(&found.dissent)
    ))
}
