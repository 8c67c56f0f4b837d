//! One line of the person's allow-list.
//!
//! `host` is port 443 of exactly that host; `host:port` and `host:*` name others; `*.host` is every
//! name below it, by whole labels, and not `host` itself; `METHOD host/path` or `host/path` is plain
//! HTTP, on port 80 unless another is written; `private:host:port` may lead to a private address.

use super::address::AddressReach;
use super::host::{HostError, TargetHost, parse_port, split_port};

/// Port of a rule that names none.
const TLS_PORT: u16 = 443;

/// Port of a rule with a method or path that names none; such a rule is plain HTTP.
const HTTP_PORT: u16 = 80;

/// What a sandbox may reach, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule {
    text: String,
    host: HostPattern,
    port: PortPattern,
    request: Option<RequestPattern>,
    private: PrivateAddresses,
}

/// Which part of a rule does not fit what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleMismatch {
    /// Another host.
    OtherHost,
    /// Another port of the same host.
    OtherPort,
    /// Only plain HTTP requests, and this is none, or another method or path.
    OtherRequest,
    /// The path can be read in two ways, so no path rule may judge it.
    UnclearPath,
    /// Everything fits.
    Whole,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Exactly(TargetHost),
    /// Ends with this text, which begins with a dot.
    Below(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortPattern {
    Exactly(u16),
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrivateAddresses {
    Refused,
    Allowed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RequestPattern {
    method: Option<String>,
    path_prefix: String,
}

/// Why a line is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read network rule `{text}`: {problem}")]
pub struct RuleError {
    /// The line.
    pub text: String,
    /// What is wrong with it.
    pub problem: RuleProblem,
}

/// What is wrong with a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    /// The host or port.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A scheme.
    #[error("it has a scheme")]
    Scheme,
    /// More than a method and a host.
    #[error("it has more parts than a method and a host")]
    Words,
    /// A method that is not upper case letters.
    #[error("its method is not upper case letters")]
    Method,
    /// A star in some other place, or over a whole top-level domain.
    #[error("its star is not one `*.` before at least two labels")]
    Star,
    /// A path with a query, dots, or encoded separators.
    #[error("its path is ambiguous")]
    Path,
    /// A private rule for more than one host and port.
    #[error("a private rule needs exactly one host and one port")]
    Private,
}

impl RuleProblem {
    /// Returns what the person can do about it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Host(_) => "write `host`, `host:port` or `*.host`, for instance `github.com`",
            Self::Scheme => "write only the host, `github.com` instead of `https://github.com`",
            Self::Words => "write one rule per line, such as `GET example.com/packages`",
            Self::Method => "write the method in capitals, such as `GET`",
            Self::Star => {
                "write `*.example.com`, and `example.com` as a separate rule; to allow every \
                 host, set the network to `open`"
            }
            Self::Path => "write a plain path, without `?`, `..`, `//` or `%` codes",
            Self::Private => "write `private:host:port`, for instance `private:localhost:11434`",
        }
    }
}

impl EgressRule {
    /// Parses one line.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        parse(text).map_err(|problem| RuleError {
            text: text.to_owned(),
            problem,
        })
    }

    /// Returns the line it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns how well the rule fits; a tunnel has no `request`, which is a method and a path.
    #[must_use]
    pub fn fit(&self, host: &TargetHost, port: u16, request: Option<(&str, &str)>) -> RuleMismatch {
        let same_host = match &self.host {
            HostPattern::Exactly(exactly) => exactly == host,
            HostPattern::Below(suffix) => match host {
                TargetHost::Name(name) => name.ends_with(suffix.as_str()),
                TargetHost::Address(_) => false,
            },
        };
        if !same_host {
            return RuleMismatch::OtherHost;
        }
        if matches!(self.port, PortPattern::Exactly(exactly) if exactly != port) {
            return RuleMismatch::OtherPort;
        }
        match (&self.request, request) {
            (None, _) => RuleMismatch::Whole,
            (Some(_), None) => RuleMismatch::OtherRequest,
            (Some(pattern), Some((method, path))) => pattern.fit(method, path),
        }
    }

    /// Returns how far the rule reaches.
    #[must_use]
    pub fn reach(&self) -> AddressReach {
        match (self.private, &self.host) {
            (PrivateAddresses::Refused, _) => AddressReach::Public,
            (PrivateAddresses::Allowed, HostPattern::Exactly(TargetHost::Address(_))) => {
                AddressReach::PrivateByAddress
            }
            (PrivateAddresses::Allowed, _) => AddressReach::PrivateByName,
        }
    }
}

