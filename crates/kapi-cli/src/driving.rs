//! Approving a goal and driving it until it rests, with live progress.
//!
//! Shared by `run`, `resume` and `demo`. What happens is the engine's business; here it is shown.

use kapi_core::goal::command::Command;
use kapi_core::goal::contract::Contract;
use kapi_core::goal::event::{ApprovalMeans, Stop};
use kapi_core::goal::state::{Goal, Status};
use kapi_core::id::GoalId;
use kapi_engine::drive::{self, Control, Observed, Pace};
use kapi_engine::logged::Logged;
use kapi_engine::project::{Project, contract_hash};
use kapi_sys::signal::{self, Interrupts};
use kapi_wire::result::ResultView;
use kapi_world::hidden;
use kapi_world::real::RealWorld;

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::progress::Progress;
use crate::report;
use crate::ui::Format;

/// Nobody's silence is an approval: it is typed at a terminal or given as `--yes`.
pub(crate) fn approval(
    context: &Context,
    contract: &Contract,
    is_given: bool,
) -> Result<ApprovalMeans, Error> {
    if is_given {
        return Ok(ApprovalMeans::YesFlag);
    }
    let question = if contract.is_verified() {
        "Approve this contract and start?"
    } else {
        "Nothing will prove the result. Approve this contract and start all the same?"
    };
    match context.ui.confirm(question) {
        Some(true) => Ok(ApprovalMeans::Terminal),
        Some(false) => Err(Error::new(Exit::Denied, "the contract was not approved")),
        None => Err(
            Error::usage("a contract needs an approval, and nobody is at a terminal")
                .with_hint("read the contract above, then add `--yes` to approve it."),
        ),
    }
}

/// Records an approval of the contract that was shown, with its hidden checks taken over first.
pub(crate) fn approve(
    context: &Context,
    project: &Project<'_>,
    id: &GoalId,
    shown: &Contract,
    means: ApprovalMeans,
) -> Result<Vec<Logged>, Error> {
    let failed = |error| Error::engine(&error, &id.to_string());
    let contract_hash = contract_hash(shown).map_err(failed)?;
    if let Some(checks) = &shown.hidden {
        hidden::keep(checks, &project.layout.goal(id).hidden())
            .map_err(|failure| Error::world(&failure))?;
    }
    let command = Command::Approve {
        contract_hash,
        means,
    };
    project
        .submit(id, &context.actor, &command)
        .map(|submitted| submitted.recorded)
        .map_err(failed)
}

/// A goal to drive.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    /// Its project.
    pub(crate) project: &'a Project<'a>,
    /// The goal.
    pub(crate) id: &'a GoalId,
    /// The configuration.
    pub(crate) config: &'a Config,
}

/// Begins to watch for interrupts: from here on they stop a goal instead of ending the process.
pub(crate) fn interrupts() -> Result<Interrupts, Error> {
    signal::interrupts().map_err(|error| Error::failed(&error))
}

/// Drives a goal until it needs a person or has ended, and reports how it came out.
///
/// `begun` is what this command recorded already; it is shown first.
pub(crate) fn drive_to_rest(
    context: &Context,
    run: &Run<'_>,
    begun: Vec<Logged>,
    interrupts: &Interrupts,
) -> Result<Exit, Error> {
    let Run {
        project,
        id,
        config,
    } = *run;
    let world = RealWorld {
        place: context.place(project, id)?,
        book: context.book(config),
        clock: &context.clock,
    };
    let mut progress = Progress::new(context.ui, id);
    for logged in begun {
        progress.show(Observed::Recorded(Box::new(logged)));
    }
    let control = Control {
        person: context.actor.clone(),
        interrupted: &|| interrupts.is_raised(),
        monotonic_ms: &drive::monotonic_ms,
        pace: Pace::STANDARD,
    };
    let driven = drive::drive(project, id, &world, &control, &mut |seen| {
        progress.show(seen);
    });
    progress.end();
    let goal = driven.map_err(|error| Error::drive(&error, &id.to_string()))?;
    match context.ui.format {
        Format::Json => context.ui.json(&ResultView::from(&goal)),
        Format::Human => report::outcome(context.ui, &goal),
    }
    Ok(exit_of(&goal))
}

/// Returns the exit code for where a goal came to rest.
pub(crate) fn exit_of(goal: &Goal) -> Exit {
    match (goal.status, &goal.stop) {
        (Status::Done | Status::Unverified, _) => Exit::Success,
        (_, Some(Stop::Interrupted)) => Exit::Interrupted,
        (_, Some(Stop::WorldFailed { .. })) => Exit::Failed,
        (
            Status::Proposed
            | Status::Active
            | Status::Blocked
            | Status::Stalled
            | Status::Paused
            | Status::Impossible
            | Status::Cancelled,
            _,
        ) => Exit::NotDone,
    }
}
