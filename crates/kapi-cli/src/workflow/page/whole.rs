//! The whole page: its head, what the mode adds, and what every mode has.

use kapi_workflow::rules::state::Workflow;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::workflow::page::text::{FACT_BYTES_MAX, LINE_BYTES_MAX, cut, finished};
use crate::workflow::page::{Fact, ModePage, PageSource, Section, Tile, every_mode, style, time};
use crate::workflow::words;

/// Returns the whole page.
pub(super) fn html(source: &PageSource<'_>, own: ModePage) -> String {
    let workflow = source.workflow;
    let style = style::page();
    let purpose = cut(&workflow.purpose, LINE_BYTES_MAX);
    let sections = own.sections.into_iter().chain(every_mode::sections(source));
    let sections: Vec<Section> = sections.collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(style::policy(&style));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content={ "kapi " (env!("CARGO_PKG_VERSION")) };
                title { (purpose) " \u{b7} " (workflow.mode()) " " (workflow.id) }
                style { (PreEscaped(&style)) }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (head(workflow, &own.tiles, &own.facts))
                nav aria-label="Contents" {
                    @for section in &sections {
                        a href={ "#" (section.id) } { (section.title) }
                    }
                }
                main id="main" {
                    @for figure in &own.figures { (figure.inline()) }
                    @for section in &sections {
                        section aria-labelledby=(section.id) {
                            h2 id=(section.id) { (section.title) }
                            (section.body)
                        }
                    }
                }
                footer {
                    p {
                        "Made by kapi " (env!("CARGO_PKG_VERSION")) " on " (time(source.at_ms))
                        " from the workflow's own log. It does not change when the workflow continues."
                    }
                }
            }
        }
    };
    finished(&page.into_string())
}

/// What stands above everything else.
fn head(workflow: &Workflow, tiles: &[Tile], facts: &[Fact]) -> Markup {
    let more = every_mode::facts(workflow);
    html! {
        header {
            p.eyebrow { (workflow.mode()) " \u{b7} " (workflow.id) }
            h1 { (cut(&workflow.purpose, FACT_BYTES_MAX)) }
            p.status data-status=(workflow.status.as_str()) { (words::state(workflow)) }
            @if let Some(blocked) = &workflow.blocked {
                p.blocked {
                    strong { "Blocked: " } (cut(&blocked.reason, FACT_BYTES_MAX))
                    br;
                    (cut(&blocked.unblock, FACT_BYTES_MAX))
                }
            }
            @if !tiles.is_empty() {
                ul.tiles {
                    @for tile in tiles {
                        li {
                            span.name { (tile.name) }
                            span.value { (tile.value) }
                            span.note { (tile.note) }
                        }
                    }
                }
            }
            dl.facts {
                @for fact in facts.iter().chain(&more) {
                    div { dt { (fact.name) } dd { (fact.value) } }
                }
            }
        }
    }
}
