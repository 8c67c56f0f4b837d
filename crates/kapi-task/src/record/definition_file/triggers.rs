//! The `trigger` key of a definition.
//!
//! A schedule is checked here, so that one that never fires is noticed when it is written. When
//! anything is due is not known here.

use kapi_core::task_id::LoopNameForm;
use kapi_settings::fault::Faults;
use kapi_settings::scalar::{Millis, RangedCount, TrimmedText};
use kapi_settings::setting::{OneOrMany, Setting};
use serde::Deserialize;

use crate::record::cron::Cron;
use crate::record::cron::error::CronError;
use crate::rules::definition::trigger::{
    Ending, EventSource, GLOBS_MAX, JITTER_MS_MAX, LoopTrigger, MISFIRES_MAX, Misfire, ZONE_DEFAULT,
};

/// The most missed instants that are made up for when the definition does not say.
const MISFIRES_DEFAULT: u32 = 10;

/// What starts a loop, as it is written.
#[derive(Deserialize)]
#[serde(rename = "by type or manual", rename_all = "snake_case")]
pub(super) enum TriggerForm {
    /// The specification's example keeps a schedule for the day when its type becomes `cron`: it is
    /// checked and not used.
    Manual {
        schedule: Option<Setting<TrimmedText>>,
    },
    Cron(CronForm),
    Event(EventForm),
}

#[derive(Deserialize)]
pub(super) struct CronForm {
    schedule: Setting<TrimmedText>,
    #[serde(alias = "timezone")]
    zone: Option<Setting<TrimmedText>>,
    misfire: Option<MisfireForm>,
    misfire_max: Option<Setting<RangedCount<1, MISFIRES_MAX>>>,
    jitter: Option<Millis<0, JITTER_MS_MAX>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MisfireForm {
    Skip,
    Once,
    All,
}

#[derive(Deserialize)]
pub(super) struct EventForm {
    files: Option<Setting<OneOrMany<TrimmedText, 1, GLOBS_MAX>>>,
    git_ref: Option<Setting<TrimmedText>>,
    #[serde(rename = "loop")]
    loop_name: Option<LoopNameForm>,
    webhook: Option<LoopNameForm>,
    on: Option<Setting<Ending>>,
}

/// Reads what starts a loop.
pub(super) fn trigger(
    form: Option<Setting<TriggerForm>>,
    faults: &mut Faults,
) -> Option<LoopTrigger> {
    let Some(form) = form else {
        return Some(LoopTrigger::Manual);
    };
    let location = form.with(());
    match form.value {
        TriggerForm::Manual { schedule } => {
            if let Some(schedule) = schedule {
                check(&schedule, None, faults)?;
            }
            Some(LoopTrigger::Manual)
        }
        TriggerForm::Cron(form) => cron(form, faults),
        TriggerForm::Event(form) => {
            let source = event(form, &location, faults)?;
            Some(LoopTrigger::Event { source })
        }
    }
}

fn cron(form: CronForm, faults: &mut Faults) -> Option<LoopTrigger> {
    let misfire = match (form.misfire.unwrap_or(MisfireForm::Skip), form.misfire_max) {
        (MisfireForm::All, max) => Misfire::All {
            max: max.map_or(MISFIRES_DEFAULT, |max| max.value.0),
        },
        (MisfireForm::Skip, None) => Misfire::Skip,
        (MisfireForm::Once, None) => Misfire::Once,
        (MisfireForm::Skip | MisfireForm::Once, Some(max)) => {
            faults.at(&max, "only `misfire: all` has a number", "remove it");
            return None;
        }
    };
    check(&form.schedule, form.zone.as_ref(), faults)?;
    Some(LoopTrigger::Cron {
        schedule: form.schedule.value.0,
        zone: form
            .zone
            .map_or_else(|| ZONE_DEFAULT.to_owned(), |zone| zone.value.0),
        misfire,
        jitter_ms: form.jitter.map_or(0, |jitter| jitter.0),
    })
}

/// Refuses a schedule that never fires in its zone.
fn check(
    schedule: &Setting<TrimmedText>,
    zone: Option<&Setting<TrimmedText>>,
    faults: &mut Faults,
) -> Option<()> {
    let name = zone.map_or(ZONE_DEFAULT, |zone| &zone.value.0);
    let Err(error) = Cron::parse(&schedule.value.0, name) else {
        return Some(());
    };
    let is_zone = matches!(error, CronError::Zone { .. } | CronError::NoZone { .. });
    let at = zone.filter(|_| is_zone).unwrap_or(schedule);
    faults.at(at, format!("failed to {error}"), "fix it");
    None
}

fn event(form: EventForm, location: &Setting<()>, faults: &mut Faults) -> Option<EventSource> {
    if let (Some(on), None) = (&form.on, &form.loop_name) {
        faults.at(on, "only the result of another loop has this", "remove it");
    }
    match (form.files, form.git_ref, form.loop_name, form.webhook) {
        (Some(said), None, None, None) => {
            let is_outside = |glob: &&TrimmedText| {
                glob.0.starts_with('/') || glob.0.split('/').any(|part| part == "..")
            };
            if let Some(glob) = said.value.0.iter().find(is_outside) {
                let what = format!("{:?} points outside the project", glob.0);
                faults.at(&said, what, "give globs relative to the project");
                return None;
            }
            let globs = said.value.0.into_iter().map(|glob| glob.0).collect();
            Some(EventSource::Files { globs })
        }
        (None, Some(said), None, None) => {
            let name = &said.value.0;
            if !name.starts_with("refs/") || name.contains(char::is_whitespace) {
                let what = format!("{name:?} is not a full ref name");
                faults.at(&said, what, "write it as refs/heads/main or refs/tags/*");
                return None;
            }
            let name = said.value.0;
            Some(EventSource::GitRef { name })
        }
        (None, None, Some(name), None) => Some(EventSource::LoopResult {
            loop_name: name.0,
            on: form.on.map_or(Ending::Completed, |on| on.value),
        }),
        (None, None, None, Some(name)) => Some(EventSource::Webhook { name: name.0 }),
        (_, _, _, _) => {
            let remedy = "give one of `files`, `git_ref`, `loop` and `webhook`";
            faults.at(location, "an event has exactly one source", remedy);
            None
        }
    }
}
