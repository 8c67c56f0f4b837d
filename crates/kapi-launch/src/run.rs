//! One launch from its first check to its last word.
//!
//! Nothing is made before everything was decided, and what is made is on record first: whatever
//! kills the launcher, the record says what there is and the next launch goes on with it.

use kapi_core::usage::Usage;
use kapi_git::ref_name::shown_name;
use kapi_machine::watch::{Activity, RoomQuery};
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::usage_meter::UsageMeter;
use kapi_status::file::ErrorClass;
use kapi_status::perform::writer::{LaunchCompletion, StatusIdentity, StatusWriter};
use kapi_status::rules::phase::StatusPhase;

use super::active_launch::{ActiveLaunch, LaunchAttempt};
use super::bounds::Bounds;
use super::context::{LaunchHandlers, reported, say};
use super::ending::LaunchEnding;
use super::error::LaunchError;
use super::event::EndedAgent;
use super::inputs::LaunchInputs;
use super::limits::LimitedUse;
use super::plan::{Conduct, LaunchPlan};
use super::record::{LaunchState, SandboxRecord, WorkspaceKind};
use super::result::{LaunchResult, OURS_FAILED, conclude};
use super::shown::included;
use super::{agent, decide, enter, log, prepare};

/// Performs a launch.
///
/// # Errors
/// When it could not begin, or the agent could not be run. How an agent ended is no error.
pub fn launch(
    grants: &HostGrants,
    plan: &LaunchPlan,
    stage: &LaunchHandlers<'_>,
) -> Result<LaunchResult, LaunchError> {
    launch_within(grants, plan, &Bounds::NONE, stage)
}

/// Performs a launch that is held within bounds.
///
/// # Errors
/// As for any launch, and when nothing could hold the agent within them.
pub fn launch_within(
    grants: &HostGrants,
    plan: &LaunchPlan,
    bounds: &Bounds<'_>,
    stage: &LaunchHandlers<'_>,
) -> Result<LaunchResult, LaunchError> {
    bounds.check(plan)?;
    let scene = LaunchInputs::of(grants, plan)?;
    plan.location.make()?;
    let _held = plan.location.hold("kapi launch")?;
    // Read again: only now nobody else changes it.
    let scene = LaunchInputs {
        earlier: log::at(&plan.location).held()?,
        ..scene
    };
    let writer = status(plan, &scene, stage)?;
    let notify = |phase, percent, message: &str| reported(&writer, phase, percent, message);
    notify(StatusPhase::Initializing, 5, "Validating inputs")?;
    let result = decide::decide(grants, plan, &scene, bounds.ask()).and_then(|decided| {
        notify(StatusPhase::Initializing, 10, "Configuration read")?;
        for note in &decided.notes {
            say(stage, note);
        }
        notify(StatusPhase::Preparing, 18, "Creating the sandbox")?;
        let record = decide::settle(grants, plan, &scene, &decided, stage)?;
        let meter = UsageMeter::new(plan.limits, Usage::ZERO, stage.cancel, &|_| {});
        let limits = || log::at(&plan.location).limits();
        let used = LimitedUse::new(&meter, stage, &limits);
        let notice = |activity: Activity| used.notice(activity);
        let room = |query: &RoomQuery<'_>| used.room(query);
        let stage = LaunchHandlers {
            notice: &notice,
            room: &room,
            ..*stage
        };
        let was_cut_off = scene
            .earlier
            .as_ref()
            .is_some_and(|earlier| decided.goes_on && earlier.state == LaunchState::Running);
        let launch = ActiveLaunch {
            attempt: if was_cut_off {
                LaunchAttempt::Resumed
            } else {
                LaunchAttempt::First
            },
            grants,
            plan,
            bounds,
            stage: &stage,
            writer: &writer,
            used: &used,
        };
        perform(&launch, &scene, record)
    });
    let completed = writer.complete(&completion(&result));
    let mut launched = result?;
    completed.map_err(|error| LaunchError::failed(&error))?;
    writer.path().clone_into(&mut launched.status_path);
    Ok(launched)
}

