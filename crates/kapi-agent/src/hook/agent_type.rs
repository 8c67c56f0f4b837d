//! Which kind of agent a configuration means, when it does not say so plainly.
//!
//! A file called `my-claude.yaml` that runs an image `kapsis-claude-cli` runs Claude Code. Only
//! decides where status comes from. Knows nothing of configuration files.

/// A kind of agent, by where its status comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentType {
    /// Claude Code: hooks.
    ClaudeCli,
    /// Codex CLI: hooks.
    CodexCli,
    /// Gemini CLI: hooks.
    GeminiCli,
    /// Aider: its progress file.
    Aider,
    /// A program that writes its progress by itself.
    Python,
    /// A person at a shell.
    Interactive,
    /// Anything else.
    Unknown,
}

/// The names each kind goes by, lower case with single blanks.
const NAMES: &[(AgentType, &[&str])] = &[
    (
        AgentType::ClaudeCli,
        &[
            "claude",
            "claude-cli",
            "claude code",
            "claudecode",
            "claude-code",
        ],
    ),
    (
        AgentType::CodexCli,
        &[
            "codex",
            "codex-cli",
            "codex cli",
            "openai codex",
            "openai-codex",
        ],
    ),
    (
        AgentType::GeminiCli,
        &[
            "gemini",
            "gemini-cli",
            "gemini cli",
            "google gemini",
            "google-gemini",
        ],
    ),
    (AgentType::Aider, &["aider", "aider chat", "aider-chat"]),
    (
        AgentType::Python,
        &[
            "python",
            "claude-api",
            "claude api",
            "anthropic",
            "anthropic sdk",
        ],
    ),
    (
        AgentType::Interactive,
        &["interactive", "bash", "shell", "manual"],
    ),
];

impl AgentType {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCli => "claude-cli",
            Self::CodexCli => "codex-cli",
            Self::GeminiCli => "gemini-cli",
            Self::Aider => "aider",
            Self::Python => "python",
            Self::Interactive => "interactive",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the kind that goes by a name, however it is written.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let lower = name.to_lowercase();
        let words: Vec<&str> = lower.split_whitespace().collect();
        let name = words.join(" ");
        let known = NAMES
            .iter()
            .find(|(_, names)| names.contains(&name.as_str()));
        known.map_or(Self::Unknown, |(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::AgentType;

    #[test]
    fn every_spelling_is_known() {
        let cases = [
            ("claude", AgentType::ClaudeCli),
            ("  Claude   Code ", AgentType::ClaudeCli),
            ("ClaudeCode", AgentType::ClaudeCli),
            ("CLAUDE-CLI", AgentType::ClaudeCli),
            ("openai codex", AgentType::CodexCli),
            ("codex cli", AgentType::CodexCli),
            ("google-gemini", AgentType::GeminiCli),
            ("aider chat", AgentType::Aider),
            ("claude-api", AgentType::Python),
            ("anthropic sdk", AgentType::Python),
            ("manual", AgentType::Interactive),
            ("my-claude", AgentType::Unknown),
            ("", AgentType::Unknown),
        ];
        for (name, kind) in cases {
            assert_eq!(AgentType::from_name(name), kind, "{name:?}");
        }
    }
}
