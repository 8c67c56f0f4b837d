//! The name of an agent, as a person writes it and as a contract holds it.
//!
//! Looks for no program: whether the agent is there is asked elsewhere.

use kapi_agent::agent::AgentKind;

use crate::context::Context;
use crate::error::Error;

/// Reads the name of an agent.
pub(crate) fn kind(agent: &str) -> Result<AgentKind, Error> {
    AgentKind::parse(agent).map_err(|error| {
        let mut wrapped = Error::usage(format!("failed to {error}"));
        wrapped.hint = error
            .hint()
            .or_else(|| Some("`kapi doctor --agents` shows which of them work here.".to_owned()));
        wrapped
    })
}

/// Makes a script's path absolute, so that the goal can be resumed from anywhere.
pub(crate) fn absolute(context: &Context, reference: &str) -> Result<String, Error> {
    Ok(match kind(reference)? {
        AgentKind::Script(path) if path.is_relative() => {
            AgentKind::Script(context.cwd.join(path)).to_string()
        }
        other => other.to_string(),
    })
}
