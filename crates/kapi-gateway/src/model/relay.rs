//! An answer on its way back to the agent, piece by piece.
//!
//! Each piece is counted, cleaned of the key, recorded and written at once. Ends a stream at an
//! event's end once the budget is spent. It does not know where the answer comes from.

use std::collections::VecDeque;
use std::io::Write as _;
use std::time::Instant;

use kapi_core::usage::Usage;

use crate::http::HttpMessageError;
use crate::http::body::{BodyReader, write_end, write_piece};
use crate::http::head::{Framing, Headers, HttpHeader, HttpVersion, ResponseHead};
use crate::http::timed::TimedSocket;
use crate::model::admission::{KeepAlive, spent_message};
use crate::model::cassette::ExchangeEnd;
use crate::model::dialect::GatewayErrorKind;
use crate::model::drain::DrainPermit;
use crate::model::estimate::Basis;
use crate::model::event::GatewayEvent;
use crate::model::meter::{AnswerExtent, CallMeter, UnknownUsage};
use crate::model::secret::Scrubber;
use crate::model::wire::{Wire, WirePatience};
use crate::model::{ModelGateway, Stops, quota};

/// Headers of an answer that are none of the agent's business.
const DROPPED: [&str; 5] = [
    "content-length",
    "set-cookie",
    "set-cookie2",
    "alt-svc",
    "strict-transport-security",
];

/// One request that is being answered.
pub(crate) struct RelayJob<'a> {
    pub(crate) call: u64,
    /// The model; nothing for an inquiry.
    pub(crate) model: Option<&'a str>,
    /// What its use is estimated by, where the answer does not tell.
    pub(crate) basis: Basis,
    /// The version that the agent speaks.
    pub(crate) version: HttpVersion,
    pub(crate) keep: KeepAlive,
}

impl RelayJob<'_> {
    /// Charges a call for an answer of which nothing could be read.
    pub(crate) fn charge_unseen(&self, gateway: &ModelGateway<'_>, why: UnknownUsage) {
        if let Some(model) = self.model {
            let estimate = self
                .basis
                .beyond(Usage::default(), 0, AnswerExtent::BrokenOff);
            gateway.meter_unknown(self.call, model, why, estimate);
        }
    }
}

/// Where an answer's body comes from.
pub(crate) enum AnswerBody<'a> {
    /// From the provider.
    Live(BodyReader<'a, Wire>, WirePatience),
    /// From a cassette.
    Tape(VecDeque<Vec<u8>>, ExchangeEnd),
}

/// Where the reading of an answer is.
enum BodyChunk {
    Piece(Vec<u8>),
    End,
    /// It broke off.
    Failed(ExchangeEnd),
}

/// Whether the agent still gets what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentDelivery {
    Open,
    /// The agent went away.
    Gone,
    /// The budget is spent, and the agent was told.
    Cut,
}

/// The way back of one answer.
pub(crate) struct AnswerRelay<'r> {
    gateway: &'r ModelGateway<'r>,
    job: &'r RelayJob<'r>,
    /// Only for a model's answer.
    meter: Option<CallMeter>,
    scrubber: Scrubber,
    /// The head as the agent gets it.
    head: ResponseHead,
    framing: Framing,
    /// The answer ends where the provider hangs up, and so does one that a stop broke off.
    ends_by_close: bool,
    delivery: AgentDelivery,
    /// The leave to read on when nobody gets the answer.
    drain: Option<DrainPermit<'r>>,
    /// Bytes of the answer that were read.
    n_bytes: u64,
}

impl AnswerBody<'_> {
    fn next(&mut self) -> BodyChunk {
        match self {
            Self::Live(body, _) => match body.piece() {
                Ok(Some(piece)) => BodyChunk::Piece(piece.to_vec()),
                Ok(None) => BodyChunk::End,
                Err(HttpMessageError::Slow { .. }) => BodyChunk::Failed(ExchangeEnd::Stalled),
                Err(_broken) => BodyChunk::Failed(ExchangeEnd::Broken),
            },
            Self::Tape(pieces, ending) => match (pieces.pop_front(), ending) {
                (Some(piece), _) => BodyChunk::Piece(piece),
                (None, ExchangeEnd::Complete) => BodyChunk::End,
                (None, ExchangeEnd::Stalled) => BodyChunk::Failed(ExchangeEnd::Stalled),
                (None, _) => BodyChunk::Failed(ExchangeEnd::Broken),
            },
        }
    }
}

