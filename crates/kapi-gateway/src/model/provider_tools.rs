//! What the provider itself would do for an agent, taken out of a request.
//!
//! Searching, fetching, running code, speaking to tool servers, reading files and images at an
//! address, keeping conversations, and asking another model or a dearer service than the one named.
//! Pure. What is not known to happen at the agent's side counts as the provider's, so a tool of
//! tomorrow is taken out too. An agent that lists such tools by default goes on working without them.

mod content;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::model::dialect::ModelDialect;
use crate::model::members::{Members, array, elements};

/// Why a request cannot be looked through.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TakeOutError {
    #[error("read the request as JSON")]
    Malformed(#[from] serde_json::Error),
    #[error("read the request, which is nested too deeply")]
    Depth,
}

/// A request without what only the provider would have done.
#[derive(Debug)]
pub(crate) struct OwnRequest {
    /// The request; `None` where there was nothing to take out.
    pub(crate) body: Option<String>,
    /// What was taken out, each once.
    pub(crate) parts: BTreeSet<String>,
}

/// Members of a request that ask the provider to do something, with what they are called.
const fn members_of(dialect: ModelDialect) -> &'static [(&'static str, &'static str)] {
    match dialect {
        ModelDialect::Anthropic => &[("mcp_servers", "MCP servers"), ("container", "a container")],
        ModelDialect::Responses => &[
            ("prompt", "a stored prompt"),
            ("conversation", "a stored conversation"),
            ("previous_response_id", "a stored conversation"),
        ],
        ModelDialect::Chat => &[
            ("web_search_options", "web search"),
            ("search_parameters", "web search"),
            ("plugins", "plugins"),
            ("models", "other models"),
        ],
        ModelDialect::Gemini => &[
            ("cachedContent", "stored content"),
            ("cached_content", "stored content"),
        ],
    }
}

/// Where requests hold what the model reads.
const fn content_of(dialect: ModelDialect) -> &'static [&'static str] {
    match dialect {
        ModelDialect::Anthropic => &["messages", "system"],
        ModelDialect::Responses => &["input"],
        ModelDialect::Chat => &["messages"],
        ModelDialect::Gemini => &["contents", "systemInstruction", "system_instruction"],
    }
}

/// Takes out of a request what only the provider would do.
pub(crate) fn take_out(dialect: ModelDialect, body: &str) -> Result<OwnRequest, TakeOutError> {
    let mut members = Members::parse(body)?;
    let mut parts = BTreeSet::new();
    for (name, words) in members_of(dialect) {
        if members.remove(name) {
            parts.insert((*words).to_owned());
        }
    }
    take_out_service(dialect, &mut members, &mut parts);
    take_out_tools(dialect, &mut members, &mut parts)?;
    for name in content_of(dialect) {
        let Some(text) = members.get(name).map(str::to_owned) else {
            continue;
        };
        if let Some(own) = content::without_remote(dialect, &text, &mut parts)? {
            members.set(name, own);
        }
    }
    Ok(OwnRequest {
        body: (!parts.is_empty()).then(|| members.text()),
        parts,
    })
}

/// The prices that are known are those of the ordinary service.
fn take_out_service(
    dialect: ModelDialect,
    members: &mut Members<'_>,
    parts: &mut BTreeSet<String>,
) {
    let (name, dearer): (_, &[&str]) = match dialect {
        ModelDialect::Anthropic => ("speed", &["fast"]),
        ModelDialect::Responses | ModelDialect::Chat => ("service_tier", &["priority", "fast"]),
        ModelDialect::Gemini => return,
    };
    let said = members.get(name).and_then(string);
    if said.is_some_and(|said| dearer.contains(&said.as_str())) {
        members.remove(name);
        parts.insert("a dearer service".to_owned());
    }
}

fn take_out_tools(
    dialect: ModelDialect,
    members: &mut Members<'_>,
    parts: &mut BTreeSet<String>,
) -> Result<(), TakeOutError> {
    let Some(tools) = members.get("tools").filter(|text| *text != "null") else {
        return Ok(());
    };
    let tools = tools.to_owned();
    let mut kept: Vec<Cow<'_, str>> = Vec::new();
    let mut n_taken = 0_usize;
    for tool in elements(&tools)? {
        let own = match dialect {
            ModelDialect::Gemini => own_gemini_tool(tool, parts)?,
            ModelDialect::Anthropic | ModelDialect::Responses | ModelDialect::Chat => {
                own_tool(dialect, tool, parts)?.then_some(Cow::Borrowed(tool))
            }
        };
        match own {
            Some(own) => {
                n_taken += usize::from(own != tool);
                kept.push(own);
            }
            None => n_taken += 1,
        }
    }
    if n_taken == 0 {
        return Ok(());
    }
    let is_empty = kept.is_empty();
    if is_empty {
        members.remove("tools");
    } else {
        members.set("tools", array(&kept));
    }
    free_choice(dialect, members, is_empty);
    Ok(())
}

