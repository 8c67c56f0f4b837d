//! What each of the kernel's tools does to its surroundings, for clients that ask their person first.

use kapi_goal::tools::hints::ToolHints;

use crate::kernel_tools::KernelTool;

/// Returns what a tool of the kernel does to its surroundings.
#[must_use]
pub const fn of(tool: KernelTool) -> ToolHints {
    match tool {
        // The same request a second time is told of the first.
        KernelTool::Task => ToolHints {
            is_idempotent: true,
            is_open_world: true,
            ..ToolHints::adding("Run a background task")
        },
        KernelTool::Status => ToolHints::looking("Show a background task"),
        KernelTool::Cancel => ToolHints {
            is_destructive: true,
            is_idempotent: true,
            ..ToolHints::adding("Cancel a background task")
        },
        KernelTool::LoopTrigger => ToolHints {
            is_open_world: true,
            ..ToolHints::adding("Trigger a loop")
        },
        KernelTool::LoopStatus => ToolHints::looking("Show loops"),
        KernelTool::GuardrailAdd => ToolHints::adding("Propose a lesson"),
    }
}
