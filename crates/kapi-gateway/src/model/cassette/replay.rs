//! Answers requests from a cassette.
//!
//! A request gets the first answer to its method and path that was not given yet; one to the very
//! same body goes before, so that calls made side by side get their own. Knows no sockets.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::{CassetteBytes, CassetteError, CassetteLine, ExchangeEnd, VERSION, hex};
use crate::http::head::{Headers, HttpVersion, ResponseHead};

/// The longest cassette that is replayed; it is held in memory.
const BYTES_MAX: u64 = 512 * 1024 * 1024;

/// What was answered to one recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedAnswer {
    /// Nothing where no answer began.
    pub(crate) head: Option<ResponseHead>,
    pub(crate) pieces: VecDeque<Vec<u8>>,
    pub(crate) ending: ExchangeEnd,
}

/// Whether a request is the one that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likeness {
    Same,
    OtherBody,
}

#[derive(Debug)]
struct Exchange {
    call: u64,
    method: String,
    path: String,
    body_hash: String,
    answer: RecordedAnswer,
}

/// A cassette that is being replayed.
#[derive(Debug)]
pub(crate) struct Replay {
    left: Mutex<Vec<Exchange>>,
}

impl Replay {
    /// Reads a cassette.
    pub(crate) fn load(path: &Path) -> Result<Self, CassetteError> {
        let of_read = |source| CassetteError::Read {
            path: path.to_path_buf(),
            source,
        };
        let mut text = Vec::new();
        let file = File::open(path).map_err(of_read)?;
        let mut limited = file.take(BYTES_MAX + 1);
        limited.read_to_end(&mut text).map_err(of_read)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(CassetteError::TooLong {
                path: path.to_path_buf(),
                bytes_max: BYTES_MAX,
            });
        }
        let left = Mutex::new(exchanges(path, &text)?);
        Ok(Self { left })
    }

    /// Takes the answer to a request out of the cassette.
    pub(crate) fn take(
        &self,
        method: &str,
        target: &str,
        body: &[u8],
    ) -> Option<(RecordedAnswer, Likeness)> {
        let (path, hash) = (path_of(target), hash(body));
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |exchange: &Exchange| exchange.method == method && exchange.path == path;
        let same = left
            .iter()
            .position(|exchange| fits(exchange) && exchange.body_hash == hash);
        if let Some(index) = same {
            return Some((left.remove(index).answer, Likeness::Same));
        }
        let index = left.iter().position(fits)?;
        Some((left.remove(index).answer, Likeness::OtherBody))
    }
}

fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

fn hash(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

/// The lines of one file, read into exchanges.
struct CassetteParser {
    path: PathBuf,
    line: usize,
    exchanges: Vec<Exchange>,
    /// Where the exchange of a call is, until it ended.
    open: BTreeMap<u64, usize>,
}

fn exchanges(path: &Path, text: &[u8]) -> Result<Vec<Exchange>, CassetteError> {
    let mut reading = CassetteParser {
        path: path.to_path_buf(),
        line: 0,
        exchanges: Vec::new(),
        open: BTreeMap::new(),
    };
    // A recorder that was killed leaves a line without an end; it is not part of the cassette.
    let whole = text.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
    let whole = text.get(..whole).unwrap_or_default();
    for line in whole.split(|&byte| byte == b'\n') {
        reading.line += 1;
        let line = serde_json::from_slice(line).map_err(|source| CassetteError::Line {
            path: path.to_path_buf(),
            line: reading.line,
            source,
        })?;
        reading.take(line)?;
    }
    Ok(reading.exchanges)
}

impl CassetteParser {
    fn take(&mut self, line: CassetteLine) -> Result<(), CassetteError> {
        let is_first = self.line == 1;
        if is_first != matches!(line, CassetteLine::Cassette { .. }) {
            return Err(self.wrong("only the first line must contain the version"));
        }
        match line {
            CassetteLine::Cassette { version } if version == VERSION => {}
            CassetteLine::Cassette { .. } => return Err(self.wrong("its version is unknown")),
            CassetteLine::Request {
                call,
                method,
                target,
                body,
                headers: _,
            } => {
                let body = self.bytes(&body)?;
                let exchange = Exchange {
                    call,
                    method,
                    path: path_of(&target).to_owned(),
                    body_hash: hash(&body),
                    answer: RecordedAnswer {
                        head: None,
                        pieces: VecDeque::new(),
                        ending: ExchangeEnd::Broken,
                    },
                };
                if self.open.insert(call, self.exchanges.len()).is_some() {
                    return Err(self.wrong("this call has already started"));
                }
                self.exchanges.push(exchange);
            }
            CassetteLine::Head {
                call,
                status,
                headers,
            } => {
                let head = self.head(status, &headers)?;
                self.answer(call)?.head = Some(head);
            }
            CassetteLine::Piece { call, bytes } => {
                let bytes = self.bytes(&bytes)?;
                self.answer(call)?.pieces.push_back(bytes);
            }
            CassetteLine::End { call, ending } => {
                self.answer(call)?.ending = ending;
                self.open.remove(&call);
            }
        }
        Ok(())
    }

    fn answer(&mut self, call: u64) -> Result<&mut RecordedAnswer, CassetteError> {
        let wrong = self.wrong("this call has not started or has ended");
        let index = self.open.get(&call).copied();
        match index.and_then(|index| self.exchanges.get_mut(index)) {
            Some(exchange) if exchange.call == call => Ok(&mut exchange.answer),
            Some(_) | None => Err(wrong),
        }
    }

    fn head(&self, status: u16, pairs: &[(String, String)]) -> Result<ResponseHead, CassetteError> {
        let is_plain = |text: &str| text.bytes().all(|byte| byte >= b' ' && byte != 0x7f);
        let mut headers = Headers::default();
        for (name, value) in pairs {
            let is_name = name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b':');
            if name.is_empty() || !is_name || !is_plain(value) {
                return Err(self.wrong("one of its headers cannot be sent"));
            }
            headers.add(name, value.as_bytes());
        }
        if !(200..=599).contains(&status) {
            return Err(self.wrong("its status is not that of a final answer"));
        }
        Ok(ResponseHead {
            version: HttpVersion::Http11,
            status,
            reason: String::new(),
            headers,
        })
    }

    fn bytes(&self, bytes: &CassetteBytes) -> Result<Vec<u8>, CassetteError> {
        let wrong = || self.wrong("its bytes are not written in pairs of lowercase digits");
        bytes.to_vec().ok_or_else(wrong)
    }

    fn wrong(&self, problem: &'static str) -> CassetteError {
        CassetteError::Order {
            path: self.path.clone(),
            line: self.line,
            problem,
        }
    }
}
