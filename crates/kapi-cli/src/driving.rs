//! Approving a goal and driving it until it rests, with live progress.
//!
//! Shared by every command that a person starts and stays with. What happens is the engine's
//! business; here it is shown. A goal that is parked is stayed with, unless the person goes.

pub(crate) mod attendance;

use std::path::Path;

use kapi_core::id::GoalId;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::record::drive::{DriveControl, GoalDriveError};
use kapi_goal::record::project::Project;
use kapi_goal::record::{drive, race};
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::event::{ApprovalMeans, GoalEvent, Stop};
use kapi_goal::rules::state::{Goal, GoalStage, GoalStatus};
use kapi_launch::clean::goals;
use kapi_machine::logged::EventRecord;
use kapi_machine::pace::Pace;
use kapi_sys::clock::monotonic_ms;
use kapi_sys::signal::{self, Interrupts};
use kapi_wire::result::ResultView;

use crate::config::Config;
use crate::context::Context;
use crate::driving::attendance::Attendance;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::live_view::open_view::ViewSource;
use crate::live_view::source::GoalSource;
use crate::ui::Format;
use crate::{delivering, live_view, notification, report, tool_service, trust};

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
        "Nothing will prove the result. Approve this contract and start anyway?"
    };
    match context.ui.confirm(question) {
        Some(true) => Ok(ApprovalMeans::Terminal),
        Some(false) => Err(Error::new(Exit::Denied, "the contract was not approved")),
        None => Err(
            Error::usage("a contract needs approval, and there is no terminal to ask on")
                .with_hint("read the contract above, then add `--yes` to approve it."),
        ),
    }
}

/// A goal to drive.
#[derive(Clone, Copy)]
pub(crate) struct GoalRun<'a> {
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

/// What becomes of a goal that is parked while a person looks on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenParked {
    /// This process looks whether the wait is over, and goes on with the goal then.
    Stay,
    /// This process ends; `kapi up` or `kapi resume` goes on.
    Leave,
}

impl WhenParked {
    /// Reads `--park`.
    pub(crate) const fn asked(leaves: bool) -> Self {
        if leaves { Self::Leave } else { Self::Stay }
    }
}

/// Drives a goal until it needs a person or has ended, and reports how it came out. A goal that is
/// parked on the way is stayed with.
///
/// `begun` is what this command recorded already; it is shown first.
pub(crate) fn drive_to_rest(
    context: &Context,
    run: &GoalRun<'_>,
    begun: Vec<EventRecord<GoalEvent>>,
    interrupts: &Interrupts,
) -> Result<Exit, Error> {
    drive_and(context, run, begun, interrupts, WhenParked::Stay)
}

/// Does the same, and says what becomes of a goal that is parked on the way.
pub(crate) fn drive_and(
    context: &Context,
    run: &GoalRun<'_>,
    begun: Vec<EventRecord<GoalEvent>>,
    interrupts: &Interrupts,
    when_parked: WhenParked,
) -> Result<Exit, Error> {
    let goal = drive_unreported(context, run, begun, interrupts, when_parked)?;
    let root = run.project.layout.root();
    let delivered = delivering::of_goal(context, run.config, run.project, &goal);
    let exit = settle(context, root, &goal, interrupts);
    delivering::show(context, run.project, &goal);
    if !interrupts.is_raised() {
        notification::of_goal(context, run.config, &goal, root.to_path_buf());
    }
    delivered.map(|()| exit)
}

/// Does the same and says nothing of how it came out.
pub(crate) fn drive_unreported(
    context: &Context,
    run: &GoalRun<'_>,
    begun: Vec<EventRecord<GoalEvent>>,
    interrupts: &Interrupts,
    when_parked: WhenParked,
) -> Result<Goal, Error> {
    let goals = GoalSource::new(context, run.project);
    let source = ViewSource {
        subjects: &|| goals.read(run.id).into_iter().collect(),
        overview: None,
    };
    live_view::during(context, source, interrupts, || {
        drive_shown(context, run, begun, interrupts, when_parked)
    })
}

