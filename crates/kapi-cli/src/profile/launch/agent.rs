//! Which agent a profile starts: by its line, by its type, or by its name.
//!
//! A line that an adapter can carry out is given to the adapter. Starts nothing.

use kapi_agent::agent::AgentKind;
use kapi_agent::hook::agent_type::AgentType;

use crate::config::source::{SourcedValue, ValueSource};
use crate::error::Error;
use crate::profile::{AgentName, ProfileFile, command};

/// An agent that was chosen.
pub(super) struct AgentChoice {
    /// The agent.
    pub(super) agent: SourcedValue<AgentKind>,
    /// The model that its line names.
    pub(super) model: Option<String>,
    /// Whether a person talks to it.
    pub(super) is_interactive: bool,
    /// What the person should know, as a sentence.
    pub(super) note: Option<String>,
}

impl AgentChoice {
    const fn plain(agent: SourcedValue<AgentKind>) -> Self {
        Self {
            agent,
            model: None,
            is_interactive: false,
            note: None,
        }
    }
}

/// Chooses the agent of a profile; `source` is where the profile was chosen.
pub(super) fn choose(profile: &ProfileFile, source: &ValueSource) -> Result<AgentChoice, Error> {
    let agent_type = profile.agent_type.as_ref();
    let is_interactive =
        agent_type.is_some_and(|at| at.value == AgentName::Of(AgentType::Interactive));
    let Some(line) = &profile.command else {
        let agent = by_type(profile, source)?;
        return Ok(AgentChoice {
            agent,
            model: None,
            is_interactive,
            note: None,
        });
    };
    if let Ok(kind @ (AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_))) =
        AgentKind::parse(&line.value)
    {
        let kind = match kind {
            AgentKind::Command(shell) => AgentKind::Command(with_task(&shell, line)?),
            other => other,
        };
        return Ok(AgentChoice::plain(SourcedValue::new(
            kind,
            line.source.clone(),
        )));
    }
    if let Some(usual) = command::usual(&line.value) {
        return Ok(AgentChoice {
            note: Some(format!(
                "`{}` uses the adapter of {}, which keeps its key outside the sandbox and reads \
                 its output.",
                line.value,
                usual.kind.name()
            )),
            agent: SourcedValue::new(usual.kind, line.source.clone()),
            model: usual.model,
            is_interactive,
        });
    }
    let shell = with_task(&line.value, line)?;
    Ok(AgentChoice {
        is_interactive,
        ..AgentChoice::plain(SourcedValue::new(
            AgentKind::Command(shell),
            line.source.clone(),
        ))
    })
}

/// Returns the agent that a profile without a line means.
fn by_type(
    profile: &ProfileFile,
    chosen_at: &ValueSource,
) -> Result<SourcedValue<AgentKind>, Error> {
    let named = profile.agent_type.clone().map(|at| (at.value, at.source));
    let (name, source) = named.unwrap_or_else(|| {
        (
            AgentName::Of(AgentType::from_name(&profile.name)),
            chosen_at.clone(),
        )
    });
    let kind = match name {
        AgentName::Pi => AgentKind::Pi,
        AgentName::Of(AgentType::ClaudeCli) => AgentKind::Claude,
        AgentName::Of(AgentType::CodexCli) => AgentKind::Codex,
        AgentName::Of(AgentType::GeminiCli) => AgentKind::Gemini,
        AgentName::Of(AgentType::Interactive) => AgentKind::Command("bash".to_owned()),
        AgentName::Of(AgentType::Unknown) if profile.name == "pi" => AgentKind::Pi,
        AgentName::Of(AgentType::Aider | AgentType::Python | AgentType::Unknown) => {
            return Err(Error::usage(format!(
                "{} does not name an agent to start",
                profile.location()
            ))
            .with_hint(
                "set `agent.type` to claude, codex, gemini or pi, or set `agent.command`.",
            ));
        }
    };
    Ok(SourcedValue::new(kind, source))
}

fn with_task(shell: &str, line: &SourcedValue<String>) -> Result<String, Error> {
    command::with_task(shell)
        .map_err(|rule| Error::usage(format!("the agent's command ({}): {rule}", line.source)))
}
