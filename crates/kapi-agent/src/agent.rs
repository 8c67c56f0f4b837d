//! Which agent is meant, and what can be wrong before it starts.
//!
//! A reference is what a person writes after `--agent`: the name of a built-in agent,
//! `acp:<shell>`, `command:<shell>` or `script:<file>`. Knows nothing of how any of them is launched.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::acp;
use crate::script::part::ScriptPart;
use crate::script::{Script, ScriptError};

/// What may be written where an agent is named.
pub const REFERENCES: &[&str] = &[
    "claude",
    "codex",
    "gemini",
    "pi",
    "acp:<shell command>",
    "command:<shell command>",
    "script:<file.yaml>",
];

static CLAUDE: AgentKind = AgentKind::Claude;
static CODEX: AgentKind = AgentKind::Codex;
static GEMINI: AgentKind = AgentKind::Gemini;

/// An agent, as a person refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentKind {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Pi.
    Pi,
    /// Any agent that speaks the Agent Client Protocol: a command for `/bin/sh`.
    Acp(String),
    /// Any program: a command for `/bin/sh`.
    Command(String),
    /// The embedded deterministic agent that plays this file.
    Script(PathBuf),
}

impl AgentKind {
    /// Reads a reference.
    ///
    /// # Errors
    /// When it names no agent, or a command or script that is empty.
    pub fn parse(reference: &str) -> Result<Self, AgentError> {
        let unknown = || AgentError::Unknown {
            reference: reference.to_owned(),
        };
        match reference.split_once(':') {
            Some(("command", shell)) if !shell.trim().is_empty() => {
                Ok(Self::Command(shell.to_owned()))
            }
            Some(("acp", shell)) if !shell.trim().is_empty() => Ok(Self::Acp(shell.to_owned())),
            Some(("script", file)) if !file.is_empty() => Ok(Self::Script(PathBuf::from(file))),
            Some(_) => Err(unknown()),
            None => match reference {
                "claude" => Ok(Self::Claude),
                "codex" => Ok(Self::Codex),
                "gemini" => Ok(Self::Gemini),
                "pi" => Ok(Self::Pi),
                _ => Err(unknown()),
            },
        }
    }

    /// Returns the name of its `[agents.<name>]` table: an ACP agent of a vendor has that vendor's.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Acp(command) => acp_vendor(command).map_or("acp", Self::name),
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Pi => "pi",
            Self::Command(_) => "command",
            Self::Script(_) => "script",
        }
    }

    /// Returns the built-in agent whose key, prices and log-in it has: itself, unless it speaks the
    /// Agent Client Protocol for one.
    #[must_use]
    pub fn vendor(&self) -> &Self {
        match self {
            Self::Acp(command) => acp_vendor(command).unwrap_or(self),
            Self::Claude
            | Self::Codex
            | Self::Gemini
            | Self::Pi
            | Self::Command(_)
            | Self::Script(_) => self,
        }
    }

    /// Tells whether it takes one turn after another and can be told something in between; a command
    /// is started once, with all that it gets to know.
    #[must_use]
    pub const fn takes_turns(&self) -> bool {
        match self {
            Self::Claude
            | Self::Codex
            | Self::Gemini
            | Self::Pi
            | Self::Acp(_)
            | Self::Script(_) => true,
            Self::Command(_) => false,
        }
    }

    /// Returns how long it may take to end its turn itself when it is no longer wanted; nothing where it is
    /// not told, and ended at once.
    #[must_use]
    pub const fn stop_grace(&self) -> Option<Duration> {
        match self {
            Self::Acp(_) => Some(acp::STOP_GRACE),
            Self::Claude
            | Self::Codex
            | Self::Gemini
            | Self::Pi
            | Self::Command(_)
            | Self::Script(_) => None,
        }
    }

    /// Refuses a scripted agent that answers in a role which is not among those that there are: a
    /// misspelt key would be an answer that nobody hears.
    ///
    /// # Errors
    /// When its script has such a role, or cannot be read.
    pub fn check_roles(&self, known: &[&str]) -> Result<(), AgentError> {
        let Self::Script(file) = self else {
            return Ok(());
        };
        let (file, _) = ScriptPart::split(file);
        Ok(Script::read(&file)?.check_roles(&file, known)?)
    }
}

/// Returns the built-in agent whose model, key and log-in a command uses, by the name of its program.
pub(crate) fn acp_vendor(command: &str) -> Option<&'static AgentKind> {
    let program = command.split_whitespace().next()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    match name {
        "claude-code-acp" | "claude-agent-acp" => Some(&CLAUDE),
        "codex-acp" => Some(&CODEX),
        "gemini" => Some(&GEMINI),
        _ => None,
    }
}

/// Writes the reference it was read from.
impl fmt::Display for AgentKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Pi => out.write_str(self.name()),
            Self::Acp(shell) => write!(out, "acp:{shell}"),
            Self::Command(shell) => write!(out, "command:{shell}"),
            Self::Script(file) => write!(out, "script:{}", file.display()),
        }
    }
}

