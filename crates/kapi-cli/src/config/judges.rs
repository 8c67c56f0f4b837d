//! `[judges.<provider>]`: where models that judge are asked.
//!
//! Of the person's own file alone: whoever names a server names where a key and the work are sent.

use std::collections::BTreeMap;

use kapi_gateway::ask::server::ModelApi;
use kapi_gateway::model::route::BaseUrl;
use kapi_world::judge::provider::Settings;
use serde::Deserialize;

use crate::config::source::Text;
use crate::error::{Error, chain};

/// `[judges.<provider>]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JudgeTable {
    api: Option<ApiWord>,
    base_url: Option<String>,
    api_key_env: Option<String>,
}

/// The ways of speaking, by the names of those who began them.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ApiWord {
    Anthropic,
    Openai,
    Gemini,
}

/// Returns what the person says of providers.
pub(crate) fn providers(
    said: &Text<'_>,
    tables: BTreeMap<String, JudgeTable>,
) -> Result<BTreeMap<String, Settings>, Error> {
    let mut providers = BTreeMap::new();
    for (name, table) in tables {
        if name.is_empty() || name.contains(|c: char| c == '/' || c.is_whitespace()) {
            let place = said.at(&format!("judges.{name}"));
            let text = format!("{place}: {name:?} cannot stand before the slash of provider/model");
            return Err(Error::usage(text));
        }
        if let Some(url) = &table.base_url {
            BaseUrl::parse(url).map_err(|error| {
                let place = said.at(&format!("judges.{name}.base_url"));
                Error::usage(format!("{place}: failed to {}", chain(&error)))
            })?;
        }
        let api = table.api.map(|word| match word {
            ApiWord::Anthropic => ModelApi::Anthropic,
            ApiWord::Openai => ModelApi::Chat,
            ApiWord::Gemini => ModelApi::Gemini,
        });
        let settings = Settings {
            api,
            base_url: table.base_url,
            api_key_env: table.api_key_env,
        };
        providers.insert(name, settings);
    }
    Ok(providers)
}
