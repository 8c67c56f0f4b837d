//! Raising the limits of a launch: while it runs, which it sees at its next model call, and of one
//! that is resumed later.
//!
//! Starts nothing. What has no limit gets none.

use kapi_core::actor::Actor;
use kapi_run::spending::usage_meter::UsageLimits;

use super::error::{LaunchError, LaunchErrorKind};
use super::event::{LaunchEvent, LaunchHistory};
use super::log::LaunchLog;
use super::record::LaunchState;

/// Adds to the limits of a launch, and returns what they are then.
///
/// # Errors
/// When it is no launch of a person's, has ended well, or has no limit of a kind that is raised.
pub fn raise(
    log: LaunchLog<'_, '_>,
    actor: &Actor,
    more: UsageLimits,
    now_ms: i64,
) -> Result<UsageLimits, LaunchError> {
    let mut limits = UsageLimits::default();
    log.decide(actor, now_ms, |history| {
        limits = raised(log.location.id().as_str(), history, more)?;
        Ok(vec![LaunchEvent::LimitsRaised { limits }])
    })?;
    Ok(limits)
}

fn raised(
    id: &str,
    history: &LaunchHistory,
    more: UsageLimits,
) -> Result<UsageLimits, LaunchError> {
    let denied = |message: String, hint: String| {
        Err(LaunchError::new(LaunchErrorKind::Denied, message, hint))
    };
    let (Some(sandbox), Some(request)) = (&history.sandbox, &history.request) else {
        return denied(
            format!("launch/{id} has no record of what was asked"),
            format!(
                "set limits when you launch it again: `kapi launch {id} <project> --tokens <n>`."
            ),
        );
    };
    if request.command.is_empty() {
        return denied(
            format!("launch/{id} was not launched by a person"),
            "its limits are those of its task, and cannot change after it was submitted."
                .to_owned(),
        );
    }
    if sandbox.state == LaunchState::Finished && sandbox.exit_code == Some(0) {
        return denied(
            format!("launch/{id} has ended well"),
            format!(
                "set limits when you launch it again: `kapi launch {id} <project> --tokens <n>`."
            ),
        );
    }
    let sum = |name: &str, option: &str, limit: Option<u64>, more: Option<u64>| match (limit, more)
    {
        (Some(limit), more) => Ok(Some(limit.saturating_add(more.unwrap_or(0)))),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(LaunchError::new(
            LaunchErrorKind::Denied,
            format!("launch/{id} has no limit on {name}, so there is nothing to raise"),
            format!("omit `{option}`."),
        )),
    };
    Ok(UsageLimits {
        tokens: sum("tokens", "--tokens", request.limits.tokens, more.tokens)?,
        usd_micros: sum("money", "--usd", request.limits.usd_micros, more.usd_micros)?,
    })
}
