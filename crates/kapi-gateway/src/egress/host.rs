//! Names and addresses in the one spelling that rules are compared in.
//!
//! What has several spellings is brought to one or refused, so that no second reader can see another
//! host in the same text. Looks nothing up.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest name in DNS.
const NAME_MAX: usize = 253;

/// Longest label of a name.
const LABEL_MAX: usize = 63;

/// A host as a rule or a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHost {
    /// A name: lower case ASCII, no dot at its end, and never a number in disguise.
    Name(String),
    /// An address; an IPv4 address in IPv6 clothing is the IPv4 address.
    Address(IpAddr),
}

/// A host and the port wanted there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEndpoint {
    /// The host.
    pub host: TargetHost,
    /// The port, never zero.
    pub port: u16,
}

/// Why a text names no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing is there.
    #[error("the host is empty")]
    Empty,
    /// Letters beyond ASCII have look-alikes.
    #[error("the host has characters beyond ASCII; write its `xn--` form")]
    NotAscii,
    /// A user name or password in front of the host.
    #[error("the host has a user name in front of it")]
    UserInfo,
    /// Longer than DNS allows.
    #[error("the host or one of its labels is too long")]
    TooLong,
    /// Dots, hyphens or other bytes where no name has them.
    #[error("the host has bytes or dots that no name has")]
    Spelling,
    /// Decimal, octal, hexadecimal or short.
    #[error("the host is an unusual spelling of an IPv4 address; write four decimal numbers")]
    UnusualNumber,
    /// Not an address, without brackets, or with a zone.
    #[error("the host is not an IPv6 address in brackets without a zone")]
    Ipv6,
    /// Missing, zero, or not a number.
    #[error("the port is missing or not a number from 1 to 65535")]
    Port,
}

impl TargetHost {
    /// Parses a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        if text.contains('@') {
            return Err(HostError::UserInfo);
        }
        if let Some(rest) = text.strip_prefix('[') {
            let address = rest.strip_suffix(']').ok_or(HostError::Ipv6)?;
            let address: Ipv6Addr = address.parse().map_err(|_| HostError::Ipv6)?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if text.contains(':') {
            return Err(HostError::Ipv6);
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        check_name(&name)?;
        if !ends_in_number(&name) {
            return Ok(Self::Name(name));
        }
        let address: Ipv4Addr = name.parse().map_err(|_| HostError::UnusualNumber)?;
        Ok(Self::Address(address.into()))
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => out.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(out),
            Self::Address(IpAddr::V6(address)) => write!(out, "[{address}]"),
        }
    }
}

impl HostEndpoint {
    /// Parses `host:port`; without a port it is `default_port`, if there is one.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, HostError> {
        let (host, port) = split_port(text);
        let port = match port {
            Some(port) => parse_port(port)?,
            None => default_port.ok_or(HostError::Port)?,
        };
        let host = TargetHost::parse(host)?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for HostEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

/// Parses a port in its shortest decimal spelling.
pub fn parse_port(text: &str) -> Result<u16, HostError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain).ok_or(HostError::Port)
}

/// Splits what follows the last colon outside of brackets from `host:port`.
#[must_use]
pub fn split_port(text: &str) -> (&str, Option<&str>) {
    let from = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let after_bracket = text.get(from..).unwrap_or_default();
    match after_bracket.rfind(':') {
        None => (text, None),
        Some(colon) => {
            let (host, port) = text.split_at(from + colon);
            (host, port.strip_prefix(':'))
        }
    }
}

fn check_name(name: &str) -> Result<(), HostError> {
    if name.len() > NAME_MAX || name.split('.').any(|label| label.len() > LABEL_MAX) {
        return Err(HostError::TooLong);
    }
    let fits = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if name.split('.').all(fits) {
        Ok(())
    } else {
        Err(HostError::Spelling)
    }
}

/// Returns whether resolvers would read the name as an IPv4 address in some old spelling.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hex = last
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hex || last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{HostEndpoint, TargetHost};

    fn check(text: &str, expected: &str) {
        let found = match TargetHost::parse(text) {
            Ok(TargetHost::Name(name)) => format!("name {name}"),
            Ok(TargetHost::Address(address)) => format!("address {address}"),
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn one_host_has_one_spelling() {
        check("GitHub.COM", "name github.com");
        check("github.com.", "name github.com");
        check("xn--bcher-kva.example", "name xn--bcher-kva.example");
        check("a_b.example", "name a_b.example");
        check("localhost", "name localhost");
        check("1password.com", "name 1password.com");
        check("3.example", "name 3.example");
        check("192.0.2.1", "address 192.0.2.1");
        check("[2001:DB8::1]", "address 2001:db8::1");
        check("[::ffff:127.0.0.1]", "address 127.0.0.1");
        check("[::ffff:7f00:1]", "address 127.0.0.1");
    }

    #[test]
    fn disguises_are_refused() {
        for text in [
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "127.0.0.01",
            "1.2.3.4.5",
            "127.0.0.0x1",
            "0x",
            "example.0x7f",
            "example.1",
            "256.1.1.1",
        ] {
            check(text, "UnusualNumber");
        }
        for text in [
            "::1",
            "[::1",
            "[::1%eth0]",
            "[127.0.0.1]",
            "[fe80::1%25lo]",
            "a:b",
            "[::1]x",
        ] {
            check(text, "Ipv6");
        }
        for text in ["user@github.com", "github.com@evil.test", "@"] {
            check(text, "UserInfo");
        }
        for text in [
            "git\thub.com",
            "github.com\r\nHost",
            "a..b",
            ".a",
            "a.",
            "-a.test",
            "a-.test",
            "a b.test",
            "%31.test",
            "a/b",
            "a\\b",
            "a?b",
            "a#b",
            "*",
            "a,b",
            "a..",
        ] {
            let expected = if text == "a." { "name a" } else { "Spelling" };
            check(text, expected);
        }
        check("", "Empty");
        check(".", "Spelling");
        check("bücher.example", "NotAscii");
        check("githu\u{ff42}.com", "NotAscii");
        check("127。0。0。1", "NotAscii");
        check(&"a".repeat(64), "TooLong");
        check(&["a"; 130].join("."), "TooLong");
    }

    #[test]
    fn a_port_is_plain_decimal_and_never_zero() {
        let parse = |text| {
            HostEndpoint::parse(text, None)
                .map(|endpoint| endpoint.to_string())
                .ok()
        };
        assert_eq!(parse("GitHub.com:443").as_deref(), Some("github.com:443"));
        assert_eq!(parse("[::1]:80").as_deref(), Some("[::1]:80"));
        for text in [
            "github.com",
            "github.com:",
            "github.com:0",
            "github.com:65536",
            "github.com:+443",
            "github.com:0443",
            "github.com: 443",
            "github.com:443:443",
            "[::1]",
            "[::1]80",
            "::1:80",
            "github.com:４４３",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
