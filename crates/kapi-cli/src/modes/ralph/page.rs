//! A build on its page: its tasks with what each changed, its criteria with their evidence, and what
//! reviews found.

use kapi_core::text::{counted, short_id};
use kapi_workflow::rules::modes::ralph::review::Review;
use kapi_workflow::rules::modes::ralph::state::{Ralph, Stand, TaskState};
use maud::{Markup, html};

use crate::modes::ralph::phrases::{category, criterion, of as build_of, stand};
use crate::workflow::page::text::{FACT_BYTES_MAX, LINE_BYTES_MAX, cut};
use crate::workflow::page::{Fact, ModePage, PageSource, Section, Tile};

/// Returns what a build adds to its page.
pub(super) fn of(source: &PageSource<'_>) -> ModePage {
    let Some(ralph) = build_of(source.workflow) else {
        return ModePage::default();
    };
    let mut page = ModePage::default();
    let mut section = |id, title: &str, is_there: bool, body: Markup| {
        if is_there {
            let title = title.to_owned();
            page.sections.push(Section { id, title, body });
        }
    };
    section(
        "tasks",
        "Tasks",
        !ralph.tasks.is_empty(),
        tasks(source, ralph),
    );
    let account = ralph.account.as_ref();
    section("criteria", "Criteria", account.is_some(), criteria(ralph));
    section(
        "reviews",
        "Reviews",
        !ralph.reviews.is_empty(),
        reviews(ralph),
    );
    if let Some(plan) = &ralph.plan {
        let value = html! { (cut(&plan.summary, FACT_BYTES_MAX)) };
        page.facts.push(Fact {
            name: "Plan",
            value,
        });
    }
    if !ralph.tasks.is_empty() {
        page.tiles = tiles(ralph);
    }
    page
}

fn tiles(ralph: &Ralph) -> Vec<Tile> {
    let n_landed = ralph.landed.len();
    let holds = ralph.account.as_ref().map_or(0, |it| it.acceptance.len());
    let plan = ralph.plan.as_ref();
    let n_criteria = plan.map_or(0, |plan| plan.criteria.len());
    vec![
        Tile {
            name: "Tasks".to_owned(),
            value: format!("{n_landed} of {}", ralph.tasks.len()),
            note: "on the branch".to_owned(),
        },
        Tile {
            name: "Criteria".to_owned(),
            value: format!("{holds} of {n_criteria}"),
            note: "hold by their evidence".to_owned(),
        },
        Tile {
            name: "Reviews".to_owned(),
            value: ralph.reviews.len().to_string(),
            note: "of what had landed".to_owned(),
        },
    ]
}

fn tasks(source: &PageSource<'_>, ralph: &Ralph) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby="tasks" {
            table {
                thead {
                    tr {
                        th.short scope="col" { "Task" }
                        th scope="col" { "What" }
                        th scope="col" { "Where it stands" }
                    }
                }
                tbody {
                    @for state in ralph.tasks.values() {
                        tr {
                            th.short scope="row" { (state.task.id) }
                            td { (task(source, state)) }
                            td {
                                (stand(state))
                                @if let Some(goal) = &state.goal { br; "goal " (goal) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn task(source: &PageSource<'_>, state: &TaskState) -> Markup {
    let made = match &state.stand {
        Stand::Proved { commit } | Stand::Landed { head: commit } => Some(commit),
        Stand::Waiting | Stand::Rested { .. } => None,
    };
    html! {
        strong { (cut(&state.task.title, LINE_BYTES_MAX)) }
        p.said { (cut(&state.task.description, FACT_BYTES_MAX)) }
        @if let Some(because) = &state.because {
            p { "Because: " (cut(because, FACT_BYTES_MAX)) }
        }
        @if let (Some(base), Some(commit)) = (&state.base, made) {
            (source.changes(base, commit, &format!("Changes of {} up to {}", state.task.id, short_id(commit))))
        }
    }
}

fn criteria(ralph: &Ralph) -> Markup {
    let accepted = ralph.account.iter().flat_map(|it| &it.acceptance);
    let numbers = |all: &[u32]| {
        let numbers: Vec<String> = all.iter().map(u32::to_string).collect();
        numbers.join(", ")
    };
    html! {
        ul {
            @for one in accepted {
                li {
                    (criterion(ralph, &one.criterion))
                    p.note { "Holds by evidence " (numbers(&one.evidence)) "." }
                }
            }
        }
    }
}

fn reviews(ralph: &Ralph) -> Markup {
    html! {
        ol { @for review in &ralph.reviews { li { (reviewed(review)) } } }
    }
}

fn reviewed(review: &Review) -> Markup {
    let found = &review.findings;
    html! {
        (cut(&found.summary, FACT_BYTES_MAX))
        p.note {
            "by " (review.by) " at " code { (short_id(&review.commit)) } ", "
            (counted(found.findings.len(), "finding"))
        }
        @if !found.findings.is_empty() {
            ul {
                @for finding in &found.findings {
                    li {
                        @if finding.must_fix { strong { "must be fixed, " } }
                        (category(finding.category)) ": " (cut(&finding.title, FACT_BYTES_MAX))
                    }
                }
            }
        }
    }
}
