//! One connection from inside the sandbox.
//!
//! Holds what every protocol of the proxy needs: the client, its unread bytes, its time. Knows how to
//! admit a target and how to say no, not how requests look.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use super::Proxy;
use super::rejection::Rejection;
use crate::egress::log::{ConnectionKind, RecordDraft};
use crate::egress::policy::{EgressDecision, EgressTarget, Permit};
use crate::http::farewell::send_last;
use crate::http::head::closing_answer;
use crate::http::reader::MessageReader;
use crate::http::timed::{TimedSocket, moment_after};
use crate::serve::{StopGuard, StopSignal};

/// One connection and its proxy.
pub(super) struct Session<'a> {
    pub(super) proxy: &'a Proxy<'a>,
    pub(super) stop: &'a StopSignal,
    pub(super) client: &'a TcpStream,
    pub(super) reader: MessageReader<TimedSocket<'a>>,
    pub(super) deadline: Instant,
}

/// An allowed and connected target, watched by the stop sign.
pub(super) struct AdmittedTarget {
    pub(super) permit: Permit,
    pub(super) socket: Arc<TcpStream>,
    _watched: StopGuard,
}

/// What follows a request on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionNext {
    /// Another request may follow.
    Request,
    /// The connection is closed.
    Close,
}

impl<'a> Session<'a> {
    pub(super) fn new(proxy: &'a Proxy<'a>, client: &'a TcpStream, stop: &'a StopSignal) -> Self {
        let quiet = proxy.limits.quiet_time_max;
        Self {
            proxy,
            stop,
            client,
            reader: MessageReader::new(TimedSocket::new(client, quiet)),
            deadline: moment_after(proxy.limits.connection_time_max),
        }
    }

    /// Waits for the first byte of a request, from which on the time for its head runs.
    pub(super) fn wait_for_request(&mut self) -> bool {
        let limits = &self.proxy.limits;
        if self.reader.unused().is_empty() {
            let deadline = self.deadline;
            let timed = self.reader.inner_mut();
            timed.set_idle_max(limits.quiet_time_max);
            timed.set_deadline(Some(deadline));
            if !matches!(self.reader.fill("a request"), Ok(1..)) {
                return false;
            }
        }
        let head_end = moment_after(limits.head.time_max);
        let deadline = self.deadline.min(head_end);
        self.reader.inner_mut().set_deadline(Some(deadline));
        true
    }

    /// Lets the client take its time again, now that its request was read.
    pub(super) fn be_patient(&mut self) {
        let (idle_max, deadline) = (self.proxy.limits.idle_time_max, self.deadline);
        let timed = self.reader.inner_mut();
        timed.set_idle_max(idle_max);
        timed.set_deadline(Some(deadline));
    }

    /// Returns a socket's timed form with this connection's limits.
    pub(super) fn timed<'s>(&self, socket: &'s TcpStream) -> TimedSocket<'s> {
        let mut timed = TimedSocket::new(socket, self.proxy.limits.idle_time_max);
        timed.set_deadline(Some(self.deadline));
        timed
    }

    /// Decides about a target and connects to it.
    pub(super) fn admit(&self, target: &EgressTarget) -> Result<AdmittedTarget, Rejection> {
        let permit = match self.proxy.policy.decide(target) {
            EgressDecision::Allow(permit) => permit,
            EgressDecision::Deny(denial) => return Err(Rejection::Denied(denial)),
        };
        let dialled = self
            .proxy
            .dialer
            .dial(&target.endpoint, permit.reach, self.stop);
        match dialled {
            Ok(socket) => {
                let socket = Arc::new(socket);
                let watched = self.stop.watch(&socket);
                Ok(AdmittedTarget {
                    permit,
                    socket,
                    _watched: watched,
                })
            }
            Err(error) => Err(Rejection::NotDialled { permit, error }),
        }
    }

    /// Records a rejection and answers it over HTTP; nothing follows on the connection.
    pub(super) fn reject(&self, draft: Option<RecordDraft>, rejection: &Rejection) {
        if let Some(draft) = draft {
            (self.proxy.on_record)(draft.end(rejection.verdict()));
        }
        let text = rejection.text();
        let answer = closing_answer(rejection.status(), "text/plain", text.as_bytes());
        self.send_last(&answer);
    }

    /// Sends the last bytes of the connection and lets the client read them.
    pub(super) fn send_last(&self, answer: &[u8]) {
        send_last(self.client, answer, self.deadline);
    }

    /// Answers a request that could not be read, where the client can still be told.
    pub(super) fn refuse_unread(&self, error: &crate::http::HttpMessageError) {
        if let Some(rejection) = Rejection::of_read(error) {
            self.reject(self.proxy.begin(ConnectionKind::Http), &rejection);
        }
    }
}
