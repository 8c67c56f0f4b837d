//! The policy of a project and that of the person, as files: both apply, and a denial of either wins.
//!
//! What cannot be read, or is not understood down to the last key, becomes a policy that denies
//! everything and says where; only a file that is not there says nothing. Decides nothing itself.

mod reading;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_core::state_directory::{POLICY_FILE, STATE_DIRECTORY};
use kapi_settings::fault::Faults;
use kapi_settings::yaml;

use crate::record::condition_file::{is_zone, local_time};
use crate::record::policy_file::reading::{FileOwner, read};
use crate::rules::condition::window::LocalTime;
use crate::rules::policy;
use crate::rules::policy::{Policy, PolicySource};

/// Where policies are.
#[derive(Debug, Clone, Copy)]
pub struct PolicyPaths<'a> {
    /// The project.
    pub project: &'a Path,
    /// The person's configuration directory, `~/.config/kapi`; it need not be there.
    pub person: &'a Path,
}

/// Reads all policies that apply. Never fails: what is wrong denies.
#[must_use]
pub fn load(locations: PolicyPaths<'_>) -> Policy {
    let inside = PathBuf::from(STATE_DIRECTORY).join(POLICY_FILE);
    let own = locations.person.join(POLICY_FILE);
    let of_project = match read(locations.project, &inside, FileOwner::Anybody) {
        // A project that is not there has no rules that could be known.
        Err(reading::Unreadable::NoDirectory) => Err(reading::Unreadable::NoProject),
        other => other,
    };
    let of_person = match read(locations.person, Path::new(POLICY_FILE), FileOwner::Person) {
        Err(reading::Unreadable::NoDirectory) => Ok(None),
        other => other,
    };
    let files = [
        (own.display().to_string(), of_person),
        (inside.display().to_string(), of_project),
    ];
    let sources = files.into_iter().filter_map(|(file, found)| match found {
        Ok(text) => Some(parse(&file, &text?)),
        Err(wrong) => {
            let mut faults = Faults::of(file.clone());
            faults.at_line(1, wrong.to_string(), wrong.remedy());
            Some(PolicySource::broken(&file, faults.into_list()))
        }
    });
    Policy {
        sources: sources.collect(),
    }
}

/// Reads the text of one policy. Never fails: what is wrong denies.
#[must_use]
pub fn parse(file: &str, text: &str) -> PolicySource {
    let mut faults = Faults::of(file.to_owned());
    let Some(root) = yaml::parse(text, &mut faults) else {
        return PolicySource::broken(file, faults.into_list());
    };
    let mut source = policy::read(file, &root, faults);
    let mut zones = Faults::of(file.to_owned());
    for rule in &source.rules {
        let zone = rule.when.window.as_ref().map(|window| &window.zone);
        if let Some(zone) = zone.filter(|zone| !is_zone(zone)) {
            let what = format!("there is no time zone {zone:?}");
            let remedy = "write a name of the IANA database, like Europe/Berlin or UTC, or local";
            zones.at_key(rule.line, "when.zone", what, remedy);
        }
    }
    source.faults.extend(zones.into_list());
    source
}

/// Returns what time it is in the zones that a policy's rules name.
#[must_use]
pub fn local_times(policy: &Policy, now_ms: i64) -> BTreeMap<String, LocalTime> {
    let zones = policy.zones().into_iter();
    zones
        .filter_map(|zone| Some((zone.to_owned(), local_time(zone, now_ms)?)))
        .collect()
}
