//! What an agent's tools amount to in a turn (pi-until-done, "Built-in tool coverage").
//!
//! Looking counts 1, running or anything unknown 2, changing a file 3, and the tools by which an
//! agent speaks of its goal nothing: a turn that scores 0 did no work.

/// Returns the progress signal of one tool, by the name its CLI gives it.
#[must_use]
pub fn of_tool(name: &str) -> u32 {
    const LOOKS: &[&str] = &[
        "read",
        "grep",
        "find",
        "ls",
        "glob",
        "read_file",
        "read_many_files",
        "list_directory",
        "search_file_content",
        "notebookread",
    ];
    const CHANGES: &[&str] = &[
        "edit",
        "write",
        "multiedit",
        "notebookedit",
        "write_file",
        "replace",
        "apply_patch",
        "file_change",
        "patch",
    ];
    const SPEAKS: &[&str] = &["todowrite", "todo_list", "update_plan", "write_todos"];
    let name = name.to_ascii_lowercase();
    let plain = name.rsplit("__").next().unwrap_or(&name);
    if plain.contains("until_done_") || SPEAKS.contains(&plain) {
        return 0;
    }
    if LOOKS.contains(&plain) {
        return 1;
    }
    if CHANGES.contains(&plain) {
        return 3;
    }
    2
}

#[cfg(test)]
mod tests {
    use super::of_tool;

    #[test]
    fn spin_guard_scores_follow_the_specification() {
        for (tools, score) in [
            (["read", "grep", "find", "ls"], 1),
            (["bash", "Bash", "run_shell_command", "WebSearch"], 2),
            (["edit", "write", "Write", "replace"], 3),
            (
                [
                    "until_done_progress",
                    "mcp__kapi__until_done_plan",
                    "TodoWrite",
                    "update_plan",
                ],
                0,
            ),
        ] {
            for tool in tools {
                assert_eq!(of_tool(tool), score, "{tool}");
            }
        }
    }
}
