//! The modes on the command line: what each says of its workflows, in one list.
//!
//! Their commands and what they do besides stand in the files below; what every mode shares of
//! reading, asking, driving and showing stands in [`crate::workflow`].

use kapi_core::mode::Mode;
use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::state::Workflow;

use crate::ui::Ui;
use crate::workflow::page::{ModePage, PageSource};

/// Hands the list of modes to a macro: a new mode is a line here and its file below.
macro_rules! every_mode {
    ($list:ident) => {
        $list! {
            /// Turn an idea into an approved spec by interview
            DeepInterview in deep_interview;
            /// Plan, build and review larger work in parallel
            Ralph in ralph;
            /// Improve a number by measured experiments
            Autoresearch in autoresearch;
            /// Bring finished work together on dev, with proof
            Integrate in integrate;
        }
    };
}

pub(crate) mod autoresearch;
pub(crate) mod command;
pub(crate) mod deep_interview;
pub(crate) mod integrate;
pub(crate) mod ralph;

/// Makes of the list the way to what each mode says.
macro_rules! fronts {
    ($($(#[$about:meta])* $mode:ident in $folder:ident;)+) => {
        /// Returns what a mode says; `None` for one that there is only by name yet.
        pub(crate) fn front(mode: Mode) -> Option<&'static Front> {
            let fronts = [$((Mode::$mode, &$folder::words::FRONT)),+];
            let mut fronts = fronts.into_iter();
            fronts.find_map(|(of, front)| (of == mode).then_some(front))
        }
    };
}

every_mode!(fronts);

/// What a mode says of its workflows.
pub(crate) struct Front {
    /// Returns a fact of the mode in words; `None` for what is only bookkeeping.
    pub(crate) describe: fn(&ModeEvent) -> Option<String>,
    /// Tells whether a fact is what a person at the keyboard is shown whole right after it.
    pub(crate) is_shown_next: fn(&ModeEvent) -> bool,
    /// Prints what it came to, for whoever sees it end or rest.
    pub(crate) summary: fn(Ui, &Workflow),
    /// Prints more, for whoever looks at it.
    pub(crate) details: fn(Ui, &Workflow),
    /// Returns how far it has come, in a few columns for the line that is shown while it goes on.
    pub(crate) live: fn(&Workflow) -> Option<String>,
    /// Returns what it adds to the page of a workflow.
    pub(crate) page: fn(&PageSource<'_>) -> ModePage,
    /// Returns commands of other programs that make sense now.
    pub(crate) next: fn(&Workflow) -> Vec<String>,
    /// Returns what one trusts besides by taking one over.
    pub(crate) trusted: fn(&Workflow) -> Vec<(&'static str, String)>,
    /// Returns what it asks its person now, apart from decisions.
    pub(crate) waits_for: fn(&Workflow) -> Option<WaitsFor>,
}

/// What a workflow asks its person, as a list of what waits shows it.
#[derive(Debug)]
pub(crate) struct WaitsFor {
    /// Its kind.
    pub(crate) kind: &'static str,
    /// What it is, in a line.
    pub(crate) what: String,
    /// What happens when it is settled.
    pub(crate) on_yes: &'static str,
    /// The options of `resume` that settle it otherwise.
    pub(crate) change: &'static [&'static str],
}
