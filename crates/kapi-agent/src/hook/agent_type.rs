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

/// What is known of an agent, in the order it is believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentHints<'a> {
    /// The name of its configuration, without folder and ending.
    pub config_name: Option<&'a str>,
    /// The `agent.type` of the configuration.
    pub agent_type: Option<&'a str>,
    /// The image it runs in.
    pub image: Option<&'a str>,
    /// The command that starts it.
    pub command: Option<&'a str>,
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

/// The kinds whose name is looked for inside an image's name.
const IN_IMAGES: &[AgentType] = &[
    AgentType::ClaudeCli,
    AgentType::CodexCli,
    AgentType::GeminiCli,
    AgentType::Aider,
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

/// Returns the kind of agent: by the configuration's name, then by `agent.type`, then by the
/// image, then by the command. The first that is known counts.
#[must_use]
pub fn infer_agent_type(known: AgentHints<'_>) -> AgentType {
    let by_name = |name: Option<&str>| name.map_or(AgentType::Unknown, AgentType::from_name);
    let sources = [
        by_name(known.config_name),
        by_name(known.agent_type),
        known.image.map_or(AgentType::Unknown, in_image),
        known.command.map_or(AgentType::Unknown, of_command),
    ];
    let mut found = sources.into_iter();
    found
        .find(|kind| *kind != AgentType::Unknown)
        .unwrap_or(AgentType::Unknown)
}

fn in_image(image: &str) -> AgentType {
    let image = image.to_lowercase();
    let mut kinds = IN_IMAGES.iter().copied();
    kinds
        .find(|kind| image.contains(kind.name()))
        .unwrap_or(AgentType::Unknown)
}

/// Returns the kind whose program a command begins with.
fn of_command(command: &str) -> AgentType {
    let mut words = command.split_whitespace();
    // Variables in front of the program are not the program.
    let program = words.find(|word| !word.contains('='));
    let name = program.and_then(|program| program.rsplit('/').next());
    let name = name.unwrap_or_default();
    if name.starts_with("python") {
        return AgentType::Python;
    }
    AgentType::from_name(name)
}

#[cfg(test)]
mod tests {
    use super::{AgentHints, AgentType, infer_agent_type};

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

    #[test]
    fn the_first_source_that_is_known_counts() {
        let known = |config_name, agent_type, image, command| AgentHints {
            config_name,
            agent_type,
            image,
            command,
        };
        let cases = [
            (
                known(
                    Some("claude"),
                    Some("codex"),
                    Some("x-aider"),
                    Some("gemini"),
                ),
                AgentType::ClaudeCli,
            ),
            (
                known(Some("mine"), Some("codex"), Some("x-aider"), Some("gemini")),
                AgentType::CodexCli,
            ),
            (
                known(
                    Some("my-claude"),
                    None,
                    Some("registry/Kapsis-Claude-CLI:1"),
                    None,
                ),
                AgentType::ClaudeCli,
            ),
            (
                known(
                    Some("mine"),
                    Some("odd"),
                    Some("alpine"),
                    Some("A=1 /opt/bin/gemini -y"),
                ),
                AgentType::GeminiCli,
            ),
            (
                known(None, None, None, Some("python3 agent.py")),
                AgentType::Python,
            ),
            (
                known(None, None, None, Some("bash")),
                AgentType::Interactive,
            ),
            (known(None, None, None, Some("make")), AgentType::Unknown),
            (known(None, None, None, Some("")), AgentType::Unknown),
            (AgentHints::default(), AgentType::Unknown),
        ];
        for (known, kind) in cases {
            assert_eq!(infer_agent_type(known), kind, "{known:?}");
        }
    }
}
