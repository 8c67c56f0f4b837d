//! One agent's connection: requests are checked, sent on, and answered one after the other.
//!
//! Words every refusal and every failure. What may pass is decided elsewhere, and how an answer
//! streams back is the relay's matter.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::http::farewell::send_last;
use crate::http::head::{Framing, Headers, HttpVersion, RequestHead, ResponseHead, closing_answer};
use crate::http::reader::MessageReader;
use crate::http::timed::{TimedSocket, moment_after};
use crate::http::{HeadLimits, HttpMessageError};
use crate::model::admission::{
    AllowedRequest, KeepAlive, RefusedRequest, allow, keep_of, reason, refused,
};
use crate::model::cassette::ExchangeEnd;
use crate::model::cassette::replay::{Likeness, RecordedAnswer};
use crate::model::dialect::{GatewayErrorKind, RequestPurpose};
use crate::model::estimate::Basis;
use crate::model::event::{GatewayEvent, GatewayRefusal};
use crate::model::grant::{GrantedCall, grant};
use crate::model::meter::UnknownUsage;
use crate::model::provider::{ProviderAnswer, SendAttempt, SendError};
use crate::model::relay::{AnswerBody, AnswerRelay, RelayJob};
use crate::model::route::{self, without_keys};
use crate::model::secret::Scrubber;
use crate::model::{AnswerSource, ModelGateway, Stops};

/// The head of a request.
const HEAD_LIMITS: HeadLimits = HeadLimits {
    bytes_max: 64 * 1024,
    headers_max: 100,
    time_max: Duration::from_secs(30),
};
/// The longest body; providers take half of it.
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The most bytes of bodies that all connections together may hold.
const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The longest answer.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// An agent's side of a connection.
struct Agent<'a> {
    stream: &'a TcpStream,
    patience: Duration,
    reader: MessageReader<TimedSocket<'a>>,
    writer: TimedSocket<'a>,
}

impl Agent<'_> {
    /// Sends an answer that nothing follows, also to an agent that is still sending its request.
    fn send_last(&self, answer: &[u8]) {
        send_last(self.stream, answer, moment_after(self.patience));
    }
}

/// A body in memory, counted among all that are.
struct CountedBody<'a> {
    counter: &'a AtomicUsize,
    bytes: Vec<u8>,
}

impl Drop for CountedBody<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.bytes.len(), Ordering::SeqCst);
    }
}

/// Serves one connection to its end.
pub(crate) fn serve(gateway: &ModelGateway<'_>, stream: &TcpStream, stops: Stops<'_>) {
    let patience = gateway.timeouts.agent;
    // Without it, small events wait for each other; that is slow and nothing worse.
    let _nodelay: std::io::Result<()> = stream.set_nodelay(true);
    let mut agent = Agent {
        stream,
        patience,
        reader: MessageReader::new(TimedSocket::new(stream, patience)),
        writer: TimedSocket::new(stream, patience),
    };
    while !stops.stop.is_raised() {
        let next = match agent.reader.request(&HEAD_LIMITS) {
            Ok(Some(head)) => one(gateway, &head, &mut agent, stops),
            Ok(None) => KeepAlive::Close,
            Err(error) => malformed(gateway, &error, &mut agent),
        };
        if next == KeepAlive::Close {
            return;
        }
    }
}

fn one(
    gateway: &ModelGateway<'_>,
    head: &RequestHead,
    agent: &mut Agent<'_>,
    stops: Stops<'_>,
) -> KeepAlive {
    let framing = match head.framing() {
        Ok(framing) => framing,
        Err(error) => return malformed(gateway, &error, agent),
    };
    if matches!(framing, Framing::Length(length) if length > BODY_BYTES_MAX) {
        let too_long = HttpMessageError::BodyTooLong {
            bytes_max: BODY_BYTES_MAX,
        };
        return malformed(gateway, &too_long, agent);
    }
    if head.headers.has_word("expect", "100-continue") {
        let go_on = agent.writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        if go_on.is_err() {
            return KeepAlive::Close;
        }
    }
    let is_probe = head.method == "HEAD" && head.target == "/";
    let allowed = if is_probe {
        Ok(None)
    } else {
        allow(gateway, head).map(Some)
    };
    // What is not sent on is read too: an agent that still writes would not see its answer.
    let body = match &allowed {
        Ok(Some(_)) => hold(gateway, agent, framing),
        Ok(None) | Err(_) => discard(agent, framing).map(|()| None),
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return malformed(gateway, &error, agent),
    };
    match (allowed, body) {
        (Ok(None), _) => answer(agent, &probe_answer(), b"", keep_of(head)),
        (Ok(Some(allowed)), Some(body)) => forward(gateway, &allowed, &body.bytes, agent, stops),
        (Ok(Some(_)), None) => {
            let message = "kapi: too many large requests are in progress";
            let refused = refused(
                GatewayRefusal::Busy,
                GatewayErrorKind::Busy,
                message.to_owned(),
            );
            refuse(gateway, &refused, agent, KeepAlive::Close)
        }
        (Err(refused), _) => refuse(gateway, &refused, agent, keep_of(head)),
    }
}

