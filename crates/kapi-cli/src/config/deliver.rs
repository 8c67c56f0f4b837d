//! Where a proved branch goes: `[deliver]`, and the options that hold over it.
//!
//! It is pushed with the person's own credentials, so a project's file cannot ask for it.

use serde::Deserialize;

/// Options that say where a proved branch goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Delivery")]
pub(crate) struct DeliverArgs {
    /// Push the proved branch to the remote
    #[arg(long)]
    pub(crate) push: bool,
    /// Push the proved branch and open a pull request, by gh, glab or the forge's page
    #[arg(long)]
    pub(crate) pr: bool,
    /// Remote to push to [default: origin]
    #[arg(long, value_name = "NAME")]
    pub(crate) remote: Option<String>,
    /// Branch that the pull request is for [default: the forge's own]
    #[arg(long, value_name = "BRANCH", requires = "pr")]
    pub(crate) pr_base: Option<String>,
    /// Deliver nothing, even if the configuration does
    #[arg(long, conflicts_with_all = ["push", "pr"])]
    pub(crate) no_push: bool,
}

/// `[deliver]`: what becomes of a proved branch where no option says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct DeliverTable {
    /// Whether it is pushed.
    pub(crate) push: bool,
    /// Whether a pull request is opened, which pushes it too.
    pub(crate) pull_request: bool,
    /// The remote.
    pub(crate) remote: Option<String>,
}
