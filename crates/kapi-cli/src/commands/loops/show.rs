//! `kapi loop show`: a loop as it is understood, and where each value was said.
//!
//! Only looks; the place of a value is told as long as the file is the one that was read.

use std::collections::BTreeMap;
use std::fs;

use kapi_store::hash::sha256_hex;
use kapi_sys::clock::Clock as _;
use kapi_task::record::definition_file;
use kapi_task::rules::definition::Definition;
use serde_json::{Map, Value, json};

use crate::commands::loops::{LoopArg, loop_state};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel};
use crate::ui::Format;

/// The keys of a definition that stand under other names in its file.
const KEYS: [(&str, &[&str]); 6] = [
    ("timeout_ms", &["timeout"]),
    ("cooldown_ms", &["cooldown"]),
    ("retry", &["max_retries", "backoff", "backoff_max"]),
    ("evals", &["eval", "evals"]),
    ("should_run", &["should_run", "run_if"]),
    (
        "checks",
        &[
            "tests",
            "already_green",
            "allow_changed_setup",
            "allow_flagged_code",
            "prove_diff",
        ],
    ),
];
/// What has a place of its own in what is shown.
const APART: [&str; 3] = ["name", "body", "source"];

/// Shows a loop.
pub(super) fn run(context: &Context, args: &LoopArg) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop show", |kernel| {
        let found = kernel.loops();
        let definition = loop_state::find(&found, &args.name)?;
        let values = values(definition)?;
        let lines = lines(kernel, definition);
        let queue = kernel.queue()?;
        let view = loop_state::view(queue.kernel(), definition, context.clock.now_ms());
        if context.ui.format == Format::Json {
            let sources: BTreeMap<&String, String> = values
                .keys()
                .map(|key| (key, source(definition, &lines, key)))
                .collect();
            context.ui.json(&json!({
                "loop": view, "definition": values, "sources": sources,
            }));
            return Ok(Exit::Success);
        }
        let state = if view.is_enabled { "" } else { "  off" };
        let file = &definition.source.file;
        context
            .ui
            .line(&format!("{}  {file}{state}", definition.name));
        for (key, value) in &values {
            if APART.contains(&key.as_str()) {
                continue;
            }
            let location = source(definition, &lines, key);
            context
                .ui
                .line(&format!("  {key:<15}{}  ({location})", shown(value)));
        }
        context
            .ui
            .line(&format!("  {:<15}{}", "trigger", view.trigger_words));
        context.ui.line("");
        for line in definition.body.lines() {
            context.ui.line(&format!("  {line}"));
        }
        Ok(Exit::Success)
    })
}

/// Returns every key of a definition with its value, those that were left out too.
fn values(definition: &Definition) -> Result<Map<String, Value>, Error> {
    let failed = |error: serde_json::Error| {
        Error::new(
            Exit::Internal,
            format!("failed to write the loop as JSON: {error}"),
        )
    };
    let Value::Object(mut values) = serde_json::to_value(definition).map_err(failed)? else {
        return Ok(Map::new());
    };
    for key in ["backend", "model", "should_run", "retrigger"] {
        values.entry(key).or_insert(Value::Null);
    }
    Ok(values)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the lines of the file's keys, as long as the file is the one that was read.
fn lines(kernel: &ProjectKernel<'_>, definition: &Definition) -> BTreeMap<String, usize> {
    let path = kernel.project.layout.root().join(&definition.source.file);
    let text = fs::read_to_string(path).unwrap_or_default();
    if sha256_hex(text.as_bytes()) == definition.source.sha256 {
        definition_file::key_lines(&text)
    } else {
        BTreeMap::new()
    }
}

fn source(definition: &Definition, lines: &BTreeMap<String, usize>, key: &str) -> String {
    let file = &definition.source.file;
    if key == "body" {
        return file.clone();
    }
    let named = KEYS.iter().find(|(known, _)| *known == key);
    let own = [key];
    let keys: &[&str] = named.map_or(&own, |(_, keys)| keys);
    let line = keys.iter().find_map(|key| lines.get(*key));
    line.map_or_else(|| "default".to_owned(), |line| format!("{file}:{line}"))
}
