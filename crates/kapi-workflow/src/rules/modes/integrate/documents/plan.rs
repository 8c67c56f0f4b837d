//! `merge-plan.md`: what is approved, by the hash of these bytes.

use kapi_check::rules::proof::verify_report::run_end;

use crate::rules::modes::integrate::documents::matrix;
use crate::rules::modes::integrate::plan::MergePlan;
use crate::rules::modes::integrate::source::Source;
use crate::rules::modes::integrate::state::Integrate;
use crate::rules::modes::ralph::documents::markdown::{cell, code, lines, list, quote};
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::integrate) fn text(
    workflow: &Workflow,
    state: &Integrate,
    plan: &MergePlan,
) -> String {
    let branch = code(&Integrate::branch_name(&workflow.id));
    let verify = plan.verify.iter().map(|command| verified(state, command));
    let verify: Vec<String> = verify.collect();
    let left_out: Vec<String> = plan
        .left_out
        .iter()
        .map(|it| format!("{}: {}", it.source, one_line(&it.why)))
        .collect();
    let mut parts = vec![
        format!("# Merge plan of {}", workflow.id),
        quote(&workflow.purpose),
        format!(
            "Onto `dev` at {}, by way of branch {branch}. `main` is not touched.",
            code(&plan.target)
        ),
        format!(
            "## Order\n\n{}\n\n{}",
            order(state, plan),
            one_line(&plan.rationale)
        ),
        format!("## Left out\n\n{}", list(&left_out)),
        format!(
            "## Conflicts that are foreseen\n\n{}",
            matrix::pairs(&plan.foresight, &state.sources)
        ),
        format!(
            "## Conflicts that rules settle\n\n{}\n\nOtherwise files that a package manager writes are \
             written anew by its own command, changelogs take the entries of both, and an agent resolves \
             the rest.",
            list(&rules(state, plan))
        ),
        format!("## The result is verified by\n\n{}", list(&verify)),
        "What fails on `dev` already, and no source is there to mend, blames nobody.".to_owned(),
        format!("## What is allowed\n\n{}", list(&leave(state))),
    ];
    let steps = plan
        .steps
        .iter()
        .filter_map(|step| state.source(&step.source));
    parts.extend(steps.map(|source| of_source(plan, source)));
    format!("{}\n", parts.join("\n\n"))
}

/// Says of a command what it shows on the integration branch as it is.
fn verified(state: &Integrate, command: &String) -> String {
    let runs = state.baseline.iter().flat_map(|report| &report.runs);
    let word = match runs.clone().find(|run| run.command == *command) {
        None => "not run on `dev` yet".to_owned(),
        Some(run) if run.passed() => "holds on `dev`".to_owned(),
        Some(run) => {
            let mends = |it: &&Source| it.check(command).is_some_and(|check| check.failed_before);
            let menders = state.sources.iter().filter(mends);
            let menders: Vec<String> = menders.map(|it| it.id.to_string()).collect();
            match menders.as_slice() {
                [] => format!("fails on `dev` already ({})", run_end(run)),
                names => format!(
                    "fails on `dev` ({}), as it did before {}",
                    run_end(run),
                    names.join(" and ")
                ),
            }
        }
    };
    format!("{}: {word}", code(command))
}

/// Returns the person's own rules, in their order, then what the rules say of the paths that are foreseen
/// not to fit.
fn rules(state: &Integrate, plan: &MergePlan) -> Vec<String> {
    let own = state.rules.iter().map(|rule| {
        let (pattern, words) = (code(&rule.pattern), one_line(&rule.way.words()));
        format!("{pattern}: {words}")
    });
    let foreseen = plan.foresight.ruled.iter();
    let foreseen = foreseen.filter(|it| !state.rules.contains(&it.rule));
    let foreseen = foreseen.map(|it| {
        let (path, words) = (code(&it.path), one_line(&it.rule.way.words()));
        format!("{path}, which is foreseen not to fit: {words}")
    });
    own.chain(foreseen).collect()
}

fn order(state: &Integrate, plan: &MergePlan) -> String {
    let mut rows = vec![
        "| # | source | what | method | why here |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for (number, step) in (1_u32..).zip(&plan.steps) {
        let title = state
            .source(&step.source)
            .map_or("", |source| &source.title);
        rows.push(format!(
            "| {number} | {} | {} | {} | {} |",
            step.source,
            cell(title),
            step.method.as_str(),
            cell(&step.why)
        ));
    }
    rows.join("\n")
}

fn leave(state: &Integrate) -> Vec<String> {
    let evicts = if state.leave.evicts {
        "A source that fails is left out without asking, and the rest lands."
    } else {
        "A source that fails is left out only by another approval."
    };
    let checkout = if state.leave.brings_checkout {
        "A checkout of `dev` that is clean is brought along."
    } else {
        "A `dev` that is checked out anywhere stays where it is."
    };
    vec![evicts.to_owned(), checkout.to_owned()]
}

fn of_source(plan: &MergePlan, source: &Source) -> String {
    let intents: Vec<String> = source
        .intents
        .iter()
        .map(|intent| format!("{}: {}", one_line(&intent.name), one_line(&intent.text)))
        .collect();
    let checks: Vec<String> = source.checks.iter().map(|it| code(&it.command)).collect();
    let said = plan.clarified.iter().filter(|it| it.source == source.id);
    let said: Vec<String> = said.map(|it| one_line(&it.text)).collect();
    let clarified = if said.is_empty() {
        String::new()
    } else {
        format!("\n\nIts person says:\n\n{}", list(&said))
    };
    format!(
        "## Source {}\n\n{}\n\nBranch {} at {}, begun on {}.\n\nIntents:\n\n{}{clarified}\n\nLeft out on \
         purpose:\n\n{}\n\nProved by:\n\n{}",
        source.id,
        quote(&source.title),
        code(&source.branch),
        code(&source.commit),
        code(&source.base),
        list(&intents),
        lines(&source.excluded),
        list(&checks)
    )
}