/// Sends a request on and its answer back.
fn forward(
    gateway: &ModelGateway<'_>,
    allowed: &AllowedRequest,
    body: &[u8],
    agent: &mut Agent<'_>,
    stops: Stops<'_>,
) -> KeepAlive {
    let number = gateway.n_requests.fetch_add(1, Ordering::SeqCst) + 1;
    let granted = match allowed.request.purpose {
        RequestPurpose::Inquiry => None,
        RequestPurpose::ModelCall => Some(grant(gateway, number, &allowed.request, body)),
    };
    let granted = match granted.transpose() {
        Ok(granted) => granted,
        Err(refused) => return refuse(gateway, &refused, agent, allowed.keep),
    };
    gateway.record(&|recorder| recorder.request(number, &without_keys(&allowed.head), body));
    let job = RelayJob {
        call: number,
        model: granted.as_ref().map(|granted| granted.model.as_str()),
        basis: granted
            .as_ref()
            .map_or(Basis::none(), |granted| granted.basis),
        version: allowed.head.version,
        keep: allowed.keep,
    };
    send(
        gateway,
        &job,
        Outgoing {
            allowed,
            granted: granted.as_ref(),
            body,
        },
        agent,
        stops,
    )
}

/// A request that is to be sent on.
#[derive(Clone, Copy)]
struct Outgoing<'a> {
    allowed: &'a AllowedRequest,
    /// Only of a model call.
    granted: Option<&'a GrantedCall<'a>>,
    /// The body as the agent wrote it.
    body: &'a [u8],
}

/// Finds the answer to a request, and passes it back.
fn send(
    gateway: &ModelGateway<'_>,
    job: &RelayJob<'_>,
    outgoing: Outgoing<'_>,
    agent: &mut Agent<'_>,
    stops: Stops<'_>,
) -> KeepAlive {
    let Outgoing {
        allowed,
        granted,
        body,
    } = outgoing;
    match &gateway.source {
        AnswerSource::Replay(replay) => {
            let found = replay.take(&allowed.head.method, &allowed.head.target, body);
            replayed(gateway, job, found, agent, stops)
        }
        AnswerSource::Provider(provider) => {
            let body = granted.map_or(body, |granted| &granted.body);
            let upstream = &gateway.upstream;
            let target =
                upstream
                    .base_url
                    .target(upstream.dialect, &allowed.request, &allowed.query);
            let head = route::outgoing(upstream, &allowed.head, target, body.len());
            let sent = provider.send(&head, body, stops.hang_up);
            match sent {
                Ok((answer, sent)) => {
                    if sent == SendAttempt::Again {
                        gateway.notify(GatewayEvent::Retried { call: job.call });
                        // The server may have worked for the request that it did not answer.
                        job.charge_unseen(gateway, UnknownUsage::BrokenOff);
                    }
                    let (next, reusable) = live(gateway, job, answer, agent, stops);
                    if let Some(answer) = reusable {
                        provider.keep(answer);
                    }
                    next
                }
                Err(error) => no_answer(gateway, job, &error, agent, stops),
            }
        }
    }
}

