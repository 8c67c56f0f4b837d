//! A launch within the caps on spending: reserved before it begins, counted while it runs, booked
//! after.
//!
//! A cap that is used up refuses it, and one that is exceeded ends its agent; its work is kept.

use kapi_core::usage::Usage;
use kapi_machine::watch::Activity;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::spending::usage_meter::{UsageLimits, UsageMeter};
use kapi_run::spending::{BookedResult, Spending, metered};
use kapi_spend::rules::account::ModelRole;

use super::context::LaunchHandlers;
use super::error::LaunchError;
use super::plan::LaunchPlan;
use super::result::LaunchResult;
use super::{finished, run};

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
    // Nothing is asked of a model then, whatever the caps are at.
    if let Some(launched) = finished::go_on(grants, plan, stage)? {
        return Ok(launched);
    }
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
    let metering = spending
        .begin(&turn, &watch)
        .map_err(LaunchError::of_stop)?;
    let (launched, _) = metered(&metering, &watch, |watch| {
        let stage = LaunchHandlers {
            notice: watch.notice,
            room: watch.room,
            stopped: &|| metering.stopped(),
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
    launched
}
