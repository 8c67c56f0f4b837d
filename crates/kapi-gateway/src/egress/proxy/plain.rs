//! Plain HTTP requests in absolute form, each decided, dialled and passed on by itself.
//!
//! The target gets a request written anew: origin form, its own Host, no header that speaks of the
//! client's connection. Keeps the client's connection, never the target's.

use std::io::Write as _;

use super::rejection::Rejection;
use super::session::{AdmittedTarget, Session, SessionNext};
use super::tunnel::check_host_header;
use crate::egress::host::HostEndpoint;
use crate::egress::log::{ConnectionKind, ConnectionVerdict, RecordDraft};
use crate::egress::policy::{EgressTarget, PlainRequest};
use crate::egress::relay::ByteAllowance;
use crate::http::HttpMessageError;
use crate::http::body::{BodyReader, write_end, write_piece};
use crate::http::head::{Framing, Headers, HttpVersion, RequestHead, ResponseHead};
use crate::http::reader::MessageReader;
use crate::http::timed::TimedSocket;

/// Port of `http://` without one.
const HTTP_PORT: u16 = 80;

/// Informational answers before the real one.
const INFORMATIONAL_MAX: usize = 8;

/// A request that was read and understood.
struct ParsedRequest {
    target: EgressTarget,
    path_and_query: String,
    framing: Framing,
}

/// Bytes that were passed on.
#[derive(Debug, Clone, Copy, Default)]
struct TransferredBytes {
    up: u64,
    down: u64,
}

/// Why an exchange broke off after the target was connected.
enum ExchangeFailure {
    /// Nothing was answered yet, so the client can be told.
    BeforeAnswer(String),
    /// The client's body cannot be read, and nothing was answered yet.
    BadBody(HttpMessageError),
    /// The run has no bytes left, and nothing was answered yet.
    Spent,
    /// The answer had begun; all that is left is to close.
    WithinAnswer(String),
}

/// Serves one request and returns whether another may follow.
pub(super) fn serve(session: &mut Session<'_>, head: &RequestHead) -> SessionNext {
    let Some(draft) = session.proxy.begin(ConnectionKind::Http) else {
        session.reject(None, &Rejection::Spent);
        return SessionNext::Close;
    };
    let request = match understand(head) {
        Ok(request) => request,
        Err(problem) => {
            let draft = draft.to(without_query(&head.target), 0);
            session.reject(Some(draft), &Rejection::unreadable(&problem));
            return SessionNext::Close;
        }
    };
    let endpoint = &request.target.endpoint;
    let draft = draft
        .to(&endpoint.host.to_string(), endpoint.port)
        .asking(&head.method, without_query(&request.path_and_query));
    match session.admit(&request.target) {
        Ok(admitted) => {
            let exchange = PlainExchange {
                session,
                head,
                request: &request,
                admitted: &admitted,
                moved: TransferredBytes::default(),
            };
            exchange.run(draft)
        }
        Err(rejection) => {
            session.reject(Some(draft), &rejection);
            SessionNext::Close
        }
    }
}

/// One request on its way to an admitted target, and its answer on the way back.
struct PlainExchange<'s, 'p> {
    session: &'s mut Session<'p>,
    head: &'s RequestHead,
    request: &'s ParsedRequest,
    admitted: &'s AdmittedTarget,
    moved: TransferredBytes,
}

