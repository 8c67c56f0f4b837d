//! Going on with a launch whose launcher was killed after its agent had ended well: the agent is not run,
//! and not paid for, again; what comes after it is done.
//!
//! Only where the same is asked for as then, and the person has not said anything since.

use kapi_run::host_grants::HostGrants;
use kapi_status::rules::phase::StatusPhase;

use super::adopt::finished;
use super::agent::AgentEnding;
use super::context::{LaunchHandlers, reported, say};
use super::ending::LaunchEnding;
use super::error::LaunchError;
use super::event::LaunchHistory;
use super::inputs::LaunchInputs;
use super::plan::{Conduct, LaunchPlan};
use super::record::SandboxRecord;
use super::result::{LaunchResult, conclude};
use super::run::{completion, status};
use super::{log, prepare};

/// Does what is left of such a launch; `None` where there is none.
///
/// # Errors
/// When its record or its workspace cannot be read. That its work could not be committed or pushed is
/// part of the result.
pub(crate) fn go_on(
    grants: &HostGrants,
    plan: &LaunchPlan,
    stage: &LaunchHandlers<'_>,
) -> Result<Option<LaunchResult>, LaunchError> {
    let log = log::at(&plan.location);
    if agent_of(plan, &log.history()?).is_none() {
        return Ok(None);
    }
    let scene = LaunchInputs::of(grants, plan)?;
    let _held = plan.location.hold("kapi launch")?;
    // Read again: only now nobody else changes it.
    let (record, history) = (log.held()?, log.history()?);
    let (Some(record), Some(agent)) = (record, agent_of(plan, &history)) else {
        return Ok(None);
    };
    let writer = status(plan, &scene, stage)?;
    let text = format!(
        "The agent had finished when the last launch of {} was interrupted; its work is taken over.",
        plan.location.id().as_str()
    );
    say(stage, &text);
    let after = LaunchEnding {
        grants,
        plan,
        stage,
        writer: &writer,
        repo: scene.repo.as_ref(),
        is_again: true,
    };
    let result = settle(&after, &agent, record);
    let completed = writer.complete(&completion(&result));
    let mut launched = result?;
    completed.map_err(|error| LaunchError::failed(&error))?;
    writer.path().clone_into(&mut launched.status_path);
    Ok(Some(launched))
}

fn settle(
    after: &LaunchEnding<'_>,
    agent: &AgentEnding,
    record: SandboxRecord,
) -> Result<LaunchResult, LaunchError> {
    let ready = prepare::found(&after.plan.location, &record, after.repo)?;
    let text = "The agent has finished";
    reported(after.writer, StatusPhase::Running, 90, text)?;
    let mut launched = conclude(agent, record);
    let kept = after.keep(&ready, &mut launched);
    after.end(launched, kept)
}

/// Returns how the agent of the last launch ended, if it ended well, nobody has done what comes after it,
/// and the plan asks for the same again.
fn agent_of(plan: &LaunchPlan, history: &LaunchHistory) -> Option<AgentEnding> {
    let (sandbox, request) = (history.sandbox.as_ref()?, history.request.as_ref()?);
    let branch = sandbox.branch.as_ref().map(|branch| &branch.name);
    let is_same = request.task == plan.prompt
        && request.command == plan.command
        && branch == plan.branch.as_ref().map(|branch| &branch.name)
        && !request.is_interactive
        && plan.conduct == Conduct::Headless;
    finished(history).filter(|_| is_same && history.is_cut_off_behind_agent())
}
