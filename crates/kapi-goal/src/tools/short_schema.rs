//! JSON Schemas of the tools' inputs for a host whose every request carries them.
//!
//! What is required or short stands as a schema; whatever else an object may hold is told in one line,
//! as TypeScript writes it, where a field without a type is a text or a number. What is read is as strict as
//! ever.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::rules::plan::task::TaskPhase;
use crate::tools::GoalTool;
use crate::tools::schema::input_schema;

/// Returns the short schema of a tool's input.
#[must_use]
pub fn short_schema(tool: GoalTool) -> Value {
    let mut schema = input_schema(tool);
    let Some(map) = schema.as_object_mut() else {
        return schema;
    };
    map.remove("additionalProperties");
    if let Some(Value::Object(fields)) = map.get_mut("properties") {
        for field in fields.values_mut() {
            *field = field_schema(tool, field);
        }
    }
    schema
}

/// Returns what a tool is for, in few words: when to call it stands in the prompt.
#[must_use]
pub const fn short_description(tool: GoalTool) -> &'static str {
    match tool {
        GoalTool::Plan => "Submit the task list, tests first.",
        GoalTool::Replan => "Change the task list.",
        GoalTool::TaskUpdate => "Update one task.",
        GoalTool::Progress => "Note a line, and the phase.",
        GoalTool::Complete => "Claim the goal.",
        GoalTool::Block => "Ask the user.",
        GoalTool::Wait => "Park the goal.",
        GoalTool::Set | GoalTool::Distill | GoalTool::Status => tool.description(),
    }
}

/// Returns the schema of a field of the input itself, which is described where a contract is drafted:
/// no later request carries that.
fn field_schema(tool: GoalTool, field: &Value) -> Value {
    let mut short = inner_schema(tool, field);
    let is_described =
        short["description"].is_string() || short["items"]["description"].is_string();
    if tool == GoalTool::Set && !is_described && field["description"].is_string() {
        short["description"] = field["description"].clone();
    }
    short
}

fn inner_schema(tool: GoalTool, schema: &Value) -> Value {
    if let Some(variants) = schema["oneOf"].as_array() {
        return variants_schema(tool, variants);
    }
    if schema["items"].is_object() {
        return json!({"type": "array", "items": inner_schema(tool, &schema["items"])});
    }
    match schema["properties"].as_object() {
        Some(_) if is_task(schema) && tool != GoalTool::Plan => {
            json!({"type": "object", "description": TASK})
        }
        Some(fields) if tool == GoalTool::TaskUpdate => patch_schema(fields),
        Some(fields) => object_schema(schema, fields),
        // The phases are listed where one is chosen: by the contract, and as the work goes on.
        None if is_phase(schema) => json!({"type": "string", "enum": schema["enum"]}),
        None => plain(schema),
    }
}

/// Returns an object's schema: what is required, and the rest in a line.
fn object_schema(schema: &Value, fields: &Map<String, Value>) -> Value {
    let (required, others): (Vec<_>, Vec<_>) = fields
        .iter()
        .partition(|(name, _)| is_required(schema, name));
    let kept = required.into_iter();
    let kept: Map<String, Value> = kept
        .map(|(name, field)| (name.clone(), plain(field)))
        .collect();
    let told = grouped(&others);
    let mut short = json!({"type": "object", "properties": kept});
    short["required"] = schema["required"].clone();
    if !told.is_empty() {
        short["description"] = json!(format!("also: {told}"));
    }
    short
}

/// Returns the schema of a task's changes: what a task holds by the same name was said with the plan.
fn patch_schema(fields: &Map<String, Value>) -> Value {
    let plan = input_schema(GoalTool::Plan);
    let task = &plan["properties"]["tasks"]["items"]["properties"];
    let is_known =
        |name: &str, field: &Value| task[name].is_object() && told(&task[name]) == told(field);
    let (known, others): (Vec<_>, Vec<_>) = fields
        .iter()
        .partition(|(name, field)| is_known(name, field));
    let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let others = grouped(&others);
    let text = format!("{others}; as in until_done_plan: {}", known.join(", "));
    json!({"type": "object", "description": text})
}

/// Writes fields that may be left out, those of one type together.
fn grouped(fields: &[(&String, &Value)]) -> String {
    let mut kinds: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, field) in fields {
        kinds.entry(told(field)).or_default().push(name);
    }
    let told = kinds.iter().map(|(kind, names)| {
        let names = names.join("?, ");
        match kind.as_str() {
            "string" => format!("{names}?"),
            kind => format!("{names}?: {kind}"),
        }
    });
    told.collect::<Vec<String>>().join("; ")
}

