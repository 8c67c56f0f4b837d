//! What the page of every workflow has: its phases, what was decided, on what evidence, what it cost
//! and what was written.
//!
//! Told by the seam that all modes share; knows none of them.

use kapi_core::text::counted;
use kapi_workflow::rules::documents::documents;
use kapi_workflow::rules::evidence::{Weight, WorkflowEvidence};
use kapi_workflow::rules::pending::{DecisionApproval, WaitingDecision};
use kapi_workflow::rules::spent;
use kapi_workflow::rules::state::Workflow;
use maud::{Markup, html};

use crate::amount;
use crate::workflow::event_words::means;
use crate::workflow::page::text::{FACT_BYTES_MAX, LINE_BYTES_MAX, block, cut};
use crate::workflow::page::{Fact, PageSource, Section, time};

/// The most pieces of evidence on a page, the latest.
const EVIDENCE_MAX: usize = 500;

/// Returns what is known of every workflow.
pub(super) fn facts(workflow: &Workflow) -> Vec<Fact> {
    let fact = |name, value| Fact { name, value };
    let rules = workflow.body.rules();
    let mut facts = Vec::new();
    if let Some(approval) = workflow.approvals.last() {
        facts.push(fact("Approved", approved(approval)));
    }
    if let Some(pending) = &workflow.pending {
        facts.push(fact("Waits for you", waits(pending)));
    }
    if let Some(branch) = rules.branch() {
        let value = html! { code { (branch.name) } " at " code { (branch.head) } };
        facts.push(fact("Head", value));
    }
    if let Some(base) = rules.base() {
        facts.push(fact("Base", html! { code { (base) } }));
    }
    for link in &workflow.links {
        let value = html! { (link.mode) " " (link.workflow) };
        facts.push(fact("Linked", value));
    }
    let value = html! { (cut(&workflow.terms.agent, LINE_BYTES_MAX)) };
    facts.push(fact("Agent", value));
    let by = cut(&workflow.started_by, LINE_BYTES_MAX);
    let value = html! { "by " (by) ", " (time(workflow.started_at_ms)) };
    facts.push(fact("Started", value));
    facts
}

fn approved(approval: &DecisionApproval) -> Markup {
    html! {
        (approval.decision.words()) ", sha256 " code { (approval.sha256) }
        ", by " (cut(&approval.by, LINE_BYTES_MAX)) " " (means(approval.means)) ", "
        (time(approval.at_ms))
    }
}

fn waits(pending: &WaitingDecision) -> Markup {
    html! {
        (pending.decision.words()) ", sha256 " code { (pending.sha256) }
        ", since " (time(pending.since_ms))
    }
}

/// Returns the parts that the page of every workflow has.
pub(super) fn sections(source: &PageSource<'_>) -> Vec<Section> {
    let workflow = source.workflow;
    let section = |id, title: &str, body| Section {
        id,
        title: title.to_owned(),
        body,
    };
    let mut sections = vec![section("phases", "Phases", phases(workflow))];
    sections.push(section("decisions", "Decisions", decisions(workflow)));
    if !workflow.conflicts.is_empty() {
        sections.push(section("conflicts", "Conflicts", conflicts(workflow)));
    }
    sections.push(section("evidence", "Evidence", evidence(workflow)));
    sections.push(section("cost", "Cost", cost(workflow)));
    sections.push(section("documents", "Documents", written(workflow)));
    sections
}

fn phases(workflow: &Workflow) -> Markup {
    let (now, part) = workflow.phase();
    let is_over = workflow.status.is_terminal();
    html! {
        ol.phases {
            @for phase in workflow.body.rules().spec().phases {
                @let is_now = phase.name == now && !is_over;
                li aria-current=[is_now.then_some("step")] {
                    (phase.name)
                    @if let Some(part) = part.filter(|_| is_now) { ": " (part) }
                }
            }
        }
    }
}

fn decisions(workflow: &Workflow) -> Markup {
    let nothing = workflow.approvals.is_empty()
        && workflow.pending.is_none()
        && workflow.revisions.is_empty();
    html! {
        @if nothing { p { "Nothing was decided yet." } }
        ul {
            @for approval in &workflow.approvals {
                li {
                    strong { "Approved: " } (approved(approval)) "."
                    (risks("Accepted with it", &approval.accepted))
                }
            }
            @for revision in &workflow.revisions {
                li {
                    strong { "Changes requested" } " in " (revision.phase) ", "
                    (time(revision.at_ms)) ": " (cut(&revision.text, FACT_BYTES_MAX))
                }
            }
            @if let Some(pending) = &workflow.pending {
                li {
                    strong { "Waiting: " } (waits(pending)) "."
                    (risks("To be accepted with it", &pending.risks))
                }
            }
        }
    }
}

