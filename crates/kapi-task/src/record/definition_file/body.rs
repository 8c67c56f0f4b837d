//! What an agent is told, and the inputs that it may name.
//!
//! Fills nothing in: whether a placeholder is known is all that is asked here.

use std::collections::BTreeMap;

use kapi_core::value::KernelValue;
use kapi_settings::fault::Faults;
use kapi_settings::setting::Setting;

use crate::record::definition_file::front_matter::FileParts;
use crate::record::template;
use crate::record::template::Template;
use crate::rules::definition::{BODY_BYTES_MAX, INPUTS_MAX};

/// Checks the names of the inputs.
pub(super) fn inputs(
    said: &Setting<BTreeMap<String, Setting<KernelValue>>>,
    faults: &mut Faults,
) -> BTreeMap<String, KernelValue> {
    let count = said.value.len();
    if count > INPUTS_MAX {
        let what = format!("it has {count} inputs");
        faults.at(said, what, format!("give at most {INPUTS_MAX}"));
    }
    for (name, input) in &said.value {
        if let Err(rule) = template::check_input_name(name) {
            faults.at(input, rule, "rename it");
        }
    }
    let inputs = said.value.iter();
    inputs
        .map(|(name, input)| (name.clone(), input.value.clone()))
        .collect()
}

/// Checks what an agent is told. Inputs that could not be read leave the placeholders unchecked.
pub(super) fn check(
    parts: &FileParts,
    inputs: Option<&BTreeMap<String, KernelValue>>,
    faults: &mut Faults,
) {
    if parts.body.is_empty() {
        let remedy = "describe what the agent should do";
        faults.at_line(parts.body_line, "the body is empty", remedy);
        return;
    }
    if parts.body.contains('\0') {
        let what = "the body has a zero byte";
        faults.at_line(parts.body_line, what, "remove it");
        return;
    }
    if parts.body.len() > BODY_BYTES_MAX {
        let what = "the body is longer than 128 KiB";
        faults.at_line(parts.body_line, what, "shorten it");
        return;
    }
    let Some(inputs) = inputs else { return };
    let template = Template::parse(&parts.body);
    for unknown in template.unknown(inputs) {
        let line = parts.body_line + unknown.line - 1;
        let what = format!("unknown placeholder {{{}}}", unknown.name);
        let remedy = format!(
            "use one of {}, or write {{{{{}}}}} for the literal text",
            unknown.known.join(", "),
            unknown.name
        );
        faults.at_line(line, what, remedy);
    }
}
