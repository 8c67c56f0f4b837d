//! `[integrate.conflicts]`: how the conflicts of some files are settled without judgement, by pattern.
//!
//! Reads one file at a time. Which rule a path has is decided where conflicts are settled.

use std::collections::BTreeMap;

use kapi_settings::fault::Faults;
use kapi_settings::setting::Setting;
use kapi_workflow::rules::batch::mechanical::{ConflictRule, ConflictRuleError, ConflictWay};
use serde::Deserialize;

/// The most rules of one file: a plan shows all of them.
const RULES_MAX: usize = 100;

/// `[integrate]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct IntegrateTable {
    conflicts: BTreeMap<String, Setting<String>>,
}

/// Returns the rules in the order in which they stand in the file.
pub(crate) fn rules(table: &IntegrateTable, faults: &mut Faults) -> Vec<ConflictRule> {
    let mut said: Vec<(&String, &Setting<String>)> = table.conflicts.iter().collect();
    said.sort_by_key(|(_, way)| way.line);
    let mut rules = Vec::new();
    for (n, (pattern, way)) in said.into_iter().enumerate() {
        if n == RULES_MAX {
            let remedy = "remove those that are not needed";
            let what = format!("there are more than {RULES_MAX} rules");
            faults.at(way, what, remedy);
            break;
        }
        if pattern.trim().is_empty() {
            let remedy = "write a pattern such as `\"gen/**\"`";
            faults.at(way, "the pattern is empty", remedy);
            continue;
        }
        match ConflictWay::parse(&way.value) {
            Ok(found) => rules.push(ConflictRule {
                pattern: pattern.clone(),
                way: found,
            }),
            Err(error) => faults.at(way, error.to_string(), ConflictRuleError::REMEDY),
        }
    }
    rules
}
