//! Sending one request to the provider and reading the head of its answer.
//!
//! Connections are kept for the next request while they are fresh. No redirect is followed, and
//! nothing is repeated but a request that a kept connection swallowed unanswered.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;

use crate::egress::address::AddressReach;
use crate::egress::dial::{Dialer, system_resolve};
use crate::egress::host::TargetHost;
use crate::egress::host_proxy::HostProxy;
use crate::http::head::{RequestHead, ResponseHead};
use crate::http::reader::MessageReader;
use crate::http::{HeadLimits, HttpMessageError};
use crate::model::Timeouts;
use crate::model::route::BaseUrl;
use crate::model::wire::{ConnectError, Wire};
use crate::serve::{StopGuard, StopSignal};

/// Connections kept for later.
const KEPT_MAX: usize = 16;
/// Servers close idle connections after a minute or so; we are earlier.
const KEPT_FOR: Duration = Duration::from_secs(30);
/// Interim answers (`100 Continue`, `103 Early Hints`) before the real one.
const INTERIM_MAX: usize = 8;
/// The head of an answer.
const HEAD_LIMITS: HeadLimits = HeadLimits {
    bytes_max: 64 * 1024,
    headers_max: 128,
    time_max: Duration::from_secs(30),
};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("send the request")]
    Send(#[source] io::Error),
    #[error("read the provider's answer")]
    Answer(#[source] HttpMessageError),
    #[error("take the provider's answer, which has more than {INTERIM_MAX} interim heads")]
    Interim,
}

impl SendError {
    /// Tells whether the provider may have worked for the request all the same.
    pub(crate) const fn may_have_cost(&self) -> bool {
        !matches!(self, Self::Connect(_))
    }

    /// Tells whether the provider was reached and then did nothing for too long.
    pub(crate) fn is_stall(&self) -> bool {
        match self {
            Self::Answer(HttpMessageError::Slow { .. }) => true,
            Self::Send(error) => error.kind() == io::ErrorKind::TimedOut,
            Self::Connect(_) | Self::Answer(_) | Self::Interim => false,
        }
    }
}

/// A connection whose answer has begun.
pub(crate) struct ProviderAnswer {
    pub(crate) head: ResponseHead,
    pub(crate) reader: MessageReader<Wire>,
    /// Ends the reading when the run is stopped.
    _watched: StopGuard,
}

/// Whether a request was sent once, or again on a fresh connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendAttempt {
    Once,
    Again,
}

/// The way to one provider.
pub(crate) struct ProviderClient {
    base_url: BaseUrl,
    tls: Arc<ClientConfig>,
    timeouts: Timeouts,
    dialer: Dialer,
    kept: Mutex<Vec<IdleConnection>>,
}

struct IdleConnection {
    reader: MessageReader<Wire>,
    since: Instant,
}

/// A request as it is written to the server.
struct WireRequest<'a> {
    head: Vec<u8>,
    body: &'a [u8],
}

impl ProviderClient {
    pub(crate) fn new(base_url: BaseUrl, tls: Arc<ClientConfig>, timeouts: Timeouts) -> Self {
        Self {
            base_url,
            tls,
            timeouts,
            dialer: Dialer::new(system_resolve(), timeouts.connect, timeouts.connect),
            kept: Mutex::new(Vec::new()),
        }
    }

    /// Goes out through the proxies that this host needs.
    pub(crate) fn through(mut self, host_proxy: Option<HostProxy>) -> Self {
        self.dialer = self.dialer.through(host_proxy);
        self
    }

    /// Sends a request and returns its answer, of which only the head was read.
    pub(crate) fn send(
        &self,
        head: &RequestHead,
        body: &[u8],
        stop: &StopSignal,
    ) -> Result<(ProviderAnswer, SendAttempt), SendError> {
        let request = WireRequest {
            head: head.to_bytes(),
            body,
        };
        if let Some(reader) = self.take_kept() {
            match self.exchange(reader, &request, stop) {
                Ok(answer) => return Ok((answer, SendAttempt::Once)),
                // The server may close a kept connection in the moment that we use it.
                Err((error, AnswerProgress::Nothing)) if !error.is_stall() && !stop.is_raised() => {
                }
                Err((error, _)) => return Err(error),
            }
            let answer = self.send_freshly(&request, stop)?;
            return Ok((answer, SendAttempt::Again));
        }
        Ok((self.send_freshly(&request, stop)?, SendAttempt::Once))
    }

