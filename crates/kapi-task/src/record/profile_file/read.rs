//! One profile: the specification's settings, or those of Claude Code.
//!
//! What Claude Code knows and Kapi does not is named, never guessed at; what takes something away
//! is honoured.

use kapi_core::text::one_line;
use kapi_settings::fault::{Faults, SettingsFault, short};
use kapi_settings::node::{SettingValue, TableEntry, ValueNode};
use kapi_settings::read::read;
use kapi_settings::scalar::TrimmedText;
use kapi_settings::setting::{OneOrMany, Setting};
use serde::Deserialize;

use crate::record::definition_file::front_matter::FileParts;
use crate::record::definition_file::read::{BackendForm, settings};
use crate::record::profile_file::tool::AgentTool;
use crate::record::profile_file::{Access, AgentProfile};
use crate::rules::request::PROMPT_BYTES_MAX;

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

/// Tools: a list, or names with commas between them.
type Tools = OneOrMany<Setting<TrimmedText>, 0, 128>;

#[derive(Deserialize)]
struct PiForm {
    name: Option<Setting<TrimmedText>>,
    description: Option<TrimmedText>,
    backend: Option<BackendForm>,
    model: Option<TrimmedText>,
    tools: Option<Tools>,
}

/// The keys of [`ClaudeForm`]; others mean nothing here.
const CLAUDE_KEYS: &[&str] = &[
    "name",
    "description",
    "model",
    "tools",
    "permissionMode",
    "disallowedTools",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeForm {
    name: Option<Setting<TrimmedText>>,
    description: Option<TrimmedText>,
    model: Option<TrimmedText>,
    tools: Option<Tools>,
    permission_mode: Option<TrimmedText>,
    disallowed_tools: Option<Tools>,
}

/// Reads a profile.
pub(super) fn profile(
    file: &str,
    text: &str,
    dialect: Dialect,
) -> Result<AgentProfile, Vec<SettingsFault>> {
    let mut faults = Faults::of(file.to_owned());
    let read = settings(text, &mut faults).and_then(|(root, parts)| {
        check_prompt(&parts, &mut faults);
        let mut profile = match dialect {
            Dialect::Pi => pi(&root, &mut faults),
            Dialect::Claude => claude(root, &mut faults),
        }?;
        let tools = profile.tools.as_deref();
        if tools.is_some_and(|tools| !tools.iter().any(AgentTool::is_writing)) {
            profile.access = Access::ReadOnly;
        }
        profile.system_prompt = parts.body;
        file.clone_into(&mut profile.source);
        Some(profile)
    });
    faults.instead_of(read)
}

fn pi(root: &ValueNode, faults: &mut Faults) -> Option<AgentProfile> {
    let form: PiForm = read(root, faults)?;
    let (name, description) = named(form.name.as_ref(), form.description, faults);
    let tools = form
        .tools
        .map(|tools| self::tools(tools, Dialect::Pi, faults));
    let profile = plain(name?, &description?, form.model);
    Some(AgentProfile {
        backend: form.backend.map(|backend| backend.0),
        tools,
        ..profile
    })
}

fn claude(mut root: ValueNode, faults: &mut Faults) -> Option<AgentProfile> {
    let ignored = match &mut root.value {
        SettingValue::Map(entries) => {
            let is_other = |entry: &mut TableEntry| !CLAUDE_KEYS.contains(&entry.key.as_str());
            let others = entries.extract_if(.., is_other);
            others.map(|entry| entry.key).collect()
        }
        _ => Vec::new(),
    };
    let form: ClaudeForm = read(&root, faults)?;
    let (name, description) = named(form.name.as_ref(), form.description, faults);
    let mut tools = form
        .tools
        .map(|tools| self::tools(tools, Dialect::Claude, faults));
    if let Some(denied) = form.disallowed_tools {
        let denied = self::tools(denied, Dialect::Claude, faults);
        let left = tools.get_or_insert_with(|| AgentTool::ALL.to_vec());
        left.retain(|tool| !denied.contains(tool));
    }
    let is_plan = form.permission_mode.is_some_and(|mode| mode.0 == "plan");
    let profile = plain(name?, &description?, form.model);
    Some(AgentProfile {
        backend: Some("claude".to_owned()),
        tools,
        access: if is_plan {
            Access::ReadOnly
        } else {
            Access::Write
        },
        ignored,
        ..profile
    })
}

fn plain(name: String, description: &TrimmedText, model: Option<TrimmedText>) -> AgentProfile {
    AgentProfile {
        name,
        description: one_line(&description.0),
        backend: None,
        // The model of whoever asks; here the configuration's.
        model: model
            .map(|model| model.0)
            .filter(|model| model != "inherit"),
        tools: None,
        access: Access::Write,
        system_prompt: String::new(),
        source: String::new(),
        ignored: Vec::new(),
    }
}

fn check_prompt(parts: &FileParts, faults: &mut Faults) {
    let mut refuse = |what: String, remedy| faults.at_line(parts.body_line, what, remedy);
    if parts.body.is_empty() {
        let what = "it has no system prompt".to_owned();
        refuse(what, "describe the agent below the front matter");
    }
    if parts.body.contains('\0') {
        refuse("the system prompt has a zero byte".to_owned(), "remove it");
    }
    if parts.body.len() > SYSTEM_PROMPT_BYTES_MAX {
        let what = format!("the system prompt is longer than {SYSTEM_PROMPT_BYTES_MAX} bytes");
        refuse(what, "shorten it");
    }
}

/// Returns the name and the description, which every profile has.
fn named(
    name: Option<&Setting<TrimmedText>>,
    description: Option<TrimmedText>,
    faults: &mut Faults,
) -> (Option<String>, Option<TrimmedText>) {
    let is_there = [
        ("name", name.is_some()),
        ("description", description.is_some()),
    ];
    for (key, is_there) in is_there {
        if !is_there && !faults.blames(key) {
            let what = format!("agent requires name + description: it has no {key}");
            faults.at_line(1, what, format!("add `{key}`"));
        }
    }
    (name.and_then(|name| checked(name, faults)), description)
}

fn checked(said: &Setting<TrimmedText>, faults: &mut Faults) -> Option<String> {
    let name = said.value.0.trim_start_matches('@').to_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_good = name.starts_with(char::is_alphanumeric) && name.chars().all(is_word);
    if !is_good || name.len() > NAME_BYTES_MAX {
        let what = format!("{:?} is not an agent name", short(&name));
        let remedy = "use 1 to 64 letters, digits, '.', '-' and '_'";
        faults.at(said, what, remedy);
        return None;
    }
    Some(name)
}

fn tools(said: Tools, dialect: Dialect, faults: &mut Faults) -> Vec<AgentTool> {
    let mut tools = Vec::new();
    for item in said.0 {
        let names = item.value.0.split(',').map(str::trim);
        for name in names.filter(|name| !name.is_empty()) {
            match AgentTool::parse(name) {
                Some(AgentTool::Named(name))
                    if dialect == Dialect::Pi && !name.starts_with("mcp__") =>
                {
                    let what = format!("unknown tool {:?}", short(&name));
                    faults.at(&item, what, AgentTool::remedy(&name));
                }
                Some(tool) if tools.contains(&tool) => {}
                Some(tool) => tools.push(tool),
                None => {
                    let what = format!("{:?} is not a tool name", short(name));
                    faults.at(&item, what, AgentTool::remedy(name));
                }
            }
        }
    }
    tools
}
