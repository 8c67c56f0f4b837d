//! `[judges.<provider>]`: where models that judge are asked.
//!
//! Of the person's own file alone: whoever names a server names where a key and the work are sent.

use std::collections::BTreeMap;

use kapi_core::failure::chain;
use kapi_gateway::ask::server::ModelApi;
use kapi_gateway::model::route::BaseUrl;
use kapi_run::judge_settings::ProviderSettings;
use kapi_settings::fault::Faults;
use kapi_settings::setting::Setting;
use serde::Deserialize;

/// `[judges.<provider>]`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct JudgeTable {
    api: Option<ApiWord>,
    base_url: Option<Setting<String>>,
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
    tables: BTreeMap<String, Setting<JudgeTable>>,
    faults: &mut Faults,
) -> BTreeMap<String, ProviderSettings> {
    let mut providers = BTreeMap::new();
    for (name, said) in tables {
        if name.is_empty() || name.contains(|c: char| c == '/' || c.is_whitespace()) {
            let what = format!("{name:?} cannot be a provider name in provider/model");
            faults.at(&said, what, "rename it");
        }
        let table = said.value;
        let base_url = table.base_url.as_ref();
        if let Some((url, error)) =
            base_url.and_then(|url| Some((url, BaseUrl::parse(&url.value).err()?)))
        {
            faults.at(url, format!("failed to {}", chain(&error)), "fix it");
        }
        let api = table.api.map(|word| match word {
            ApiWord::Anthropic => ModelApi::Anthropic,
            ApiWord::Openai => ModelApi::Chat,
            ApiWord::Gemini => ModelApi::Gemini,
        });
        let settings = ProviderSettings {
            api,
            base_url: table.base_url.map(|url| url.value),
            api_key_env: table.api_key_env,
        };
        providers.insert(name, settings);
    }
    providers
}