impl RequestPattern {
    fn fit(&self, method: &str, path: &str) -> RuleMismatch {
        if self.method.as_deref().is_some_and(|only| only != method) {
            return RuleMismatch::OtherRequest;
        }
        if !is_plain_path(path) {
            return RuleMismatch::UnclearPath;
        }
        let below = path
            .strip_prefix(self.path_prefix.as_str())
            .is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('/') || self.path_prefix.ends_with('/')
            });
        if below {
            RuleMismatch::Whole
        } else {
            RuleMismatch::OtherRequest
        }
    }
}

fn parse(text: &str) -> Result<EgressRule, RuleProblem> {
    let mut words = text.split_ascii_whitespace();
    let (method, rest) = match (words.next(), words.next(), words.next()) {
        (Some(rest), None, None) => (None, rest),
        (Some(method), Some(rest), None) => (Some(method), rest),
        (None, ..) => return Err(HostError::Empty.into()),
        _ => return Err(RuleProblem::Words),
    };
    if method.is_some_and(|method| !method.bytes().all(|byte| byte.is_ascii_uppercase())) {
        return Err(RuleProblem::Method);
    }
    if rest.contains("://") {
        return Err(RuleProblem::Scheme);
    }
    let (private, rest) = match rest.strip_prefix("private:") {
        Some(rest) => (PrivateAddresses::Allowed, rest),
        None => (PrivateAddresses::Refused, rest),
    };
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    if !path.is_empty() && !is_plain_path(path) {
        return Err(RuleProblem::Path);
    }
    let request = (method.is_some() || !path.is_empty()).then(|| RequestPattern {
        method: method.map(str::to_owned),
        path_prefix: if path.is_empty() { "/" } else { path }.to_owned(),
    });
    let (host, port) = split_port(authority);
    let host_pattern = parse_host(host)?;
    let default_port = if request.is_some() {
        HTTP_PORT
    } else {
        TLS_PORT
    };
    let port_pattern = match port {
        None => PortPattern::Exactly(default_port),
        Some("*") => PortPattern::Any,
        Some(port) => PortPattern::Exactly(parse_port(port)?),
    };
    let names_one = matches!(host_pattern, HostPattern::Exactly(_))
        && matches!(port, Some(port) if port != "*");
    if private == PrivateAddresses::Allowed && !names_one {
        return Err(RuleProblem::Private);
    }
    Ok(EgressRule {
        text: text.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
        host: host_pattern,
        port: port_pattern,
        request,
        private,
    })
}

fn parse_host(text: &str) -> Result<HostPattern, RuleProblem> {
    let Some(parent) = text.strip_prefix("*.") else {
        return if text.contains('*') {
            Err(RuleProblem::Star)
        } else {
            Ok(HostPattern::Exactly(TargetHost::parse(text)?))
        };
    };
    if parent.contains('*') {
        return Err(RuleProblem::Star);
    }
    match TargetHost::parse(parent)? {
        TargetHost::Name(name) if name.contains('.') => Ok(HostPattern::Below(format!(".{name}"))),
        TargetHost::Name(_) | TargetHost::Address(_) => Err(RuleProblem::Star),
    }
}

/// Returns whether every server reads the path alike: no dots to go up by, nothing encoded that
/// could be a separator, no doubled or turned slashes.
fn is_plain_path(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let encoded = ["%2e", "%2f", "%5c", "%25", "%00", "%c0", "%c1"];
    path.starts_with('/')
        && !path.contains(['?', '#', '\\', ';'])
        && !path.contains("//")
        && path.bytes().all(|byte| byte.is_ascii_graphic())
        && !path.split('/').any(|segment| matches!(segment, "." | ".."))
        && !encoded.iter().any(|code| lower.contains(code))
}
