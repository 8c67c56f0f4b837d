//! `contract.md`: everything that an approval fixes, but for the scripts beside it.

use kapi_core::quote::visible;
use kapi_core::text::counted;

use crate::rules::modes::autoresearch::contract::{Contract, Metric};
use crate::rules::modes::ralph::documents::markdown::{code, lines, quote};
use crate::rules::state::Workflow;

/// Returns the document.
pub(super) fn text(workflow: &Workflow, contract: &Contract) -> String {
    let metric = &contract.metric;
    let mut parts = vec![
        format!("# Experiment contract {}", workflow.id),
        format!("## Objective\n\n{}", quote(&contract.objective)),
        format!(
            "## Metrics\n\nPrimary, which alone decides: {}, {} is better.\n\n{}",
            name(metric),
            metric.direction.as_str(),
            secondary(contract)
        ),
        format!(
            "## How a run is kept\n\n{}.",
            capital(&contract.rule.words())
        ),
        format!(
            "## How it is measured\n\n`sh benchmark.sh`, at most {} s, at the top of a clean checkout, in a \
             new sandbox for each sample, without network. {}{}",
            contract.benchmark_seconds,
            conditions(contract),
            checks(contract)
        ),
        format!("## Files in scope\n\n{}", patterns(&contract.scope)),
        format!(
            "## Off limits\n\n{}",
            patterns(&off_limits(workflow, contract))
        ),
        format!("## Constraints\n\n{}", lines(&contract.constraints)),
        format!("## Limits\n\n{}", limits(workflow, contract)),
    ];
    if let Some(held_back) = &contract.held_back {
        parts.push(format!(
            "## Held back\n\nInputs that no agent sees, {} of {}, sha256 {}, are laid over the checkout. \
             What would be kept has to be better on them, too, by the same rule, measured in turn with its \
             parent.",
            counted(held_back.files, "file"),
            code(&held_back.source),
            code(&held_back.sha256)
        ));
    }
    parts.push(
        "What is worse or equal is discarded, whatever else speaks for it; what crashes, runs into \
         its time limit or breaks a check is put back. Another contract needs another approval and is \
         measured from a baseline of its own."
            .to_owned(),
    );
    format!("{}\n", parts.join("\n\n"))
}

fn name(metric: &Metric) -> String {
    if metric.unit.is_empty() {
        code(&metric.name)
    } else {
        format!("{} in {}", code(&metric.name), visible(&metric.unit))
    }
}

fn secondary(contract: &Contract) -> String {
    if contract.secondary.is_empty() {
        return "Nothing else is watched.".to_owned();
    }
    let names = contract.secondary.iter().map(|metric| {
        let unit = if metric.unit.is_empty() {
            String::new()
        } else {
            format!(" in {}", visible(&metric.unit))
        };
        format!("{}{unit}", code(&metric.name))
    });
    let names: Vec<String> = names.collect();
    format!("Recorded beside it: {}.", names.join(", "))
}

/// Says what else holds while it is measured.
fn conditions(contract: &Contract) -> String {
    let mut parts = Vec::new();
    if contract.warmups > 0 {
        let n = contract.warmups;
        parts.push(format!(
            "Before each measurement it is run {n} times without counting. "
        ));
    }
    if !contract.processors.is_empty() {
        let numbers: Vec<String> = contract.processors.iter().map(u32::to_string).collect();
        parts.push(format!("It runs on processors {}. ", numbers.join(", ")));
    }
    if !contract.counters().is_empty() {
        parts.push(
            "Metrics whose names begin with `kapi.` are taken by Kapi, of the whole script. "
                .to_owned(),
        );
    }
    parts.concat()
}

fn checks(contract: &Contract) -> String {
    match &contract.no_checks {
        Some(why) => format!(
            "There are no checks: {}.",
            crate::rules::report::one_line(why).trim_end_matches('.')
        ),
        None => format!(
            "Then `sh checks.sh`, at most {} s, in the same way.",
            contract.checks_seconds
        ),
    }
}

fn off_limits(workflow: &Workflow, contract: &Contract) -> Vec<String> {
    let mut all = contract.off_limits.clone();
    all.extend(workflow.terms.protect.iter().cloned());
    all
}

fn patterns(patterns: &[String]) -> String {
    let all: Vec<String> = patterns.iter().map(|pattern| code(pattern)).collect();
    crate::rules::modes::ralph::documents::markdown::list(&all)
}

fn limits(workflow: &Workflow, contract: &Contract) -> String {
    let terms = &workflow.terms;
    let limit = |n: Option<String>| n.unwrap_or_else(|| "no limit".to_owned());
    let wall = terms
        .wall_ms
        .map(|ms| format!("{} min", ms.div_ceil(60_000)));
    let usd = terms.usd_micros.map(|micros| {
        format!(
            "{}.{:02} USD",
            micros / 1_000_000,
            micros % 1_000_000 / 10_000
        )
    });
    let tokens = terms.tokens.map(|tokens| tokens.to_string());
    let parallel = match contract.parallel {
        1 => String::new(),
        n => format!("\n- Agents at once, each in a workspace of its own: {n}"),
    };
    format!(
        "- Runs: {}\n- Discards and crashes in a row: {}\n- Time at work: {}\n- Tokens: {}\n- Money: {}{parallel}",
        contract.runs,
        contract.failures,
        limit(wall),
        limit(tokens),
        limit(usd)
    )
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
