//! Finds, for a scripted tool use, the tool that a client offers for it and the
//! arguments that tool wants.
//! It does not know which client asks: names and schemas in the request decide.

use serde_json::{Map, Value, json};

use crate::model_server::reply::CallInput;
use crate::model_server::request::{OfferedTool, ToolForm};
use crate::model_server::scenario::ToolUse;
use crate::model_server::{file_edit, responses, schema};

const SHELLS: [&str; 4] = ["bash", "exec_command", "shell", "run_shell_command"];
const WRITERS: [&str; 2] = ["write", "write_file"];
const EDITORS: [&str; 2] = ["edit", "replace"];
const READERS: [&str; 2] = ["read", "read_file"];
const PATCHER: &str = "apply_patch";

/// A call of an offered tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedCall {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) input: CallInput,
}

/// Returns the call for a tool use, or nothing where the client offers no tool for it.
pub(crate) fn plan(
    offered: &[OfferedTool],
    tool_use: &ToolUse,
    directory: Option<&str>,
) -> Option<PlannedCall> {
    if let ToolUse::Named { name, arguments } = tool_use {
        return Some(PlannedCall {
            name: name.clone(),
            namespace: None,
            input: CallInput::Arguments(arguments.clone()),
        });
    }
    if let Some(tool) = offered
        .iter()
        .find(|tool| tool.name == "exec" && tool.form == ToolForm::Freeform)
    {
        return Some(called(tool, CallInput::Freeform(program_text(tool_use)?)));
    }
    match tool_use {
        ToolUse::Bash { command } => shell_call(offered, command),
        ToolUse::Write { path, content } => match pick(offered, &WRITERS) {
            Some(tool) => file_call(tool, path, directory, &[(&["content"], content)]),
            None => file_edit::write_patch(path, content)
                .and_then(|patch| patch_call(offered, patch))
                .or_else(|| shell_call(offered, &file_edit::write_command(path, content))),
        },
        ToolUse::Edit { path, old, new } => match pick(offered, &EDITORS) {
            Some(tool) => edit_call(tool, path, directory, old, new),
            None => patch_call(offered, file_edit::edit_patch(path, old, new))
                .or_else(|| shell_call(offered, &file_edit::edit_command(path, old, new))),
        },
        ToolUse::Read { path } => match pick(offered, &READERS) {
            Some(tool) => file_call(tool, path, directory, &[]),
            None => shell_call(offered, &file_edit::read_command(path)),
        },
        ToolUse::Mcp { name, arguments } => match find_prefixed(offered, name) {
            Some(tool) => Some(called(tool, CallInput::Arguments(arguments.clone()))),
            None => search_call(offered, name),
        },
        ToolUse::Named { .. } => None,
    }
}

/// Finds a tool by its name or by a prefixed form of it, such as `mcp__server__name`.
pub(crate) fn find_prefixed<'tool>(
    offered: &'tool [OfferedTool],
    name: &str,
) -> Option<&'tool OfferedTool> {
    let ends = |tool: &&OfferedTool| {
        tool.name
            .strip_suffix(name)
            .is_some_and(|prefix| prefix.ends_with(['_', '.', '-', '/', ':']))
    };
    offered
        .iter()
        .find(|tool| tool.name == name)
        .or_else(|| offered.iter().find(ends))
}

/// Looks a tool up by its name, where the client keeps tools back until they are asked for.
fn search_call(offered: &[OfferedTool], name: &str) -> Option<PlannedCall> {
    let search = offered.iter().find(|tool| tool.form == ToolForm::Search)?;
    // Each client has its own name for the most that it is to find.
    let most = if search.name == responses::SEARCH {
        "limit"
    } else {
        "max_results"
    };
    let words = json!({ "query": name, most: 8 });
    Some(called(search, CallInput::Arguments(words)))
}

/// Returns the call of a tool with this input.
pub(crate) fn called(tool: &OfferedTool, input: CallInput) -> PlannedCall {
    PlannedCall {
        name: tool.name.clone(),
        namespace: tool.namespace.clone(),
        input,
    }
}

fn pick<'tool>(offered: &'tool [OfferedTool], names: &[&str]) -> Option<&'tool OfferedTool> {
    names.iter().find_map(|name| {
        offered
            .iter()
            .find(|tool| tool.name.eq_ignore_ascii_case(name))
    })
}

