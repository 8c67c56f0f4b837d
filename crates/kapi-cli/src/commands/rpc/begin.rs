//! A new goal of a session: what is known of its contract, before the model drafts the rest.

use std::sync::Arc;

use clap::FromArgMatches as _;
use kapi_core::id::GoalId;
use kapi_goal::record::error::EngineError;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_wire::rpc::{DialogView, PersonReply};

use crate::commands::rpc::attached::AttachedGoal;
use crate::commands::rpc::dialog::PendingDialog;
use crate::commands::rpc::host::Host;
use crate::commands::rpc::{OWNER, view};
use crate::commands::run::DRAFTS_MAX;
use crate::contract::flags::Args;
use crate::contract::{ContractDraft, approval};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::{contract, naming};

/// The agent whose sessions these are.
const AGENT: &str = "pi";

/// Sets a goal up, unless the session has an unfinished one: then the person is asked.
pub(super) fn begin(host: &Host<'_>, intent: &str) -> Result<PersonReply, Error> {
    let unfinished = match host.attached() {
        Some(attached) => Some(attached.goal()?).filter(|goal| !goal.status.is_terminal()),
        None => None,
    };
    let Some(goal) = unfinished else {
        return set_up(host, intent);
    };
    // What nobody has approved has nothing to lose.
    if matches!(goal.status, GoalStatus::Setup | GoalStatus::Proposed) {
        return replace(host, intent);
    }
    if !host.has_ui() {
        return Err(Error::new(
            Exit::Denied,
            format!(
                "goal_exists: goal {} of this session is {}",
                goal.id, goal.status
            ),
        )
        .with_hint("end it with `/until-done cancel` first."));
    }
    let view = DialogView {
        id: 0,
        title: format!("Goal {} is {}. Replace it?", goal.id, goal.status),
        message: goal.contract.intent.clone(),
        options: ["replace", "keep", "cancel"].map(str::to_owned).to_vec(),
        timeout_ms: None,
    };
    let intent = intent.to_owned();
    Ok(PersonReply {
        dialog: Some(host.ask(PendingDialog::Replace { intent }, view)),
        ..PersonReply::default()
    })
}

/// Ends the session's goal and sets another one up.
pub(super) fn replace(host: &Host<'_>, intent: &str) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let reason = Some("replaced by another goal".to_owned());
    if !attached.goal()?.status.is_terminal() {
        attached.submit(host.context, &GoalCommand::Cancel { reason })?;
    }
    set_up(host, intent)
}

fn set_up(host: &Host<'_>, intent: &str) -> Result<PersonReply, Error> {
    let context = host.context;
    context.require_human("start a goal")?;
    let args = arguments(intent)?;
    for _ in 0..DRAFTS_MAX {
        let draft = contract::draft_for_session(context, &args)?;
        let Some(attached) = claim(host, &draft)? else {
            continue;
        };
        let goal = attached.goal()?;
        let attached = Arc::new(attached);
        host.attach(&attached);
        host.seat.release();
        host.drive();
        let mut lines = vec![format!("Goal {} is being set up.", goal.id)];
        lines.extend(others_here(&attached)?.iter().map(|other| {
            format!(
                "Goal {other} is being worked on in this checkout, too: what changes meanwhile counts \
                 as the work of both."
            )
        }));
        return Ok(PersonReply {
            goal: Some(view::of(&goal)),
            ..view::told(&lines.join("\n"))
        });
    }
    Err(Error::new(Exit::Busy, "other runs keep taking this branch").with_hint("reword the task."))
}

/// Returns the goals that other sessions work on in the same checkout right now.
fn others_here(attached: &AttachedGoal<'_>) -> Result<Vec<GoalId>, Error> {
    let project = &attached.project;
    let failed = |error: &EngineError| Error::engine(error, "");
    let mut others = project.goal_ids().map_err(|error| failed(&error))?;
    others.retain(|id| {
        let is_driven = || project.driver(id).is_ok_and(|driver| driver.is_some());
        let is_open = |goal: Goal| goal.contract.is_session() && !goal.status.is_terminal();
        *id != attached.id && is_driven() && project.load(id).is_ok_and(is_open)
    });
    Ok(others)
}

/// Begins the setup, unless another run took the name since.
fn claim<'a>(host: &Host<'a>, draft: &ContractDraft) -> Result<Option<AttachedGoal<'a>>, Error> {
    let context = host.context;
    let project = context.project(&draft.root, OWNER);
    let id = {
        let _held = naming::hold(&project)?;
        let reserved = naming::reserved(&project)?;
        if !naming::is_free(&draft.contract.branch, &draft.survey, &reserved)? {
            return Ok(None);
        }
        project
            .begin_setup(&context.actor, &draft.slug, &draft.contract)
            .map_err(|error| Error::engine(&error, ""))?
    };
    AttachedGoal::of(context, project, id).map(Some)
}

/// Records the approval, and lets the goal begin.
pub(super) fn approve(host: &Host<'_>, shown: &Contract) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let context = host.context;
    if host.asks_judge_of(shown, &attached.config) {
        contract::check_sandbox(context, &attached.config, shown)?;
    } else {
        contract::check(context, &attached.config, shown)?;
    }
    approval::approve(
        context,
        &attached.project,
        &attached.id,
        shown,
        ApprovalMeans::Terminal,
    )?;
    host.seat.release();
    host.drive();
    let goal = attached.goal()?;
    Ok(PersonReply {
        text: Some(format!("The contract of goal {} is approved.", goal.id)),
        goal: Some(view::of(&goal)),
        ..PersonReply::default()
    })
}

/// Returns the options of `kapi run` that name the task.
fn arguments(intent: &str) -> Result<Args, Error> {
    let words = ["kapi", "--agent", AGENT, "--", intent.trim()];
    let command = <Args as clap::Args>::augment_args(clap::Command::new("kapi"));
    command
        .try_get_matches_from(words)
        .and_then(|matches| Args::from_arg_matches(&matches))
        .map_err(|error| Error::usage(error.to_string()))
}
