//! The proxy that this host itself needs to get out, as its environment names it.
//!
//! Only CONNECT is spoken to it, so it sees names and amounts as we do. Which connections go through
//! it is decided here; that they may be made at all was decided before. Opens nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::IpAddr;

use super::address::{AddressClass, classify};
use super::host::{HostEndpoint, HostError, TargetHost};

/// The port of a proxy that names none.
const PORT_DEFAULT: u16 = 80;
/// The port whose connections the variable for plain HTTP means.
const PLAIN_PORT: u16 = 80;

/// The proxies of this host, and what is reached without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProxy {
    plain: Option<ParentProxy>,
    secure: Option<ParentProxy>,
    direct: DirectHosts,
}

/// One proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct ParentProxy {
    /// Where it listens.
    pub endpoint: HostEndpoint,
    /// What follows `Proxy-Authorization: Basic`, if it wants to know who asks.
    pub(super) credentials: Option<String>,
}

/// Why a variable of the environment names no proxy that can be used.
#[derive(Debug, thiserror::Error)]
pub enum HostProxyError {
    /// It is not text.
    #[error("use the proxy in {variable}: it is not UTF-8")]
    NotUtf8 {
        /// The variable.
        variable: String,
    },
    /// It is spoken to in another way than HTTP.
    #[error("use the proxy in {variable}: only http:// proxies are supported")]
    Scheme {
        /// The variable.
        variable: String,
    },
    /// It names no host and port.
    #[error("use the proxy in {variable}")]
    Host {
        /// The variable.
        variable: String,
        /// What is wrong with it.
        #[source]
        source: HostError,
    },
}

/// What is reached without a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DirectHosts {
    everything: bool,
    names: Vec<(String, Option<u16>)>,
    networks: Vec<(IpAddr, u8)>,
}

impl fmt::Debug for ParentProxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Who asks is a password.
        out.debug_struct("Upstream")
            .field("endpoint", &self.endpoint)
            .field("has_credentials", &self.credentials.is_some())
            .finish()
    }
}

impl HostProxy {
    /// Reads `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in small letters or capitals;
    /// `None` where no proxy is named.
    ///
    /// # Errors
    /// When one is named that cannot be used: going out without it would not be what was asked.
    pub fn of(environment: &BTreeMap<OsString, OsString>) -> Result<Option<Self>, HostProxyError> {
        let direct = variable(environment, "no_proxy")?;
        let direct = DirectHosts::parse(direct.map(|(_, text)| text).unwrap_or_default());
        if direct.everything {
            return Ok(None);
        }
        let named = |name| match upstream(environment, name)? {
            None => upstream(environment, "all_proxy"),
            found => Ok(found),
        };
        let (plain, secure) = (named("http_proxy")?, named("https_proxy")?);
        if plain.is_none() && secure.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            plain,
            secure,
            direct,
        }))
    }

    /// Returns the proxy for an endpoint; what is not public is never asked of a proxy.
    pub(super) fn way(&self, endpoint: &HostEndpoint) -> Option<&ParentProxy> {
        let is_home = match &endpoint.host {
            TargetHost::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            TargetHost::Address(address) => classify(*address) != AddressClass::Public,
        };
        if is_home || self.direct.covers(endpoint) {
            return None;
        }
        if endpoint.port == PLAIN_PORT {
            self.plain.as_ref()
        } else {
            self.secure.as_ref()
        }
    }
}

fn variable<'a>(
    environment: &'a BTreeMap<OsString, OsString>,
    name: &str,
) -> Result<Option<(String, &'a str)>, HostProxyError> {
    for variable in [name.to_owned(), name.to_uppercase()] {
        let Some(value) = environment.get(OsStr::new(&variable)) else {
            continue;
        };
        let Some(text) = value.to_str() else {
            return Err(HostProxyError::NotUtf8 { variable });
        };
        if !text.trim().is_empty() {
            return Ok(Some((variable, text.trim())));
        }
    }
    Ok(None)
}

fn upstream(
    environment: &BTreeMap<OsString, OsString>,
    name: &str,
) -> Result<Option<ParentProxy>, HostProxyError> {
    let Some((variable, text)) = variable(environment, name)? else {
        return Ok(None);
    };
    let rest = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some(_) => return Err(HostProxyError::Scheme { variable }),
        None => text,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (who, host) = match authority.rsplit_once('@') {
        Some((who, host)) => (Some(who), host),
        None => (None, authority),
    };
    let endpoint = HostEndpoint::parse(host, Some(PORT_DEFAULT))
        .map_err(|source| HostProxyError::Host { variable, source })?;
    Ok(Some(ParentProxy {
        endpoint,
        credentials: who.map(|who| base64(&unescaped(who))),
    }))
}

/// Undoes the `%` escapes of a URL's user and password.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = match escaped {
            Some(_) => after.get(2..).unwrap_or_default(),
            None => after,
        };
    }
    bytes
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |n: usize| u32::from(chunk.get(n).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let index = usize::try_from(bits >> (18 - 6 * n) & 63).unwrap_or_default();
            let letter = LETTERS.get(index).copied().unwrap_or(b'=');
            let is_there = n <= chunk.len();
            text.push(if is_there { char::from(letter) } else { '=' });
        }
    }
    text
}

