//! JSON Schemas of what the tools answer, made from the types that are written.
//!
//! Clients check answers against them, refusals too: so nothing but `ok` must be there.

use serde_json::{Map, Value, json};

use crate::tools::GoalTool;
use crate::tools::schema::of;
use crate::tools::state::{StateView, StatusView};

/// Returns the schema of a tool's answer.
#[must_use]
pub fn output_schema(tool: GoalTool) -> Value {
    let view = match tool {
        GoalTool::Status => of::<StatusView>(),
        GoalTool::Set
        | GoalTool::Plan
        | GoalTool::Replan
        | GoalTool::TaskUpdate
        | GoalTool::Progress
        | GoalTool::Complete
        | GoalTool::Block
        | GoalTool::Wait
        | GoalTool::Distill => of::<StateView>(),
    };
    let mut fields = match view {
        Value::Object(mut schema) => match schema.remove("properties") {
            Some(Value::Object(fields)) => fields,
            Some(_) | None => Map::new(),
        },
        _ => Map::new(),
    };
    let more = [
        ("ok", json!({"type": "boolean"})),
        ("reason", json!({"type": ["string", "null"]})),
        ("message", json!({"type": "string"})),
        ("next", json!({"type": "string"})),
        ("contractHash", json!({"type": "string"})),
        ("notTaken", json!({"type": "array"})),
    ];
    fields.extend(more.map(|(name, schema)| (name.to_owned(), schema)));
    fields.values_mut().for_each(demand_nothing);
    json!({"type": "object", "properties": fields, "required": ["ok"]})
}

/// What a goal does not have yet is left out of an answer.
fn demand_nothing(schema: &mut Value) {
    if let Value::Object(map) = schema {
        map.remove("required");
        map.values_mut().for_each(demand_nothing);
    }
}
