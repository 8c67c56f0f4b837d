//! A workflow as one page that needs nothing else: no network, no script, no other file.
//!
//! Here is what a page is made of; what one mode knows alone comes from its [`ModePage`]. Foreign text
//! is escaped where it is put in, cut where it is long, and made visible where it hides.

pub(crate) mod axis;
pub(crate) mod drawing;
mod every_mode;
pub(crate) mod file;
mod palette;
mod style;
pub(crate) mod text;
mod whole;

use kapi_core::text::time_words;
use kapi_machine::logged::EventRecord;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::state::Workflow;
use maud::{Markup, html};

use crate::workflow::page::drawing::Figure;
use crate::workflow::page::text::{LINE_BYTES_MAX, cut, patch};

/// What a page is made of.
pub(crate) struct PageSource<'a> {
    /// The workflow.
    pub(crate) workflow: &'a Workflow,
    /// Everything that was recorded of it, oldest first.
    pub(crate) log: &'a [EventRecord<WorkflowEvent>],
    /// Reads what differs between two commits; says why it cannot.
    pub(crate) diff: &'a dyn Fn(&str, &str) -> Result<Patch, String>,
    /// When the page is made, in milliseconds since the epoch.
    pub(crate) at_ms: i64,
}

impl PageSource<'_> {
    /// Shows what differs between two commits behind a click.
    pub(crate) fn changes(&self, base: &str, commit: &str, summary: &str) -> Markup {
        html! {
            details {
                summary { (summary) }
                @match (self.diff)(base, commit) {
                    Ok(found) => (patch(&found.text, found.is_cut, summary)),
                    Err(why) => p.note {
                        "They cannot be read: failed to " (cut(&why, LINE_BYTES_MAX)) "."
                    },
                }
            }
        }
    }
}

/// What differs between two commits.
pub(crate) struct Patch {
    /// As git writes it.
    pub(crate) text: String,
    /// Whether it goes on.
    pub(crate) is_cut: bool,
}

/// What a mode adds to the page of its workflows.
#[derive(Default)]
pub(crate) struct ModePage {
    /// What it came to, in a few large numbers.
    pub(crate) tiles: Vec<Tile>,
    /// More for the list at the top.
    pub(crate) facts: Vec<Fact>,
    /// Its pictures; the first is the one that stands for it alone.
    pub(crate) figures: Vec<Figure>,
    /// Its own parts, before those of every mode.
    pub(crate) sections: Vec<Section>,
}

/// A number in large letters.
pub(crate) struct Tile {
    /// What it is.
    pub(crate) name: String,
    /// The number.
    pub(crate) value: String,
    /// More about it.
    pub(crate) note: String,
}

/// One line of the list at the top.
pub(crate) struct Fact {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) value: Markup,
}

/// One part of the page.
pub(crate) struct Section {
    /// Its anchor.
    pub(crate) id: &'static str,
    /// Its heading.
    pub(crate) title: String,
    /// What stands below it.
    pub(crate) body: Markup,
}

/// Writes a time for people and for programs.
pub(crate) fn time(at_ms: i64) -> Markup {
    let exact = kapi_store::timestamp::format_ms(at_ms);
    html! { time datetime=(exact) { (time_words(at_ms)) } }
}