impl DirectHosts {
    /// Reads a comma separated list: names with all below them, addresses, networks, `*`.
    fn parse(text: &str) -> Self {
        let mut direct = Self::default();
        for entry in text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            if entry == "*" {
                direct.everything = true;
            } else if let Some(network) = network(entry) {
                direct.networks.push(network);
            } else {
                let (name, port) = match entry.rsplit_once(':') {
                    Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.parse().ok()),
                    _ => (entry, None),
                };
                let name = name.trim_start_matches('*').trim_start_matches('.');
                direct.names.push((name.to_lowercase(), port));
            }
        }
        direct
    }

    fn covers(&self, endpoint: &HostEndpoint) -> bool {
        let is_named = |(name, port): &(String, Option<u16>)| {
            let host = endpoint.host.to_string();
            let below = host.strip_suffix(name.as_str());
            let fits = below.is_some_and(|before| before.is_empty() || before.ends_with('.'));
            fits && port.is_none_or(|port| port == endpoint.port)
        };
        let is_in = |(network, bits): &(IpAddr, u8)| match &endpoint.host {
            TargetHost::Address(address) => contains(*network, *bits, *address),
            TargetHost::Name(_) => false,
        };
        self.everything || self.names.iter().any(is_named) || self.networks.iter().any(is_in)
    }
}

/// Reads an address or a network.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let plain = text.trim_start_matches('[').trim_end_matches(']');
    let (address, bits) = match plain.split_once('/') {
        Some((address, bits)) => (address.parse().ok()?, Some(bits.parse().ok()?)),
        None => (plain.parse().ok()?, None),
    };
    let most = match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    };
    let bits = bits.unwrap_or(most);
    (bits <= most).then_some((address, bits))
}

fn contains(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    let bits = u32::from(bits);
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differ = network.to_bits() ^ address.to_bits();
            differ.checked_shr(32 - bits).unwrap_or_default() == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differ = network.to_bits() ^ address.to_bits();
            differ.checked_shr(128 - bits).unwrap_or_default() == 0
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{HostEndpoint, HostProxy, base64};

    fn of(pairs: &[(&str, &str)]) -> Result<Option<HostProxy>, String> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        HostProxy::of(&pairs.collect::<BTreeMap<_, _>>()).map_err(|error| error.to_string())
    }

    /// Returns the proxy for an endpoint, or `direct`.
    fn way(pairs: &[(&str, &str)], endpoint: &str) -> String {
        let proxy = of(pairs).unwrap().unwrap();
        let endpoint = HostEndpoint::parse(endpoint, None).unwrap();
        let way = proxy.way(&endpoint).map(|way| way.endpoint.to_string());
        way.unwrap_or_else(|| "direct".to_owned())
    }

    #[test]
    fn the_variables_mean_what_they_mean_to_others() {
        let both = [
            ("HTTP_PROXY", "http://plain:1"),
            ("https_proxy", "secure:2/"),
        ];
        for (pairs, endpoint, expected) in [
            (&both[..], "a.test:443", "secure:2"),
            (&both, "a.test:80", "plain:1"),
            (&both, "a.test:8443", "secure:2"),
            (&both[1..], "a.test:80", "direct"),
            (&[("ALL_PROXY", "http://all")], "a.test:443", "all:80"),
            (
                &[("ALL_PROXY", "http://all"), ("https_proxy", "s:2")],
                "a.test:80",
                "all:80",
            ),
            (
                &[("https_proxy", "small:1"), ("HTTPS_PROXY", "large:2")],
                "a.test:443",
                "small:1",
            ),
            (&[("https_proxy", "http://u:p@s:2")], "a.test:443", "s:2"),
        ] {
            assert_eq!(way(pairs, endpoint), expected, "{pairs:?} {endpoint}");
        }
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[("HTTPS_PROXY", ""), ("NO_PROXY", "*")]), Ok(None));
    }

    #[test]
    fn what_is_excepted_or_not_public_is_reached_directly() {
        let except = "a.test, .b.test,*.c.test,d.test:8443, 203.0.113.0/24,8.8.8.8";
        let pairs = [("https_proxy", "s:2"), ("no_proxy", except)];
        for (endpoint, expected) in [
            ("a.test:443", "direct"),
            ("x.a.test:443", "direct"),
            ("xa.test:443", "s:2"),
            ("b.test:443", "direct"),
            ("x.b.test:443", "direct"),
            ("x.c.test:443", "direct"),
            ("d.test:443", "s:2"),
            ("d.test:8443", "direct"),
            ("8.8.8.8:443", "direct"),
            ("9.9.9.9:443", "s:2"),
            ("127.0.0.1:443", "direct"),
            ("10.0.0.1:443", "direct"),
            ("169.254.169.254:443", "direct"),
            ("localhost:443", "direct"),
        ] {
            assert_eq!(way(&pairs, endpoint), expected, "{endpoint}");
        }
        assert_eq!(
            of(&[("https_proxy", "socks5://s:2"), ("NO_PROXY", "*")]),
            Ok(None)
        );
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_an_error_and_a_password_is_not_shown() {
        for text in ["socks5://s:1", "https://s:1", "http://", "http://a b"] {
            assert!(of(&[("https_proxy", text)]).is_err(), "{text}");
        }
        let proxy = of(&[("https_proxy", "http://me:se%63ret@s:1")])
            .unwrap()
            .unwrap();
        let secure = proxy.secure.clone().unwrap();
        assert_eq!(secure.credentials.as_deref(), Some("bWU6c2VjcmV0"));
        assert!(!format!("{proxy:?}").contains("bWU6"));
        for (text, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
