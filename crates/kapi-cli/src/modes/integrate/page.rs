//! An integration on its page: which sources conflict, their order and what became of each, how conflicts
//! were resolved, which files tools regenerated, how much of the result is traced to a source, and what
//! was said for and against it.

use kapi_check::rules::proof::verify_report::run_end;
use kapi_core::id::GoalId;
use kapi_core::text::{counted, short_id};
use kapi_workflow::rules::effect::combine::{Coverage, Foresight};
use kapi_workflow::rules::modes::integrate::conflict::SettledConflict;
use kapi_workflow::rules::modes::integrate::plan::MergeStep;
use kapi_workflow::rules::modes::integrate::state::Integrate;
use maud::{Markup, html};

use crate::modes::integrate::phrases::{of as integration_of, said};
use crate::workflow::page::text::{FACT_BYTES_MAX, LINE_BYTES_MAX, cut};
use crate::workflow::page::{ModePage, PageSource, Section, Tile};

/// Returns what an integration adds to its page.
pub(super) fn of(source: &PageSource<'_>) -> ModePage {
    let Some(state) = integration_of(source.workflow) else {
        return ModePage::default();
    };
    let mut page = ModePage {
        tiles: tiles(state),
        ..ModePage::default()
    };
    let mut section = |id, title: &str, body: Option<Markup>| {
        let title = title.to_owned();
        page.sections
            .extend(body.map(|body| Section { id, title, body }));
    };
    let foresight = state.foresight.as_ref();
    section("matrix", "Conflicts between sources", foresight.map(matrix));
    let has_order = !state.steps().is_empty() || !state.evicted.is_empty();
    section("order", "Order", has_order.then(|| order(source, state)));
    let has_resolved = !state.resolutions.is_empty();
    section(
        "resolutions",
        "Resolved conflicts",
        has_resolved.then(|| resolved(source, state)),
    );
    let has_regenerated = !state.regenerations.is_empty();
    section(
        "regenerated",
        "Regenerated files",
        has_regenerated.then(|| regenerated(state)),
    );
    let coverage = state.coverage.as_deref();
    section("coverage", "Coverage", coverage.map(covered));
    let has_said = !state.statements.is_empty();
    section("consensus", "Consensus", has_said.then(|| consensus(state)));
    page
}

fn tiles(state: &Integrate) -> Vec<Tile> {
    let mut tiles = vec![Tile {
        name: "Sources".to_owned(),
        value: format!("{} of {}", state.applied.len(), state.sources.len()),
        note: "on the branch".to_owned(),
    }];
    if !state.evicted.is_empty() {
        tiles.push(Tile {
            name: "Left out".to_owned(),
            value: state.evicted.len().to_string(),
            note: "handed back with evidence".to_owned(),
        });
    }
    if let Some(coverage) = &state.coverage {
        tiles.push(Tile {
            name: "Traced".to_owned(),
            value: format!("{} of {}", coverage.n_traced, coverage.n_hunks),
            note: "hunks of the result".to_owned(),
        });
    }
    tiles
}

fn name(id: Option<&GoalId>) -> String {
    id.map_or_else(|| "dev".to_owned(), GoalId::to_string)
}

fn matrix(foresight: &Foresight) -> Markup {
    let sides = foresight.sides();
    html! {
        p.note { "How many paths git cannot merge when two are put together alone." }
        div.scroll tabindex="0" role="region" aria-labelledby="matrix" {
            table {
                thead {
                    tr {
                        th scope="col" { "With" }
                        @for side in &sides { th scope="col" { (name(*side)) } }
                    }
                }
                tbody {
                    @for one in &sides {
                        tr {
                            th scope="row" { (name(*one)) }
                            @for other in &sides { td { (cell(foresight, *one, *other)) } }
                        }
                    }
                }
            }
        }
        @if !foresight.clashes.is_empty() {
            ul {
                @for clash in &foresight.clashes {
                    li {
                        (name(clash.one.as_ref())) " and " (clash.other) ": "
                        (cut(&clash.paths.join(", "), FACT_BYTES_MAX))
                    }
                }
            }
        }
    }
}

fn cell(foresight: &Foresight, one: Option<&GoalId>, other: Option<&GoalId>) -> String {
    match foresight.clash(one, other) {
        _ if one == other => "–".to_owned(),
        Some(clash) => counted(clash.paths.len(), "path"),
        None => "none".to_owned(),
    }
}