impl<'r> AnswerRelay<'r> {
    pub(crate) fn new(
        gateway: &'r ModelGateway<'r>,
        job: &'r RelayJob<'r>,
        head: &ResponseHead,
        framing: Framing,
    ) -> Self {
        let content_type = head.headers.first("content-type").unwrap_or_default();
        let is_answer = job.model.is_some() && (200..300).contains(&head.status);
        let dialect = gateway.upstream.dialect;
        let meter = is_answer.then(|| CallMeter::new(dialect, content_type));
        // A stream may get an event of ours at its end, so its length is not known before.
        let is_open = meter.as_ref().is_some_and(CallMeter::is_between_events);
        let ends_by_close = framing == Framing::UntilClose;
        let framing = match (framing, job.version) {
            (Framing::Empty, _) => framing,
            (Framing::Length(_), _) if !is_open => framing,
            (_, HttpVersion::Http11) => Framing::Chunked,
            (_, HttpVersion::Http10) => Framing::UntilClose,
        };
        let mut scrubber = Scrubber::new(gateway.upstream.key.as_ref());
        let head = shown_head(head, framing, job, &mut scrubber);
        Self {
            gateway,
            job,
            meter,
            scrubber,
            head,
            framing,
            ends_by_close,
            delivery: AgentDelivery::Open,
            drain: None,
            n_bytes: 0,
        }
    }

    /// Passes the whole answer; returns how it ended and whether the agent may ask again here.
    pub(crate) fn run(
        &mut self,
        mut stream: AnswerBody<'_>,
        agent: &mut TimedSocket<'_>,
        stops: Stops<'_>,
    ) -> (ExchangeEnd, KeepAlive) {
        let call = self.job.call;
        let status = self.head.status;
        let retry_after_ms = quota::retry_after_ms(&self.head.headers);
        self.gateway.notify(GatewayEvent::Answered {
            call,
            status,
            retry_after_ms,
        });
        if quota::is_used_up(status, retry_after_ms) {
            quota::say_do_not_wait(&mut self.head.headers);
        }
        self.gateway
            .record(&|recorder| recorder.head(call, &self.head));
        if agent.write_all(&self.head.to_bytes()).is_err() {
            self.agent_left(&stream);
        }
        let read = loop {
            if self.is_over() {
                break None;
            }
            match stream.next() {
                BodyChunk::Piece(piece) => self.pass(&piece, agent, &stream),
                BodyChunk::End if self.ends_by_close && stops.hang_up.is_raised() => {
                    break Some(ExchangeEnd::Broken);
                }
                BodyChunk::End => break Some(ExchangeEnd::Complete),
                BodyChunk::Failed(ending) => break Some(ending),
            }
        };
        let ending = match (self.delivery, read) {
            (AgentDelivery::Cut, _) => ExchangeEnd::Cut,
            (AgentDelivery::Gone, _) => ExchangeEnd::Left,
            (AgentDelivery::Open, read) => read.unwrap_or(ExchangeEnd::Broken),
        };
        if ending == ExchangeEnd::Complete {
            self.finish(agent, &stream);
        }
        self.settle(ending, read == Some(ExchangeEnd::Complete), stops);
        let next = match (ending, self.delivery) {
            (ExchangeEnd::Complete, AgentDelivery::Open) if self.framing != Framing::UntilClose => {
                self.job.keep
            }
            _ => KeepAlive::Close,
        };
        (ending, next)
    }

    /// Tells whether reading on is of no use.
    fn is_over(&self) -> bool {
        match self.delivery {
            AgentDelivery::Open => false,
            AgentDelivery::Cut => true,
            // What nobody reads any more is still counted to its end, unless nothing more may be
            // used anyway.
            AgentDelivery::Gone => {
                let is_late = |drain: &DrainPermit<'_>| drain.until() <= Instant::now();
                self.meter.as_ref().is_none_or(CallMeter::is_final)
                    || self.drain.as_ref().is_none_or(is_late)
                    || self.gateway.is_spent()
            }
        }
    }

    fn pass(&mut self, piece: &[u8], agent: &mut TimedSocket<'_>, stream: &AnswerBody<'_>) {
        let was_spent = self.gateway.is_spent();
        let was_between = self
            .meter
            .as_ref()
            .is_some_and(CallMeter::is_between_events);
        let first_end = self.count(piece);
        let is_final = self.meter.as_ref().is_none_or(CallMeter::is_final);
        let cut_at = match (was_spent && !is_final, was_between) {
            (false, _) => None,
            (true, true) => Some(0),
            (true, false) => first_end,
        };
        let passed = piece.get(..cut_at.unwrap_or(piece.len()));
        let shown = self.scrubber.feed(passed.unwrap_or_default()).into_owned();
        self.write(&shown, agent, stream);
        if cut_at.is_some() && self.delivery == AgentDelivery::Open {
            self.cut(agent, stream);
        }
    }