/// Why an agent cannot be launched as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The reference names no agent.
    #[error("find an agent called {reference:?}; available: {}", REFERENCES.join(", "))]
    Unknown {
        /// What was written.
        reference: String,
    },
    /// There is no key for its provider.
    #[error("find credentials for {agent}: the environment variable {variable} is not set")]
    NoCredentials {
        /// The agent's name.
        agent: &'static str,
        /// The variable of the host that would hold the key.
        variable: String,
    },
    /// Its `base_url` is not a URL it can use.
    #[error("use base_url {base_url:?} of agent {agent}: {rule}")]
    BaseUrl {
        /// The agent's name.
        agent: &'static str,
        /// What was written.
        base_url: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A log-in would be sent to a server that is not the vendor's.
    #[error(
        "use login and base_url of agent {agent} together: a login only works with the vendor's own server"
    )]
    LoginWithBaseUrl {
        /// The agent's name.
        agent: &'static str,
    },
    /// A variable is Kapi's own to set, or to keep outside.
    #[error("use {variable} from `{key}` of agent {agent}: {why}")]
    OwnVariable {
        /// The agent's name.
        agent: &'static str,
        /// The setting that names it: `env` or `pass_env`.
        key: &'static str,
        /// The variable.
        variable: String,
        /// Why it is not the settings' to say.
        why: &'static str,
        /// What a person can do instead, as the end of a sentence.
        instead: &'static str,
    },
    /// A variable's value is not text.
    #[error("pass on the environment variable {variable}: its value is not UTF-8")]
    NotUtf8 {
        /// The variable.
        variable: String,
    },
    /// A path is not text.
    #[error("pass a path to agent {agent}: {} is not UTF-8", path.display())]
    PathNotUtf8 {
        /// The agent's name.
        agent: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// It is a person's own program, which Kapi cannot tell what model to ask.
    #[error("start the {agent} agent with the model {model:?}: it chooses its model itself")]
    OwnModel {
        /// The agent's name.
        agent: &'static str,
        /// The model that was asked for.
        model: String,
    },
    /// The person's list of models does not have this one.
    #[error("start {agent} with the model {model:?}: its `models` list only {models}")]
    ModelNotListed {
        /// The agent's name.
        agent: &'static str,
        /// The model that was asked for.
        model: String,
        /// The list.
        models: String,
    },
    /// Its script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

impl AgentError {
    /// Returns what to do about it, as a sentence.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoCredentials { agent, variable } => Some(format!(
                "set {variable}, or name another variable with `api_key_env` under \
                 [agents.{agent}], or set `login = true` there to use your own login."
            )),
            Self::BaseUrl { agent, .. } => Some(format!(
                "write it as `base_url = \"http://127.0.0.1:8080\"` under [agents.{agent}]."
            )),
            Self::LoginWithBaseUrl { agent } => {
                Some(format!("remove one of the two from [agents.{agent}]."))
            }
            Self::OwnVariable {
                agent,
                key,
                variable,
                instead,
                ..
            } => Some(format!(
                "remove {variable} from `{key}` in [agents.{agent}] (or from `environment` in \
                 the profile){instead}."
            )),
            Self::OwnModel { .. } => {
                Some("omit the model, or name it in the program's own command.".to_owned())
            }
            Self::ModelNotListed { agent, .. } => Some(format!(
                "name one of these, or add the model to `models` under [agents.{agent}]."
            )),
            Self::Unknown { .. }
            | Self::NotUtf8 { .. }
            | Self::PathNotUtf8 { .. }
            | Self::Script(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{AgentError, AgentKind};

    #[test]
    fn references_read_back_as_written() {
        let cases = [
            ("claude", AgentKind::Claude),
            ("codex", AgentKind::Codex),
            ("gemini", AgentKind::Gemini),
            ("pi", AgentKind::Pi),
            (
                "command:sh -c 'a: b'",
                AgentKind::Command("sh -c 'a: b'".to_owned()),
            ),
            (
                "acp:gemini --acp",
                AgentKind::Acp("gemini --acp".to_owned()),
            ),
            (
                "script:demo.yaml",
                AgentKind::Script(PathBuf::from("demo.yaml")),
            ),
        ];
        for (reference, kind) in cases {
            assert_eq!(AgentKind::parse(reference).unwrap(), kind);
            assert_eq!(kind.to_string(), reference);
        }
    }

    #[test]
    fn what_names_no_agent_is_told_what_exists() {
        for reference in [
            "",
            "Claude",
            "aider",
            "command",
            "command:",
            "command: ",
            "acp:",
            "script:",
            "x:y",
        ] {
            let error = AgentKind::parse(reference).unwrap_err();
            assert!(matches!(error, AgentError::Unknown { .. }), "{reference}");
            insta::allow_duplicates! {
                let text = error.to_string().replace(&format!("{reference:?}"), "R");
                insta::assert_snapshot!(text, @"find an agent called R; available: claude, \
                    codex, gemini, pi, acp:<shell command>, command:<shell command>, script:<file.yaml>");
            }
        }
    }
}
