//! Which tools run what they are told, and in which of their fields.
//!
//! A tool that is not known runs everything. Those that look at files, change them or speak of the
//! goal run nothing: what they write is asked about when it is run by name, not when it is written.

/// Tools of the CLIs themselves that run no command, in lower case.
const RUNS_NOTHING: &[&str] = &[
    "read",
    "grep",
    "find",
    "ls",
    "glob",
    "read_file",
    "read_many_files",
    "list_directory",
    "search_file_content",
    "grep_search",
    "notebookread",
    "edit",
    "write",
    "multiedit",
    "notebookedit",
    "write_file",
    "replace",
    "apply_patch",
    "todowrite",
    "update_plan",
    "write_todos",
    "toolsearch",
    // What they start asks for each of its own tools.
    "agent",
    "task",
];
/// Tools whose other fields only say what a command is for.
const SHELLS: &[&str] = &["bash", "shell", "run_shell_command", "exec_command"];
/// What the CLIs put before the names of the goal's own tools.
const OURS: &[&str] = &["", "mcp__kapi__", "mcp_kapi_"];
/// What the names of the goal's own tools begin with.
const OURS_BEGIN: &str = "until_done_";
/// The one of them that runs a command, and the field it has it in.
const OURS_RUNS: (&str, &str) = ("until_done_wait", "command");

/// Tells whether a tool runs what one of its fields says.
pub(super) fn runs_field(tool: &str, key: &str) -> bool {
    let tool = tool.to_lowercase();
    let ours = OURS.iter().find_map(|prefix| {
        let name = tool.strip_prefix(prefix)?;
        name.starts_with(OURS_BEGIN).then_some(name)
    });
    if let Some(name) = ours {
        return (name, key) == OURS_RUNS;
    }
    if RUNS_NOTHING.contains(&tool.as_str()) {
        return false;
    }
    !(SHELLS.contains(&tool.as_str()) && key == "description")
}
