//! JSON Schemas of the tools' inputs, made from the types that read them.
//!
//! Without references: some clients pass a schema on to models that cannot follow one.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::tools::GoalTool;
use crate::tools::input::{
    BlockInput, CompleteInput, DistillInput, PlanInput, ProgressInput, ReplanInput, SetInput,
    StatusInput, TaskUpdateInput, WaitInput,
};

/// Returns the schema of a tool's input.
#[must_use]
pub fn input_schema(tool: GoalTool) -> Value {
    match tool {
        GoalTool::Set => of::<SetInput>(),
        GoalTool::Plan => of::<PlanInput>(),
        GoalTool::Replan => {
            let mut schema = of::<ReplanInput>();
            leave_tasks_undescribed(&mut schema);
            schema
        }
        GoalTool::TaskUpdate => of::<TaskUpdateInput>(),
        GoalTool::Progress => of::<ProgressInput>(),
        GoalTool::Complete => of::<CompleteInput>(),
        GoalTool::Block => of::<BlockInput>(),
        GoalTool::Wait => of::<WaitInput>(),
        GoalTool::Distill => of::<DistillInput>(),
        GoalTool::Status => of::<StatusInput>(),
    }
}

/// Returns the JSON Schema of a tool's input, written out whole.
#[must_use]
pub fn of<Input: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<Input>();
    for key in ["title", "description"] {
        schema.remove(key);
    }
    // Every client expects them, also where there is nothing to say.
    if schema.get("properties").is_none() {
        schema.insert(
            "properties".to_owned(),
            Value::Object(serde_json::Map::new()),
        );
    }
    let mut value = schema.to_value();
    simplify(&mut value);
    value
}

/// Removes the descriptions of a task's fields, which the plan's schema has said already: every
/// request of every agent carries these texts.
fn leave_tasks_undescribed(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(fields)) = map.get_mut("properties")
                && fields.contains_key("validationSteps")
            {
                fields.values_mut().for_each(without_descriptions);
            }
            map.values_mut().for_each(leave_tasks_undescribed);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_tasks_undescribed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without_descriptions(schema: &mut Value) {
    if let Value::Object(map) = schema {
        map.remove("description");
        for inner in ["items", "properties"] {
            match map.get_mut(inner) {
                Some(Value::Object(fields)) if inner == "properties" => {
                    fields.values_mut().for_each(without_descriptions);
                }
                Some(schema) => without_descriptions(schema),
                None => {}
            }
        }
    }
}

/// Removes what schemars notes for programs and models do not need.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_number_format = map
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| format.starts_with("uint"));
            if is_number_format {
                map.remove("format");
            }
            map.remove("default");
            map.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
