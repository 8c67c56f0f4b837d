//! Why a request was not served, in the words of each protocol.
//!
//! The text goes to an agent, so it says what a person can do about it. Decides nothing.

use crate::egress::address::{Class, Reach};
use crate::egress::dial;
use crate::egress::log::Verdict;
use crate::egress::policy::{Denial, Permit};
use crate::http;

/// Why a request was not served.
#[derive(Debug)]
pub(super) enum Rejection {
    /// No rule allows it.
    Denied(Denial),
    /// The rule does not reach where the name leads, or the world refused.
    NotDialled { permit: Permit, error: dial::Error },
    /// It is not a request that everybody reads alike.
    Unreadable {
        problem: String,
        status: (u16, &'static str),
    },
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
            status: (400, "Bad Request"),
        }
    }

    /// Returns a rejection of a message that could not be read; nothing when nobody listens.
    pub(super) fn of_read(error: &http::Error) -> Option<Self> {
        error.status().map(|status| Self::Unreadable {
            problem: format!("failed to {error}"),
            status,
        })
    }

    /// Returns the status of an HTTP answer.
    pub(super) fn status(&self) -> (u16, &'static str) {
        match self {
            Self::Denied(_) => (403, "Forbidden"),
            Self::NotDialled { error, .. } => match error {
                dial::Error::Forbidden { .. } => (403, "Forbidden"),
                dial::Error::SlowLookup { .. } | dial::Error::SlowConnect { .. } => {
                    (504, "Gateway Timeout")
                }
                dial::Error::Stopped | dial::Error::System(_) => (503, "Service Unavailable"),
                dial::Error::Lookup { .. }
                | dial::Error::NoAddress { .. }
                | dial::Error::Refused { .. }
                | dial::Error::Connect { .. } => (502, "Bad Gateway"),
            },
            Self::Unreadable { status, .. } => *status,
            Self::BadAnswer { .. } => (502, "Bad Gateway"),
            Self::Spent => (403, "Forbidden"),
        }
    }

    /// Returns the reply code of SOCKS5.
    pub(super) fn socks_reply(&self) -> u8 {
        match self {
            Self::Denied(_) | Self::Spent => 2,
            Self::NotDialled { error, .. } => match error {
                dial::Error::Forbidden { .. } => 2,
                dial::Error::Lookup { .. }
                | dial::Error::NoAddress { .. }
                | dial::Error::SlowLookup { .. } => 4,
                dial::Error::Connect { .. }
                | dial::Error::Refused { .. }
                | dial::Error::SlowConnect { .. } => 5,
                dial::Error::Stopped | dial::Error::System(_) => 1,
            },
            Self::Unreadable { .. } | Self::BadAnswer { .. } => 1,
        }
    }

    /// Returns what is recorded.
    pub(super) fn verdict(&self) -> Verdict {
        let reason = self.reason();
        match self {
            Self::NotDialled {
                error: dial::Error::Forbidden { .. },
                ..
            }
            | Self::Denied(_)
            | Self::Unreadable { .. }
            | Self::Spent => Verdict::Denied { reason },
            Self::NotDialled { permit, .. } | Self::BadAnswer { permit, .. } => Verdict::Failed {
                rule: permit.rule.clone(),
                reason,
            },
        }
    }

    /// Returns the text of an HTTP answer.
    pub(super) fn text(&self) -> String {
        let reason = self.reason();
        let said = match self.verdict() {
            Verdict::Denied { .. } => format!("Kapi denied this request: {reason}.\n"),
            Verdict::Allowed { .. } | Verdict::Failed { .. } => {
                format!("Kapi failed to {reason}.\n")
            }
        };
        match self.missing_rule() {
            None => said,
            Some(rule) => format!(
                "{said}To allow it, a person adds this to Kapi's configuration:\n\n\
                 [network]\nallow = [\"{rule}\"]\n"
            ),
        }
    }

    fn reason(&self) -> String {
        match self {
            Self::Denied(denial) => denial.to_string(),
            Self::NotDialled {
                error:
                    dial::Error::Forbidden {
                        endpoint,
                        address,
                        class,
                    },
                ..
            } => format!("{endpoint} leads to {address}, which is {class}"),
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
                    dial::Error::Forbidden {
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
fn private_rule(by_name: &str, by_address: &str, class: Class) -> Option<String> {
    if Reach::PrivateByName.covers(class) {
        Some(format!("private:{by_name}"))
    } else if Reach::PrivateByAddress.covers(class) {
        Some(format!("private:{by_address}"))
    } else {
        None
    }
}

fn bracketed(address: std::net::IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

fn with_source(error: &dial::Error) -> String {
    match std::error::Error::source(error) {
        None => error.to_string(),
        Some(source) => format!("{error}: {source}"),
    }
}