impl PlainExchange<'_, '_> {
    /// Passes on the request and its answer, records both, and returns whether another may follow.
    fn run(mut self, draft: RecordDraft) -> SessionNext {
        let passed = self.send().and_then(|()| self.pass_on());
        let session = self.session;
        let permit = self.admitted.permit.clone();
        let draft = draft.moving(self.moved.up, self.moved.down);
        let allowed = |cut| ConnectionVerdict::Allowed {
            rule: permit.rule.clone(),
            cut,
        };
        let rejection = match passed {
            Ok(next) => {
                (session.proxy.on_record)(draft.end(allowed(None)));
                return next;
            }
            Err(ExchangeFailure::WithinAnswer(problem)) => {
                (session.proxy.on_record)(draft.end(allowed(Some(problem))));
                return SessionNext::Close;
            }
            Err(ExchangeFailure::BeforeAnswer(problem)) => Rejection::BadAnswer { permit, problem },
            Err(ExchangeFailure::Spent) => Rejection::Spent,
            Err(ExchangeFailure::BadBody(error)) => match Rejection::of_read(&error) {
                Some(rejection) => rejection,
                // The client is gone, so only the record is left to make.
                None => {
                    (session.proxy.on_record)(draft.end(allowed(Some(error.to_string()))));
                    return SessionNext::Close;
                }
            },
        };
        session.reject(Some(draft), &rejection);
        SessionNext::Close
    }

    /// Sends the request to its target.
    ///
    /// A target that stops reading may have answered already, so that is looked for next.
    fn send(&mut self) -> Result<(), ExchangeFailure> {
        let mut target = self.session.timed(&self.admitted.socket);
        let bytes = rewritten(self.head, self.request).to_bytes();
        if !self.session.proxy.allowance.take(bytes.len() as u64) {
            return Err(ExchangeFailure::Spent);
        }
        if target.write_all(&bytes).is_err() {
            return Ok(());
        }
        self.moved.up += bytes.len() as u64;
        let framing = self.request.framing;
        let waits = self.head.headers.has_word("expect", "100-continue");
        if waits && framing != Framing::Empty && self.head.version == HttpVersion::Http11 {
            let reported = self
                .session
                .timed(self.session.client)
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
            reported.map_err(|error| ExchangeFailure::WithinAnswer(error.to_string()))?;
        }
        let allowance = &self.session.proxy.allowance;
        let body = self.session.reader.body(framing, u64::MAX);
        match pump(body, framing, &mut target, allowance, &mut self.moved.up) {
            Ok(()) | Err(HttpMessageError::Write(_)) => Ok(()),
            Err(error) => Err(ExchangeFailure::BadBody(error)),
        }
    }

    /// Passes the answer on to the client, in a framing that the client can tell the end of.
    fn pass_on(&mut self) -> Result<SessionNext, ExchangeFailure> {
        let (session, head) = (&*self.session, self.head);
        let mut answers = MessageReader::new(session.timed(&self.admitted.socket));
        let mut answer = receive(&mut answers, session)?;
        let framing = answer
            .framing(&head.method)
            .map_err(|error| ExchangeFailure::BeforeAnswer(error.to_string()))?;
        let onto = match (framing, head.version) {
            (Framing::Empty | Framing::Length(_), _) => framing,
            (Framing::Chunked | Framing::UntilClose, HttpVersion::Http11) => Framing::Chunked,
            (Framing::Chunked | Framing::UntilClose, HttpVersion::Http10) => Framing::UntilClose,
        };
        let stays = head.version == HttpVersion::Http11
            && head.keeps_alive()
            && !head.headers.has_word("proxy-connection", "close");
        answer.version = HttpVersion::Http11;
        answer.headers.remove_hop_by_hop();
        declare(&mut answer.headers, onto);
        if !stays {
            answer.headers.add("Connection", b"close");
        }
        let bytes = answer.to_bytes();
        let broken = |error: HttpMessageError| ExchangeFailure::WithinAnswer(error.to_string());
        let allowance = &session.proxy.allowance;
        if !allowance.take(bytes.len() as u64) {
            return Err(ExchangeFailure::Spent);
        }
        let mut client = session.timed(session.client);
        client
            .write_all(&bytes)
            .map_err(|error| broken(HttpMessageError::Write(error)))?;
        self.moved.down += bytes.len() as u64;
        let body = answers.body(framing, u64::MAX);
        pump(body, onto, &mut client, allowance, &mut self.moved.down).map_err(broken)?;
        Ok(if stays {
            SessionNext::Request
        } else {
            SessionNext::Close
        })
    }
}

