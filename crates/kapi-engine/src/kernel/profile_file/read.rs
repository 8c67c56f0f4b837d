//! One profile: the specification's settings, or those of Claude Code.
//!
//! What Claude Code knows and Kapi does not is named, never guessed at; what takes something away
//! is honoured.

use kapi_core::kernel::request::PROMPT_BYTES_MAX;

use kapi_settings::fault::{Fault, Faults, short};
use crate::kernel::definition_file::front_matter::Parts;
use crate::kernel::definition_file::read::{backend, settings};
use crate::kernel::definition_file::table::{Said, Table};
use crate::kernel::profile_file::tool::Tool;
use crate::kernel::profile_file::{Access, AgentProfile};
use kapi_settings::node::Value as Yaml;

/// The most tools of one profile.
const TOOLS_MAX: usize = 128;
/// The longest name in bytes.
const NAME_BYTES_MAX: usize = 64;
/// The longest system prompt in bytes: the task must fit beside it.
const SYSTEM_PROMPT_BYTES_MAX: usize = PROMPT_BYTES_MAX / 4;

/// Whose settings a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The specification's: every key and tool is known.
    Pi,
    /// Claude Code's: it may know keys and tools that came later.
    Claude,
}

/// Reads a profile.
pub(super) fn profile(
    file: &str,
    text: &str,
    dialect: Dialect,
) -> Result<AgentProfile, Vec<Fault>> {
    let mut faults = Faults::of(file.to_owned());
    let read = read(file, text, dialect, &mut faults);
    match read {
        Some(profile) if faults.is_empty() => Ok(profile),
        Some(_) | None => Err(faults.into_list()),
    }
}

fn read(file: &str, text: &str, dialect: Dialect, faults: &mut Faults) -> Option<AgentProfile> {
    let (entries, parts) = settings(text, faults)?;
    let mut table = Table::new("", &entries);
    let name = name(&mut table, faults);
    let description = match table.take("description") {
        Some(said) => said.text(faults).map(str::to_owned),
        None => {
            missing("description", faults);
            None
        }
    };
    let model = match table.take("model") {
        // The model of whoever asks; here the configuration's.
        Some(said) => said.text(faults).filter(|model| *model != "inherit"),
        None => None,
    };
    let tools = match table.take("tools") {
        Some(said) => tools(&said, dialect, faults).map(Some),
        None => Some(None),
    };
    let mut profile = AgentProfile {
        name: String::new(),
        description: String::new(),
        backend: None,
        model: model.map(str::to_owned),
        tools: None,
        access: Access::Write,
        system_prompt: parts.body.clone(),
        source: file.to_owned(),
        ignored: Vec::new(),
    };
    match dialect {
        Dialect::Pi => {
            profile.backend = table
                .take("backend")
                .and_then(|said| backend(&said, faults));
            table.finish(faults);
            profile.tools = tools?;
        }
        Dialect::Claude => {
            profile.backend = Some("claude".to_owned());
            profile.tools = claude_tools(&mut table, tools?, &mut profile.access, faults);
            profile.ignored = table.unasked();
        }
    }
    if profile
        .tools
        .as_deref()
        .is_some_and(|tools| !tools.iter().any(Tool::is_writing))
    {
        profile.access = Access::ReadOnly;
    }
    check_prompt(&parts, faults);
    profile.name = name?;
    profile.description = description?
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    Some(profile)
}

fn check_prompt(parts: &Parts, faults: &mut Faults) {
    if parts.body.is_empty() {
        let what = "it has no system prompt".to_owned();
        faults.at_line(
            parts.body_line,
            what,
            "say below the front matter who the agent is",
        );
    }
    if parts.body.contains('\0') {
        let what = "the system prompt has a zero byte".to_owned();
        faults.at_line(parts.body_line, what, "remove it");
    }
    if parts.body.len() > SYSTEM_PROMPT_BYTES_MAX {
        let what = format!("the system prompt is longer than {SYSTEM_PROMPT_BYTES_MAX} bytes");
        faults.at_line(parts.body_line, what, "shorten it");
    }
}

/// Applies what Claude Code's further keys take away.
fn claude_tools(
    table: &mut Table<'_>,
    tools: Option<Vec<Tool>>,
    access: &mut Access,
    faults: &mut Faults,
) -> Option<Vec<Tool>> {
    if let Some(said) = table.take("permissionMode")
        && said.text(faults) == Some("plan")
    {
        *access = Access::ReadOnly;
    }
    let Some(said) = table.take("disallowedTools") else {
        return tools;
    };
    let denied = self::tools(&said, Dialect::Claude, faults)?;
    let all = tools.unwrap_or_else(|| Tool::ALL.to_vec());
    let is_left = |tool: &Tool| !denied.contains(tool);
    Some(all.into_iter().filter(is_left).collect())
}

fn name(table: &mut Table<'_>, faults: &mut Faults) -> Option<String> {
    let Some(said) = table.take("name") else {
        missing("name", faults);
        return None;
    };
    let name = said.text(faults)?.trim_start_matches('@').to_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_good = name.starts_with(char::is_alphanumeric) && name.chars().all(is_word);
    if !is_good || name.len() > NAME_BYTES_MAX {
        let what = format!("{:?} is no name of an agent", short(&name));
        said.refuse(
            faults,
            what,
            "use 1 to 64 letters, digits, '.', '-' and '_'",
        );
        return None;
    }
    Some(name)
}

fn missing(name: &str, faults: &mut Faults) {
    let what = format!("agent requires name + description: it has no {name}");
    faults.at_line(1, what, &format!("add `{name}`"));
}

/// Reads tools: a list, or names with commas between them.
fn tools(said: &Said<'_>, dialect: Dialect, faults: &mut Faults) -> Option<Vec<Tool>> {
    let names: Vec<(String, Said<'_>)> = match &said.node.value {
        Yaml::Text(text) => text
            .split(',')
            .map(|name| (name.trim().to_owned(), said.clone()))
            .filter(|(name, _)| !name.is_empty())
            .collect(),
        Yaml::List(items) if items.is_empty() => Vec::new(),
        Yaml::List(_) => {
            let items = said.items(TOOLS_MAX, faults)?;
            let read = |item: Said<'_>| item.text(faults).map(str::to_owned);
            let texts: Option<Vec<String>> = items.iter().cloned().map(read).collect();
            texts?.into_iter().zip(items).collect()
        }
        _ => {
            said.refuse_kind(faults, "give a list of tools");
            return None;
        }
    };
    let mut tools = Vec::new();
    for (name, said) in names {
        match Tool::parse(&name) {
            Some(Tool::Named(name)) if dialect == Dialect::Pi && !name.starts_with("mcp__") => {
                let what = format!("there is no tool {:?}", short(&name));
                said.refuse(faults, what, &Tool::remedy(&name));
            }
            Some(tool) if tools.contains(&tool) => {}
            Some(tool) => tools.push(tool),
            None => {
                let what = format!("{:?} is no name of a tool", short(&name));
                said.refuse(faults, what, &Tool::remedy(&name));
            }
        }
    }
    Some(tools)
}