fn order(source: &PageSource<'_>, state: &Integrate) -> Markup {
    html! {
        ol { @for step in state.steps() { li { (placed(source, state, step)) } } }
        @if !state.evicted.is_empty() {
            p { "Left out:" }
            ul {
                @for gone in &state.evicted {
                    li {
                        strong { (gone.source) } ": " (cut(&gone.why, FACT_BYTES_MAX))
                        @if let Some(with) = &gone.with { " It fails only together with " (with) "." }
                        p.said { (cut(&gone.evidence, FACT_BYTES_MAX)) }
                    }
                }
            }
        }
    }
}

fn placed(source: &PageSource<'_>, state: &Integrate, step: &MergeStep) -> Markup {
    let found = state.sources.iter().find(|it| it.id == step.source);
    let applied = state.applied.iter().find(|it| it.source == step.source);
    html! {
        strong { (step.source) } " by " (step.method.as_str())
        @if let Some(found) = found { ": " (cut(&found.title, LINE_BYTES_MAX)) }
        p.note { (cut(&step.why, FACT_BYTES_MAX)) }
        @match applied {
            Some(applied) => {
                (source.changes(
                    &applied.before,
                    &applied.after,
                    &format!("Changes of {} as {}", step.source, short_id(&applied.after)),
                ))
            }
            None => p { "It is not on the branch yet." }
        }
    }
}

fn resolved(source: &PageSource<'_>, state: &Integrate) -> Markup {
    html! { @for settled in &state.resolutions { (settlement(source, settled)) } }
}

fn settlement(source: &PageSource<'_>, settled: &SettledConflict) -> Markup {
    let paths: Vec<&str> = settled.paths.iter().map(|it| it.path.as_str()).collect();
    html! {
        h3 { (settled.source) " in " (cut(&paths.join(", "), LINE_BYTES_MAX)) }
        p.note { "by " (settled.by) }
        p { "Options:" }
        ul { @for option in &settled.said.options { li { (cut(option, FACT_BYTES_MAX)) } } }
        p { "Chosen: " (cut(&settled.said.choice, FACT_BYTES_MAX)) }
        p.said { (cut(&settled.said.rationale, FACT_BYTES_MAX)) }
        (source.changes(
            &settled.before,
            &settled.after,
            &format!("Changes up to {}", short_id(&settled.after)),
        ))
    }
}

/// Returns which lock files and generated files their own tools wrote, instead of a merge of lines.
fn regenerated(state: &Integrate) -> Markup {
    html! {
        ul {
            @for made in &state.regenerations {
                @for tool in &made.runs {
                    li {
                        code { (cut(&tool.path, LINE_BYTES_MAX)) } ", for " (made.source) ", by "
                        code { (cut(&tool.run.command, FACT_BYTES_MAX)) } " " (run_end(&tool.run))
                    }
                }
            }
        }
    }
}

fn covered(coverage: &Coverage) -> Markup {
    let n_all = u64::try_from(coverage.findings.len()).unwrap_or(u64::MAX);
    html! {
        p {
            (coverage.n_traced) " of " (coverage.n_hunks)
            " hunks of the result are traced to a source, line by line."
        }
        div.scroll tabindex="0" role="region" aria-labelledby="coverage" {
            table {
                thead {
                    tr {
                        th scope="col" { "Source" }
                        th scope="col" { "In the result" }
                        th scope="col" { "Hunks" }
                    }
                }
                tbody {
                    @for one in &coverage.sources {
                        tr {
                            th scope="row" { (one.source) }
                            td { (one.n_there) }
                            td { (one.n_hunks) }
                        }
                    }
                }
            }
        }
        @if n_all > 0 {
            p { "Found mechanically, and to be justified by a reviewer:" }
            ol {
                @for found in &coverage.findings {
                    li {
                        strong { (found.kind.as_str()) } " in "
                        code { (cut(&found.path, LINE_BYTES_MAX)) } " line " (found.line)
                        @if let Some(source) = &found.source { ", of " (source) }
                        ": " (cut(&found.what, FACT_BYTES_MAX))
                    }
                }
            }
        }
        @if coverage.n_more > 0 { p { "And " (coverage.n_more) " more." } }
    }
}

fn consensus(state: &Integrate) -> Markup {
    html! {
        ol { @for statement in &state.statements { li { (cut(&said(statement), FACT_BYTES_MAX)) } } }
    }
}
