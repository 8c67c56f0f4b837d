//! Everything of the dashboard as data: what is alive, what waits, what was spent, the sandboxes, and
//! what the kernel is at.
//!
//! What cannot be read is a warning.

use kapi_launch::look;
use kapi_wire::kernel::dashboard::{AliveView, DashboardView, WarningView};
use kapi_wire::workflow::inbox::InboxItem;
use serde::Serialize;

use crate::commands::dashboard::alive::{AliveSource, spent_today};
use crate::commands::dashboard::gather;
use crate::commands::inbox;
use crate::commands::sandbox::list::{self, SandboxView};
use crate::commands::spend::today::{SpentToday, SpentTodayView};
use crate::error::Error;
use crate::kernel::ProjectKernel;
use crate::live_view::facts::SubjectFacts;
use crate::subject::launches;

/// Everything, read once.
pub(super) struct WholeDashboard {
    pub(super) kernel: DashboardView,
    pub(super) alive: Vec<SubjectFacts>,
    pub(super) inbox: Vec<InboxItem>,
    pub(super) spent: Option<SpentToday>,
    pub(super) sandboxes: Vec<SandboxView>,
}

/// Everything as others see it.
#[derive(Debug, Serialize)]
pub(super) struct WholeDashboardView {
    #[serde(flatten)]
    kernel: DashboardView,
    alive: Vec<AliveView>,
    inbox: Vec<InboxItem>,
    spend: Option<SpentTodayView>,
    sandboxes: Vec<SandboxView>,
}

impl WholeDashboard {
    /// Reads everything; `errors` are those of configuration files.
    pub(super) fn read(kernel: &ProjectKernel<'_>, errors: &[Error]) -> Result<Self, Error> {
        let mut view = gather::gather(kernel, errors)?;
        let warnings = &mut view.warnings;
        let inbox = inbox::views(kernel.context);
        let spent = spent_today(kernel);
        let sandboxes = sandboxes(kernel, warnings);
        Ok(Self {
            alive: AliveSource::new(kernel).subjects(),
            inbox: known(inbox, warnings).unwrap_or_default(),
            spent: known(spent, warnings),
            sandboxes: known(sandboxes, warnings).unwrap_or_default(),
            kernel: view,
        })
    }

    /// Returns it as others see it.
    pub(super) fn into_view(self) -> WholeDashboardView {
        WholeDashboardView {
            kernel: self.kernel,
            alive: self.alive.into_iter().map(alive).collect(),
            inbox: self.inbox,
            spend: self.spent.map(SpentToday::into_view),
            sandboxes: self.sandboxes,
        }
    }
}

fn known<T>(read: Result<T, Error>, warnings: &mut Vec<WarningView>) -> Option<T> {
    read.map_err(|error| warnings.push(gather::of_error(&error)))
        .ok()
}

fn sandboxes(
    kernel: &ProjectKernel<'_>,
    warnings: &mut Vec<WarningView>,
) -> Result<Vec<SandboxView>, Error> {
    let mut views = Vec::new();
    for location in launches::here(kernel.context)? {
        match look::known(&location) {
            Ok(known) => views.push(list::view(&known, location.dir().display().to_string())),
            Err(error) => warnings.push(gather::of_error(&Error::launch(&error))),
        }
    }
    Ok(views)
}

fn alive(facts: SubjectFacts) -> AliveView {
    let account = facts.account;
    AliveView {
        kind: facts.kind,
        id: facts.id,
        reference: facts.reference,
        title: facts.title,
        status: facts.status,
        phase: Some(facts.phase).filter(|phase| !phase.is_empty()),
        why: facts.why,
        turn: account.turn.map(|turn| turn.at),
        turns_max: account.turn.map(|turn| turn.max),
        tokens: account.used.tokens(),
        tokens_max: account.tokens_max,
        usd_micros: account.used.usd_micros,
        usd_micros_max: account.usd_micros_max,
        worked_ms: account.worked_ms,
        work_max_ms: account.work_max_ms,
    }
}