    /// Counts a piece; returns where in it an event ended first.
    fn count(&mut self, piece: &[u8]) -> Option<usize> {
        let n_bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        let meter = self.meter.as_mut()?;
        let fed = meter.feed(piece);
        if let (Some(more), Some(model)) = (fed.more, self.job.model) {
            self.gateway.meter_tokens(self.job.call, model, more);
        }
        fed.first_end
    }

    fn write(&mut self, shown: &[u8], agent: &mut TimedSocket<'_>, stream: &AnswerBody<'_>) {
        if shown.is_empty() || self.delivery != AgentDelivery::Open {
            return;
        }
        let call = self.job.call;
        self.gateway.record(&|recorder| recorder.piece(call, shown));
        if write_piece(self.framing, shown, agent).is_err() {
            self.agent_left(stream);
        }
    }

    /// Ends the agent's side of a stream with an error that its client takes for final.
    fn cut(&mut self, agent: &mut TimedSocket<'_>, stream: &AnswerBody<'_>) {
        let held = self.scrubber.finish();
        self.write(&held, agent, stream);
        let dialect = self.gateway.upstream.dialect;
        let event = dialect.error_event(GatewayErrorKind::Spent, &spent_message());
        let written = write_piece(self.framing, event.as_bytes(), agent)
            .and_then(|()| write_end(self.framing, agent));
        // Whoever left before the end of the stream was to be cut off anyway.
        let _agent_left: Result<(), HttpMessageError> = written;
        self.delivery = AgentDelivery::Cut;
        self.gateway.notify(GatewayEvent::Cut {
            call: self.job.call,
        });
    }

    fn finish(&mut self, agent: &mut TimedSocket<'_>, stream: &AnswerBody<'_>) {
        let held = self.scrubber.finish();
        self.write(&held, agent, stream);
        if self.delivery == AgentDelivery::Open && write_end(self.framing, agent).is_err() {
            self.agent_left(stream);
        }
    }

    fn agent_left(&mut self, stream: &AnswerBody<'_>) {
        self.delivery = AgentDelivery::Gone;
        self.gateway.notify(GatewayEvent::AgentLeft {
            call: self.job.call,
        });
        let timeouts = &self.gateway.timeouts;
        self.drain = DrainPermit::begin(&self.gateway.n_drains, timeouts.drain);
        if let (AnswerBody::Live(_, patience), Some(drain)) = (stream, &self.drain) {
            patience.set(timeouts.silence, Some(drain.until()));
        }
    }

    /// Tells how the answer ended and whether its usage is known.
    fn settle(&self, ending: ExchangeEnd, is_complete: bool, stops: Stops<'_>) {
        let call = self.job.call;
        self.gateway.record(&|recorder| recorder.end(call, ending));
        if !stops.hang_up.is_raised() {
            match ending {
                ExchangeEnd::Stalled => self.gateway.notify(GatewayEvent::Stalled { call }),
                ExchangeEnd::Broken => self.gateway.notify(GatewayEvent::BrokenOff { call }),
                ExchangeEnd::Complete
                | ExchangeEnd::Unreachable
                | ExchangeEnd::Cut
                | ExchangeEnd::Left => {}
            }
        }
        let reach = if is_complete {
            AnswerExtent::Complete
        } else {
            AnswerExtent::BrokenOff
        };
        if let (Some(meter), Some(model)) = (&self.meter, self.job.model)
            && let Some(why) = meter.doubt(reach)
        {
            let estimate = self
                .job
                .basis
                .beyond(meter.reported().usage(None), self.n_bytes, reach);
            self.gateway.meter_unknown(call, model, why, estimate);
        }
    }
}

/// Returns the head of an answer as the agent gets it.
fn shown_head(
    head: &ResponseHead,
    framing: Framing,
    job: &RelayJob<'_>,
    scrubber: &mut Scrubber,
) -> ResponseHead {
    let mut headers = head.headers.clone();
    headers.remove_hop_by_hop();
    for name in DROPPED {
        headers.remove(name);
    }
    let lines = headers.0.into_iter().map(|line| HttpHeader {
        value: scrubber.whole(&line.value),
        name: line.name,
    });
    let mut headers = Headers(lines.collect());
    match framing {
        Framing::Length(length) => {
            headers.add("content-length", length.to_string().as_bytes());
        }
        Framing::Chunked => headers.add("transfer-encoding", b"chunked"),
        Framing::Empty if !matches!(head.status, 204 | 304) => {
            headers.add("content-length", b"0");
        }
        Framing::Empty | Framing::UntilClose => {}
    }
    if job.keep == KeepAlive::Close || framing == Framing::UntilClose {
        headers.add("connection", b"close");
    }
    let reason = scrubber.whole(head.reason.as_bytes());
    ResponseHead {
        version: HttpVersion::Http11,
        status: head.status,
        reason: String::from_utf8_lossy(&reason).into_owned(),
        headers,
    }
}
