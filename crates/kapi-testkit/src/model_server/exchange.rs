//! One connection: each request is read, decided on, recorded and answered, or
//! failed in the way the scenario asks for.
//! It does not know what the APIs look like, nor which step is played.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::model_server::endpoint::{self, Endpoint};
use crate::model_server::fault::FaultKind;
use crate::model_server::http::{self, HttpError, HttpRequest};
use crate::model_server::playback::{PlaybackDecision, ScenarioPart};
use crate::model_server::record::{Api, KeyFingerprint, RecordedRequest, ServedAnswer};
use crate::model_server::reply::{RenderedReply, ServerSentEvent};
use crate::model_server::request::{Delivery, ModelRequest};
use crate::model_server::shared::SharedServer;

const JSON: &str = "application/json";

/// What becomes of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionAction {
    KeepAlive,
    Close,
}

/// The parts of a connection that an answer needs.
struct Connection<'shared> {
    shared: &'shared SharedServer,
    reader: BufReader<TcpStream>,
    stream: TcpStream,
}

/// How much of an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Half,
}

/// Serves a connection until the client or the server ends it.
pub(crate) fn serve(shared: &SharedServer, stream: TcpStream) -> Result<(), HttpError> {
    // Events are small and waited for one by one.
    stream.set_nodelay(true)?;
    let mut connection = Connection {
        shared,
        reader: BufReader::new(stream.try_clone()?),
        stream,
    };
    loop {
        let request = match http::read_request(&mut connection.reader) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error @ HttpError::Connection { .. }) => return Err(error),
            Err(error) => {
                let body = endpoint::error_body(None, 400, &error.to_string());
                connection.send_json(400, &[], &body)?;
                return Err(error);
            }
        };
        let next = connection.answer(&request)?;
        if next == ConnectionAction::Close || request.header("connection") == Some("close") {
            return Ok(connection.stream.shutdown(Shutdown::Both)?);
        }
    }
}

