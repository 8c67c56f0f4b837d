//! JSON Schemas of the data that the kernel's tools answer.
//!
//! Clients check answers against them, refusals too: so no field must be there.

use serde_json::{Map, Value, json};

use crate::kernel_tools::KernelTool;

/// A field of an answer and the JSON types that it may have.
type OutputField = (&'static str, &'static [&'static str]);

const TEXT: &[&str] = &["string"];
const TEXT_OR_NONE: &[&str] = &["string", "null"];
const OBJECT: &[&str] = &["object"];
const LIST: &[&str] = &["array"];
const NUMBER: &[&str] = &["number"];
const FLAG: &[&str] = &["boolean"];

/// Returns the schema of the data of a tool's answer.
#[must_use]
pub fn kernel_output_schema(tool: KernelTool) -> Value {
    let fields: &[OutputField] = match tool {
        KernelTool::Task => &[
            ("taskId", TEXT),
            ("status", TEXT),
            ("agent", TEXT),
            ("worker", TEXT),
        ],
        KernelTool::Status => &[
            ("id", TEXT),
            ("status", TEXT),
            ("agent", TEXT),
            ("output", TEXT),
            ("usage", OBJECT),
            ("duration", NUMBER),
            ("description", TEXT),
            ("waits", TEXT_OR_NONE),
            ("branch", TEXT_OR_NONE),
            ("commit", TEXT_OR_NONE),
            ("phases", LIST),
        ],
        KernelTool::Cancel => &[("taskId", TEXT), ("cancelled", FLAG), ("status", TEXT)],
        KernelTool::LoopTrigger => &[
            ("loopName", TEXT),
            ("status", TEXT),
            ("reason", TEXT_OR_NONE),
            ("backgroundTaskId", TEXT_OR_NONE),
            ("phases", LIST),
        ],
        KernelTool::LoopStatus => &[("loops", LIST)],
        KernelTool::GuardrailAdd => &[
            ("domain", TEXT),
            ("severity", TEXT),
            ("createdAt", TEXT),
            ("id", TEXT),
            ("state", TEXT),
        ],
    };
    let error: OutputField = ("error", TEXT_OR_NONE);
    let schemas = fields.iter().chain([&error]).map(|(name, types)| {
        let schema = match types {
            [one] => json!({"type": one}),
            several => json!({"type": several}),
        };
        ((*name).to_owned(), schema)
    });
    let properties: Map<String, Value> = schemas.collect();
    json!({"type": "object", "properties": properties})
}