/// Returns how the status file says that a launch ended.
pub(crate) fn completion(result: &Result<LaunchResult, LaunchError>) -> LaunchCompletion {
    match result {
        Ok(launched) => LaunchCompletion {
            exit_code: launched.exit_code,
            error: launched.error.as_ref().map(|error| error.message.clone()),
            class: launched.class(),
            advice: launched.error.as_ref().and_then(|error| error.hint.clone()),
            pr_url: launched
                .record
                .branch
                .as_ref()
                .and_then(|branch| branch.pr_url.clone()),
        },
        Err(error) => LaunchCompletion {
            exit_code: OURS_FAILED,
            error: Some(error.message.clone()),
            class: Some(ErrorClass::Kapi),
            advice: error.hint.clone(),
            pr_url: None,
        },
    }
}

pub(crate) fn status<'a>(
    plan: &LaunchPlan,
    scene: &LaunchInputs,
    stage: &LaunchHandlers<'a>,
) -> Result<StatusWriter<'a>, LaunchError> {
    let worktree = plan.location.worktree();
    let branch = plan.branch.as_ref().filter(|_| scene.chosen.has_branch);
    let identity = StatusIdentity {
        agent_id: plan.location.id().as_str(),
        project: &plan.project_name,
        project_root: &plan.project,
        branch: branch.map(|branch| shown_name(&branch.name)),
        sandbox_mode: scene.chosen.mode,
        // A layer has no place on the host where its files are seen.
        worktree_path: match (branch, decide::workspace(plan)) {
            (Some(_), WorkspaceKind::Checkout) => Some(&worktree),
            (_, _) => None,
        },
    };
    let dir = plan.location.sandboxes().status_dir();
    StatusWriter::create(&dir, &identity, stage.mapping.clone(), stage.clock)
        .map_err(|error| LaunchError::failed(&error))
}

/// Makes the workspace, runs the agent and keeps its work; the record is on disk already.
fn perform(
    launch: &ActiveLaunch<'_>,
    scene: &LaunchInputs,
    mut record: SandboxRecord,
) -> Result<LaunchResult, LaunchError> {
    let ActiveLaunch {
        grants,
        plan,
        stage,
        writer,
        ..
    } = *launch;
    let repo = scene.repo.as_ref();
    let prepared = prepare::open(&plan.location, &record, repo, &grants.home);
    let ran = prepared.and_then(|ready| {
        for note in &ready.notes {
            say(stage, note);
        }
        reported(writer, StatusPhase::Preparing, 20, "The workspace is ready")?;
        reported(writer, StatusPhase::Starting, 22, "Starting the agent")?;
        let included = included::lend(&plan.location, &record, &ready)?;
        for note in &included.notes {
            say(stage, note);
        }
        let ended = match plan.conduct {
            Conduct::Headless => agent::run(launch, &record, &ready),
            Conduct::Interactive => enter::at_terminal(launch, &record, &ready),
        };
        included.withdraw()?;
        Ok((ready, ended?))
    });
    let (ready, ended) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            record.exit_code = Some(OURS_FAILED);
            record.error = Some(error.message.clone());
            record.error_class = Some(ErrorClass::Kapi);
            record.advice.clone_from(&error.hint);
            log::at(&plan.location).end(record, Usage::ZERO, stage.clock.now_ms())?;
            return Err(error);
        }
    };
    reported(writer, StatusPhase::Running, 90, "The agent has finished")?;
    let mut launched = conclude(&ended, record);
    launched.meet(launch);
    let after = LaunchEnding {
        grants,
        plan,
        stage,
        writer,
        repo,
        is_again: false,
    };
    let noted = note(launch, &launched);
    let kept = noted.and_then(|()| after.keep(&ready, &mut launched));
    after.end(launched, kept)
}

/// Puts on record that the agent has ended, before its work is kept. What a person did at a terminal is
/// nobody's to take over.
fn note(launch: &ActiveLaunch<'_>, launched: &LaunchResult) -> Result<(), LaunchError> {
    if launch.plan.conduct == Conduct::Interactive {
        return Ok(());
    }
    let agent = EndedAgent {
        exit_code: launched.agent_exit_code,
        error: launched.error.as_ref().map(|error| error.message.clone()),
        message: launched.message.clone(),
        grade: launched.record.grade.clone(),
    };
    let now_ms = launch.stage.clock.now_ms();
    log::at(&launch.plan.location).agent_ended(&launched.record, agent, launched.usage, now_ms)
}
