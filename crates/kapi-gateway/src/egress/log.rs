//! One record for each decision about a connection.
//!
//! Text from inside the sandbox is made safe here and capped. Keeps no record: it is handed to the
//! caller, who writes it down.

use std::time::{Duration, Instant};

/// Longest text kept of a host.
const HOST_MAX: usize = 260;

/// Longest text kept of a path.
const PATH_MAX: usize = 512;

/// Longest text kept of a method.
const METHOD_MAX: usize = 32;

/// Longest text kept of a rule or reason.
const REASON_MAX: usize = 1024;

/// How a connection was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionKind {
    /// A tunnel by HTTP's CONNECT.
    Connect,
    /// A plain HTTP request.
    Http,
    /// A tunnel by SOCKS5.
    Socks,
    /// A forward to a port of the host.
    Forward,
}

/// What became of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionVerdict {
    /// It was allowed, made, and has ended.
    Allowed {
        /// The rule that allowed it.
        rule: String,
        /// Why it ended, where it did not end by itself.
        cut: Option<String>,
    },
    /// A rule said no; nothing was sent.
    Denied {
        /// The reason, for people.
        reason: String,
    },
    /// It was allowed, and the world refused.
    Failed {
        /// The rule that allowed it.
        rule: String,
        /// Why it did not come about.
        reason: String,
    },
}

/// One decision and what it led to. Every text is printable ASCII of limited length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// How it was asked for.
    pub kind: ConnectionKind,
    /// The host, or what stood in its place; empty when the request had none that could be read.
    pub host: String,
    /// The port, zero when there was none.
    pub port: u16,
    /// The method of a plain request.
    pub method: Option<String>,
    /// The path of a plain request, without its query.
    pub path: Option<String>,
    /// What became of a connection.
    pub verdict: ConnectionVerdict,
    /// Bytes from the sandbox to the target.
    pub bytes_up: u64,
    /// Bytes from the target to the sandbox.
    pub bytes_down: u64,
    /// How long it took, to its end.
    pub duration: Duration,
}

/// A record whose end is not known yet.
#[derive(Debug, Clone)]
pub(crate) struct RecordDraft {
    record: ConnectionRecord,
    started: Instant,
}

impl RecordDraft {
    /// Returns a draft about nothing that could be read yet.
    pub(crate) fn new(at_ms: i64, kind: ConnectionKind) -> Self {
        let record = ConnectionRecord {
            at_ms,
            kind,
            host: String::new(),
            port: 0,
            method: None,
            path: None,
            verdict: ConnectionVerdict::Denied {
                reason: String::new(),
            },
            bytes_up: 0,
            bytes_down: 0,
            duration: Duration::ZERO,
        };
        Self {
            record,
            started: Instant::now(),
        }
    }

    /// Returns the draft with the host that is asked for.
    pub(crate) fn to(mut self, host: &str, port: u16) -> Self {
        self.record.host = safe(host, HOST_MAX);
        self.record.port = port;
        self
    }

    /// Returns the draft with the request that is asked for.
    pub(crate) fn asking(mut self, method: &str, path: &str) -> Self {
        self.record.method = Some(safe(method, METHOD_MAX));
        self.record.path = Some(safe(path, PATH_MAX));
        self
    }

    /// Returns the draft with the bytes that were moved.
    pub(crate) fn moving(mut self, bytes_up: u64, bytes_down: u64) -> Self {
        self.record.bytes_up = bytes_up;
        self.record.bytes_down = bytes_down;
        self
    }

    /// Returns the record of its end.
    pub(crate) fn end(mut self, verdict: ConnectionVerdict) -> ConnectionRecord {
        let safe = |text: String| safe(&text, REASON_MAX);
        self.record.verdict = match verdict {
            ConnectionVerdict::Allowed { rule, cut } => ConnectionVerdict::Allowed {
                rule: safe(rule),
                cut: cut.map(safe),
            },
            ConnectionVerdict::Denied { reason } => ConnectionVerdict::Denied {
                reason: safe(reason),
            },
            ConnectionVerdict::Failed { rule, reason } => ConnectionVerdict::Failed {
                rule: safe(rule),
                reason: safe(reason),
            },
        };
        self.record.duration = self.started.elapsed();
        self.record
    }
}

/// Returns at most `length_max` characters of a text, everything but printable ASCII as `?`.
fn safe(text: &str, length_max: usize) -> String {
    text.chars()
        .take(length_max)
        .map(|character| match character {
            ' '..='~' => character,
            _ => '?',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{ConnectionKind, ConnectionVerdict, RecordDraft};

    #[test]
    fn hostile_text_is_capped_and_harmless() {
        let draft = RecordDraft::new(7, ConnectionKind::Http)
            .to("a\u{1b}[31m\u{202e}b\r\n", 80)
            .asking("G\0ET", &"/x".repeat(10_000));
        let verdict = ConnectionVerdict::Denied {
            reason: "no\u{7}".repeat(1000),
        };
        let record = draft.moving(1, 2).end(verdict);
        assert!(matches!(
            &record.verdict,
            ConnectionVerdict::Denied { reason } if reason.len() == 1024 && reason.starts_with("no?no?")
        ));
        assert_eq!(record.host, "a?[31m?b??");
        assert_eq!(record.method.as_deref(), Some("G?ET"));
        assert_eq!(record.path.map(|path| path.len()), Some(512));
        assert_eq!((record.at_ms, record.port), (7, 80));
        assert_eq!((record.bytes_up, record.bytes_down), (1, 2));
    }
}
