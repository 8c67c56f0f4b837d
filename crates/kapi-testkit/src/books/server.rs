//! The model server of a story, which keeps count of what it worked for, told or not.
//!
//! Takes requests as they come through the gateway; which call one is stands in its model's name.

mod answer;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kapi_gateway::http::HeadLimits;
use kapi_gateway::http::reader::MessageReader;
use kapi_gateway::serve::{ServeLimits, StopSignal, serve};
use kapi_spend::rules::tokens::TokenCounts;
use serde_json::Value;

use crate::books::ServedUsage;
use crate::books::story::{CallFault, CallPlan, PRICE, Story};

const LIMITS: HeadLimits = HeadLimits {
    bytes_max: 64 * 1024,
    headers_max: 100,
    time_max: Duration::from_secs(60),
};

/// A running server; dropping it ends its connections.
pub(super) struct BookServer {
    port: u16,
    state: Arc<ServerState>,
    stop: StopSignal,
    thread: Option<JoinHandle<()>>,
}

struct ServerState {
    story: Story,
    served: Mutex<ServedUsage>,
    /// Calls that were asked before.
    asked: Mutex<BTreeSet<usize>>,
}

/// A request, as far as it matters.
struct BookRequest {
    number: usize,
    body_bytes: usize,
    output_max: Option<u64>,
}

impl BookServer {
    /// Starts on a free port of this machine.
    pub(super) fn start(story: &Story) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let stop = StopSignal::new().map_err(std::io::Error::other)?;
        let state = Arc::new(ServerState {
            story: story.clone(),
            served: Mutex::default(),
            asked: Mutex::default(),
        });
        let (own, ends) = (Arc::clone(&state), stop.clone());
        let limits = ServeLimits {
            connections_max: 64,
        };
        let thread = thread::spawn(move || {
            // A listener that breaks shows as calls that fail.
            drop(serve(&listener, &ends, limits, &|stream| {
                own.attend(stream);
            }));
        });
        Ok(Self {
            port,
            state,
            stop,
            thread: Some(thread),
        })
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Returns what it worked for so far.
    pub(super) fn served(&self) -> ServedUsage {
        *held(&self.state.served)
    }
}

impl Drop for BookServer {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported by the panic hook already.
            let _joined: thread::Result<()> = thread.join();
        }
    }
}

impl ServerState {
    /// Answers the requests of one connection, until a fault or its end closes it.
    fn attend(&self, stream: &TcpStream) {
        if stream.set_nonblocking(false).is_err() {
            return;
        }
        let mut reader = MessageReader::new(stream);
        while let Ok(Some(head)) = reader.request(&LIMITS) {
            let Ok(framing) = head.framing() else {
                return;
            };
            let Ok(body) = reader.body(framing, u64::MAX).read_all() else {
                return;
            };
            let Some(request) = read(&head.target, &body) else {
                return;
            };
            let Some(plan) = self.story.calls.get(request.number) else {
                return;
            };
            if !self.answer(&request, plan, stream) {
                return;
            }
        }
    }

    /// Works, counts it and answers; tells whether the connection stays.
    fn answer(&self, request: &BookRequest, plan: &CallPlan, mut stream: &TcpStream) -> bool {
        let is_first = held(&self.asked).insert(request.number);
        if plan.fault == CallFault::Overloaded {
            return stream.write_all(answer::OVERLOADED).is_ok();
        }
        let counts = work(request, plan);
        self.count(plan, &counts);
        if plan.fault == CallFault::NoAnswer && is_first {
            return false;
        }
        let text = answer::text(self.story.dialect, &counts, plan.fault);
        match plan.fault {
            CallFault::BrokenOff => {
                let half = text.get(..text.len() / 2).unwrap_or_default();
                // Whoever hung up is not told.
                let _gone: std::io::Result<()> = stream.write_all(half);
                false
            }
            CallFault::Nothing
            | CallFault::Overloaded
            | CallFault::NoAnswer
            | CallFault::NotTold
            | CallFault::AgentLeaves => stream.write_all(&text).is_ok(),
        }
    }

    fn count(&self, plan: &CallPlan, counts: &TokenCounts) {
        let mut served = held(&self.served);
        let tokens = counts.total();
        served.calls += 1;
        served.tokens = served.tokens.saturating_add(tokens);
        served.largest_tokens = served.largest_tokens.max(tokens);
        if plan.is_priced {
            let cost = PRICE.cost(counts);
            served.usd_micros = served.usd_micros.saturating_add(cost);
            served.largest_usd_micros = served.largest_usd_micros.max(cost);
        } else {
            served.unpriced_calls += 1;
        }
    }
}

/// Returns what the model reads and writes, within the limit that stands in the request.
fn work(request: &BookRequest, plan: &CallPlan) -> TokenCounts {
    let bytes = u64::try_from(request.body_bytes).unwrap_or(u64::MAX);
    let input = (bytes.saturating_mul(plan.input_percent.into()) / 100).max(1);
    let output = u64::from(plan.output).min(request.output_max.unwrap_or(u64::MAX));
    TokenCounts {
        input,
        output: output.max(1),
        ..TokenCounts::default()
    }
}

fn read(target: &str, body: &[u8]) -> Option<BookRequest> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let model = value["model"].as_str().unwrap_or(target);
    let digits = model.split_once('-')?.1;
    let digits = digits
        .split(|letter: char| !letter.is_ascii_digit())
        .next()?;
    let limits = [
        &value["max_tokens"],
        &value["max_output_tokens"],
        &value["max_completion_tokens"],
        &value["generationConfig"]["maxOutputTokens"],
    ];
    Some(BookRequest {
        number: digits.parse().ok()?,
        body_bytes: body.len(),
        output_max: limits.into_iter().find_map(Value::as_u64),
    })
}

fn held<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
