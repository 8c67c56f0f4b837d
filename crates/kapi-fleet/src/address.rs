//! Where the servers are and how a machine proves who it is, as a person writes it.
//!
//! `nats://user:password@one:4222,two:4222`. What is secret is never shown, neither in an error
//! nor by `Debug`. Opens no connection and reads no file.

use std::fmt;
use std::path::PathBuf;

/// The port where nothing else is said.
const PORT: u16 = 4222;
/// The most servers that may be named.
const SERVERS_MAX: usize = 16;

/// An address that cannot be used. Says nothing of what stood in it: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It begins with something else.
    #[error("read the store's address: it must start with nats:// or tls://")]
    Scheme,
    /// It names no server, or too many.
    #[error("read the store's address: it must name 1 to {SERVERS_MAX} servers")]
    Servers,
    /// The name of a server is empty or has other characters.
    #[error("read the name of server {number} in the store's address")]
    Host {
        /// Which, from 1.
        number: usize,
    },
    /// A port is not one.
    #[error("read the port of server {number} in the store's address")]
    Port {
        /// Which, from 1.
        number: usize,
    },
    /// The part before `@` cannot be decoded.
    #[error("read the part before the @ of the store's address")]
    Secret,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// Its name or number.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{}:{}", self.host, self.port)
        }
    }
}

/// How a machine proves who it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Authentication {
    /// Not at all.
    None,
    /// By name and password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// By a word that both sides know.
    Token(String),
    /// By the file that the cluster's owner made for it.
    File(PathBuf),
}

impl fmt::Debug for Authentication {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("None"),
            Self::Password { user, .. } => write!(out, "Password({user:?}, …)"),
            Self::Token(_) => out.write_str("Token(…)"),
            Self::File(path) => write!(out, "File({})", path.display()),
        }
    }
}

/// Where the servers are, and who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The servers, of which any will do.
    pub servers: Vec<ServerAddress>,
    /// Who asks.
    pub proof: Authentication,
    /// Whether a connection without TLS is refused. A server may ask for TLS all the same.
    pub needs_tls: bool,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// When it is none; what is wrong, without what stands in it.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (rest, needs_tls) = match text.split_once("://") {
            Some(("nats", rest)) => (rest, false),
            Some(("tls", rest)) => (rest, true),
            Some(_) | None => return Err(AddressError::Scheme),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (proof, hosts) = match rest.rsplit_once('@') {
            None => (Authentication::None, rest),
            Some((secret, hosts)) => (parse_proof(secret)?, hosts),
        };
        let hosts: Vec<&str> = hosts.split(',').collect();
        if hosts.len() > SERVERS_MAX || hosts.iter().all(|host| host.is_empty()) {
            return Err(AddressError::Servers);
        }
        let numbered = hosts.iter().enumerate();
        let servers = numbered.map(|(at, host)| parse_server(host, at + 1));
        Ok(Self {
            servers: servers.collect::<Result<_, _>>()?,
            proof,
            needs_tls,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        let scheme = if self.needs_tls { "tls" } else { "nats" };
        write!(out, "{scheme}://{}", servers.join(","))
    }
}

fn parse_proof(secret: &str) -> Result<Authentication, AddressError> {
    match secret.split_once(':') {
        None => Ok(Authentication::Token(decode(secret)?)),
        Some((user, password)) => Ok(Authentication::Password {
            user: decode(user)?,
            password: decode(password)?,
        }),
    }
}

fn parse_server(text: &str, number: usize) -> Result<ServerAddress, AddressError> {
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, rest))) => (host, rest.strip_prefix(':')),
        Some(None) => return Err(AddressError::Host { number }),
        None => text
            .split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_host =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    if host.is_empty() || !host.bytes().all(is_host) {
        return Err(AddressError::Host { number });
    }
    let port = match port {
        None => PORT,
        Some(port) => match port.parse() {
            Ok(0) | Err(_) => return Err(AddressError::Port { number }),
            Ok(port) => port,
        },
    };
    Ok(ServerAddress {
        host: host.to_owned(),
        port,
    })
}

/// Undoes `%40` and its like, which let a password hold any character.
fn decode(text: &str) -> Result<String, AddressError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digits = after
            .get(..2)
            .and_then(|digits| str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or(AddressError::Secret)?);
        rest = after.get(2..).unwrap_or_default();
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.is_empty() => Ok(text),
        Ok(_) | Err(_) => Err(AddressError::Secret),
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, AddressError, Authentication};

    #[test]
    fn addresses_are_read_and_shown_without_their_secrets() {
        for (text, shown, proof) in [
            ("nats://one", "nats://one:4222", Authentication::None),
            (
                "tls://one:1,two:2/",
                "tls://one:1,two:2",
                Authentication::None,
            ),
            ("nats://[::1]:7", "nats://[::1]:7", Authentication::None),
            (
                "nats://kim:p%40s:s@one",
                "nats://one:4222",
                Authentication::Password {
                    user: "kim".to_owned(),
                    password: "p@s:s".to_owned(),
                },
            ),
            (
                "nats://t0ken@one",
                "nats://one:4222",
                Authentication::Token("t0ken".to_owned()),
            ),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(address.proof, proof, "{text}");
            let debug = format!("{address:?}");
            assert!(
                !debug.contains("p@s") && !debug.contains("t0ken"),
                "{debug}"
            );
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_repeated() {
        for (text, error) in [
            ("", AddressError::Scheme),
            ("http://one", AddressError::Scheme),
            ("nats://", AddressError::Servers),
            ("nats://one,", AddressError::Host { number: 2 }),
            ("nats://a/b", AddressError::Host { number: 1 }),
            ("nats://one:0", AddressError::Port { number: 1 }),
            ("nats://one:99999", AddressError::Port { number: 1 }),
            ("nats://us%er:x@one", AddressError::Secret),
            ("nats://:x@one", AddressError::Secret),
        ] {
            assert_eq!(Address::parse(text), Err(error), "{text}");
        }
    }
}