    /// Keeps a connection for the next request, its answer having been read to the end.
    pub(crate) fn keep(&self, answer: ProviderAnswer) {
        let ProviderAnswer { head, reader, .. } = answer;
        let mut kept = self.kept();
        if head.keeps_alive() && reader.unused().is_empty() && kept.len() < KEPT_MAX {
            kept.push(IdleConnection {
                reader,
                since: Instant::now(),
            });
        }
    }

    fn send_freshly(
        &self,
        request: &WireRequest<'_>,
        stop: &StopSignal,
    ) -> Result<ProviderAnswer, SendError> {
        let wire = self.connect(stop)?;
        self.exchange(MessageReader::new(wire), request, stop)
            .map_err(|(error, _)| error)
    }

    fn connect(&self, stop: &StopSignal) -> Result<Wire, ConnectError> {
        let deadline = Instant::now() + self.timeouts.connect;
        let endpoint = &self.base_url.endpoint;
        // The person named this provider, so it may be at home.
        let reach = match endpoint.host {
            TargetHost::Name(_) => AddressReach::PrivateByName,
            TargetHost::Address(_) => AddressReach::PrivateByAddress,
        };
        let stream = self.dialer.dial(endpoint, reach, stop)?;
        Wire::open(stream, &self.base_url, &self.tls, deadline, stop)
    }

    fn exchange(
        &self,
        mut reader: MessageReader<Wire>,
        request: &WireRequest<'_>,
        stop: &StopSignal,
    ) -> Result<ProviderAnswer, (SendError, AnswerProgress)> {
        let wire = reader.inner_mut();
        let watched = stop.watch(wire.socket());
        wire.patience().set(self.timeouts.silence, None);
        let sent = wire
            .write_all(&request.head)
            .and_then(|()| wire.write_all(request.body))
            .and_then(|()| wire.flush());
        // A server may refuse a request before it has read all of it, so its answer counts.
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::TimedOut
        {
            return Err((
                SendError::Send(io::ErrorKind::TimedOut.into()),
                AnswerProgress::Some,
            ));
        }
        let deadline = Instant::now() + self.timeouts.first_byte;
        wire.patience()
            .set(self.timeouts.first_byte, Some(deadline));
        if reader.unused().is_empty() {
            let n_bytes = reader
                .fill("its head")
                .map_err(|error| (SendError::Answer(error), AnswerProgress::Nothing))?;
            if n_bytes == 0 {
                let closed = HttpMessageError::Closed { part: "its head" };
                let error = sent.map_or_else(SendError::Send, |()| SendError::Answer(closed));
                return Err((error, AnswerProgress::Nothing));
            }
        }
        for _ in 0..=INTERIM_MAX {
            let head = reader
                .response(&HEAD_LIMITS)
                .map_err(|error| (SendError::Answer(error), AnswerProgress::Some))?;
            if head.status >= 200 {
                reader
                    .inner_mut()
                    .patience()
                    .set(self.timeouts.silence, None);
                return Ok(ProviderAnswer {
                    head,
                    reader,
                    _watched: watched,
                });
            }
        }
        Err((SendError::Interim, AnswerProgress::Some))
    }

    fn take_kept(&self) -> Option<MessageReader<Wire>> {
        let mut kept = self.kept();
        while let Some(mut newest) = kept.pop() {
            if newest.since.elapsed() < KEPT_FOR && newest.reader.inner_mut().is_quiet() {
                return Some(newest.reader);
            }
        }
        None
    }

    fn kept(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        // Every change is one push or pop, so a thread that panicked left nothing half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far a request came.
enum AnswerProgress {
    /// Not a byte of an answer came.
    Nothing,
    Some,
}
