//! Rules that old code still breaks: so many times in a crate, and never once more.
//!
//! Whoever brings a number down lowers it in the rule's table; a crate without a row is at none.

use std::collections::BTreeMap;

use super::Fault;

/// How often a crate may still break a rule, by its directory.
pub(super) type Allowance = [(&'static str, usize)];

/// Returns a fault for each crate that breaks a rule more often than it may; with no allowance, one
/// for each place.
pub(super) fn beyond(allowance: &Allowance, found: Vec<(String, Fault)>) -> Vec<Fault> {
    let mut by_package: BTreeMap<String, Vec<Fault>> = BTreeMap::new();
    for (package, fault) in found {
        by_package.entry(package).or_default().push(fault);
    }
    let mut faults = Vec::new();
    for (package, places) in by_package {
        let row = allowance.iter().find(|(name, _)| *name == package);
        let allowed = row.map_or(0, |(_, n)| *n);
        if allowed == 0 {
            faults.extend(places);
        } else if places.len() > allowed {
            let lines: Vec<String> = places.iter().map(ToString::to_string).collect();
            faults.push(Fault {
                path: package,
                line: 0,
                message: format!(
                    "{} places are more than the {allowed} that are left to mend:\n    {}",
                    lines.len(),
                    lines.join("\n    ")
                ),
            });
        }
    }
    faults
}
