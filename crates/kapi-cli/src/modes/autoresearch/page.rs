//! A search on its page: how far it came, its runs in pictures, and every experiment.
//!
//! Shows numbers and decides nothing; what an agent said is marked as its words.

mod account;
mod chart;
mod experiments;
mod series;

use kapi_core::text::counted;
use kapi_workflow::rules::modes::autoresearch::contract::Contract;
use kapi_workflow::rules::modes::autoresearch::run::{Run, RunStatus};
use kapi_workflow::rules::modes::autoresearch::state::Autoresearch;
use kapi_workflow::rules::modes::autoresearch::summary::{Summary, shown, summary_of};
use kapi_workflow::rules::state::Workflow;
use maud::{Markup, html};

use crate::amount;
use crate::modes::autoresearch::page::account::RunAccounts;
use crate::modes::autoresearch::page::series::{primary, secondary};
use crate::modes::autoresearch::phrases;
use crate::workflow::page::drawing::{Figure, Size};
use crate::workflow::page::text::{FACT_BYTES_MAX, LINE_BYTES_MAX, cut};
use crate::workflow::page::{Fact, ModePage, PageSource, Section, Tile};

/// The most secondary metrics that have a picture.
const SECONDARY_MAX: usize = 24;

/// Returns what a search adds to its page.
pub(super) fn of(source: &PageSource<'_>) -> ModePage {
    let Some(search) = phrases::of(source.workflow) else {
        return ModePage::default();
    };
    let accounts = RunAccounts::of(source.log);
    let mut page = ModePage {
        tiles: tiles(source.workflow, search),
        facts: facts(search),
        figures: figures(search),
        sections: Vec::new(),
    };
    if !search.runs.is_empty() {
        page.sections.push(Section {
            id: "experiments",
            title: "Experiments".to_owned(),
            body: experiments::table(source, search, &accounts),
        });
    }
    page.sections.extend(beside(search));
    if !search.ideas.is_empty() {
        page.sections.push(Section {
            id: "ideas",
            title: "Ideas".to_owned(),
            body: ideas(search),
        });
    }
    if let Some(contract) = &search.contract {
        page.sections.push(Section {
            id: "contract",
            title: "Contract".to_owned(),
            body: terms(contract),
        });
    }
    page
}

fn tiles(workflow: &Workflow, search: &Autoresearch) -> Vec<Tile> {
    let tile = |name: &str, value: String, note: String| Tile {
        name: name.to_owned(),
        value,
        note,
    };
    let mut tiles = Vec::new();
    let found = summary_of(search, search.segment);
    if let (Some(found), Some(metric)) = (&found, search.metric_of(search.segment)) {
        let unit = &metric.unit;
        let best = format!("{} {unit}", shown(found.best));
        let note = format!("{}, run {}", metric.name, found.best_run);
        tiles.push(tile("Best so far", best.trim_end().to_owned(), note));
        let percent = found.gain_percent.filter(|gain| gain.get() > 0.0);
        let percent = percent.map_or_else(|| "none".to_owned(), |it| format!("{} %", shown(it)));
        tiles.push(tile("Gain", percent, phrases::over(found, unit)));
    }
    let (kept, others) = counts(search);
    tiles.push(tile("Experiments", experiments(search), kept + &others));
    let used = kapi_workflow::rules::spent::used(workflow);
    let usd = used.usd_micros.map(amount::usd);
    let tokens = format!("{} tokens", amount::tokens(used.tokens()));
    tiles.push(match usd {
        Some(usd) => tile("Cost", usd, tokens),
        None if used.is_zero() => tile(
            "Cost",
            "\u{2013}".to_owned(),
            "none was reported".to_owned(),
        ),
        None => tile("Cost", tokens, "no money was reported".to_owned()),
    });
    tiles
}

fn experiments(search: &Autoresearch) -> String {
    let made = search.experiments();
    let contract = search.contract.as_ref();
    contract.map_or_else(|| made.to_string(), |it| format!("{made} of {}", it.runs))
}

/// Returns what became of the experiments of the segment under way.
fn counts(search: &Autoresearch) -> (String, String) {
    let of = |status: RunStatus| {
        let is_it = |run: &&Run| is_experiment(run, status);
        search.current().filter(is_it).count()
    };
    let kept = format!("{} kept", of(RunStatus::Keep));
    let others = [
        (of(RunStatus::Discard), "discarded"),
        (of(RunStatus::Crash), "crashed"),
        (of(RunStatus::ChecksFailed), "failed checks"),
    ];
    let others = others.into_iter().filter(|(n, _)| *n > 0);
    (
        kept,
        others.map(|(n, what)| format!(", {n} {what}")).collect(),
    )
}

