//! Where a request goes and with which key.
//!
//! Pure: the provider's address, the check of the placeholder that an agent holds in place of a
//! key, and the head that the provider gets. Knows no sockets and no budgets.

use crate::egress::host::HostEndpoint;
use crate::http::head::{Headers, HttpVersion, RequestHead};
use crate::model::dialect::{ModelDialect, ProviderRequest, is_version};
use crate::model::secret::ProviderKey;

/// How a connection to the provider is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In plain text, for a server of one's own.
    Http,
    /// With TLS.
    Https,
}

/// A provider's base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    pub(crate) scheme: Scheme,
    pub(crate) endpoint: HostEndpoint,
    /// With a first slash and no last one; empty for none.
    pub(crate) path: String,
}

/// A text that is no base URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse the base URL `{text}`: {problem}")]
pub struct BaseUrlError {
    /// The text, without what stands before an `@`.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// In which header the provider wants the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthStyle {
    /// `x-api-key`, Anthropic's.
    XApiKey,
    /// `authorization: Bearer`, nearly everybody's.
    Bearer,
    /// `x-goog-api-key`, Google's.
    XGoogApiKey,
    /// None: the server asks for no key.
    None,
    /// Whatever the agent itself sends, unchanged: a subscription that it is logged in to.
    AgentsOwn,
}

/// A provider: where it is, how it speaks, and the key for it.
#[derive(Debug, Clone)]
pub struct ProviderRoute {
    /// Its address.
    pub base_url: BaseUrl,
    /// How it speaks.
    pub dialect: ModelDialect,
    /// Where it wants the key.
    pub auth: AuthStyle,
    /// The key; none where `auth` needs none, and none when a cassette is replayed.
    pub key: Option<ProviderKey>,
}

/// Why a request may not use the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("find a key in the request; it needs this run's placeholder key")]
    Missing,
    #[error("accept the key; only this run's placeholder key is valid here")]
    Foreign,
}

/// The headers in which agents send keys.
const KEY_HEADERS: [&str; 4] = ["x-api-key", "authorization", "x-goog-api-key", "api-key"];
/// Headers that are the agent's own business, that only speak of the way to us, or that would make
/// another request of this one or leave the usage out of its answer.
const DROPPED: [&str; 16] = [
    "host",
    "content-length",
    "accept-encoding",
    "expect",
    "cookie",
    "cookie2",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-goog-fieldmask",
];

impl BaseUrl {
    /// Parses `http://host:port/path` or `https://…`.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let error = |problem| BaseUrlError {
            text: text.rsplit('@').next().unwrap_or_default().to_owned(),
            problem,
        };
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(error("it has characters that no URL has"));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            _ => return Err(error("it must start with http:// or https://")),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if text.contains(['?', '#', '\\']) {
            return Err(error("it must have no query, fragment or backslash"));
        }
        if authority.contains('@') {
            return Err(error("it must not contain a key"));
        }
        let usual_port = scheme.usual_port();
        let endpoint = HostEndpoint::parse(authority, Some(usual_port))
            .map_err(|_no_host| error("it has no host and port"))?;
        let path = path.trim_end_matches('/');
        if path.contains("//") || path.split('/').any(|part| part == "." || part == "..") {
            return Err(error("its path is not plain"));
        }
        Ok(Self {
            scheme,
            endpoint,
            path: path.to_owned(),
        })
    }

    /// Returns the path and query of a request at the provider.
    ///
    /// A base URL may end with the version, as OpenAI's clients want it, or without, as Anthropic's
    /// and Google's do; what the agent wrote in its own path is of no weight where it is there.
    pub(crate) fn target(
        &self,
        dialect: ModelDialect,
        request: &ProviderRequest,
        query: &str,
    ) -> String {
        let mut target = self.path.clone();
        let has_version = match dialect {
            ModelDialect::Anthropic | ModelDialect::Gemini => {
                self.path.rsplit('/').next().is_some_and(is_version)
            }
            // Their base URL is complete, unless it is a host and nothing else.
            ModelDialect::Responses | ModelDialect::Chat => !self.path.is_empty(),
        };
        if !has_version {
            let version = request.version.as_deref();
            target.push('/');
            target.push_str(version.unwrap_or(dialect.default_version()));
        }
        target.push_str(&request.tail);
        if !query.is_empty() {
            target.push('?');
            target.push_str(query);
        }
        target
    }

    /// Returns the value of the `host` header.
    pub(crate) fn authority(&self) -> String {
        let HostEndpoint { host, port } = &self.endpoint;
        if *port == self.scheme.usual_port() {
            host.to_string()
        } else {
            format!("{host}:{port}")
        }
    }
}

