//! The `trigger` key of a definition.
//!
//! A schedule is checked here, so that one that never fires is noticed when it is written. When
//! anything is due is not known here.

use kapi_core::kernel::definition::trigger::{
    Ending, EventSource, GLOBS_MAX, JITTER_MS_MAX, MISFIRES_MAX, Misfire, Trigger, ZONE_DEFAULT,
};
use kapi_core::kernel::id::LoopName;

use crate::kernel::cron::Cron;
use crate::kernel::cron::error::CronError;
use crate::kernel::definition_file::evals::required;
use kapi_settings::fault::{Faults, short};
use crate::kernel::definition_file::table::{Said, Table};

/// The most missed instants that are made up for when the definition does not say.
const MISFIRES_DEFAULT: u32 = 10;

/// Words for ends of a run.
pub(super) const ENDINGS: &[(&str, Ending)] = &[
    ("completed", Ending::Completed),
    ("failed", Ending::Failed),
    ("any", Ending::Any),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    Manual,
    Cron,
    Event,
}

const KINDS: &[(&str, Kind)] = &[
    ("manual", Kind::Manual),
    ("cron", Kind::Cron),
    ("event", Kind::Event),
];

#[derive(Debug, Clone, Copy)]
enum Late {
    Skip,
    Once,
    All,
}

const LATE: &[(&str, Late)] = &[
    ("skip", Late::Skip),
    ("once", Late::Once),
    ("all", Late::All),
];

/// Reads what sets a loop off.
pub(super) fn read(said: &Said<'_>, faults: &mut Faults) -> Option<Trigger> {
    let mut table = said.table(faults)?;
    let kind = match table.take("type") {
        Some(said) => said.word(KINDS, faults)?,
        None => Kind::Manual,
    };
    let trigger = match kind {
        Kind::Manual => manual(&mut table, faults),
        Kind::Cron => schedule(said, &mut table, faults),
        Kind::Event => event(said, &mut table, faults).map(|source| Trigger::Event { source }),
    };
    table.finish(faults);
    trigger
}

/// The specification's example keeps a schedule for the day when its type becomes `cron`: it is
/// checked and not used.
fn manual(table: &mut Table<'_>, faults: &mut Faults) -> Option<Trigger> {
    if let Some(said) = table.take("schedule") {
        let zone = (ZONE_DEFAULT, None);
        checked(&said, zone, faults)?;
    }
    Some(Trigger::Manual)
}

fn schedule(said: &Said<'_>, table: &mut Table<'_>, faults: &mut Faults) -> Option<Trigger> {
    let zone_said = table.take_either(["zone", "timezone"], faults);
    let zone = match &zone_said {
        Some(said) => said.text(faults)?,
        None => ZONE_DEFAULT,
    };
    let late = match table.take("misfire") {
        Some(said) => said.word(LATE, faults)?,
        None => Late::Skip,
    };
    let max = table.take("misfire_max");
    let misfire = match (late, max) {
        (Late::All, Some(said)) => Misfire::All {
            max: said.count(1, MISFIRES_MAX, faults)?,
        },
        (Late::All, None) => Misfire::All {
            max: MISFIRES_DEFAULT,
        },
        (Late::Skip, None) => Misfire::Skip,
        (Late::Once, None) => Misfire::Once,
        (Late::Skip | Late::Once, Some(said)) => {
            let what = "only `misfire: all` has a number".to_owned();
            said.refuse(faults, what, "leave it out");
            return None;
        }
    };
    let jitter_ms = match table.take("jitter") {
        Some(said) => said.duration_ms(JITTER_MS_MAX, faults)?,
        None => 0,
    };
    let schedule = required(said, table.take("schedule"), "schedule", faults)?;
    let text = checked(&schedule, (zone, zone_said.as_ref()), faults)?;
    Some(Trigger::Cron {
        schedule: text.to_owned(),
        zone: zone.to_owned(),
        misfire,
        jitter_ms,
    })
}

/// Returns the text of a schedule that fires in a zone, which has a key of its own or has not.
fn checked<'a>(
    schedule: &Said<'a>,
    zone: (&str, Option<&Said<'_>>),
    faults: &mut Faults,
) -> Option<&'a str> {
    let text = schedule.text(faults)?;
    let Err(error) = Cron::parse(text, zone.0) else {
        return Some(text);
    };
    let is_zone = matches!(error, CronError::Zone { .. } | CronError::NoZone { .. });
    let at = zone.1.filter(|_| is_zone).unwrap_or(schedule);
    at.refuse(faults, format!("failed to {error}"), "correct it");
    None
}

fn event(said: &Said<'_>, table: &mut Table<'_>, faults: &mut Faults) -> Option<EventSource> {
    let files = table.take("files");
    let git_ref = table.take("git_ref");
    let other = table.take("loop");
    let webhook = table.take("webhook");
    let on = table.take("on");
    if let (Some(on), None) = (&on, &other) {
        let what = "only another loop's result has an end".to_owned();
        on.refuse(faults, what, "leave it out");
    }
    match (files, git_ref, other, webhook) {
        (Some(said), None, None, None) => {
            let globs = said.texts(GLOBS_MAX, faults)?;
            let is_outside =
                |glob: &String| glob.starts_with('/') || glob.split('/').any(|part| part == "..");
            if let Some(glob) = globs.iter().find(|glob| is_outside(glob)) {
                let what = format!("{glob:?} leads out of the project");
                said.refuse(faults, what, "give globs relative to the project");
                return None;
            }
            Some(EventSource::Files { globs })
        }
        (None, Some(said), None, None) => {
            let name = said.text(faults)?;
            if !name.starts_with("refs/") || name.contains(char::is_whitespace) {
                let what = format!("{name:?} is no whole name of a ref");
                said.refuse(faults, what, "write it as refs/heads/main or refs/tags/*");
                return None;
            }
            let name = name.to_owned();
            Some(EventSource::GitRef { name })
        }
        (None, None, Some(said), None) => Some(EventSource::LoopResult {
            loop_name: loop_name(&said, faults)?,
            on: match on {
                Some(on) => on.word(ENDINGS, faults)?,
                None => Ending::Completed,
            },
        }),
        (None, None, None, Some(said)) => Some(EventSource::Webhook {
            name: loop_name(&said, faults)?,
        }),
        (_, _, _, _) => {
            let what = "an event has one source".to_owned();
            said.refuse(
                faults,
                what,
                "give one of `files`, `git_ref`, `loop` and `webhook`",
            );
            None
        }
    }
}

/// Reads a loop's name.
pub(super) fn loop_name(said: &Said<'_>, faults: &mut Faults) -> Option<LoopName> {
    let text = said.text(faults)?;
    match LoopName::parse(text) {
        Ok(name) => Some(name),
        Err(error) => {
            said.refuse(
                faults,
                format!("{:?} is no name of a loop", short(text)),
                error.rule,
            );
            None
        }
    }
}