fn is_experiment(run: &Run, status: RunStatus) -> bool {
    run.status == status && !run.is_baseline
}

fn facts(search: &Autoresearch) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |name, value| facts.push(Fact { name, value });
    if let Some(contract) = &search.contract {
        fact(
            "Objective",
            html! { (cut(&contract.objective, FACT_BYTES_MAX)) },
        );
    }
    fact("Proof", proof(search));
    for made in &search.branches {
        let value = html! { code { (made.branch) } " at " code { (made.commit) } };
        fact("Part", value);
    }
    if let Some(ending) = search.ended {
        fact("Ended", html! { (ending.words()) });
    }
    facts
}

/// Says what stands behind the head.
fn proof(search: &Autoresearch) -> Markup {
    let Some(measured) = &search.verified else {
        return html! { "none yet: the kept head is measured and checked once more in the end" };
    };
    let metric = search.metric_of(search.segment);
    let median = metric.and_then(|metric| measured.median(&metric.name));
    html! {
        "measured once more in the end"
        @if let (Some(metric), Some(median)) = (metric, median) {
            ": " (metric.name) " " (shown(median)) (metric.unit)
        }
        @match &measured.checks {
            Some(checks) => { "; checks.sh " (checks.words()) }
            None => "; there are no checks",
        }
        "; at " code { (measured.commit) }
    }
}

/// Returns a picture for each metric that decided, the one under way first.
fn figures(search: &Autoresearch) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (place, series) in primary(search).iter().rev().enumerate() {
        let Some(last) = series.points.last() else {
            continue;
        };
        let found = summary_of(search, last.run.segment);
        let description = description(series, found.as_ref());
        figures.push(Figure {
            id: format!("chart-{place}"),
            caption: chart::CAPTION.to_owned(),
            wide: chart::draw(series, Size::WIDE, description.clone()),
            narrow: chart::draw(series, Size::NARROW, description),
        });
    }
    figures
}

/// Says what can be seen in the picture of a metric.
fn description(series: &series::Series<'_>, found: Option<&Summary>) -> String {
    let of = |status: RunStatus| {
        let points = series.points.iter();
        points.filter(|it| is_experiment(it.run, status)).count()
    };
    let counts = format!(
        "{}: {} kept, {} discarded, {} crashed, {} failed checks.",
        counted(series.points.len(), "run"),
        of(RunStatus::Keep),
        of(RunStatus::Discard),
        of(RunStatus::Crash),
        of(RunStatus::ChecksFailed)
    );
    let Some(found) = found else {
        return counts;
    };
    format!(
        "{counts} Best {}{}, run {}: {}.",
        shown(found.best),
        series.unit,
        found.best_run,
        phrases::gain(found, series.unit)
    )
}

/// Returns the part with the metrics that decide nothing.
fn beside(search: &Autoresearch) -> Option<Section> {
    let all = secondary(search);
    if all.is_empty() {
        return None;
    }
    let surplus = all.len().saturating_sub(SECONDARY_MAX);
    let numbered = all.iter().take(SECONDARY_MAX).enumerate();
    let body = html! {
        p.note { "They are recorded and decide nothing." }
        div.several {
            @for (place, series) in numbered {
                div {
                    (chart::small(series, Size::SMALL).inline(&format!("secondary-{place}")))
                }
            }
        }
        @if surplus > 0 { p.note { (surplus) " more are in ledger.jsonl." } }
    };
    Some(Section {
        id: "secondary",
        title: "Other metrics".to_owned(),
        body,
    })
}

fn ideas(search: &Autoresearch) -> Markup {
    html! {
        ol {
            @for idea in &search.ideas {
                li {
                    (cut(&idea.text, FACT_BYTES_MAX)) " "
                    @match idea.tried {
                        Some(run) => a href={ "#run-" (run) } { "run " (run) },
                        None => span.said { "not tried" },
                    }
                }
            }
        }
    }
}

fn terms(contract: &Contract) -> Markup {
    let list = |name: &str, all: &[String]| {
        html! {
            @if !all.is_empty() {
                div {
                    dt { (name) }
                    dd { @for one in all { code { (cut(one, LINE_BYTES_MAX)) } br; } }
                }
            }
        }
    };
    html! {
        dl.facts {
            div { dt { "Kept" } dd { (contract.rule.words()) } }
            (list("In scope", &contract.scope))
            (list("Off limits", &contract.off_limits))
            (list("Constraints", &contract.constraints))
            div {
                dt { "Limits" }
                dd {
                    (counted(contract.runs, "run")) "; ends after " (contract.failures)
                    " discards and crashes in a row; benchmark " (contract.benchmark_seconds)
                    " s, checks " (contract.checks_seconds) " s"
                }
            }
        }
        p.note { "The scripts stand below, among the documents." }
    }
}
