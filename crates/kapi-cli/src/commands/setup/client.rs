//! The clients that can be set up, and what each needs in which file.
//!
//! Knows where their settings are; how they are written is the formats' affair.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use kapi_core::quote::shell_word;
use serde_json::{Value, json};

use super::entry::{SettingsEntry, SettingsFormat};
use super::plugin::{self, PluginFile};
use crate::context::Context;

/// The name of Kapi's entry in a client's settings.
const NAME: &str = "kapi";

/// A program that Kapi can be used from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SetupClient {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Zed
    Zed,
}

/// What a client needs in one file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClientFile {
    /// Where it is.
    pub(super) path: PathBuf,
    /// What it needs there.
    pub(super) content: FileContent,
}

/// What a file is to have.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FileContent {
    /// One entry among the client's settings.
    Entry(SettingsEntry),
    /// The same, unless the person has one of their own there.
    EntryIfFree(SettingsEntry),
    /// A file of Kapi's own.
    Whole(String),
    /// The same, unless the person has one of their own there.
    WholeIfFree(String),
}

impl SetupClient {
    /// Returns its word on the command line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Zed => "zed",
        }
    }

    /// Returns its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Vscode => "Visual Studio Code",
            Self::Zed => "Zed",
        }
    }

    /// Returns how the person sees that it knows Kapi now.
    pub(super) const fn check(self) -> &'static str {
        match self {
            Self::Claude => {
                "`claude mcp list` shows it; sessions that are open see it once restarted"
            }
            Self::Codex => "`codex mcp list` shows it",
            Self::Gemini => "`gemini mcp list` shows it",
            Self::Cursor => "restart Cursor and switch `kapi` on under Settings, MCP",
            Self::Vscode => "run `MCP: List Servers` from its command palette",
            Self::Zed => "open Settings, AI, MCP Servers",
        }
    }

    /// Returns what it needs in which file, to offer the tools of one role.
    pub(super) fn files(self, context: &Context, tools: &str) -> Vec<ClientFile> {
        vec![ClientFile {
            path: self.settings(context),
            content: FileContent::Entry(self.server(context, tools)),
        }]
    }

    /// Returns the files of its plugin, with the hooks and commands.
    pub(super) fn plugin(self, context: &Context) -> Vec<ClientFile> {
        let settings = self.settings(context);
        let beside = settings.parent().unwrap_or(&context.home).to_path_buf();
        match self {
            Self::Claude => {
                let dir = set_path(context, "CLAUDE_CONFIG_DIR");
                let dir = dir.unwrap_or_else(|| context.home.join(".claude"));
                let mut files = whole(context, self, plugin::CLAUDE, &dir.join("skills/kapi"));
                files.push(ClientFile {
                    path: dir.join("settings.json"),
                    content: FileContent::EntryIfFree(status_line(context)),
                });
                files
            }
            Self::Gemini => whole(
                context,
                self,
                plugin::GEMINI,
                &beside.join("extensions/kapi"),
            ),
            Self::Codex => whole(context, self, plugin::CODEX, &beside),
            Self::Cursor | Self::Vscode | Self::Zed => Vec::new(),
        }
    }

    /// Returns the file of its settings that lists servers.
    fn settings(self, context: &Context) -> PathBuf {
        let home = |path: &str| context.home.join(path);
        let at = |variable: &str, default: PathBuf| set_path(context, variable).unwrap_or(default);
        match self {
            Self::Claude => at("CLAUDE_CONFIG_DIR", context.home.clone()).join(".claude.json"),
            Self::Codex => at("CODEX_HOME", home(".codex")).join("config.toml"),
            Self::Gemini => {
                at("GEMINI_CLI_HOME", context.home.clone()).join(".gemini/settings.json")
            }
            Self::Cursor => home(".cursor/mcp.json"),
            Self::Vscode => at("XDG_CONFIG_HOME", home(".config")).join("Code/User/mcp.json"),
            Self::Zed => at("XDG_CONFIG_HOME", home(".config")).join("zed/settings.json"),
        }
    }

    /// Returns the entry of the server.
    fn server(self, context: &Context, tools: &str) -> SettingsEntry {
        let command = context.self_exe.display().to_string();
        let args = match tools {
            "all" => json!(["mcp"]),
            group => json!(["mcp", "--tools", group]),
        };
        let (group, format) = match self {
            Self::Codex => ("mcp_servers", SettingsFormat::Toml),
            Self::Vscode => ("servers", SettingsFormat::Json),
            Self::Zed => ("context_servers", SettingsFormat::Json),
            Self::Claude | Self::Gemini | Self::Cursor => ("mcpServers", SettingsFormat::Json),
        };
        let mut value = json!({"command": command, "args": args});
        if matches!(self, Self::Claude | Self::Vscode) {
            value["type"] = Value::from("stdio");
        }
        SettingsEntry {
            format,
            keys: vec![group.to_owned(), NAME.to_owned()],
            value,
        }
    }
}

fn whole(
    context: &Context,
    client: SetupClient,
    files: &[PluginFile],
    dir: &Path,
) -> Vec<ClientFile> {
    let files = files.iter().map(|file| {
        let text = file.text(context, client.word());
        ClientFile {
            path: dir.join(file.path),
            content: match client {
                // Its hooks have one file, which may be the person's.
                SetupClient::Codex => FileContent::WholeIfFree(text),
                _ => FileContent::Whole(text),
            },
        }
    });
    files.collect()
}

fn status_line(context: &Context) -> SettingsEntry {
    let program = shell_word(&context.self_exe.display().to_string());
    SettingsEntry {
        format: SettingsFormat::Json,
        keys: vec!["statusLine".to_owned()],
        value: json!({"type": "command", "command": format!("{program} gate status --line")}),
    }
}

fn set_path(context: &Context, variable: &str) -> Option<PathBuf> {
    let path = context.env.get(std::ffi::OsStr::new(variable))?;
    let path = Path::new(path);
    path.is_absolute().then(|| path.to_path_buf())
}
