//! What an agent may use, and how each agent program is told.
//!
//! A program's own flags are courtesy: they keep a model from trying. What holds is the sandbox,
//! so whatever a program cannot be told is named, and never dropped in silence.

use kapi_settings::fault::did_you_mean;
use serde_json::{Value, json};

/// Something that an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Reads files.
    Read,
    /// Writes files.
    Write,
    /// Changes files.
    Edit,
    /// Runs shell commands.
    Bash,
    /// Searches in files.
    Grep,
    /// Finds files by name.
    Glob,
    /// Hands work to another agent of the same program.
    Task,
    /// Fetches a page.
    WebFetch,
    /// Searches the web.
    WebSearch,
    /// Keeps a list of what is to be done.
    TodoWrite,
    /// Changes cells of notebooks.
    NotebookEdit,
    /// What another server offers, or a tool of one program only.
    Named(String),
}

const NAMES: &[(&str, Tool)] = &[
    ("Read", Tool::Read),
    ("Write", Tool::Write),
    ("Edit", Tool::Edit),
    ("Bash", Tool::Bash),
    ("Grep", Tool::Grep),
    ("Glob", Tool::Glob),
    ("Task", Tool::Task),
    ("WebFetch", Tool::WebFetch),
    ("WebSearch", Tool::WebSearch),
    ("TodoWrite", Tool::TodoWrite),
    ("NotebookEdit", Tool::NotebookEdit),
];

/// How a program is told which tools an agent has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFlags {
    /// Arguments of its command line.
    pub arguments: Vec<String>,
    /// What its `settings.json` must say, where it has no arguments for it.
    pub settings: Option<Value>,
    /// Tools that are not given and that the program still offers: enforced by the sandbox only,
    /// and only as far as they write files or reach the network.
    pub sandbox_only: Vec<Tool>,
    /// Tools that are given and that the program does not have.
    pub not_there: Vec<Tool>,
}

impl Tool {
    /// Every tool that is known by name.
    pub const ALL: [Self; 11] = [
        Self::Read,
        Self::Write,
        Self::Edit,
        Self::Bash,
        Self::Grep,
        Self::Glob,
        Self::Task,
        Self::WebFetch,
        Self::WebSearch,
        Self::TodoWrite,
        Self::NotebookEdit,
    ];

    /// Reads a name, in any case; a rule in parentheses after it is left to the sandbox.
    ///
    /// Returns `None` for what cannot be the name of a tool.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.split('(').next().unwrap_or_default().trim();
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        // It becomes an argument of a command line, so it must not look like a flag.
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if !begins_well || !name.chars().all(is_word) || name.len() > 128 {
            return None;
        }
        let other = match name.to_ascii_lowercase().as_str() {
            // Claude Code's further names of the same.
            "agent" => Some(Self::Task),
            "multiedit" => Some(Self::Edit),
            lower => NAMES
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(lower))
                .map(|(_, tool)| tool.clone()),
        };
        Some(other.unwrap_or_else(|| Self::Named(name.to_owned())))
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        let found = NAMES.iter().find(|(_, tool)| tool == self);
        match (found, self) {
            (_, Self::Named(name)) => name,
            (Some((name, _)), _) => name,
            (None, _) => "",
        }
    }

    /// Tells whether it is there to change files of the workspace. A shell is not: whoever has
    /// only a shell looks around with it.
    #[must_use]
    pub const fn is_writing(&self) -> bool {
        match self {
            Self::Write | Self::Edit | Self::NotebookEdit => true,
            Self::Read
            | Self::Bash
            | Self::Grep
            | Self::Glob
            | Self::Task
            | Self::WebFetch
            | Self::WebSearch
            | Self::TodoWrite
            | Self::Named(_) => false,
        }
    }

    /// Says what to write instead of a name that is no tool's.
    pub(super) fn remedy(name: &str) -> String {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        did_you_mean(name, &names, "use")
    }
}

