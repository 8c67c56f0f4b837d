//! One line to a server: sends a request, reads a whole answer.
//!
//! Uses the gateway's own way to providers, so keys, TLS and limits are the same. Knows no shapes.

use std::time::Duration;

use serde_json::Value;

use crate::ask::error::AskError;
use crate::ask::server::{ModelApi, ModelEndpoint};
use crate::http::head::{Headers, HttpVersion, RequestHead};
use crate::model::provider::{ProviderClient, SendError};
use crate::model::route::{self, ProviderRoute};
use crate::model::{Timeouts, trust};
use crate::serve::StopSignal;

/// The longest answer: far more than any limit of tokens lets a model write.
const ANSWER_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// For a connection, its name and TLS included.
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// The longest name of a request that is kept.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// The version of Anthropic's API that the shapes are of.
const ANTHROPIC_VERSION: &[u8] = b"2023-06-01";

/// A way to one server, for the time of one question.
pub(crate) struct AskConnection<'a> {
    pub(crate) api: ModelApi,
    /// The server's name for errors.
    pub(crate) host: String,
    pub(crate) upstream: ProviderRoute,
    provider: ProviderClient,
    deadline: Duration,
    stop: &'a StopSignal,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

impl<'a> AskConnection<'a> {
    pub(crate) fn new(
        server: &ModelEndpoint,
        deadline: Duration,
        stop: &'a StopSignal,
    ) -> Result<Self, AskError> {
        let upstream = server.upstream();
        let host = upstream.base_url.authority();
        let tls = trust::client_config(server.extra_authorities.as_deref()).map_err(|error| {
            AskError::Prepare {
                host: host.clone(),
                source: error.into(),
            }
        })?;
        let timeouts = Timeouts {
            connect: CONNECT_MAX.min(deadline),
            first_byte: deadline,
            silence: deadline,
            drain: deadline,
            agent: deadline,
        };
        let provider = ProviderClient::new(upstream.base_url.clone(), tls, timeouts);
        Ok(Self {
            api: server.api,
            host,
            provider: provider.through(server.host_proxy.clone()),
            upstream,
            deadline,
            stop,
        })
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<RawAnswer, AskError> {
        self.send("POST", path, body.to_string().as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Result<RawAnswer, AskError> {
        self.send("GET", path, b"")
    }

    fn send(&self, method: &str, path: &str, body: &[u8]) -> Result<RawAnswer, AskError> {
        let dialect = self.upstream.dialect;
        let request = dialect.request(method, path);
        let target = request.map(|request| self.upstream.base_url.target(dialect, &request, ""));
        let Some(target) = target else {
            return Err(AskError::Rejected {
                host: self.host.clone(),
                status: 0,
                message: format!("no server has the path {path:?}"),
            });
        };
        let head = RequestHead {
            method: method.to_owned(),
            target: String::new(),
            version: HttpVersion::Http11,
            headers: self.headers(),
        };
        let head = route::outgoing(&self.upstream, &head, target, body.len());
        let sent = self.provider.send(&head, body, self.stop);
        let (mut answer, _) = sent.map_err(|error| self.not_sent(error))?;
        let broken = |error: crate::http::HttpMessageError| AskError::BrokenOff {
            host: self.host.clone(),
            source: error.into(),
        };
        let framing = answer.head.framing(method).map_err(broken)?;
        let reader = answer.reader.body(framing, ANSWER_BYTES_MAX);
        let body = reader.read_all().map_err(broken)?;
        Ok(RawAnswer {
            status: answer.head.status,
            headers: answer.head.headers,
            body,
        })
    }

    fn headers(&self) -> Headers {
        let mut headers = Headers::default();
        headers.add("content-type", b"application/json");
        headers.add("accept", b"application/json");
        headers.add(
            "user-agent",
            concat!("kapi/", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        match self.api {
            ModelApi::Anthropic => headers.add("anthropic-version", ANTHROPIC_VERSION),
            ModelApi::Chat | ModelApi::Gemini => {}
        }
        headers
    }

    fn not_sent(&self, error: SendError) -> AskError {
        let host = self.host.clone();
        if error.is_stall() {
            let deadline_ms = u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX);
            return AskError::TimedOut { host, deadline_ms };
        }
        if error.may_have_cost() {
            return AskError::BrokenOff {
                host,
                source: error.into(),
            };
        }
        AskError::Unreachable {
            host,
            source: error.into(),
        }
    }
}

impl RawAnswer {
    /// Returns a header's first value as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.0.iter();
        let line = lines.find(|line| line.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(&line.value).ok()
    }

    /// Returns the server's own name for the request, if it has a plain one.
    pub(crate) fn request_id(&self) -> Option<String> {
        let names = ["request-id", "x-request-id"];
        let id = names.iter().find_map(|name| self.header(name))?;
        let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic());
        (is_plain && !id.is_empty() && id.len() <= REQUEST_ID_BYTES_MAX).then(|| id.to_owned())
    }
}