impl Connection<'_> {
    fn answer(&mut self, request: &HttpRequest) -> Result<ConnectionAction, HttpError> {
        let endpoint = endpoint::classify(request);
        let key = endpoint::key_of(request);
        let body = read_json(request);
        let api = match endpoint {
            Endpoint::Generate(api) | Endpoint::Count(api) => Some(api),
            Endpoint::Models | Endpoint::Alive | Endpoint::Unknown => None,
        };
        let mut record = RecordedRequest {
            api,
            method: request.method.clone(),
            path: request.path.clone(),
            model: String::new(),
            step: None,
            answer: ServedAnswer::Probe,
            key_fingerprint: key.as_deref().map(KeyFingerprint::of),
            tools: Vec::new(),
            last_user: String::new(),
            last_tool_result: String::new(),
            body: body.clone().unwrap_or_default(),
        };
        match (endpoint, body) {
            (Endpoint::Alive, _) => self.notify(record, &json!({}), request),
            (Endpoint::Models, _) if !self.shared.admits(key.as_deref()) => {
                self.refuse(record, 401, "the key is not accepted")
            }
            (Endpoint::Models, _) => self.notify(record, &endpoint::model_list(), request),
            (Endpoint::Unknown, _) => self.refuse(record, 404, "no such endpoint"),
            (Endpoint::Generate(_) | Endpoint::Count(_), Err(status)) => {
                self.refuse(record, status, "the body is not plain JSON")
            }
            (Endpoint::Count(api), Ok(body)) => {
                record.answer = ServedAnswer::Count;
                self.notify(record, &endpoint::token_count(api, &body), request)
            }
            (Endpoint::Generate(api), Ok(body)) => {
                let asked = endpoint::read(api, request, &body);
                describe(&mut record, &asked);
                if self.shared.admits(key.as_deref()) {
                    return self.generate(record, &asked);
                }
                record.answer = ServedAnswer::Denied;
                self.fail(record, 401, &[], "invalid api key")
            }
        }
    }

    fn generate(
        &mut self,
        mut record: RecordedRequest,
        request: &ModelRequest,
    ) -> Result<ConnectionAction, HttpError> {
        let (PlaybackDecision { part, fault, reply }, serial) = self.shared.decide(request);
        record.answer = match part {
            ScenarioPart::Step(index) => {
                record.step = Some(index);
                ServedAnswer::Step
            }
            ScenarioPart::Judge(_) => ServedAnswer::Judge,
            ScenarioPart::Side => ServedAnswer::Side,
        };
        let rendered = endpoint::render(request, &reply, serial);
        let Some(fault) = fault else {
            self.shared.record(record);
            return self.send(&rendered, request.delivery, Extent::Whole);
        };
        record.answer = ServedAnswer::Fault(fault.clone());
        if let FaultKind::Status {
            code,
            retry_after_s,
        } = fault
        {
            let seconds = retry_after_s.map(|seconds| seconds.to_string());
            let header = seconds.as_deref().map(|seconds| ("retry-after", seconds));
            return self.fail(record, code, header.as_slice(), "injected failure");
        }
        self.shared.record(record);
        self.misbehave(&fault, rendered, request.delivery)
    }

    fn misbehave(
        &mut self,
        fault: &FaultKind,
        mut rendered: RenderedReply,
        delivery: Delivery,
    ) -> Result<ConnectionAction, HttpError> {
        match fault {
            FaultKind::Hang => self.wait_for_end(),
            FaultKind::Delay { ms } => {
                self.shared.pause(Duration::from_millis(*ms));
                self.send(&rendered, delivery, Extent::Whole)
            }
            FaultKind::Stall => {
                self.send(&rendered, delivery, Extent::Half)?;
                self.wait_for_end()
            }
            FaultKind::Truncate => self.send(&rendered, delivery, Extent::Half),
            FaultKind::Malformed => {
                for event in &mut rendered.events {
                    break_json(&mut event.text);
                }
                if matches!(delivery, Delivery::Whole | Delivery::Array) {
                    let mut text = rendered.whole.to_string();
                    break_json(&mut text);
                    return self.send_bytes(text.as_bytes(), Extent::Whole);
                }
                self.send(&rendered, delivery, Extent::Whole)
            }
            // A status is answered before anything else is.
            FaultKind::Disconnect | FaultKind::Status { .. } => Ok(ConnectionAction::Close),
            FaultKind::Empty | FaultKind::Huge { .. } => {
                self.send(&rendered, delivery, Extent::Whole)
            }
        }
    }

    /// Waits until the client gives up, or the server ends.
    fn wait_for_end(&mut self) -> Result<ConnectionAction, HttpError> {
        let mut ignored = [0; 1024];
        while self.reader.read(&mut ignored)? > 0 {}
        Ok(ConnectionAction::Close)
    }

    fn send(
        &mut self,
        rendered: &RenderedReply,
        delivery: Delivery,
        extent: Extent,
    ) -> Result<ConnectionAction, HttpError> {
        match delivery {
            Delivery::Whole => self.send_bytes(rendered.whole.to_string().as_bytes(), extent),
            Delivery::Array => {
                let texts: Vec<&str> = rendered.events.iter().map(|e| e.text.as_str()).collect();
                let array = format!("[{}]", texts.join(","));
                self.send_bytes(array.as_bytes(), extent)
            }
            Delivery::Events | Delivery::EventsWithUsage => {
                self.send_events(&rendered.events, extent)
            }
        }
    }

    fn send_events(
        &mut self,
        events: &[ServerSentEvent],
        extent: Extent,
    ) -> Result<ConnectionAction, HttpError> {
        let headers = [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("transfer-encoding", "chunked"),
        ];
        http::write_head(&mut self.stream, 200, &headers)?;
        let sent = match extent {
            Extent::Whole => events.len(),
            Extent::Half => events.len().div_ceil(2),
        };
        for event in events.iter().take(sent) {
            let name = match &event.name {
                Some(name) => format!("event: {name}\n"),
                None => String::new(),
            };
            let text = format!("{name}data: {}\n\n", event.text);
            http::write_chunk(&mut self.stream, text.as_bytes())?;
        }
        match extent {
            Extent::Whole => {
                http::write_chunk(&mut self.stream, b"")?;
                Ok(ConnectionAction::KeepAlive)
            }
            Extent::Half => Ok(ConnectionAction::Close),
        }
    }

    fn send_bytes(&mut self, bytes: &[u8], extent: Extent) -> Result<ConnectionAction, HttpError> {
        let length = bytes.len().to_string();
        let headers = [("content-type", JSON), ("content-length", &length)];
        http::write_head(&mut self.stream, 200, &headers)?;
        let (sent, next) = match extent {
            Extent::Whole => (bytes, ConnectionAction::KeepAlive),
            Extent::Half => (bytes.split_at(bytes.len() / 2).0, ConnectionAction::Close),
        };
        self.stream.write_all(sent)?;
        Ok(next)
    }

    fn send_json(
        &mut self,
        status: u16,
        extra: &[(&str, &str)],
        body: &Value,
    ) -> Result<ConnectionAction, HttpError> {
        let text = body.to_string();
        let length = text.len().to_string();
        let mut headers = vec![("content-type", JSON), ("content-length", &length)];
        headers.extend_from_slice(extra);
        http::write_head(&mut self.stream, status, &headers)?;
        self.stream.write_all(text.as_bytes())?;
        Ok(ConnectionAction::KeepAlive)
    }

    /// Records and answers what is not a model's answer.
    fn notify(
        &mut self,
        record: RecordedRequest,
        body: &Value,
        request: &HttpRequest,
    ) -> Result<ConnectionAction, HttpError> {
        self.shared.record(record);
        if request.method == "HEAD" {
            http::write_head(&mut self.stream, 200, &[("content-length", "0")])?;
            return Ok(ConnectionAction::KeepAlive);
        }
        self.send_json(200, &[], body)
    }

    fn refuse(
        &mut self,
        mut record: RecordedRequest,
        status: u16,
        message: &str,
    ) -> Result<ConnectionAction, HttpError> {
        record.answer = ServedAnswer::Refused(status);
        let is_head = record.method == "HEAD";
        if is_head {
            self.shared.record(record);
            http::write_head(&mut self.stream, status, &[("content-length", "0")])?;
            return Ok(ConnectionAction::KeepAlive);
        }
        self.fail(record, status, &[], message)
    }

    fn fail(
        &mut self,
        record: RecordedRequest,
        status: u16,
        extra: &[(&str, &str)],
        message: &str,
    ) -> Result<ConnectionAction, HttpError> {
        let api: Option<Api> = record.api;
        self.shared.record(record);
        self.send_json(status, extra, &endpoint::error_body(api, status, message))
    }
}

/// Records what a request says, before it is known what becomes of it.
fn describe(record: &mut RecordedRequest, request: &ModelRequest) {
    record.model.clone_from(&request.model);
    request.last_user().0.clone_into(&mut record.last_user);
    request
        .last_tool_result()
        .clone_into(&mut record.last_tool_result);
    record.tools = request.tools.iter().map(|tool| tool.name.clone()).collect();
}

/// Reads a body; fails with the status to answer.
fn read_json(request: &HttpRequest) -> Result<Value, u16> {
    match request.header("content-encoding") {
        None | Some("identity") => serde_json::from_slice(&request.body).map_err(|_| 400),
        // A body that cannot be read must not look like an empty one.
        Some(_) => Err(415),
    }
}

/// Makes a JSON text unreadable.
fn break_json(text: &mut String) {
    text.truncate(text.floor_char_boundary(text.len() / 2));
    text.push_str("}{");
}
