//! The files that make Kapi's hooks and commands known to a client, in the client's own format.
//!
//! They stand below `extensions/` as they are, but for the command line of the program and its version.

use kapi_core::quote::shell_word;
use serde_json::Value;

use crate::context::Context;

/// What stands for the command line of the hook, and for the version.
const HOOK: &str = "KAPI_HOOK";
const VERSION: &str = "KAPI_VERSION";

/// A file: where it goes below its directory, and what is in it.
pub(super) struct PluginFile {
    /// Where it goes.
    pub(super) path: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$(PluginFile {
            path: $path,
            text: include_str!(concat!("../../../../../extensions/", $folder, "/", $path)),
        }),+]
    };
}

/// Those of Claude Code: a plugin, which it loads from a directory of the person's.
pub(super) const CLAUDE: &[PluginFile] = files!("claude-code":
    ".claude-plugin/plugin.json",
    "hooks/hooks.json",
    "commands/autoresearch.md",
    "commands/check.md",
    "commands/deep-interview.md",
    "commands/goal.md",
    "commands/integrate.md",
    "commands/off.md",
    "commands/pause.md",
    "commands/ralph.md",
    "commands/resume.md",
    "commands/run.md",
    "commands/status.md",
);

/// Those of Gemini CLI: an extension.
pub(super) const GEMINI: &[PluginFile] = files!("gemini":
    "gemini-extension.json",
    "hooks/hooks.json",
    "commands/kapi/check.toml",
    "commands/kapi/goal.toml",
    "commands/kapi/off.toml",
    "commands/kapi/pause.toml",
    "commands/kapi/resume.toml",
    "commands/kapi/status.toml",
);

/// Those of Codex: its hooks.
pub(super) const CODEX: &[PluginFile] = files!("codex": "hooks.json");

impl PluginFile {
    /// Returns what is in it for the program that is installed here.
    pub(super) fn text(&self, context: &Context, agent: &str) -> String {
        let program = shell_word(&context.self_exe.display().to_string());
        // Where the program is gone, nothing is held and the client sees no failure.
        let hook = format!("[ ! -x {program} ] || {program} hook --agent {agent} --session");
        let quoted = Value::from(hook).to_string();
        let inner = quoted.trim_matches('"');
        self.text
            .replace(HOOK, inner)
            .replace(VERSION, env!("CARGO_PKG_VERSION"))
    }
}