/// Passes a provider's answer back, and returns its connection where another request may use it.
fn live(
    gateway: &ModelGateway<'_>,
    job: &RelayJob<'_>,
    mut answer: ProviderAnswer,
    agent: &mut Agent<'_>,
    stops: Stops<'_>,
) -> (KeepAlive, Option<ProviderAnswer>) {
    let framing = match acceptable(&answer.head, job) {
        Ok(framing) => framing,
        Err(why) => {
            let status = answer.head.status;
            let why = format!("kapi: the provider's answer ({status}) was not passed on: {why}");
            job.charge_unseen(gateway, UnknownUsage::Encoded);
            return (
                fail(gateway, job, ExchangeEnd::Unreachable, &why, agent),
                None,
            );
        }
    };
    let patience = answer.reader.inner_mut().patience().clone();
    let mut relay = AnswerRelay::new(gateway, job, &answer.head, framing);
    let body = answer.reader.body(framing, ANSWER_BYTES_MAX);
    let (ending, next) = relay.run(AnswerBody::Live(body, patience), &mut agent.writer, stops);
    (next, (ending == ExchangeEnd::Complete).then_some(answer))
}

/// Passes a recorded answer back.
fn replayed(
    gateway: &ModelGateway<'_>,
    job: &RelayJob<'_>,
    found: Option<(RecordedAnswer, Likeness)>,
    agent: &mut Agent<'_>,
    stops: Stops<'_>,
) -> KeepAlive {
    let call = job.call;
    let Some((recorded, likeness)) = found else {
        gateway.notify(GatewayEvent::ReplayMissed { call });
        let message = format!("kapi: the cassette has no answer to request {call}");
        return fault(
            gateway,
            GatewayErrorKind::NotRecorded,
            &message,
            agent,
            job.keep,
        );
    };
    if likeness == Likeness::OtherBody {
        gateway.notify(GatewayEvent::ReplayDiffers { call });
    }
    let Some(head) = recorded.head else {
        let why = "kapi: no answer was recorded, because there was none";
        return fail(gateway, job, recorded.ending, why, agent);
    };
    // What was recorded is what is played, whatever length its head once told.
    let mut relay = AnswerRelay::new(gateway, job, &head, Framing::Chunked);
    let stream = AnswerBody::Tape(recorded.pieces, recorded.ending);
    let (_ending, next) = relay.run(stream, &mut agent.writer, stops);
    next
}

/// Answers for a provider that did not.
fn no_answer(
    gateway: &ModelGateway<'_>,
    job: &RelayJob<'_>,
    error: &SendError,
    agent: &mut Agent<'_>,
    stops: Stops<'_>,
) -> KeepAlive {
    if error.may_have_cost() {
        job.charge_unseen(gateway, UnknownUsage::BrokenOff);
    }
    if stops.hang_up.is_raised() {
        return KeepAlive::Close;
    }
    let ending = if error.is_stall() {
        ExchangeEnd::Stalled
    } else {
        ExchangeEnd::Unreachable
    };
    fail(gateway, job, ending, &reason(error), agent)
}

/// Tells of a request that the provider did not answer, and answers it.
fn fail(
    gateway: &ModelGateway<'_>,
    job: &RelayJob<'_>,
    ending: ExchangeEnd,
    why: &str,
    agent: &mut Agent<'_>,
) -> KeepAlive {
    let call = job.call;
    let why = Scrubber::new(gateway.upstream.key.as_ref()).whole(why.as_bytes());
    let why = String::from_utf8_lossy(&why).into_owned();
    gateway.record(&|recorder| recorder.end(call, ending));
    let kind = if ending == ExchangeEnd::Stalled {
        gateway.notify(GatewayEvent::Stalled { call });
        GatewayErrorKind::Stalled
    } else {
        let why = why.clone();
        gateway.notify(GatewayEvent::Unreachable { call, why });
        GatewayErrorKind::Unreachable
    };
    fault(gateway, kind, &why, agent, job.keep)
}