/// A tool that must be used may be one that was taken out.
fn free_choice(dialect: ModelDialect, members: &mut Members<'_>, has_none: bool) {
    let (names, auto): (&[&str], _) = match dialect {
        ModelDialect::Anthropic => (&["tool_choice"], r#"{"type":"auto"}"#),
        ModelDialect::Responses | ModelDialect::Chat => (&["tool_choice"], r#""auto""#),
        ModelDialect::Gemini => (&["toolConfig", "tool_config"], "{}"),
    };
    for name in names {
        let Some(choice) = members.get(name).map(str::to_owned) else {
            continue;
        };
        if has_none {
            members.remove(name);
        } else if !is_own_choice(dialect, &choice) {
            members.set(name, auto.to_owned());
        }
    }
}

fn is_own_choice(dialect: ModelDialect, choice: &str) -> bool {
    let Ok(members) = Members::parse(choice) else {
        return true;
    };
    let kind = members.get("type").and_then(string);
    match dialect {
        // It names tools by name, whoever runs them.
        ModelDialect::Anthropic => kind.as_deref() != Some("tool"),
        ModelDialect::Responses | ModelDialect::Chat => {
            matches!(kind.as_deref(), Some("function" | "custom"))
        }
        ModelDialect::Gemini => true,
    }
}

/// Tells whether a tool is run by the agent.
fn own_tool(
    dialect: ModelDialect,
    tool: &str,
    parts: &mut BTreeSet<String>,
) -> Result<bool, TakeOutError> {
    let members = Members::parse(tool)?;
    let kind = members.get("type").and_then(string).unwrap_or_default();
    let is_own = match dialect {
        ModelDialect::Anthropic => {
            matches!(kind.as_str(), "" | "custom")
                || [
                    "bash_",
                    "text_editor_",
                    "computer_",
                    "memory_",
                    "tool_search_tool_",
                ]
                .iter()
                .any(|start| kind.starts_with(start))
        }
        ModelDialect::Responses => match kind.as_str() {
            "shell" => is_local_shell(&members),
            kind => [
                "function",
                "custom",
                "local_shell",
                "apply_patch",
                "computer_use_preview",
                "computer",
                "namespace",
                "tool_search",
            ]
            .contains(&kind),
        },
        ModelDialect::Chat => matches!(kind.as_str(), "function" | "custom"),
        ModelDialect::Gemini => true,
    };
    if !is_own {
        parts.insert(format!("tool {}", shown(&kind)));
    }
    Ok(is_own)
}

/// A shell that says where it runs may run at the provider.
fn is_local_shell(tool: &Members<'_>) -> bool {
    let Some(environment) = tool.get("environment").filter(|text| *text != "null") else {
        return true;
    };
    Members::parse(environment)
        .ok()
        .and_then(|members| members.get("type").and_then(string))
        .is_some_and(|kind| kind == "local")
}

/// Returns the part of a Gemini tool that the agent runs, if there is any.
fn own_gemini_tool<'a>(
    tool: &'a str,
    parts: &mut BTreeSet<String>,
) -> Result<Option<Cow<'a, str>>, TakeOutError> {
    const OWN: [&str; 4] = [
        "functionDeclarations",
        "function_declarations",
        "computerUse",
        "computer_use",
    ];
    let mut members = Members::parse(tool)?;
    let n_before = members.0.len();
    members.0.retain(|member| {
        let is_own = OWN.contains(&member.name.as_ref());
        if !is_own {
            parts.insert(format!("tool {}", shown(&member.name)));
        }
        is_own
    });
    Ok(if members.0.len() == n_before {
        Some(Cow::Borrowed(tool))
    } else if members.0.is_empty() {
        None
    } else {
        Some(Cow::Owned(members.text()))
    })
}

fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// Cuts a name to what may be shown to a person.
fn shown(name: &str) -> String {
    let plain = name.chars().filter(|letter| !letter.is_control());
    plain.take(64).collect()
}

#[cfg(test)]
mod tests;
