//! A connection that was not let through, as it is told to people and read again by who asked for it.

use std::fmt;

/// What each telling begins with.
const BEFORE: &str = "network: ";
/// What stands between the host and the reason.
const BETWEEN: &str = " was refused: ";

/// A connection that was not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedConnection {
    /// Where to, as `host:port`.
    pub host: String,
    /// Why not.
    pub reason: String,
}

impl RefusedConnection {
    /// Reads one that was told.
    pub fn read(text: &str) -> Option<Self> {
        let (host, reason) = text.strip_prefix(BEFORE)?.split_once(BETWEEN)?;
        Some(Self {
            host: host.to_owned(),
            reason: reason.to_owned(),
        })
    }
}

impl fmt::Display for RefusedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BEFORE}{}{BETWEEN}{}", self.host, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::RefusedConnection;

    #[test]
    fn what_was_told_is_read_again() {
        let refusal = RefusedConnection {
            host: "pkg.example:443".to_owned(),
            reason: "it is not on a list".to_owned(),
        };
        assert_eq!(RefusedConnection::read(&refusal.to_string()), Some(refusal));
        assert_eq!(RefusedConnection::read("network: the log is full"), None);
    }
}