/// Returns where an answer's body ends, or why it is not passed on.
fn acceptable(head: &ResponseHead, job: &RelayJob<'_>) -> Result<Framing, &'static str> {
    if (300..400).contains(&head.status) {
        return Err("it is a redirect, and keys must not follow redirects");
    }
    let is_encoded = |coding: &[u8]| !coding.eq_ignore_ascii_case(b"identity");
    if head.headers.all("content-encoding").any(is_encoded) {
        return Err("it is encoded, but the request did not allow that");
    }
    let method = if job.model.is_some() { "POST" } else { "GET" };
    head.framing(method)
        .map_err(|_two_readings| "the end of its body is undefined")
}

fn refuse(
    gateway: &ModelGateway<'_>,
    refused: &RefusedRequest,
    agent: &mut Agent<'_>,
    keep: KeepAlive,
) -> KeepAlive {
    gateway.notify(GatewayEvent::Refused { why: refused.why });
    fault(gateway, refused.fault, &refused.message, agent, keep)
}

/// Answers with an error in the provider's own shape.
fn fault(
    gateway: &ModelGateway<'_>,
    fault: GatewayErrorKind,
    message: &str,
    agent: &mut Agent<'_>,
    keep: KeepAlive,
) -> KeepAlive {
    let body = gateway.upstream.dialect.error_body(fault, message);
    let mut headers = Headers::default();
    headers.add("content-type", b"application/json");
    // The clients of two providers ask nobody but this header.
    let again: &[u8] = if fault.is_passing() {
        b"true"
    } else {
        b"false"
    };
    headers.add("x-should-retry", again);
    let head = own_head(fault.status(), headers);
    answer(agent, &head, body.to_string().as_bytes(), keep)
}

/// Answers a message that is no HTTP, where somebody may still listen.
fn malformed(
    gateway: &ModelGateway<'_>,
    error: &HttpMessageError,
    agent: &mut Agent<'_>,
) -> KeepAlive {
    let is_idle =
        matches!(error, HttpMessageError::Slow { .. }) && agent.reader.unused().is_empty();
    if let Some(status) = error.status()
        && !is_idle
    {
        let why = match error {
            HttpMessageError::BodyTooLong { .. } => GatewayRefusal::TooLarge,
            _ => GatewayRefusal::Unreadable,
        };
        gateway.notify(GatewayEvent::Refused { why });
        let kind = match error {
            HttpMessageError::BodyTooLong { .. } => GatewayErrorKind::TooLarge,
            _ => GatewayErrorKind::BadRequest,
        };
        let body = gateway.upstream.dialect.error_body(kind, &reason(error));
        let bytes = closing_answer(status, "application/json", body.to_string().as_bytes());
        agent.send_last(&bytes);
    }
    KeepAlive::Close
}

/// Writes a whole answer of our own.
fn answer(agent: &mut Agent<'_>, head: &ResponseHead, body: &[u8], keep: KeepAlive) -> KeepAlive {
    let mut head = head.clone();
    let length = body.len().to_string();
    head.headers.add("content-length", length.as_bytes());
    if keep == KeepAlive::Close {
        head.headers.add("connection", b"close");
    }
    let mut bytes = head.to_bytes();
    bytes.extend_from_slice(body);
    if keep == KeepAlive::Close {
        agent.send_last(&bytes);
        return keep;
    }
    match agent.writer.write_all(&bytes) {
        Ok(()) => keep,
        Err(_agent_left) => KeepAlive::Close,
    }
}

fn probe_answer() -> ResponseHead {
    own_head(200, Headers::default())
}

fn own_head(status: u16, headers: Headers) -> ResponseHead {
    ResponseHead {
        version: HttpVersion::Http11,
        status,
        reason: String::new(),
        headers,
    }
}

/// Reads a body into memory; nothing if all connections together hold too much.
fn hold<'g>(
    gateway: &'g ModelGateway<'_>,
    agent: &mut Agent<'_>,
    framing: Framing,
) -> Result<Option<CountedBody<'g>>, HttpMessageError> {
    let mut held = CountedBody {
        counter: &gateway.held_bytes,
        bytes: Vec::new(),
    };
    let mut body = agent.reader.body(framing, BODY_BYTES_MAX);
    while let Some(piece) = body.piece()? {
        let before = held.counter.fetch_add(piece.len(), Ordering::SeqCst);
        held.bytes.extend_from_slice(piece);
        if before + piece.len() > HELD_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(Some(held))
}

fn discard(agent: &mut Agent<'_>, framing: Framing) -> Result<(), HttpMessageError> {
    let mut body = agent.reader.body(framing, BODY_BYTES_MAX);
    while body.piece()?.is_some() {}
    Ok(())
}
