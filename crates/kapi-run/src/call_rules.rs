//! What an agent may ask of models, by its settings and its network.
//!
//! Without a network, its provider reaches none for it either. Knows no gateway at work.

use kapi_agent::agent::AgentKind;
use kapi_agent::models;
use kapi_agent::settings::AgentSettings;
use kapi_core::isolation::NetworkMode;
use kapi_gateway::model::rules::{CallRules, ProviderTools};

/// Returns what an agent may ask of models.
#[must_use]
pub fn call_rules(kind: &AgentKind, settings: &AgentSettings, network: NetworkMode) -> CallRules {
    let is_allowed = settings.provider_tools && network != NetworkMode::None;
    CallRules {
        models: models::may_ask(kind, settings),
        provider_tools: if is_allowed {
            ProviderTools::Allowed
        } else {
            ProviderTools::TakenOut
        },
    }
}