fn drive_shown(
    context: &Context,
    run: &GoalRun<'_>,
    begun: Vec<EventRecord<GoalEvent>>,
    interrupts: &Interrupts,
    when_parked: WhenParked,
) -> Result<Goal, Error> {
    let GoalRun {
        project,
        id,
        config,
    } = *run;
    let world = world(context, project, id, config)?;
    let control = DriveControl {
        person: context.actor.clone(),
        interrupted: &|| interrupts.is_raised(),
        monotonic_ms: &monotonic_ms,
        pace: Pace::STANDARD,
    };
    let mut attendance = Attendance::new(context, project, id, interrupts)?;
    attendance.show_begun(begun);
    let goal = loop {
        let driven = drive::drive(project, id, &world, &control, &mut |seen| {
            attendance.show(&seen);
        });
        let goal = match driven {
            Ok(goal) => goal,
            // Somebody was faster; what happens is shown all the same.
            Err(GoalDriveError::Driven { owner, .. }) => match attendance.follow(&owner)? {
                Some(goal) => goal,
                None => continue,
            },
            Err(error) => return Err(attendance.failed(&error)),
        };
        // A proof that needs a person's yes gets none from a script that looks on.
        let is_asked = goal.stage == GoalStage::Verify && goal.waits_for_person();
        let is_left = when_parked == WhenParked::Leave
            || interrupts.is_raised()
            || (is_asked && !context.ui.is_at_keyboard());
        if goal.status != GoalStatus::Waiting || is_left {
            break goal;
        }
        let goal = attendance.stay(&world)?;
        if !goal.is_driven() {
            break goal;
        }
    };
    // Whoever drove it: once a lane is proved, its race is over.
    race::settle(project, &context.actor, &goal)
        .map_err(|error| Error::engine(&error, &id.to_string()))?;
    if let Some(text) = clear_homes(&world, &goal) {
        context.ui.say(&format!("note: {text}"));
    }
    Ok(goal)
}

/// Removes the private homes of a goal that has ended, and tells what went wrong.
///
/// What cannot be removed now goes with `kapi cleanup`; the goal has ended all the same.
pub(crate) fn clear_homes(world: &RealWorld<'_>, goal: &Goal) -> Option<String> {
    if !goal.status.is_terminal() {
        return None;
    }
    let error = goals::remove_homes(&world.location).err()?;
    Some(format!("failed to {}", error.message))
}

/// Reports how a goal came out, and returns what the process exits with.
pub(crate) fn settle(
    context: &Context,
    project: &Path,
    goal: &Goal,
    interrupts: &Interrupts,
) -> Exit {
    match context.ui.format {
        Format::Json => context.ui.json(&ResultView::from(goal)),
        Format::Human => {
            report::outcome(context.ui, goal, None);
            trust::deletions(context, project, goal);
            report::auto_run(context, project, goal);
        }
    }
    let is_left = goal.status == GoalStatus::Waiting && interrupts.is_raised();
    if is_left {
        Exit::Interrupted
    } else {
        exit_of(goal)
    }
}

/// Returns the world in which a goal is driven or looked at, which is only had for a goal that this
/// person approved here.
pub(crate) fn world<'a>(
    context: &'a Context,
    project: &Project<'_>,
    id: &GoalId,
    config: &Config,
) -> Result<RealWorld<'a>, Error> {
    require_approved(project, id)?;
    let goal = project
        .load(id)
        .map_err(|error| Error::engine(&error, &id.reference()))?;
    if goal.contract.is_session() {
        return Err(Error::new(
            Exit::Denied,
            format!(
                "goal {id} is worked on in a session of {}",
                goal.contract.agent
            ),
        )
        .with_hint("open that session again and type `/until-done resume` there."));
    }
    world_of(context, project, &goal, config)
}

/// Returns the same for whoever has looked at the goal already.
pub(crate) fn world_of<'a>(
    context: &'a Context,
    project: &Project<'_>,
    goal: &Goal,
    config: &Config,
) -> Result<RealWorld<'a>, Error> {
    let grants = context.grants(config);
    Ok(RealWorld {
        location: context.location(project, &goal.id)?,
        grants: grants.with_models(&goal.contract.models),
        clock: &context.clock,
        tool_service: tool_service::tool_service(context, project)?,
        spending: context.spending(project.layout.root(), config)?,
    })
}

/// Refuses a goal that this person's home holds no approval of: its files may be anybody's.
pub(crate) fn require_approved(project: &Project<'_>, id: &GoalId) -> Result<(), Error> {
    project
        .load(id)
        .and_then(|goal| project.require_approved(&goal))
        .map_err(|error| Error::engine(&error, &id.reference()))
}

/// Returns the exit code for where a goal came to rest.
pub(crate) fn exit_of(goal: &Goal) -> Exit {
    match (goal.status, &goal.stop) {
        (GoalStatus::Done | GoalStatus::Unverified, _) => Exit::Success,
        (_, Some(Stop::Interrupted)) => Exit::Interrupted,
        (_, Some(Stop::WorldFailed { .. })) => Exit::Failed,
        (
            GoalStatus::Setup
            | GoalStatus::Proposed
            | GoalStatus::Active
            | GoalStatus::Waiting
            | GoalStatus::Blocked
            | GoalStatus::Stalled
            | GoalStatus::Paused
            | GoalStatus::Impossible
            | GoalStatus::Cancelled,
            _,
        ) => Exit::NotDone,
    }
}
