//! Launches as events: they have no log, so each change of what is known of one is told.
//!
//! Several changes between two looks are one.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_launch::paths::SandboxPaths;
use kapi_launch::record::SandboxRecord;
use serde_json::json;

use crate::commands::events::cursor::{StreamMark, StreamMarks};
use crate::commands::events::entry::FeedEntry;
use crate::context::Context;
use crate::error::Error;
use crate::subject::launches::here;

/// What a launch's events are of.
const CHANGED: &str = "launch_changed";

/// Returns the directories in which a change of a launch is seen.
pub(super) fn directories(context: &Context) -> Vec<PathBuf> {
    let found = here(context).unwrap_or_default();
    let dirs = found.iter().map(|location| location.dir().clone());
    dirs.collect()
}

/// Returns what changed since the marks, and moves them.
pub(super) fn changes(context: &Context, marks: &mut StreamMarks) -> Result<Vec<FeedEntry>, Error> {
    let mut changes = Vec::new();
    for location in here(context)? {
        let Some(record) = SandboxRecord::load(&location).map_err(|error| Error::launch(&error))?
        else {
            continue;
        };
        let name = format!("launch/{}", record.id);
        let state = state_word(&location, &record)?;
        let seq = u64::try_from(record.updated_at_ms).unwrap_or_default();
        let mark = StreamMark {
            seq,
            last: state.to_owned(),
        };
        if marks.get(&name) == Some(&mark) {
            continue;
        }
        marks.insert(name.clone(), mark);
        changes.push(FeedEntry {
            subject: Some(("launch", record.id.clone())),
            words: Some(words(&record, state)),
            stream: name,
            seq,
            at_ms: record.updated_at_ms,
            actor: Actor::Engine,
            kind: CHANGED.to_owned(),
            data: json!({
                "state": state,
                "agent": record.agent,
                "mode": record.mode,
                "branch": record.branch.as_ref().map(|branch| &branch.name),
                "launches": record.launches,
                "exit_code": record.exit_code,
                "error": record.error,
                "changed": record.n_changed,
            }),
        });
    }
    Ok(changes)
}

fn state_word(location: &SandboxPaths, record: &SandboxRecord) -> Result<&'static str, Error> {
    let holder = location.holder().map_err(|error| Error::launch(&error))?;
    Ok(record.state_word(holder.is_some()))
}

fn words(record: &SandboxRecord, state: &str) -> String {
    let agent = &record.agent;
    match record.exit_code.filter(|_| state != "running") {
        Some(code) => format!("{agent}: {state}, exit code {code}"),
        None => format!("{agent}: {state}"),
    }
}
