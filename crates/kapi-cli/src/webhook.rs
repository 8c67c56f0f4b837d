//! Calls over HTTP that trigger loops: `POST /loops/<name>`, proved by a secret.
//!
//! Whoever can reach the port may send anything: heads, bodies, times and numbers are bounded,
//! strangers who are slow give way to whoever calls after them, and nothing is told before the
//! secret was shown. What a call triggers is decided by who takes it.

pub(crate) mod proof;
pub(crate) mod waiting;

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use kapi_core::task_id::LoopName;
use kapi_core::value::KernelValue;
use kapi_gateway::http::farewell::send_last;
use kapi_gateway::http::head::{RequestHead, closing_answer};
use kapi_gateway::http::reader::MessageReader;
use kapi_gateway::http::timed::TimedSocket;
use kapi_gateway::http::{HeadLimits, HttpMessageError};
use kapi_task::record::leader::call::LoopCall;
use serde_json::json;

use crate::webhook::proof::CallProof;
use crate::webhook::waiting::{ConnectionQueue, STRANGERS_MAX, Stranger};

/// Connections at once, those of callers that have shown the secret included.
pub(crate) const CONNECTIONS_MAX: usize = 2 * STRANGERS_MAX;
/// The longest body.
const BODY_BYTES_MAX: u64 = 64 * 1024;
/// What a head may use.
const HEAD: HeadLimits = HeadLimits {
    bytes_max: 16 * 1024,
    headers_max: 64,
    time_max: Duration::from_secs(5),
};
/// How long a peer may be silent.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// How long a connection may last, whatever its peer does.
const LIFE_MAX: Duration = Duration::from_secs(20);
/// How long a caller waits until its call was taken.
const TAKE_MAX: Duration = Duration::from_secs(10);
/// The longest id of a delivery.
const DELIVERY_BYTES_MAX: usize = 128;
/// What stands before a name.
const PATH: &str = "/loops/";
/// How callers name a delivery; the first is GitHub's.
const DELIVERY: [&str; 3] = ["X-GitHub-Delivery", "X-Delivery-Id", "Idempotency-Key"];

/// A call that waits for its answer.
#[derive(Debug)]
pub(crate) struct WebhookCall {
    /// The call.
    pub(crate) call: LoopCall,
    /// Where the answer goes.
    pub(crate) reply: SyncSender<WebhookReply>,
}

/// What a caller is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WebhookReply {
    /// The status.
    pub(crate) status: u16,
    /// The document.
    pub(crate) body: serde_json::Value,
}

impl WebhookReply {
    /// Builds an answer.
    pub(crate) const fn new(status: u16, body: serde_json::Value) -> Self {
        Self { status, body }
    }

    fn error(status: u16, text: &str) -> Self {
        Self::new(status, json!({ "error": text }))
    }
}

/// Takes calls from connections and hands them on.
pub(crate) struct WebhookServer<'env> {
    /// Proves that a caller knows the secret.
    pub(crate) proof: CallProof,
    /// Where calls go.
    pub(crate) line: SyncSender<WebhookCall>,
    /// Wakes whoever takes them.
    pub(crate) ring: &'env (dyn Fn() + Sync),
    /// The connections of those that have not shown the secret.
    pub(crate) waiting: ConnectionQueue,
}

impl WebhookServer<'_> {
    /// Serves one connection: one request, one answer.
    pub(crate) fn serve(&self, stream: &TcpStream) {
        // Without a descriptor for it there is no more to be done for a caller.
        let Ok(stranger) = self.waiting.enter(stream) else {
            return;
        };
        // Until its answer was read: one that is refused gives way like one that says nothing.
        let mut stranger = Some(stranger);
        let deadline = Instant::now() + LIFE_MAX;
        let mut socket = TimedSocket::new(stream, IDLE_MAX);
        socket.set_deadline(Some(deadline));
        let mut reader = MessageReader::new(socket);
        let answer = match self.answer(&mut reader, &mut stranger) {
            Ok(Some(reply)) => written(&reply),
            Ok(None) => return,
            Err(error) => match error.status() {
                Some(status) => written(&WebhookReply::error(status, &error.to_string())),
                // Nobody listens any more.
                None => return,
            },
        };
        send_last(stream, &answer, deadline);
    }

    fn answer(
        &self,
        reader: &mut MessageReader<TimedSocket<'_>>,
        stranger: &mut Option<Stranger<'_>>,
    ) -> Result<Option<WebhookReply>, HttpMessageError> {
        let Some(head) = reader.request(&HEAD)? else {
            return Ok(None);
        };
        let name = head
            .target
            .strip_prefix(PATH)
            .and_then(|name| LoopName::parse(name).ok());
        let Some(name) = name else {
            return Ok(Some(WebhookReply::error(
                404,
                "the only path is /loops/<name>",
            )));
        };
        if head.method != "POST" {
            return Ok(Some(WebhookReply::error(405, "only POST triggers a loop")));
        }
        if head.headers.has_word("expect", "100-continue") {
            let go_on = reader
                .inner_mut()
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
            go_on.map_err(HttpMessageError::Write)?;
        }
        let body = reader.body(head.framing()?, BODY_BYTES_MAX).read_all()?;
        if !self.proof.is_given(&head.headers, &body) {
            return Ok(Some(WebhookReply::error(
                401,
                "the secret is missing or wrong",
            )));
        }
        *stranger = None;
        let payload = if body.is_empty() {
            KernelValue::Null
        } else {
            match serde_json::from_slice(&body) {
                Ok(payload) => payload,
                Err(_) => return Ok(Some(WebhookReply::error(400, "the body is not JSON"))),
            }
        };
        let delivery = match delivery(&head) {
            Ok(delivery) => delivery,
            Err(why) => return Ok(Some(WebhookReply::error(400, why))),
        };
        Ok(Some(self.hand_on(LoopCall {
            name,
            payload,
            delivery,
        })))
    }

    fn hand_on(&self, call: LoopCall) -> WebhookReply {
        let (reply, answer) = sync_channel(1);
        match self.line.try_send(WebhookCall { call, reply }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return WebhookReply::error(429, "too many calls are pending");
            }
            Err(TrySendError::Disconnected(_)) => {
                return WebhookReply::error(503, "the server is shutting down");
            }
        }
        (self.ring)();
        answer
            .recv_timeout(TAKE_MAX)
            .unwrap_or_else(|_| WebhookReply::error(503, "nothing handled the call"))
    }
}

fn delivery(head: &RequestHead) -> Result<Option<String>, &'static str> {
    let said = DELIVERY.iter().find_map(|name| head.headers.first(name));
    let Some(said) = said else {
        return Ok(None);
    };
    let is_plain = said.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(said) {
        Ok(text) if is_plain && !text.is_empty() && text.len() <= DELIVERY_BYTES_MAX => {
            Ok(Some(text.to_owned()))
        }
        Ok(_) | Err(_) => Err("the delivery's id must be 1 to 128 printable characters"),
    }
}

fn written(reply: &WebhookReply) -> Vec<u8> {
    let mut body = reply.body.to_string();
    body.push('\n');
    closing_answer(reply.status, "application/json", body.as_bytes())
}