fn shell_call(offered: &[OfferedTool], command: &str) -> Option<PlannedCall> {
    let tool = pick(offered, &SHELLS)?;
    let schema = function_schema(tool)?;
    let key = argument_name(schema, &["command", "cmd"])?;
    let value = if schema["properties"][&key]["type"] == "array" {
        json!(["bash", "-lc", command])
    } else {
        json!(command)
    };
    let mut arguments = Map::from_iter([(key, value)]);
    schema::fill_required(schema, &mut arguments);
    Some(called(tool, CallInput::Arguments(Value::Object(arguments))))
}

fn patch_call(offered: &[OfferedTool], patch: String) -> Option<PlannedCall> {
    let tool = pick(offered, &[PATCHER])?;
    let input = match &tool.form {
        ToolForm::Freeform => CallInput::Freeform(patch),
        ToolForm::Function(schema) => {
            let key = argument_name(schema, &["input", "patch"])?;
            CallInput::Arguments(Value::Object(Map::from_iter([(key, json!(patch))])))
        }
        ToolForm::Search => return None,
    };
    Some(called(tool, input))
}

/// Builds the call of a file tool: the path, then each value under the first name that fits.
fn file_call(
    tool: &OfferedTool,
    path: &str,
    directory: Option<&str>,
    values: &[(&[&str], &str)],
) -> Option<PlannedCall> {
    let schema = function_schema(tool)?;
    let key = argument_name(schema, &["file_path", "path", "absolute_path"])?;
    let mut arguments = Map::from_iter([(key, json!(absolute(path, directory)))]);
    for (names, value) in values {
        arguments.insert(argument_name(schema, names)?, json!(value));
    }
    schema::fill_required(schema, &mut arguments);
    Some(called(tool, CallInput::Arguments(Value::Object(arguments))))
}

/// Builds the call of an edit tool, which takes one replacement or a list of them.
fn edit_call(
    tool: &OfferedTool,
    path: &str,
    directory: Option<&str>,
    old: &str,
    new: &str,
) -> Option<PlannedCall> {
    const OLD: [&str; 2] = ["old_string", "oldText"];
    const NEW: [&str; 2] = ["new_string", "newText"];
    let schema = function_schema(tool)?;
    let list = &schema["properties"]["edits"]["items"];
    if !list.is_object() {
        return file_call(tool, path, directory, &[(&OLD, old), (&NEW, new)]);
    }
    let edit = Map::from_iter([
        (argument_name(list, &OLD)?, json!(old)),
        (argument_name(list, &NEW)?, json!(new)),
    ]);
    let mut call = file_call(tool, path, directory, &[])?;
    if let CallInput::Arguments(arguments) = &mut call.input {
        arguments["edits"] = json!([edit]);
    }
    Some(call)
}

/// Writes a tool use as the program of a client whose one tool runs JavaScript.
fn program_text(tool_use: &ToolUse) -> Option<String> {
    let (tool, input) = match tool_use {
        ToolUse::Bash { command } => ("exec_command", json!({ "cmd": command })),
        ToolUse::Write { path, content } => match file_edit::write_patch(path, content) {
            Some(patch) => (PATCHER, json!(patch)),
            None => (
                "exec_command",
                json!({ "cmd": file_edit::write_command(path, content) }),
            ),
        },
        ToolUse::Edit { path, old, new } => (PATCHER, json!(file_edit::edit_patch(path, old, new))),
        ToolUse::Read { path } => (
            "exec_command",
            json!({ "cmd": file_edit::read_command(path) }),
        ),
        ToolUse::Mcp { name, arguments } => {
            let suffix = json!(format!("__{name}"));
            return Some(format!(
                "const found = ALL_TOOLS.find((tool) => tool.name.endsWith({suffix}));\n\
                 text(await tools[found.name]({arguments}));"
            ));
        }
        ToolUse::Named { .. } => return None,
    };
    Some(format!("text(await tools.{tool}({input}));"))
}

fn function_schema(tool: &OfferedTool) -> Option<&Value> {
    match &tool.form {
        ToolForm::Function(schema) => Some(schema),
        ToolForm::Freeform | ToolForm::Search => None,
    }
}

fn argument_name(schema: &Value, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find(|name| schema["properties"].get(**name).is_some())
        .map(|name| (*name).to_owned())
}

fn absolute(path: &str, directory: Option<&str>) -> String {
    match directory {
        Some(directory) if !path.starts_with('/') => format!("{directory}/{path}"),
        Some(_) | None => path.to_owned(),
    }
}