fn risks(title: &str, risks: &[String]) -> Markup {
    html! {
        @if !risks.is_empty() {
            p.note { (title) ":" }
            ul { @for risk in risks { li { (cut(risk, FACT_BYTES_MAX)) } } }
        }
    }
}

fn conflicts(workflow: &Workflow) -> Markup {
    html! {
        ul {
            @for conflict in &workflow.conflicts {
                li { (cut(&conflict.words(), FACT_BYTES_MAX)) }
            }
        }
    }
}

fn evidence(workflow: &Workflow) -> Markup {
    if workflow.evidence.is_empty() {
        return html! { p { "There is no evidence yet." } };
    }
    let surplus = workflow.evidence.len().saturating_sub(EVIDENCE_MAX);
    let numbered = (1_usize..).zip(&workflow.evidence).skip(surplus);
    html! {
        p.note {
            "What completion rests on. Seen by Kapi itself: an exit code, a tree, a verdict on a commit. "
            "Told: somebody's words."
        }
        @if surplus > 0 {
            p.note { (counted(surplus, "earlier piece")) " is left out here; the log has all." }
        }
        div.scroll tabindex="0" role="region" aria-labelledby="evidence" {
            table {
                thead {
                    tr {
                        th.number scope="col" { "No." }
                        th.short scope="col" { "Kind" }
                        th scope="col" { "What it says" }
                        th scope="col" { "Where" }
                        th.short scope="col" { "When" }
                    }
                }
                tbody { @for (number, found) in numbered { (evidence_row(number, found)) } }
            }
        }
    }
}

fn evidence_row(number: usize, found: &WorkflowEvidence) -> Markup {
    let weight = match found.weight {
        Weight::Validation => "seen",
        Weight::Narrative => "told",
    };
    html! {
        tr {
            th.number scope="row" { (number) }
            td.short { (found.kind) ", " (weight) }
            td {
                (cut(&found.summary, FACT_BYTES_MAX))
                @if let Some(verdict) = &found.verdict {
                    " \u{2013} " (cut(verdict, LINE_BYTES_MAX))
                }
                @if let Some(command) = &found.command {
                    br;
                    code { (cut(command, LINE_BYTES_MAX)) }
                    @if let Some(code) = found.exit_code { " exited with " (code) }
                }
            }
            td { code { (cut(&found.reference, LINE_BYTES_MAX)) } }
            td.short { (time(found.at_ms)) }
        }
    }
}

fn cost(workflow: &Workflow) -> Markup {
    let (used, limit) = (spent::used(workflow), spent::limit(workflow));
    let row = |name: &str, used: String, limit: Option<String>| {
        html! {
            tr {
                th scope="row" { (name) }
                td.number { (used) }
                td.number { (limit.as_deref().unwrap_or("no limit")) }
            }
        }
    };
    let tokens = limit.tokens.map(amount::tokens);
    let usd = amount::cost(&used).unwrap_or_else(|| "not reported".to_owned());
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby="cost" {
            table {
                thead {
                    tr {
                        th scope="col" { "What" }
                        th.number scope="col" { "Used" }
                        th.number scope="col" { "Limit" }
                    }
                }
                tbody {
                    (row("Tokens", amount::tokens(used.tokens()), tokens))
                    (row("Money", usd, limit.usd_micros.map(amount::usd)))
                    @if let Some(limit_ms) = spent::time_limit_ms(workflow) {
                        (row("Time", amount::duration(workflow.wall_used_ms),
                            Some(amount::duration(limit_ms))))
                    }
                    @for (goal, account) in &workflow.goals {
                        (row(&format!("of that, tokens of goal {goal}"),
                            amount::tokens(account.used.tokens()), Some(String::new())))
                    }
                }
            }
        }
    }
}

fn written(workflow: &Workflow) -> Markup {
    html! {
        @for document in documents(workflow) {
            details {
                summary { (document.name) }
                (block(&document.text, &document.name))
            }
        }
    }
}
