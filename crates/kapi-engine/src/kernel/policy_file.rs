//! The policy of a project and that of the person, as files: both apply, and a denial of either wins.
//!
//! What cannot be read, or is not understood down to the last key, becomes a policy that denies
//! everything and says where; only a file that is not there says nothing. Decides nothing itself.

mod document;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_core::kernel::condition::window::LocalTime;
use kapi_core::kernel::policy::{self, Policy, PolicyFault, PolicySource};
use kapi_core::state_directory::STATE_DIRECTORY;

use crate::kernel::condition_file::{is_zone, local_time};
use crate::kernel::policy_file::document::Document;
use crate::kernel::policy_file::reading::{Owner, read};

/// The name of the file, in the project's state directory and in the person's configuration.
pub const POLICY_FILE: &str = "policy.yaml";

/// Where policies are.
#[derive(Debug, Clone, Copy)]
pub struct PolicyPlaces<'a> {
    /// The project.
    pub project: &'a Path,
    /// The person's configuration directory, `~/.config/kapi`; it need not be there.
    pub person: &'a Path,
}

/// Reads all policies that apply. Never fails: what is wrong denies.
#[must_use]
pub fn load(places: PolicyPlaces<'_>) -> Policy {
    let inside = PathBuf::from(STATE_DIRECTORY).join(POLICY_FILE);
    let own = places.person.join(POLICY_FILE);
    let of_project = match read(places.project, &inside, Owner::Anybody) {
        // A project that is not there has no rules that could be known.
        Err(reading::Unreadable::NoDirectory) => Err(reading::Unreadable::NoProject),
        other => other,
    };
    let of_person = match read(places.person, Path::new(POLICY_FILE), Owner::Person) {
        Err(reading::Unreadable::NoDirectory) => Ok(None),
        other => other,
    };
    let files = [
        (own.display().to_string(), of_person),
        (inside.display().to_string(), of_project),
    ];
    let sources = files.into_iter().filter_map(|(file, found)| match found {
        Ok(text) => Some(parse(&file, &text?)),
        Err(wrong) => Some(PolicySource::broken(PolicyFault {
            line: 1,
            key: String::new(),
            what: wrong.to_string(),
            remedy: wrong.remedy().to_owned(),
            file,
        })),
    });
    Policy {
        sources: sources.collect(),
    }
}

/// Reads the text of one policy. Never fails: what is wrong denies.
#[must_use]
pub fn parse(file: &str, text: &str) -> PolicySource {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err((line, what)) => {
            return PolicySource::broken(PolicyFault {
                file: file.to_owned(),
                line,
                key: String::new(),
                what,
                remedy: "correct the YAML".to_owned(),
            });
        }
    };
    let mut source = policy::read(file, &document.value, &|at| document.line_of(at));
    let zones = source.rules.iter().filter_map(|rule| {
        let zone = &rule.when.window.as_ref()?.zone;
        (!is_zone(zone)).then(|| PolicyFault {
            file: file.to_owned(),
            line: rule.line,
            key: "when.zone".to_owned(),
            what: format!("there is no time zone {zone:?}"),
            remedy: "write a name of the IANA database, like Europe/Berlin or UTC".to_owned(),
        })
    });
    let unknown: Vec<PolicyFault> = zones.collect();
    source.faults.extend(unknown);
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
