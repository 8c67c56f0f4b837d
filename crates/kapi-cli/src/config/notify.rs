//! Who is told that work has ended or waits: `[notify]`, and the options that hold over it.
//!
//! Commands of the person's own, so a project's file cannot name them.

use serde::Deserialize;

/// Options that say who is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct NotifyArgs {
    /// Shell command to run when the work has ended, whatever the outcome
    #[arg(help_heading = "Notification", long, value_name = "COMMAND")]
    pub(crate) on_done: Option<String>,
    /// Shell command to run when the work waits for you
    #[arg(help_heading = "Notification", long, value_name = "COMMAND")]
    pub(crate) on_waiting: Option<String>,
}

/// `[notify]`: who is told where no option says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct NotifyTable {
    /// The command that is run when work has ended.
    pub(crate) on_done: Option<String>,
    /// The command that is run when work waits for its person.
    pub(crate) on_waiting: Option<String>,
    /// Whether the desktop shows it.
    pub(crate) desktop: bool,
}
