//! Where a model that judges is asked: the known vendors, and the providers a person configured.
//!
//! Servers and keys come from the person's own configuration and environment alone; a project names
//! at most which of them judges.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use kapi_core::failure::Failure;
use kapi_core::text::holds_command;
use kapi_gateway::ask::server::{ModelApi, ModelEndpoint};
use kapi_gateway::egress::host_proxy::HostProxy;
use kapi_gateway::model::route::BaseUrl;
use kapi_gateway::model::secret::ProviderKey;
use kapi_spend::rules::account::ModelProvider;

use crate::failure;
use crate::host_grants::HostGrants;

/// What is meant by the name of a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgeReference<'a> {
    /// An agent, in the words in which agents are named.
    Agent(&'a str),
    /// A model of a provider.
    Model {
        /// Whose.
        provider: &'a str,
        /// What they call it; it may hold slashes.
        model: &'a str,
    },
}

/// A provider that needs no configuration but a key.
struct JudgeProvider {
    name: &'static str,
    api: ModelApi,
    /// The variables that may hold its key, the first that is set counts.
    key_variables: &'static [&'static str],
}

const KNOWN: &[JudgeProvider] = &[
    JudgeProvider {
        name: "anthropic",
        api: ModelApi::Anthropic,
        key_variables: &["ANTHROPIC_API_KEY"],
    },
    JudgeProvider {
        name: "openai",
        api: ModelApi::Chat,
        key_variables: &["OPENAI_API_KEY"],
    },
    JudgeProvider {
        name: "gemini",
        api: ModelApi::Gemini,
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
];

impl<'a> JudgeReference<'a> {
    /// Tells a model from an agent. A command or a script may hold slashes too.
    pub fn parse(reference: &'a str) -> Self {
        let is_program = holds_command(reference);
        match reference.split_once('/') {
            Some((provider, model)) if !is_program && !provider.is_empty() && !model.is_empty() => {
                Self::Model { provider, model }
            }
            Some(_) | None => Self::Agent(reference),
        }
    }
}

/// Returns the server at which a provider's models are asked, with its key.
pub fn server(grants: &HostGrants, provider: &str) -> Result<ModelEndpoint, Failure> {
    let known = KNOWN.iter().find(|known| known.name == provider);
    let said = grants.judges.get(provider);
    let own_url = said.and_then(|said| said.base_url.as_deref());
    let api = said
        .and_then(|said| said.api)
        .or(known.map(|known| known.api))
        .unwrap_or(ModelApi::Chat);
    let url = match (own_url, known) {
        (Some(url), _) => url,
        (None, Some(_)) => api.vendor_url(),
        (None, None) => return Err(unknown(provider)),
    };
    Ok(ModelEndpoint {
        api,
        base_url: BaseUrl::parse(url).map_err(|error| failure::plain(&error))?,
        key: key(grants, provider, known)?,
        extra_authorities: None,
        host_proxy: HostProxy::of(&grants.env).map_err(|error| failure::plain(&error))?,
    })
}

/// Returns the name under which the prices of a provider's models are looked up.
pub fn price_name(grants: &HostGrants, provider: &str) -> String {
    let said = grants.judges.get(provider);
    match said.and_then(|said| said.base_url.as_deref()) {
        Some(url) => ModelProvider::At(url).provider(),
        None => provider.to_owned(),
    }
}

/// A vendor's own key goes to the vendor alone: another server gets the key that is named for it.
fn key(
    grants: &HostGrants,
    provider: &str,
    known: Option<&JudgeProvider>,
) -> Result<Option<ProviderKey>, Failure> {
    let said = grants.judges.get(provider);
    let named = said.and_then(|said| said.api_key_env.as_deref());
    let has_own_server = said.is_some_and(|said| said.base_url.is_some());
    let variables: Vec<&str> = match (named, known) {
        (Some(variable), _) => vec![variable],
        (None, Some(known)) if !has_own_server => known.key_variables.to_vec(),
        (None, Some(_) | None) => return Ok(None),
    };
    let value = |name: &&str| grants.env.get(OsStr::new(name)).filter(|it| !it.is_empty());
    let Some((name, value)) = variables
        .iter()
        .find_map(|name| value(name).map(|value| (name, value)))
    else {
        let names = variables.join(" or ");
        return Err(Failure {
            message: format!("find the key of judge provider {provider}: {names} is not set"),
            hint: Some(format!(
                "set {names} in your environment, name another variable with `api_key_env` \
                 under [judges.{provider:?}], or choose another judge."
            )),
        });
    };
    let text = value.to_str().unwrap_or_default();
    let secret = ProviderKey::parse(text).map_err(|_| Failure {
        message: format!("read the key of judge provider {provider} from {name}"),
        hint: Some("a key must be one line of plain characters.".to_owned()),
    })?;
    Ok(Some(secret))
}

/// Returns the providers whose models can judge: the known vendors, and those a person configured.
#[must_use]
pub fn names(grants: &HostGrants) -> Vec<String> {
    let own = grants
        .judges
        .iter()
        .filter(|(_, said)| said.base_url.is_some());
    let own = own.map(|(name, _)| name.clone());
    let all: BTreeSet<String> = own
        .chain(KNOWN.iter().map(|known| known.name.to_owned()))
        .collect();
    all.into_iter().collect()
}

fn unknown(provider: &str) -> Failure {
    let known: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
    Failure {
        message: format!("find a judge provider called {provider:?}"),
        hint: Some(format!(
            "use one of {}, or set a `base_url` under [judges.{provider:?}] in your configuration.",
            known.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kapi_gateway::ask::server::ModelApi;
    use kapi_spend::rules::prices::Prices;

    use super::{JudgeReference, price_name, server};
    use crate::grant::Grant;
    use crate::host_grants::HostGrants;
    use crate::judge_settings::ProviderSettings;

    fn grants(env: &[(&str, &str)], judges: &[(&str, ProviderSettings)]) -> HostGrants {
        let env = env.iter().map(|&(name, value)| (name.into(), value.into()));
        let judges = judges.iter().cloned();
        HostGrants {
            agents: BTreeMap::new(),
            judges: judges.map(|(name, said)| (name.to_owned(), said)).collect(),
            prices: Prices::built_in(),
            grant: Grant::default(),
            env: env.collect(),
            home: "/home/user".into(),
            self_exe: "/usr/bin/kapi".into(),
        }
    }

    #[test]
    fn a_model_is_told_from_a_program_with_slashes() {
        let model = |provider, model| JudgeReference::Model { provider, model };
        for (text, expected) in [
            (
                "anthropic/claude-opus-5",
                model("anthropic", "claude-opus-5"),
            ),
            ("openrouter/z/glm-5", model("openrouter", "z/glm-5")),
            ("claude", JudgeReference::Agent("claude")),
            (
                "command:/bin/judge",
                JudgeReference::Agent("command:/bin/judge"),
            ),
            ("script:a/b.yaml", JudgeReference::Agent("script:a/b.yaml")),
            ("/x", JudgeReference::Agent("/x")),
        ] {
            assert_eq!(JudgeReference::parse(text), expected);
        }
    }

    #[test]
    fn known_vendors_need_a_key_and_nothing_else() {
        for (provider, variable, api) in [
            ("anthropic", "ANTHROPIC_API_KEY", ModelApi::Anthropic),
            ("openai", "OPENAI_API_KEY", ModelApi::Chat),
            ("gemini", "GEMINI_API_KEY", ModelApi::Gemini),
            ("gemini", "GOOGLE_API_KEY", ModelApi::Gemini),
        ] {
            let found = server(&grants(&[(variable, "sk-1")], &[]), provider).unwrap();
            assert_eq!(found.api, api);
            assert!(found.key.is_some());
            for env in [vec![], vec![(variable, "")]] {
                let refused = server(&grants(&env, &[]), provider).unwrap_err();
                assert!(refused.message.contains("_API_KEY"), "{refused:?}");
            }
        }
        let refused = server(&grants(&[], &[]), "nobody").unwrap_err();
        assert!(refused.hint.unwrap().contains("[judges.\"nobody\"]"));
    }

    #[test]
    fn a_vendor_s_key_is_sent_to_the_vendor_alone() {
        let own = |api_key_env: Option<&str>| ProviderSettings {
            base_url: Some("http://127.0.0.1:1".to_owned()),
            api_key_env: api_key_env.map(str::to_owned),
            api: None,
        };
        let env = [("ANTHROPIC_API_KEY", "sk-1"), ("OTHER", "sk-2")];
        let without = grants(&env, &[("anthropic", own(None))]);
        assert!(server(&without, "anthropic").unwrap().key.is_none());
        assert_eq!(price_name(&without, "anthropic"), "local");
        let with = grants(&env, &[("anthropic", own(Some("OTHER")))]);
        assert!(server(&with, "anthropic").unwrap().key.is_some());
        let missing = grants(&env, &[("mine", own(Some("MISSING")))]);
        assert!(server(&missing, "mine").is_err());
        let mine = grants(&env, &[("mine", own(None))]);
        assert_eq!(server(&mine, "mine").unwrap().api, ModelApi::Chat);
    }
}
