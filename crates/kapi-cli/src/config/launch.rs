//! `[launch]`: which of a project's files count as the person's own.

use kapi_settings::fault::Faults;
use kapi_settings::setting::Setting;
use serde::Deserialize;

/// `[launch]`: what holds for launches.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct LaunchTable {
    trust: Vec<Setting<String>>,
}

/// Refuses what is no hash: a word that never fits would look like trust that was given.
pub(super) fn trusted(faults: &mut Faults, table: LaunchTable) -> Vec<String> {
    let is_hash = |text: &str| {
        text.len() == 64 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
    };
    let hashes = table.trust;
    for odd in hashes.iter().filter(|hash| !is_hash(&hash.value)) {
        let what = format!(
            "{:?} is not a SHA-256 of 64 lowercase hexadecimal digits",
            odd.value
        );
        faults.at(odd, what, "`kapi launch --explain` prints the line to add");
    }
    hashes.into_iter().map(|hash| hash.value).collect()
}