impl Scheme {
    const fn usual_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Checks that a request has the placeholder wherever it has a key, and takes all keys out of it.
///
/// Returns the query without its key.
pub(crate) fn take_keys(
    headers: &mut Headers,
    query: &str,
    placeholder: &str,
) -> Result<String, KeyError> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for name in KEY_HEADERS {
        keys.extend(headers.all(name).map(|value| bare_key(value).to_vec()));
        headers.remove(name);
    }
    let (key_pairs, others): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|pair| is_key_pair(pair));
    for pair in key_pairs {
        let value = pair.split_once('=').map_or("", |(_, value)| value);
        keys.push(value.as_bytes().to_vec());
    }
    if keys.is_empty() {
        return Err(KeyError::Missing);
    }
    if keys.iter().any(|key| key != placeholder.as_bytes()) {
        return Err(KeyError::Foreign);
    }
    Ok(others.join("&"))
}

/// Returns a request's head without any key, for those who write it down.
pub(crate) fn without_keys(head: &RequestHead) -> RequestHead {
    let mut head = head.clone();
    for name in KEY_HEADERS {
        head.headers.remove(name);
    }
    if let Some((path, query)) = head.target.split_once('?') {
        let kept: Vec<&str> = query.split('&').filter(|pair| !is_key_pair(pair)).collect();
        head.target = format!("{path}?{}", kept.join("&"));
    }
    head
}

/// Tells whether a pair of a query could be read as a key, in any spelling of its name.
fn is_key_pair(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    name.contains('%') || ["key", "api_key", "access_token"].contains(&name)
}

fn bare_key(value: &[u8]) -> &[u8] {
    let scheme = b"bearer ";
    match value.split_at_checked(scheme.len()) {
        Some((start, key)) if start.eq_ignore_ascii_case(scheme) => key.trim_ascii(),
        _ => value,
    }
}

/// Takes out of a request what does not concern the provider.
pub(crate) fn take_private(headers: &mut Headers) {
    headers.remove_hop_by_hop();
    for name in DROPPED {
        headers.remove(name);
    }
}

/// Returns the head that the provider gets; `head` has been through [`take_keys`] and
/// [`take_private`].
pub(crate) fn outgoing(
    upstream: &ProviderRoute,
    head: &RequestHead,
    target: String,
    body_bytes: usize,
) -> RequestHead {
    let mut headers = Headers::default();
    headers.add("host", upstream.base_url.authority().as_bytes());
    headers.0.extend(head.headers.0.iter().cloned());
    // Usage is read from the answer as it passes, so it must come in the clear.
    headers.add("accept-encoding", b"identity");
    if let Some(key) = &upstream.key {
        let key = key.expose();
        match upstream.auth {
            AuthStyle::XApiKey => headers.add("x-api-key", key.as_bytes()),
            AuthStyle::Bearer => {
                headers.add("authorization", format!("Bearer {key}").as_bytes());
            }
            AuthStyle::XGoogApiKey => headers.add("x-goog-api-key", key.as_bytes()),
            AuthStyle::None | AuthStyle::AgentsOwn => {}
        }
    }
    if head.method != "GET" {
        headers.add("content-length", body_bytes.to_string().as_bytes());
    }
    RequestHead {
        method: head.method.clone(),
        target,
        version: HttpVersion::Http11,
        headers,
    }
}

#[cfg(test)]
mod tests;
