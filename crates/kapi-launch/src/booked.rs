//! A launch within the caps on spending: reserved before it begins, counted while it runs, booked
//! after.
//!
//! A cap that is used up refuses it, and one that is exceeded ends its agent; its work is kept.

use std::sync::{Mutex, PoisonError};

use kapi_core::usage::Usage;
use kapi_machine::watch::Activity;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::spending::{BookedResult, Spending, SpendingStop};
use kapi_spend::rules::account::ModelRole;

use super::context::LaunchHandlers;
use super::error::{LaunchError, LaunchErrorKind};
use super::plan::LaunchPlan;
use super::run::{self, LaunchResult};

/// Performs a launch within the caps on spending.
///
/// # Errors
/// When a cap is used up, and as for any launch.
pub fn launch(
    grants: &HostGrants,
    spending: &Spending<'_>,
    plan: &LaunchPlan,
    stage: &LaunchHandlers<'_>,
) -> Result<LaunchResult, LaunchError> {
    let used = Mutex::new(Usage::default());
    let notice = |activity: Activity| {
        if let Activity::Used(usage) = &activity {
            used.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(usage);
        }
        (stage.notice)(activity);
    };
    let watch = stage.watch(&notice);
    let id = plan.location.id().as_str();
    let once = format!("{}-{}", stage.clock.now_ms(), std::process::id());
    let key = TurnKey {
        goal: format!("launch-{id}"),
        effect: once,
    };
    let turn = BookedTurn::of_settings(
        key,
        &plan.agent,
        &plan.settings,
        ModelRole::Executor,
        grants,
    );
    let booked = spending.booked(&turn, &watch, |watch| {
        let stage = LaunchHandlers {
            notice: watch.notice,
            room: watch.room,
            ..*stage
        };
        let launched = run::launch(grants, plan, &stage);
        let sum = launched.as_ref().map(|launched| launched.usage);
        let reported = used.lock().unwrap_or_else(PoisonError::into_inner);
        BookedResult {
            rest: rest(&sum.unwrap_or_default(), &reported),
            has_run: launched.is_ok(),
            value: launched,
        }
    });
    let (launched, stopped) = booked.map_err(denied)?;
    let mut launched = launched?;
    if let Some(stopped) = stopped {
        launched.error = Some(denied(stopped));
    }
    Ok(launched)
}

fn denied(stopped: SpendingStop) -> LaunchError {
    let kind = match &stopped {
        SpendingStop::Cap(_) => LaunchErrorKind::Denied,
        SpendingStop::Ledger(_) => LaunchErrorKind::Failed,
    };
    let failure = stopped.failure();
    LaunchError {
        kind,
        message: failure.message,
        hint: failure.hint,
    }
}

/// Returns the part of a sum that was not reported before.
fn rest(sum: &Usage, reported: &Usage) -> Usage {
    let usd_micros = sum
        .usd_micros
        .map(|sum| sum.saturating_sub(reported.usd_micros.unwrap_or(0)));
    Usage {
        input_tokens: sum.input_tokens.saturating_sub(reported.input_tokens),
        output_tokens: sum.output_tokens.saturating_sub(reported.output_tokens),
        usd_micros: usd_micros.filter(|micros| *micros > 0 || reported.usd_micros.is_none()),
        ..Usage::ZERO
    }
}
