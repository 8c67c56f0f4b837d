//! Why a request was not served, in the words of each protocol.
//!
//! The text goes to an agent, so it says what a person can do about it. Decides nothing.

use crate::egress::address::{AddressClass, AddressReach};
use crate::egress::dial;
use crate::egress::log::ConnectionVerdict;
use crate::egress::policy::{Denial, Permit};
use crate::http;

/// Why a request was not served.
#[derive(Debug)]
pub(super) enum Rejection {
    /// No rule allows it.
    Denied(Denial),
    /// The rule does not reach where the name leads, or the world refused.
    NotDialled {
        permit: Permit,
        error: dial::DialError,
    },
    /// It is not a request that everybody reads alike.
    Unreadable { problem: String, status: u16 },
    /// It was allowed, and the target's answer cannot be passed on.
    BadAnswer { permit: Permit, problem: String },
    /// The run has asked too often, or moved too much.
    Spent,
}

impl Rejection {
    /// Returns a rejection of a request that says `problem`.
    pub(super) fn unreadable(problem: &str) -> Self {
        Self::Unreadable {
            problem: problem.to_owned(),
            status: 400,
        }
    }

    /// Returns a rejection of a message that could not be read; nothing when nobody listens.
    pub(super) fn of_read(error: &http::HttpMessageError) -> Option<Self> {
        error.status().map(|status| Self::Unreadable {
            problem: format!("failed to {error}"),
            status,
        })
    }

    /// Returns the status of an HTTP answer.
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Denied(_) => 403,
            Self::NotDialled { error, .. } => match error {
                dial::DialError::Forbidden { .. } => 403,
                dial::DialError::SlowLookup { .. } | dial::DialError::SlowConnect { .. } => 504,
                dial::DialError::Stopped | dial::DialError::System(_) => 503,
                dial::DialError::Lookup { .. }
                | dial::DialError::NoAddress { .. }
                | dial::DialError::Refused { .. }
                | dial::DialError::Connect { .. } => 502,
            },
            Self::Unreadable { status, .. } => *status,
            Self::BadAnswer { .. } => 502,
            Self::Spent => 403,
        }
    }

    /// Returns the reply code of SOCKS5.
    pub(super) fn socks_reply(&self) -> u8 {
        match self {
            Self::Denied(_) | Self::Spent => 2,
            Self::NotDialled { error, .. } => match error {
                dial::DialError::Forbidden { .. } => 2,
                dial::DialError::Lookup { .. }
                | dial::DialError::NoAddress { .. }
                | dial::DialError::SlowLookup { .. } => 4,
                dial::DialError::Connect { .. }
                | dial::DialError::Refused { .. }
                | dial::DialError::SlowConnect { .. } => 5,
                dial::DialError::Stopped | dial::DialError::System(_) => 1,
            },
            Self::Unreadable { .. } | Self::BadAnswer { .. } => 1,
        }
    }

    /// Returns what is recorded.
    pub(super) fn verdict(&self) -> ConnectionVerdict {
        let reason = self.reason();
        match self {
            Self::NotDialled {
                error: dial::DialError::Forbidden { .. },
                ..
            }
            | Self::Denied(_)
            | Self::Unreadable { .. }
            | Self::Spent => ConnectionVerdict::Denied { reason },
            Self::NotDialled { permit, .. } | Self::BadAnswer { permit, .. } => {
                ConnectionVerdict::Failed {
                    rule: permit.rule.clone(),
                    reason,
                }
            }
        }
    }

    /// Returns the text of an HTTP answer.
    pub(super) fn text(&self) -> String {
        let reason = self.reason();
        let said = match self.verdict() {
            ConnectionVerdict::Denied { .. } => format!("Kapi denied this request: {reason}.\n"),
            ConnectionVerdict::Allowed { .. } | ConnectionVerdict::Failed { .. } => {
                format!("Kapi failed to {reason}.\n")
            }
        };
        match self.missing_rule() {
            None => said,
            Some(rule) => format!(
                "{said}To allow it, the user must add this to Kapi's configuration:\n\n\
                 [network]\nallow = [\"{rule}\"]\n"
            ),
        }
    }

    fn reason(&self) -> String {
        match self {
            Self::Denied(denial) => denial.to_string(),
            Self::NotDialled {
                error:
                    dial::DialError::Forbidden {
                        endpoint,
                        address,
                        class,
                    },
                ..
            } => format!("{endpoint} resolves to {address}, which is {class}"),
            Self::NotDialled { error, .. } => with_source(error),
            Self::Unreadable { problem, .. } | Self::BadAnswer { problem, .. } => problem.clone(),
            Self::Spent => "this run has used up its connections or bytes".to_owned(),
        }
    }

    fn missing_rule(&self) -> Option<String> {
        match self {
            Self::Denied(denial) => denial.missing_rule(),
            Self::NotDialled {
                error:
                    dial::DialError::Forbidden {
                        endpoint,
                        address,
                        class,
                    },
                ..
            } => private_rule(
                &endpoint.to_string(),
                &bracketed(*address, endpoint.port),
                *class,
            ),
            Self::NotDialled { .. }
            | Self::Unreadable { .. }
            | Self::BadAnswer { .. }
            | Self::Spent => None,
        }
    }
}

/// Returns the private rule that would reach an address of `class`, by name or by address.
fn private_rule(by_name: &str, by_address: &str, class: AddressClass) -> Option<String> {
    if AddressReach::PrivateByName.covers(class) {
        Some(format!("private:{by_name}"))
    } else if AddressReach::PrivateByAddress.covers(class) {
        Some(format!("private:{by_address}"))
    } else {
        None
    }
}

fn bracketed(address: std::net::IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

fn with_source(error: &dial::DialError) -> String {
    match std::error::Error::source(error) {
        None => error.to_string(),
        Some(source) => format!("{error}: {source}"),
    }
}
