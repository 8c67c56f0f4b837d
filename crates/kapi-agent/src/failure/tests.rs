//! The wording of providers and CLIs, case by case.

use kapi_core::agent_end::ProviderFailureKind as Kind;

use super::{is_refusal, known, said_on_stderr};

/// Messages of real runs, or in a provider's documented wording.
const MESSAGES: &[(&str, Option<Kind>)] = &[
    (
        "Failed to authenticate. API Error: 401 injected failure",
        Some(Kind::Unauthorized),
    ),
    (
        "API Error: Unable to connect to API (ConnectionRefused)",
        Some(Kind::Unreachable),
    ),
    (
        "API Error: 529 {\"type\":\"error\"}",
        Some(Kind::ServerError),
    ),
    (
        "unexpected status 401 Unauthorized: x, url: http://127.0.0.1:8080/v1",
        Some(Kind::Unauthorized),
    ),
    (
        "unexpected status 404 Not Found: model",
        Some(Kind::BadRequest),
    ),
    (
        "exceeded retry limit, last status: 429 Too Many Requests",
        Some(Kind::RateLimited),
    ),
    (
        "exceeded retry limit, last status: 500 Internal Server Error",
        Some(Kind::ServerError),
    ),
    (
        "Connection failed: error sending request",
        Some(Kind::Unreachable),
    ),
    (
        "stream disconnected before completion: Transport error: network error: error decoding response body",
        Some(Kind::TruncatedStream),
    ),
    (
        "[API Error: {\"error\":{\"code\":401,\"message\":\"x\"}}]",
        Some(Kind::Unauthorized),
    ),
    (
        "[API Error: {\"error\":{\"code\": 503,\"message\":\"x\"}}]",
        Some(Kind::ServerError),
    ),
    ("[API Error: terminated]", Some(Kind::TruncatedStream)),
    (
        "[API Error: exception TypeError: fetch failed sending request]",
        Some(Kind::Unreachable),
    ),
    ("429 injected failure", Some(Kind::RateLimited)),
    ("Connection error.", Some(Kind::Unreachable)),
    (
        "API Error: Connection to the API was lost (ECONNRESET). This is usually temporary",
        Some(Kind::TruncatedStream),
    ),
    (
        "API Error: Unable to connect to API (ECONNRESET)",
        Some(Kind::Unreachable),
    ),
    (
        "API Error: Request rejected (429) · injected failure",
        Some(Kind::RateLimited),
    ),
    (
        "API Error: Failed to parse JSON",
        Some(Kind::TruncatedStream),
    ),
    (
        "We’re currently experiencing high demand, which may cause temporary errors.",
        Some(Kind::ServerError),
    ),
    (
        "{\"error\": {\"type\": \"invalid_request_error\"}}",
        Some(Kind::BadRequest),
    ),
    (
        "Model stream ended with empty response text.",
        Some(Kind::EmptyAnswer),
    ),
    (
        "Model stream ended without a finish reason.",
        Some(Kind::TruncatedStream),
    ),
    ("You've hit your usage limit.", Some(Kind::RateLimited)),
    ("something odd", None),
    ("took 4290 ms, 500 files", None),
    ("", None),
];

#[test]
fn messages_are_classified() {
    for (message, expected) in MESSAGES {
        let kind = known(None, message).map(|failure| failure.kind);
        assert_eq!(kind, *expected, "{message}");
    }
}

#[test]
fn a_status_outweighs_words() {
    let failure = known(Some(403), "rate limit").unwrap();
    assert_eq!(failure.kind, Kind::Unauthorized);
    assert!(known(Some(200), "fine").is_none());
}

#[test]
fn waits_are_read() {
    let cases = [
        ("429: Please try again in 1.5s.", Some(1_500)),
        ("429: Please try again in 20s. Visit", Some(20_000)),
        ("429 try again in 6m30s", Some(390_000)),
        ("429 try again in 850ms", Some(850)),
        ("429 {\"retryDelay\": \"34s\"}", Some(34_000)),
        (
            "429 {\\\"retryDelay\\\":\\\"34.074824224s\\\"}",
            Some(34_074),
        ),
        ("429 retry after 7", Some(7_000)),
        ("429 retry-after: 12", Some(12_000)),
        ("429 try again in 99999999999999999999h", None),
        ("429 try again in 9999999h", Some(7 * 24 * 3_600_000)),
        ("429 try again in a while", None),
        ("429", None),
    ];
    for (message, expected) in cases {
        assert_eq!(
            known(None, message).unwrap().retry_after_ms,
            expected,
            "{message}"
        );
    }
}

#[test]
fn a_refused_connection_is_no_refusal() {
    assert!(!is_refusal("connect ECONNREFUSED: connection refused"));
    assert!(is_refusal("Response stopped due to safety reasons."));
}

#[test]
fn tools_cannot_speak_for_the_provider_in_passing() {
    assert!(said_on_stderr("test result: 429 passed\nconnection refused by mock\n").is_none());
    assert!(said_on_stderr("API Error: 500 x\n").is_some());
    let buried = format!("API Error: 500 x\n{}", "line\n".repeat(100));
    assert!(said_on_stderr(&buried).is_none());
}
