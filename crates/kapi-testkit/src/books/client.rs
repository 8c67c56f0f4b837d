//! The agent of a story: asks several things at once, and leaves some answers in the middle.
//!
//! Knows the gateway's address and the placeholder, as any agent does.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use kapi_agent::launch::upstream::UpstreamDialect;
use kapi_sys::cancel::Cancel;
use serde_json::{Value, json};

use crate::books::story::{CallFault, CallPlan, PRICED, Story, UNPRICED};

/// How long at most nothing is read before it is looked whether the run goes on.
const LOOK: Duration = Duration::from_millis(20);

/// Makes every call of a story, or as many as are made before the run is cancelled.
pub(super) fn ask_all(story: &Story, url: &str, placeholder: &str, cancel: &Cancel) {
    let next = AtomicUsize::new(0);
    let address = url.trim_start_matches("http://");
    let lane = || {
        while !cancel.is_raised() {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let Some(plan) = story.calls.get(number) else {
                return;
            };
            let request = request(story.dialect, number, plan, placeholder);
            // Whoever is hung up on asks the next thing.
            drop(ask(address, &request, plan, cancel));
        }
    };
    thread::scope(|scope| {
        for _ in 0..story.lanes {
            scope.spawn(lane);
        }
    });
}

fn ask(address: &str, request: &[u8], plan: &CallPlan, cancel: &Cancel) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.write_all(request)?;
    let mut buffer = [0_u8; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) if plan.fault == CallFault::AgentLeaves => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if cancel.is_raised() {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn request(dialect: UpstreamDialect, number: usize, plan: &CallPlan, key: &str) -> Vec<u8> {
    let name = if plan.is_priced { PRICED } else { UNPRICED };
    let model = format!("{name}-{number:04}");
    let filler = "x".repeat(usize::try_from(plan.filler_bytes).unwrap_or(0));
    let message = json!([{ "role": "user", "content": filler }]);
    let (path, mut body, limit) = match dialect {
        UpstreamDialect::Anthropic => (
            "/v1/messages".to_owned(),
            json!({ "model": model, "stream": true, "messages": message }),
            "max_tokens",
        ),
        UpstreamDialect::Responses => (
            "/v1/responses".to_owned(),
            json!({ "model": model, "stream": true, "input": message }),
            "max_output_tokens",
        ),
        UpstreamDialect::Chat => (
            "/v1/chat/completions".to_owned(),
            json!({ "model": model, "stream": true, "messages": message }),
            "max_completion_tokens",
        ),
        UpstreamDialect::Gemini => (
            format!("/v1beta/models/{model}:generateContent"),
            json!({ "contents": [{ "parts": [{ "text": filler }] }] }),
            "maxOutputTokens",
        ),
    };
    if let (Some(most), Value::Object(body)) = (plan.output_named, &mut body) {
        match dialect {
            UpstreamDialect::Gemini => {
                body.insert("generationConfig".to_owned(), json!({ limit: most }));
            }
            UpstreamDialect::Anthropic | UpstreamDialect::Responses | UpstreamDialect::Chat => {
                body.insert(limit.to_owned(), json!(most));
            }
        }
    }
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nx-api-key: {key}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
