//! What an agent may use, and how each agent program is told.
//!
//! A program's own flags are courtesy: they keep a model from trying. What holds is the sandbox,
//! so whatever a program cannot be told is named, and never dropped in silence.

use kapi_settings::fault::did_you_mean;
use serde_json::{Value, json};

/// Something that an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentTool {
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

const NAMES: &[(&str, AgentTool)] = &[
    ("Read", AgentTool::Read),
    ("Write", AgentTool::Write),
    ("Edit", AgentTool::Edit),
    ("Bash", AgentTool::Bash),
    ("Grep", AgentTool::Grep),
    ("Glob", AgentTool::Glob),
    ("Task", AgentTool::Task),
    ("WebFetch", AgentTool::WebFetch),
    ("WebSearch", AgentTool::WebSearch),
    ("TodoWrite", AgentTool::TodoWrite),
    ("NotebookEdit", AgentTool::NotebookEdit),
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
    pub sandbox_only: Vec<AgentTool>,
    /// Tools that are given and that the program does not have.
    pub not_there: Vec<AgentTool>,
}

impl AgentTool {
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
pub fn tool_flags(backend: &str, tools: &[AgentTool], own_tools: &[&str]) -> ToolFlags {
    match backend {
        "claude" => claude(tools),
        "pi" => pi(tools, own_tools),
        "gemini" => gemini(tools),
        // Codex gives its model a shell and nothing to take it away; of commands and scripts
        // nothing is known.
        _ => ToolFlags {
            sandbox_only: not_given(tools, &AgentTool::ALL),
            ..ToolFlags::default()
        },
    }
}

/// `--allowedTools` only spares a question. `--tools` is what takes away, of the built-in ones;
/// tools of servers stay, and only those are there that Kapi names to it.
fn claude(tools: &[AgentTool]) -> ToolFlags {
    let mut names: Vec<&str> = Vec::new();
    for tool in tools {
        match tool {
            // The same tool in newer and older versions.
            AgentTool::Task => names.extend(["Task", "Agent"]),
            AgentTool::Named(name) if name.starts_with("mcp__") => {}
            tool => names.push(tool.name()),
        }
    }
    ToolFlags {
        arguments: vec!["--tools".to_owned(), names.join(",")],
        ..ToolFlags::default()
    }
}

/// Pi's `--tools` also takes away what is registered with it, so that is named again.
fn pi(tools: &[AgentTool], own_tools: &[&str]) -> ToolFlags {
    const HAS: [(AgentTool, &[&str]); 6] = [
        (AgentTool::Read, &["read", "ls"]),
        (AgentTool::Write, &["write"]),
        (AgentTool::Edit, &["edit"]),
        (AgentTool::Bash, &["bash"]),
        (AgentTool::Grep, &["grep"]),
        (AgentTool::Glob, &["find", "ls"]),
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
fn gemini(tools: &[AgentTool]) -> ToolFlags {
    const HAS: [(AgentTool, &[&str]); 10] = [
        (
            AgentTool::Read,
            &["read_file", "read_many_files", "list_directory"],
        ),
        (AgentTool::Write, &["write_file"]),
        (AgentTool::Edit, &["replace"]),
        (AgentTool::Bash, &["run_shell_command"]),
        (AgentTool::Grep, &["grep_search", "search_file_content"]),
        (AgentTool::Glob, &["glob"]),
        (AgentTool::Task, &["invoke_agent"]),
        (AgentTool::WebFetch, &["web_fetch"]),
        (AgentTool::WebSearch, &["google_web_search"]),
        (AgentTool::TodoWrite, &["write_todos"]),
    ];
    let (names, not_there) = named(tools, &HAS);
    ToolFlags {
        settings: Some(json!({"tools": {"core": names}})),
        not_there,
        ..ToolFlags::default()
    }
}

/// Returns a program's names of some tools, and the tools that it does not have.
fn named<'a>(
    tools: &[AgentTool],
    has: &[(AgentTool, &'a [&'a str])],
) -> (Vec<&'a str>, Vec<AgentTool>) {
    let mut names = Vec::new();
    let mut not_there = Vec::new();
    for tool in tools {
        match (has.iter().find(|(known, _)| known == tool), tool) {
            (Some((_, theirs)), _) => names.extend(*theirs),
            (None, AgentTool::Named(name)) if name.starts_with("mcp__") => {}
            (None, tool) => not_there.push(tool.clone()),
        }
    }
    (names, not_there)
}

fn not_given(tools: &[AgentTool], all: &[AgentTool]) -> Vec<AgentTool> {
    let is_missing = |tool: &&AgentTool| !tools.contains(tool);
    all.iter().filter(is_missing).cloned().collect()
}
