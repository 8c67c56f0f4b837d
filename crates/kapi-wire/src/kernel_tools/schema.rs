//! JSON Schemas of the inputs of the kernel's tools.
//!
//! Its own rule is what must be given; how a schema is written is said where the tools of a goal are.

use kapi_goal::tools::schema::of;
use serde_json::Value;

use super::KernelTool;
use super::input::{
    BackgroundTaskInput, GuardrailInput, LoopStatusInput, LoopTriggerInput, TaskIdInput,
    TaskStatusInput,
};

/// Returns the schema of the input of one of the kernel's tools.
#[must_use]
pub fn kernel_schema(tool: KernelTool) -> Value {
    match tool {
        KernelTool::Task => demanding(of::<BackgroundTaskInput>(), &["description", "prompt"]),
        KernelTool::Status => demanding(of::<TaskStatusInput>(), &["taskId"]),
        KernelTool::Cancel => demanding(of::<TaskIdInput>(), &["taskId"]),
        KernelTool::LoopTrigger => demanding(of::<LoopTriggerInput>(), &["loopName"]),
        KernelTool::LoopStatus => of::<LoopStatusInput>(),
        KernelTool::GuardrailAdd => demanding(of::<GuardrailInput>(), &["domain", "lesson"]),
    }
}

/// Names what must be given: its absence is read, so that it is answered in the words of the
/// specification.
pub(crate) fn demanding(mut schema: Value, required: &[&str]) -> Value {
    schema["required"] = Value::from(required.to_vec());
    schema
}