/// Returns the schema of several shapes, which a word tells apart.
fn variants_schema(tool: GoalTool, variants: &[Value]) -> Value {
    let mut tag = String::new();
    let mut shapes = Vec::new();
    for variant in variants {
        let fields = variant["properties"].as_object();
        let mut told = Vec::new();
        let mut word = String::new();
        for (name, field) in fields.into_iter().flatten() {
            match field["const"].as_str() {
                Some(said) => {
                    word = said.to_owned();
                    tag.clone_from(name);
                }
                None => told.push(told_field(variant, name, field)),
            }
        }
        shapes.push(format!("{word} {{{}}}", told.join(", ")));
    }
    let note = if tool == GoalTool::Replan {
        format!("; Task: {TASK}")
    } else {
        String::new()
    };
    let text = format!("{tag}: {}{note}", shapes.join(" | "));
    json!({"type": "object", "description": text})
}

/// Returns a schema without what only a person reads, and without limits, which are said where they are
/// passed.
fn plain(schema: &Value) -> Value {
    if is_phase(schema) {
        return json!({"type": "string"});
    }
    let mut plain = schema.clone();
    if let Some(map) = plain.as_object_mut() {
        map.retain(|key, _| {
            ["type", "enum", "items", "properties", "required"].contains(&key.as_str())
        });
    }
    plain
}

/// What a task is wherever it is not written out.
const TASK: &str = "as in until_done_plan";

fn is_task(schema: &Value) -> bool {
    let fields = &schema["properties"];
    fields["validationSteps"].is_object() && fields["title"].is_object()
}

fn is_phase(schema: &Value) -> bool {
    let words = schema["enum"].as_array().into_iter().flatten();
    let phases = TaskPhase::ALL.map(TaskPhase::as_str);
    words.filter_map(Value::as_str).eq(phases)
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array().into_iter().flatten();
    required.filter_map(Value::as_str).any(|it| it == name)
}

/// Writes a field as TypeScript does; a text has no type.
fn told_field(schema: &Value, name: &str, field: &Value) -> String {
    let mark = if is_required(schema, name) { "" } else { "?" };
    match told(field).as_str() {
        "string" | "number" => format!("{name}{mark}"),
        kind => format!("{name}{mark}: {kind}"),
    }
}

fn told(schema: &Value) -> String {
    if is_task(schema) {
        return "Task".to_owned();
    }
    if is_phase(schema) {
        return "string".to_owned();
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return words.join("|");
    }
    if schema["items"].is_object() {
        return format!("{}[]", told(&schema["items"]));
    }
    if let Some(fields) = schema["properties"].as_object() {
        let fields = fields
            .iter()
            .map(|(name, field)| told_field(schema, name, field));
        return format!("{{{}}}", fields.collect::<Vec<String>>().join(", "));
    }
    match schema["type"].as_str() {
        Some("integer") => "number".to_owned(),
        kind => kind.unwrap_or("string").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::short_schema;
    use crate::tools::GoalTool;

    #[test]
    fn an_operation_is_told_apart_by_its_word_and_its_fields_stand_in_a_line() {
        let schema = short_schema(GoalTool::Replan);
        let operations = &schema["properties"]["operations"]["items"];
        assert_eq!(
            operations["description"],
            "op: insert {insertAfter?, task: Task} | remove {taskId} | replace {task: Task, taskId} | \
             split {into: Task[], taskId} | merge {into: Task, taskIds: string[]} | \
             reorder {dependencies: string[], taskId}; Task: as in until_done_plan"
        );
    }

    #[test]
    fn what_may_be_left_out_stands_in_a_line_by_its_type() {
        let schema = short_schema(GoalTool::Plan);
        let task = &schema["properties"]["tasks"]["items"];
        assert_eq!(
            task["required"],
            serde_json::json!(["id", "title", "phase"])
        );
        assert_eq!(
            task["description"],
            "also: status?: pending|in_progress|done|blocked|skipped; notes?; \
             blocks?, ciCommands?, dependencies?, gotchas?, guardrails?, learnings?, \
             styleguideRules?, validationSteps?: string[]; \
             prerequisites?: {cleared?: boolean, description}[]; context?: {path?, url?, why}[]"
        );
    }

    /// Returns every word of a schema that is the name of a field.
    fn names(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::Object(fields)) = map.get("properties") {
                    found.extend(fields.keys().cloned());
                }
                map.values().for_each(|inner| names(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| names(inner, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn no_field_of_an_input_is_left_unsaid() {
        for tool in GoalTool::ALL {
            let mut wanted = Vec::new();
            names(&super::input_schema(tool), &mut wanted);
            let short = short_schema(tool).to_string();
            let plan = short_schema(GoalTool::Plan).to_string();
            for name in wanted {
                let is_said = short.contains(&name) || plan.contains(&name);
                assert!(is_said, "{name} of {} in {short}", tool.name());
            }
        }
    }
}
