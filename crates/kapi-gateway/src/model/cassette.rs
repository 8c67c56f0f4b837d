//! The file format of recorded traffic: one JSON object a line, in the order things happened.
//!
//! What a cassette holds is what the agent saw; keys are never in it. Knows no sockets.

pub(crate) mod recorder;
pub(crate) mod replay;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::http::head::{Headers, HttpHeader};

/// The version of the format that is written and read.
const VERSION: u32 = 1;

/// What is done with traffic beside passing it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cassette {
    /// It is written to a new file, which ends before it would become longer than `bytes_max`.
    Record {
        /// The file; it must not exist.
        path: PathBuf,
        /// The longest it may become.
        bytes_max: u64,
    },
    /// It is answered from a file, without a provider and without a key.
    Replay {
        /// The file.
        path: PathBuf,
    },
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file to record to exists or cannot be made.
    #[error("create the cassette {}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file to replay cannot be read.
    #[error("read the cassette {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file to replay is too long to be held.
    #[error("replay the cassette {}, which is longer than {bytes_max} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit.
        bytes_max: u64,
    },
    /// A line is not one of this format.
    #[error("read line {line} of the cassette {}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A line is of this format but does not fit the ones before it.
    #[error("read line {line} of the cassette {}: {problem}", path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum CassetteLine {
    /// The first line.
    Cassette { version: u32 },
    /// A request, before it is sent.
    Request {
        call: u64,
        method: String,
        /// Path and query as the agent wrote them, without a key.
        target: String,
        headers: Vec<(String, String)>,
        body: CassetteBytes,
    },
    /// The head of its answer.
    Head {
        call: u64,
        status: u16,
        headers: Vec<(String, String)>,
    },
    /// The next piece of its answer's body.
    Piece { call: u64, bytes: CassetteBytes },
    /// How its answer ended.
    End { call: u64, ending: ExchangeEnd },
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExchangeEnd {
    /// With the answer's end.
    Complete,
    /// The provider broke off.
    Broken,
    /// The provider did not go on.
    Stalled,
    /// The provider could not be reached.
    Unreachable,
    /// The budget was spent, and the gateway broke off.
    Cut,
    /// The agent went away.
    Left,
}

/// Bytes as text where they are text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum CassetteBytes {
    /// UTF-8.
    Text(String),
    /// Anything else, two hexadecimal digits a byte.
    Hex(String),
}

impl CassetteBytes {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_not_text) => Self::Hex(hex(bytes)),
        }
    }

    /// Returns the bytes, unless the digits are none.
    pub(crate) fn to_vec(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Hex(digits) => {
                let pairs = digits.as_bytes().chunks(2);
                pairs
                    .map(|pair| match pair {
                        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
                        _ => None,
                    })
                    .collect()
            }
        }
    }
}

/// Writes bytes in lowercase hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Writes headers as pairs; bytes that are not text become the replacement character.
fn pairs(headers: &Headers) -> Vec<(String, String)> {
    let pair = |line: &HttpHeader| {
        let value = String::from_utf8_lossy(&line.value).into_owned();
        (line.name.clone(), value)
    };
    headers.0.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::{CassetteBytes, CassetteLine, ExchangeEnd};

    #[test]
    fn every_line_has_its_golden_form() {
        let check = |line: CassetteLine, golden: &str| {
            assert_eq!(serde_json::to_string(&line).expect("a line"), golden);
            assert_eq!(
                serde_json::from_str::<CassetteLine>(golden).expect("a line"),
                line
            );
        };
        check(
            CassetteLine::Cassette { version: 1 },
            r#"{"type":"cassette","version":1}"#,
        );
        check(
            CassetteLine::Request {
                call: 3,
                method: "POST".to_owned(),
                target: "/v1/messages?beta=true".to_owned(),
                headers: vec![("accept".to_owned(), "*/*".to_owned())],
                body: CassetteBytes::of(b"{}"),
            },
            r#"{"type":"request","call":3,"method":"POST","target":"/v1/messages?beta=true","headers":[["accept","*/*"]],"body":{"text":"{}"}}"#,
        );
        check(
            CassetteLine::Head {
                call: 3,
                status: 200,
                headers: Vec::new(),
            },
            r#"{"type":"head","call":3,"status":200,"headers":[]}"#,
        );
        check(
            CassetteLine::Piece {
                call: 3,
                bytes: CassetteBytes::of(&[0xff, 0x0a]),
            },
            r#"{"type":"piece","call":3,"bytes":{"hex":"ff0a"}}"#,
        );
        check(
            CassetteLine::End {
                call: 3,
                ending: ExchangeEnd::Complete,
            },
            r#"{"type":"end","call":3,"ending":"complete"}"#,
        );
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        for bytes in [
            b"".as_slice(),
            b"text\n",
            &[0, 255, 16, 128],
            "ä".as_bytes(),
        ] {
            assert_eq!(CassetteBytes::of(bytes).to_vec().as_deref(), Some(bytes));
        }
        for digits in ["f", "fg", "FF", "f\u{e4}"] {
            assert_eq!(
                CassetteBytes::Hex(digits.to_owned()).to_vec(),
                None,
                "{digits}"
            );
        }
    }
}