/// Reads the head of the answer, past informational ones.
fn receive(
    answers: &mut MessageReader<TimedSocket<'_>>,
    session: &Session<'_>,
) -> Result<ResponseHead, ExchangeFailure> {
    let problem =
        |text: String| ExchangeFailure::BeforeAnswer(format!("use the target's answer: {text}"));
    for _ in 0..INFORMATIONAL_MAX {
        let answer = answers
            .response(&session.proxy.limits.head)
            .map_err(|error| problem(error.to_string()))?;
        match answer.status {
            101 => return Err(problem("it changes the protocol".to_owned())),
            100..200 => {}
            _ => return Ok(answer),
        }
    }
    Err(problem("it is informational without end".to_owned()))
}

/// Passes a body on piece by piece, as long as the run has bytes left.
fn pump(
    mut body: BodyReader<'_, TimedSocket<'_>>,
    onto: Framing,
    to: &mut TimedSocket<'_>,
    allowance: &ByteAllowance,
    moved: &mut u64,
) -> Result<(), HttpMessageError> {
    while let Some(piece) = body.piece()? {
        if !allowance.take(piece.len() as u64) {
            return Err(HttpMessageError::BodyTooLong { bytes_max: *moved });
        }
        write_piece(onto, piece, to)?;
        *moved += piece.len() as u64;
    }
    write_end(onto, to)
}

fn understand(head: &RequestHead) -> Result<ParsedRequest, String> {
    let (scheme, rest) = head.target.split_once("://").ok_or_else(|| {
        "this is a proxy; a plain request names its whole URL, and everything else is a CONNECT"
            .to_owned()
    })?;
    if !scheme.eq_ignore_ascii_case("http") {
        return Err("only `http` URLs are plain requests; for `https` send a CONNECT".to_owned());
    }
    let (authority, path) = match rest.find(['/', '?', '#', '\\']) {
        None => (rest, ""),
        Some(end) => rest.split_at(end),
    };
    if path.contains('#') || path.starts_with('\\') {
        return Err("its URL has a fragment or a backslash".to_owned());
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let path_and_query = format!("{slash}{path}");
    let endpoint =
        HostEndpoint::parse(authority, Some(HTTP_PORT)).map_err(|error| error.to_string())?;
    if head.version == HttpVersion::Http11 && head.headers.first("host").is_none() {
        return Err("it has no Host header".to_owned());
    }
    check_host_header(head, &endpoint, HTTP_PORT)?;
    let framing = head.framing().map_err(|error| error.to_string())?;
    let plain = PlainRequest {
        method: head.method.clone(),
        path: without_query(&path_and_query).to_owned(),
    };
    Ok(ParsedRequest {
        target: EgressTarget {
            endpoint,
            request: Some(plain),
        },
        path_and_query,
        framing,
    })
}

/// Returns the request as its target gets it.
fn rewritten(head: &RequestHead, request: &ParsedRequest) -> RequestHead {
    let endpoint = &request.target.endpoint;
    let host = if endpoint.port == HTTP_PORT {
        endpoint.host.to_string()
    } else {
        endpoint.to_string()
    };
    let mut headers = head.headers.clone();
    headers.remove_hop_by_hop();
    headers.remove("expect");
    headers.replace("Host", host.as_bytes());
    declare(&mut headers, request.framing);
    headers.add("Connection", b"close");
    RequestHead {
        method: head.method.clone(),
        target: request.path_and_query.clone(),
        version: HttpVersion::Http11,
        headers,
    }
}

/// Says where the body ends in the one way in which it is written.
///
/// A length that comes with no body is left: it is what the answer to another method would have.
fn declare(headers: &mut Headers, framing: Framing) {
    match framing {
        Framing::Empty | Framing::UntilClose => {}
        Framing::Chunked => headers.replace("Transfer-Encoding", b"chunked"),
        Framing::Length(length) => {
            headers.replace("Content-Length", length.to_string().as_bytes());
        }
    }
}

fn without_query(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}