/// Returns how a program is told that an agent has these tools and no others.
///
/// `own_tools` are the names of those that Kapi registers with the agent; they stay.
#[must_use]
pub fn tool_flags(backend: &str, tools: &[Tool], own_tools: &[&str]) -> ToolFlags {
    match backend {
        "claude" => claude(tools),
        "pi" => pi(tools, own_tools),
        "gemini" => gemini(tools),
        // Codex gives its model a shell and nothing to take it away; of commands and scripts
        // nothing is known.
        _ => ToolFlags {
            sandbox_only: not_given(tools, &Tool::ALL),
            ..ToolFlags::default()
        },
    }
}

/// `--allowedTools` only spares a question. `--tools` is what takes away, of the built-in ones;
/// tools of servers stay, and only those are there that Kapi names to it.
fn claude(tools: &[Tool]) -> ToolFlags {
    let mut names: Vec<&str> = Vec::new();
    for tool in tools {
        match tool {
            // The same tool in newer and older versions.
            Tool::Task => names.extend(["Task", "Agent"]),
            Tool::Named(name) if name.starts_with("mcp__") => {}
            tool => names.push(tool.name()),
        }
    }
    ToolFlags {
        arguments: vec!["--tools".to_owned(), names.join(",")],
        ..ToolFlags::default()
    }
}

/// Pi's `--tools` also takes away what is registered with it, so that is named again.
fn pi(tools: &[Tool], own_tools: &[&str]) -> ToolFlags {
    const HAS: [(Tool, &[&str]); 6] = [
        (Tool::Read, &["read", "ls"]),
        (Tool::Write, &["write"]),
        (Tool::Edit, &["edit"]),
        (Tool::Bash, &["bash"]),
        (Tool::Grep, &["grep"]),
        (Tool::Glob, &["find", "ls"]),
    ];
    let (mut names, not_there) = named(tools, &HAS);
    let arguments = if names.is_empty() {
        vec!["--no-builtin-tools".to_owned()]
    } else {
        names.sort_unstable();
        names.dedup();
        names.extend(own_tools);
        vec!["--tools".to_owned(), names.join(",")]
    };
    ToolFlags {
        arguments,
        not_there,
        ..ToolFlags::default()
    }
}

/// Gemini's `--allowed-tools` only spares a question; its settings name the built-in tools there are.
fn gemini(tools: &[Tool]) -> ToolFlags {
    const HAS: [(Tool, &[&str]); 10] = [
        (
            Tool::Read,
            &["read_file", "read_many_files", "list_directory"],
        ),
        (Tool::Write, &["write_file"]),
        (Tool::Edit, &["replace"]),
        (Tool::Bash, &["run_shell_command"]),
        (Tool::Grep, &["grep_search", "search_file_content"]),
        (Tool::Glob, &["glob"]),
        (Tool::Task, &["invoke_agent"]),
        (Tool::WebFetch, &["web_fetch"]),
        (Tool::WebSearch, &["google_web_search"]),
        (Tool::TodoWrite, &["write_todos"]),
    ];
    let (names, not_there) = named(tools, &HAS);
    ToolFlags {
        settings: Some(json!({"tools": {"core": names}})),
        not_there,
        ..ToolFlags::default()
    }
}

/// Returns a program's names of some tools, and the tools that it does not have.
fn named<'a>(tools: &[Tool], has: &[(Tool, &'a [&'a str])]) -> (Vec<&'a str>, Vec<Tool>) {
    let mut names = Vec::new();
    let mut not_there = Vec::new();
    for tool in tools {
        match (has.iter().find(|(known, _)| known == tool), tool) {
            (Some((_, theirs)), _) => names.extend(*theirs),
            (None, Tool::Named(name)) if name.starts_with("mcp__") => {}
            (None, tool) => not_there.push(tool.clone()),
        }
    }
    (names, not_there)
}

fn not_given(tools: &[Tool], all: &[Tool]) -> Vec<Tool> {
    let is_missing = |tool: &&Tool| !tools.contains(tool);
    all.iter().filter(is_missing).cloned().collect()
}
