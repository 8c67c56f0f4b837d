//! The messages of JSON-RPC 2.0, as far as the protocol uses them.
//!
//! Reads one frame and writes answers; which methods there are is the server's business.

use serde_json::{Value, json};

/// The text was not JSON.
pub const PARSE_ERROR: i64 = -32_700;
/// It was JSON, but no request.
pub const INVALID_REQUEST: i64 = -32_600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The method's parameters are not its.
pub const INVALID_PARAMS: i64 = -32_602;
/// The server cannot do it now.
pub const INTERNAL_ERROR: i64 = -32_603;

/// What came in one frame.
#[derive(Debug, Clone, PartialEq)]
pub enum IncomingMessage {
    /// A request, which is answered.
    Request {
        /// Its id, a text or a number.
        id: Value,
        /// What is asked for.
        method: String,
        /// With what.
        params: Value,
    },
    /// A notification, which is not.
    Notification {
        /// What it tells of.
        method: String,
        /// With what.
        params: Value,
    },
    /// The answer to a request of ours.
    Answer {
        /// The request's id.
        id: Value,
        /// What was answered; null where the client could not answer.
        result: Value,
    },
    /// Nothing that has a meaning; the id is null where none could be read.
    Invalid {
        /// Its id.
        id: Value,
    },
}

/// Why a request cannot be followed.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestError {
    /// The code of JSON-RPC.
    pub code: i64,
    /// What is wrong.
    pub text: String,
    /// What a client can make of it.
    pub data: Option<Value>,
}

impl RequestError {
    /// Returns an error that says all in its text.
    #[must_use]
    pub const fn new(code: i64, text: String) -> Self {
        Self {
            code,
            text,
            data: None,
        }
    }
}

impl IncomingMessage {
    /// Reads a message.
    #[must_use]
    pub fn read(message: &Value) -> Self {
        let id = message.get("id").cloned().unwrap_or(Value::Null);
        let is_id = id.is_string() || id.is_number();
        let invalid = |id: Value| Self::Invalid {
            id: if is_id { id } else { Value::Null },
        };
        if message.get("jsonrpc") != Some(&json!("2.0")) {
            return invalid(id);
        }
        let params = || message.get("params").cloned().unwrap_or(Value::Null);
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        match message.get("method").and_then(Value::as_str) {
            Some(method) if is_id => Self::Request {
                method: method.to_owned(),
                params: params(),
                id,
            },
            Some(method) if message.get("id").is_none() => Self::Notification {
                method: method.to_owned(),
                params: params(),
            },
            None if is_answer => Self::Answer {
                result: message.get("result").cloned().unwrap_or(Value::Null),
                id,
            },
            Some(_) | None => invalid(id),
        }
    }
}

/// Returns the answer to a request.
#[must_use]
pub fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Returns the answer to a request that cannot be followed.
#[must_use]
pub fn error(id: &Value, error: &RequestError) -> Value {
    let mut said = json!({"code": error.code, "message": error.text});
    if let Some(data) = &error.data {
        said["data"] = data.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "error": said})
}

/// Returns a request of ours.
#[must_use]
pub fn request(id: &str, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns a notification of ours.
#[must_use]
pub fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}
