//! What is known of the built-in agents before any of them runs: for `kapi doctor`, and for
//! choosing a judge of another vendor.
//!
//! Knows nothing of what is installed here; the caller looks.

use crate::agent::AgentKind;

/// The fixed facts about one built-in agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manifest {
    /// Its name, as in `--agent` and `[agents.<name>]`.
    pub name: &'static str,
    /// Who makes the model it uses by default.
    pub vendor: &'static str,
    /// The program to find on `PATH`.
    pub binary: &'static str,
    /// The arguments that make it print its version.
    pub version_args: &'static [&'static str],
    /// The version this adapter was tried with.
    pub tried_version: &'static str,
    /// The variable that holds its key by default.
    pub api_key_env: &'static str,
    /// The files of a log-in, relative to the home; `login = true` lends them.
    pub login_files: &'static [&'static str],
    /// The hosts it reaches by itself with a log-in; with a key it reaches none, the gateway does.
    pub login_hosts: &'static [&'static str],
    /// How to install it, as a command.
    pub install: &'static str,
}

/// Returns the facts about every built-in agent.
#[must_use]
pub const fn manifest() -> &'static [Manifest] {
    &[CLAUDE, CODEX, GEMINI, PI]
}

/// Returns the facts about an agent; `None` for commands and scripts. An ACP agent of a vendor has
/// that vendor's.
#[must_use]
pub fn manifest_of(kind: &AgentKind) -> Option<&'static Manifest> {
    match kind.vendor() {
        AgentKind::Claude => Some(&CLAUDE),
        AgentKind::Codex => Some(&CODEX),
        AgentKind::Gemini => Some(&GEMINI),
        AgentKind::Pi => Some(&PI),
        AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_) => None,
    }
}

pub(crate) const CLAUDE: Manifest = Manifest {
    name: "claude",
    vendor: "Anthropic",
    binary: "claude",
    version_args: &["--version"],
    tried_version: "2.1.197",
    api_key_env: "ANTHROPIC_API_KEY",
    login_files: &[".claude/.credentials.json"],
    login_hosts: &[
        "api.anthropic.com",
        "console.anthropic.com",
        "platform.claude.com",
        "claude.ai",
    ],
    install: "npm install -g @anthropic-ai/claude-code",
};

pub(crate) const CODEX: Manifest = Manifest {
    name: "codex",
    vendor: "OpenAI",
    binary: "codex",
    version_args: &["--version"],
    tried_version: "0.169.0",
    api_key_env: "OPENAI_API_KEY",
    login_files: &[".codex/auth.json"],
    login_hosts: &["chatgpt.com", "auth.openai.com", "api.openai.com"],
    install: "npm install -g @openai/codex",
};

pub(crate) const GEMINI: Manifest = Manifest {
    name: "gemini",
    vendor: "Google",
    binary: "gemini",
    version_args: &["--version"],
    tried_version: "0.61.0",
    api_key_env: "GEMINI_API_KEY",
    login_files: &[".gemini/oauth_creds.json", ".gemini/google_accounts.json"],
    login_hosts: &[
        "cloudcode-pa.googleapis.com",
        "oauth2.googleapis.com",
        "www.googleapis.com",
    ],
    install: "npm install -g @google/gemini-cli",
};

pub(crate) const PI: Manifest = Manifest {
    name: "pi",
    vendor: "any provider",
    binary: "pi",
    version_args: &["--version"],
    tried_version: "0.74.2",
    api_key_env: "ANTHROPIC_API_KEY",
    login_files: &[".pi/agent/auth.json"],
    login_hosts: &[
        "api.anthropic.com",
        "console.anthropic.com",
        "chatgpt.com",
        "auth.openai.com",
    ],
    install: "npm install -g @earendil-works/pi-coding-agent",
};

#[cfg(test)]
mod tests {
    use super::manifest;
    use crate::agent::AgentKind;
    use crate::manifest::manifest_of;

    #[test]
    fn every_manifest_is_that_of_its_own_name() {
        for entry in manifest() {
            let kind = AgentKind::parse(entry.name).unwrap();
            assert_eq!(manifest_of(&kind), Some(entry));
            assert_eq!(kind.name(), entry.name);
        }
    }
}
