//! What an agent is told, and the inputs that it may name.
//!
//! Fills nothing in: whether a placeholder is known is all that is asked here.

use std::collections::BTreeMap;

use kapi_core::kernel::definition::{BODY_BYTES_MAX, INPUTS_MAX};
use kapi_core::kernel::value::Value;

use kapi_settings::fault::Faults;
use crate::kernel::definition_file::front_matter::Parts;
use crate::kernel::definition_file::table::{Said, Table};
use crate::kernel::template::{self, Template};
use kapi_settings::node::Value as Yaml;

/// Reads the inputs.
pub(super) fn inputs(
    table: &mut Table<'_>,
    faults: &mut Faults,
) -> Option<BTreeMap<String, Value>> {
    let Some(said) = table.take("inputs") else {
        return Some(BTreeMap::new());
    };
    let Yaml::Map(entries) = &said.node.value else {
        said.refuse_kind(faults, "give a table of names and values");
        return None;
    };
    if entries.len() > INPUTS_MAX {
        let what = format!("it has {} inputs", entries.len());
        said.refuse(faults, what, &format!("give at most {INPUTS_MAX}"));
        return None;
    }
    let mut inputs = BTreeMap::new();
    for entry in entries {
        let input = Said {
            key: format!("{}.{}", said.key, entry.key),
            line: entry.line,
            node: &entry.node,
        };
        if let Err(rule) = template::check_input_name(&entry.key) {
            input.refuse(faults, rule.to_owned(), "rename it");
        }
        inputs.insert(entry.key.clone(), input.value(faults)?);
    }
    Some(inputs)
}

/// Checks what an agent is told. Inputs that could not be read leave the placeholders unchecked.
pub(super) fn check(parts: &Parts, inputs: Option<&BTreeMap<String, Value>>, faults: &mut Faults) {
    if parts.body.is_empty() {
        let line = parts.body_line;
        faults.at_line(
            line,
            "the body is empty".to_owned(),
            "say what the agent shall do",
        );
        return;
    }
    if parts.body.contains('\0') {
        let what = "the body has a zero byte".to_owned();
        faults.at_line(parts.body_line, what, "remove it");
        return;
    }
    if parts.body.len() > BODY_BYTES_MAX {
        let what = "the body is longer than 128 KiB".to_owned();
        faults.at_line(parts.body_line, what, "shorten it");
        return;
    }
    let Some(inputs) = inputs else { return };
    let template = Template::parse(&parts.body);
    for unknown in template.unknown(inputs) {
        let line = parts.body_line + unknown.line - 1;
        let what = format!("unknown placeholder {{{}}}", unknown.name);
        let remedy = format!(
            "use one of {}, or write {{{{{}}}}} for the text itself",
            unknown.known.join(", "),
            unknown.name
        );
        faults.at_line(line, what, &remedy);
    }
}
