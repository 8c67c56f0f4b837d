//! `integration-report.md`: what was to come together, what of it is in the result, what else is, and how
//! that ended.

use kapi_core::text::short_id;

use crate::rules::modes::integrate::documents::coverage_lines;
use crate::rules::modes::integrate::source::Source;
use crate::rules::modes::integrate::state::{Argument, Integrate, Statement};
use crate::rules::modes::ralph::documents::markdown::{block, code, lines, list, quote};
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::integrate) fn text(workflow: &Workflow, state: &Integrate) -> String {
    let mut parts = vec![
        format!("# Integration report of {}", workflow.id),
        quote(&workflow.purpose),
        format!("## Sources\n\n{}", list(&inventory(state))),
    ];
    parts.extend(state.sources.iter().map(|source| mapping(state, source)));
    parts.push(format!(
        "## From change to intent\n\n{}",
        lines(&coverage_lines(state))
    ));
    parts.push(format!("## The review\n\n{}", review(state)));
    parts.extend(state.evicted.iter().map(|gone| {
        let evidence = if gone.evidence.is_empty() {
            String::new()
        } else {
            format!("\n\n{}", block(&gone.evidence))
        };
        format!(
            "## Left out: {}\n\n{}{evidence}",
            gone.source,
            quote(&gone.why)
        )
    }));
    parts.push(format!("## Consensus\n\n{}", consensus(state)));
    parts.push(format!("## Final verdict\n\n{}", verdict(state)));
    format!("{}\n", parts.join("\n\n"))
}

fn inventory(state: &Integrate) -> Vec<String> {
    let sources = state.sources.iter();
    sources
        .map(|source| {
            let kind = source
                .mode
                .map_or_else(|| "goal".to_owned(), |mode| mode.to_string());
            let applied = state.applied.iter().find(|it| it.source == source.id);
            let place = if state.is_evicted(&source.id) {
                "left out".to_owned()
            } else {
                applied.map_or_else(
                    || "not on the branch yet".to_owned(),
                    |it| format!("on the branch as {}", code(short_id(&it.after))),
                )
            };
            format!(
                "{kind} {}, {}, proved as {}: {place}",
                source.id,
                code(&source.branch),
                code(&source.commit)
            )
        })
        .collect()
}

fn mapping(state: &Integrate, source: &Source) -> String {
    let covered = state.coverage.iter().flat_map(|it| &it.sources);
    let covered = covered.filter(|it| it.source == source.id);
    let counted: Vec<String> = covered
        .map(|it| format!("{} of {} hunks are in the result.", it.n_there, it.n_hunks))
        .collect();
    let intents: Vec<String> = source
        .intents
        .iter()
        .map(|it| format!("{}: {}", one_line(&it.name), one_line(&it.text)))
        .collect();
    format!(
        "## Intents of {}\n\n{}\n\n{}\n\nLeft out on purpose:\n\n{}\n\nEvidence of its completion:\n\n{}",
        source.id,
        list(&counted),
        list(&intents),
        lines(&source.excluded),
        lines(&source.evidence)
    )
}

fn review(state: &Integrate) -> String {
    let Some(review) = state.review() else {
        return "This result was not reviewed yet.".to_owned();
    };
    let justified: Vec<String> = review
        .findings
        .justified
        .iter()
        .map(|it| format!("Finding {}: {}", it.finding, one_line(&it.why)))
        .collect();
    let problems: Vec<String> = review
        .findings
        .problems
        .iter()
        .map(|it| format!("{}: {}", one_line(&it.title), one_line(&it.detail)))
        .collect();
    format!(
        "By {}, of {}:\n\n{}\n\nFindings that are right as they are:\n\n{}\n\nProblems:\n\n{}",
        one_line(&review.by.to_string()),
        code(short_id(&review.head)),
        quote(&review.findings.summary),
        list(&justified),
        list(&problems)
    )
}

fn consensus(state: &Integrate) -> String {
    let said: Vec<String> = state.statements.iter().map(statement).collect();
    list(&said)
}

fn statement(statement: &Statement) -> String {
    let by = one_line(&statement.by.to_string());
    let what = match &statement.said {
        Argument::Thesis(said) => format!("thesis: {}", one_line(&said.defence)),
        Argument::Antithesis(said) => {
            let n = said.objections.len();
            format!("antithesis, {n} objections: {}", one_line(&said.strongest))
        }
        Argument::Synthesis(said) => {
            let word = said.verdict.as_str();
            let cause = said
                .cause
                .map_or_else(String::new, |it| format!(" ({})", it.leads_to()));
            format!("synthesis: **{word}**{cause}: {}", one_line(&said.why))
        }
    };
    format!(
        "Cycle {}, attempt {}, {}, by {by}: {what}",
        statement.cycle,
        statement.attempt,
        code(short_id(&statement.head))
    )
}

fn verdict(state: &Integrate) -> String {
    if let Some(landed) = &state.landed {
        let brought = landed.brought.as_ref().map_or_else(String::new, |path| {
            format!(" The checkout {} shows it.", code(path))
        });
        return format!(
            "`dev` is at {}, which was approved as it is.{brought}\n\nThis puts `dev` back:\n\n{}",
            code(&landed.to),
            block(&put_back(&landed.from, &landed.to))
        );
    }
    if let Some(stopped) = &state.stopped {
        return format!("It waits for you: {}", one_line(stopped));
    }
    "There is no verdict yet; `dev` has not moved.".to_owned()
}

/// Returns the line that puts the integration branch back, while nobody else has moved it.
#[must_use]
pub(in crate::rules::modes::integrate) fn put_back(from: &str, to: &str) -> String {
    format!("git update-ref refs/heads/dev {from} {to}")
}
