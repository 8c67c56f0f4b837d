//! A launch within the caps on spending: reserved before it begins, counted while it runs, booked
//! after.
//!
//! A cap that is used up refuses it, and one that is exceeded ends its agent; its work is kept.

use kapi_core::usage::Usage;
use kapi_machine::watch::Activity;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::spending::usage_meter::{UsageLimits, UsageMeter};
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
    let meter = UsageMeter::new(UsageLimits::default(), Usage::ZERO, stage.cancel, &|_| {});
    let part = meter.part();
    let notice = |activity: Activity| {
        if let Activity::Used(usage) = &activity {
            part.count(usage);
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
        BookedResult {
            rest: part.settle(&sum.unwrap_or_default()),
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
