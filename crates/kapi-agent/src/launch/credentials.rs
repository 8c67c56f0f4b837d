//! Which key stands for an agent, and where it is sent.
//!
//! A key of the host goes to the vendor it belongs to, or where the settings name both the
//! variable and the server; a server of one's own never gets a vendor's key unasked. The agent
//! itself gets none: it gets a placeholder, and the gateway puts the key in outside.

use std::fmt;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::launch::{HostEnvironment, variable};
use crate::manifest::Manifest;
use crate::settings::AgentSettings;

/// How an agent proves itself to its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProviderCredentials {
    /// With this key; `None` for a server of one's own that wants none.
    Key(Option<ApiKey>),
    /// With the person's log-in, from files.
    Login,
}

/// A key, kept out of what is printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ApiKey(pub(super) String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

/// Returns how this agent proves itself. `variable_name` holds the key unless the settings say
/// otherwise.
pub(super) fn credentials(
    manifest: &Manifest,
    variable_name: &str,
    settings: &AgentSettings,
    host: &HostEnvironment<'_>,
) -> Result<ProviderCredentials, AgentError> {
    let agent = manifest.name;
    if settings.login && settings.base_url.is_some() {
        return Err(AgentError::LoginWithBaseUrl { agent });
    }
    let name = match &settings.api_key_env {
        Some(name) => name,
        None if settings.login => return Ok(ProviderCredentials::Login),
        None if settings.base_url.is_some() => return Ok(ProviderCredentials::Key(None)),
        None => variable_name,
    };
    match variable(host, name)? {
        Some(key) if !key.is_empty() => Ok(ProviderCredentials::Key(Some(ApiKey(key)))),
        Some(_) | None => Err(AgentError::NoCredentials {
            agent,
            variable: name.to_owned(),
        }),
    }
}

/// Returns the log-in files to copy, and what the person should know about it.
pub(super) fn login(manifest: &Manifest, settings: &AgentSettings) -> (Vec<PathBuf>, Vec<String>) {
    if !settings.login {
        return (Vec::new(), Vec::new());
    }
    let note = format!(
        "`login = true`: {} can read a copy of your login and contacts its vendor directly, so \
         its use is counted only as it reports it; a renewed token is not copied back.",
        manifest.name
    );
    (
        manifest.login_files.iter().map(PathBuf::from).collect(),
        vec![note],
    )
}

/// Returns the hosts an agent reaches by itself: those of its log-in.
pub(super) fn login_hosts(manifest: &Manifest, settings: &AgentSettings) -> Vec<String> {
    let hosts = manifest.login_hosts.iter().filter(|_| settings.login);
    hosts.map(|host| (*host).to_owned()).collect()
}

/// Returns the server to ask, without a slash at its end.
pub(super) fn base_url(
    manifest: &Manifest,
    settings: &AgentSettings,
) -> Result<Option<String>, AgentError> {
    let Some(text) = &settings.base_url else {
        return Ok(None);
    };
    let url = text.trim_end_matches('/');
    let host = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let is_plain =
        |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\' | '<' | '>' | '`');
    let rule = match host {
        None => "it must start with http:// or https://",
        Some("") => "it has no server",
        Some(_) if !url.chars().all(is_plain) => "it contains a character that is invalid in a URL",
        Some(_) if url.contains(['?', '#']) => "it must end with its path",
        Some(_) => return Ok(Some(url.to_owned())),
    };
    Err(AgentError::BaseUrl {
        agent: manifest.name,
        base_url: text.clone(),
        rule,
    })
}

/// Returns the URL with `/v1` when it has no path of its own, as the `OpenAI` dialects want it.
pub(super) fn with_version(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    if after_scheme.contains('/') {
        url.to_owned()
    } else {
        format!("{url}/v1")
    }
}

#[cfg(test)]
mod tests {
    use super::{base_url, with_version};
    use crate::manifest::CODEX;
    use crate::settings::AgentSettings;

    fn check(text: &str) -> Option<String> {
        let settings = AgentSettings {
            base_url: Some(text.to_owned()),
            ..AgentSettings::default()
        };
        base_url(&CODEX, &settings).ok().flatten()
    }

    #[test]
    fn urls_lose_their_last_slash_and_nothing_else() {
        assert_eq!(
            check("http://127.0.0.1:8080/").as_deref(),
            Some("http://127.0.0.1:8080")
        );
        assert_eq!(check("https://a.b/v1/").as_deref(), Some("https://a.b/v1"));
        assert_eq!(
            check("http://[::1]:80//").as_deref(),
            Some("http://[::1]:80")
        );
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "a.b",
            "http://",
            "ftp://a",
            "http://a b",
            "http://a\"",
            "http://a\nb",
            "http://a?x",
        ] {
            assert_eq!(check(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_url_without_a_path_gets_the_version() {
        let cases = [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
            ("https://a.b/openai", "https://a.b/openai"),
        ];
        for (url, expected) in cases {
            assert_eq!(with_version(url), expected);
        }
    }
}
