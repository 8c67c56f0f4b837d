//! The Pi coding agent, over each API it speaks.

use kapi_testkit::agent_tools::Cli;
use serde_json::json;

use crate::real::Launches;
use crate::real::session::{Ended, KEY, Session};

const LAUNCHES: Launches = Launches {
    cli: Cli::Pi,
    first: |session, prompt| run(session, "openai-completions", &[prompt]),
    resume: |session, first, prompt| resume(session, "openai-completions", first, prompt),
    judge: |session, prompt| {
        let lean = ["--no-tools", "--no-session", "-ne", "-ns", "-nc", prompt];
        run(session, "openai-completions", &lean)
    },
    last_text,
};

fn run(session: &Session, api: &str, args: &[&str]) -> Ended {
    let url = session.url();
    let base_url = match api {
        "anthropic-messages" => url,
        "google-generative-ai" => format!("{url}/v1beta"),
        _ => format!("{url}/v1"),
    };
    let models = json!({ "providers": { "scripted": {
        "baseUrl": base_url, "api": api, "apiKey": "SCRIPTED_KEY",
        "compat": { "supportsDeveloperRole": false, "supportsReasoningEffort": false },
        "models": [{
            "id": "scripted", "contextWindow": 128_000, "maxTokens": 8192,
            "cost": { "input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0 },
        }],
    } } });
    session.configure(".pi/agent/models.json", &models.to_string());
    let base = [
        "-p",
        "--mode",
        "json",
        "--provider",
        "scripted",
        "--model",
        "scripted",
    ];
    let environment = [
        ("SCRIPTED_KEY", KEY),
        ("PI_OFFLINE", "1"),
        ("PI_TELEMETRY", "0"),
    ];
    session.run(&[&base[..], args].concat(), &environment)
}

fn resume(session: &Session, api: &str, first: &Ended, prompt: &str) -> Ended {
    let id = &first.last_of_type("session")["id"];
    run(
        session,
        api,
        &["--session", id.as_str().expect("an id"), prompt],
    )
}

fn last_text(ended: &Ended) -> String {
    let messages = &ended.last_of_type("agent_end")["messages"];
    let last = messages.as_array().and_then(|messages| messages.last());
    let content = last.map(|message| &message["content"]);
    let texts = content
        .and_then(|content| content.as_array())
        .into_iter()
        .flatten();
    texts.filter_map(|part| part["text"].as_str()).collect()
}

#[test]
fn tools_and_resume() {
    super::check_tools_and_resume(&LAUNCHES);
}

#[test]
fn tools_and_resume_over_responses() {
    super::check_tools_and_resume(&Launches {
        first: |session, prompt| run(session, "openai-responses", &[prompt]),
        resume: |session, first, prompt| resume(session, "openai-responses", first, prompt),
        ..LAUNCHES
    });
}

#[test]
fn tools_and_resume_over_anthropic() {
    super::check_tools_and_resume(&Launches {
        first: |session, prompt| run(session, "anthropic-messages", &[prompt]),
        resume: |session, first, prompt| resume(session, "anthropic-messages", first, prompt),
        ..LAUNCHES
    });
}

#[test]
fn tools_and_resume_over_gemini() {
    super::check_tools_and_resume(&Launches {
        first: |session, prompt| run(session, "google-generative-ai", &[prompt]),
        resume: |session, first, prompt| resume(session, "google-generative-ai", first, prompt),
        ..LAUNCHES
    });
}

#[test]
fn judge() {
    super::check_judge(&LAUNCHES);
}

#[test]
fn rate_limit() {
    super::check_rate_limit(&LAUNCHES);
}

#[test]
fn refused_key() {
    let ended = super::check_refused_key(&LAUNCHES);
    // Exit code 0 in spite of it: only the last message tells.
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let messages = &ended.last_of_type("agent_end")["messages"];
    let last = messages
        .as_array()
        .and_then(|messages| messages.last())
        .expect("a message");
    assert_eq!(last["stopReason"], "error", "{last}");
    assert!(last["errorMessage"].to_string().contains("401"), "{last}");
}
