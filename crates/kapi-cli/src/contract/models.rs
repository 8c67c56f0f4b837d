//! The models of a contract: the one that a person names, and what the agents may ask.
//!
//! What is chosen goes into the configuration that the contract is drawn up with, so that prices and
//! checks see it too.

use kapi_agent::agent::AgentKind;
use kapi_agent::models;
use kapi_agent::settings::AgentSettings;
use kapi_core::agent_models::AgentModels;
use kapi_core::judge::Judge;
use kapi_run::failure;

use crate::config::Config;
use crate::contract::agent_name::kind;
use crate::error::Error;

/// Has an agent start with a model that a person named.
pub(crate) fn choose(config: &mut Config, agent: &str, model: Option<&str>) -> Result<(), Error> {
    let Some(model) = model else { return Ok(()) };
    let kind = kind(agent)?;
    let settings = config.agents.entry(kind.name().to_owned()).or_default();
    of_settings(settings, &kind, model)
}

/// Does the same with the settings of one agent.
pub(crate) fn of_settings(
    settings: &mut AgentSettings,
    kind: &AgentKind,
    model: &str,
) -> Result<(), Error> {
    if model.trim().is_empty() {
        return Err(Error::usage("the model's name is empty"));
    }
    models::choose(settings, kind, model).map_err(|error| {
        let failure = failure::agent(&error);
        Error {
            hint: failure.hint,
            ..Error::usage(format!("failed to {}", failure.message))
        }
    })
}

/// Returns the models of the agents of a contract, each once.
pub(crate) fn approved<'a>(
    config: &Config,
    agents: impl Iterator<Item = &'a str>,
) -> Vec<AgentModels> {
    let mut found: Vec<AgentModels> = Vec::new();
    // A judge can be a model asked directly, which its own name names.
    for kind in agents.filter_map(|agent| kind(agent).ok()) {
        let name = kind.name();
        let settings = config.agents.get(name).cloned().unwrap_or_default();
        let is_new = found.iter().all(|models| models.agent != name);
        found.extend(models::approved(&kind, &settings).filter(|_| is_new));
    }
    found
}

/// Returns the agents of a contract.
pub(crate) fn agents_of<'a>(agent: &'a str, judge: &'a Judge) -> impl Iterator<Item = &'a str> {
    let judge = match judge {
        Judge::Agent(name) => Some(name.as_str()),
        Judge::None | Judge::Same => None,
    };
    std::iter::once(agent).chain(judge)
}

/// Returns what to know of an agent whose requests Kapi does not see.
pub(crate) fn unseen_note(config: &Config, models: &[AgentModels]) -> Option<String> {
    let uses_login = |models: &&AgentModels| {
        let settings = config.agents.get(&models.agent);
        settings.is_some_and(|settings| settings.login)
    };
    let agent = &models.iter().find(uses_login)?.agent;
    Some(format!(
        "{agent} uses your login, so its requests pass Kapi unread: it starts with the model above, \
         and nothing refuses another."
    ))
}
